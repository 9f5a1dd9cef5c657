"""Strings of categories: which are equal, and the labels they stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["canonical", "labels", "runs_as_formula"]

TRUTHS = {"true": True, "false": False}
# An integer that was stored in a column of floats
INTEGER_AS_FLOAT = re.compile(r"([+-]?[0-9]+)\.0*", re.ASCII)
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?", re.ASCII)
# No two parts can match the same digits, so matching takes linear time
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
# Beginnings of formulas in spreadsheets
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def canonical(text: str) -> str:
    """Return the canonical form of a category.

    ``1.0`` is ``1``, because a column of integers turns into floats if one is missing.
    ``True`` is ``true``, because programs write it either way.
    """
    lowered = text.lower()
    if lowered in TRUTHS:
        return lowered
    integer = INTEGER_AS_FLOAT.fullmatch(text)
    return integer.group(1) if integer else text


def labels(categories: Sequence[str]) -> list[Any]:
    """Return the labels that categories stand for.

    The first type that fits all of them: booleans, integers, numbers, strings.
    """
    texts = [canonical(category) for category in categories]
    if all(text in TRUTHS for text in texts):
        return [TRUTHS[text] for text in texts]
    if all(map(INTEGER.fullmatch, texts)):
        return list(map(int, texts))
    if all(map(DECIMAL.fullmatch, texts)):
        numbers = list(map(float, texts))
        if len(set(numbers)) == len(numbers):
            return numbers
    return list(categories)


def runs_as_formula(text: str) -> bool:
    """Whether a spreadsheet would run the string as a formula."""
    return text.startswith(FORMULA) and NUMBER.fullmatch(text) is None
