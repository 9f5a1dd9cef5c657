"""Texts of categories: when two are the same, and what they stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["canonical", "labels", "runs_as_formula"]

TRUTHS = {"true": True, "false": False}
# A whole number that went through a column of floats
DRIFTED = re.compile(r"([+-]?[0-9]+)\.0*", re.ASCII)
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?", re.ASCII)
# No two parts of it can match the same digits, so that it takes linear time
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
# What a spreadsheet takes for the beginning of a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def canonical(text: str) -> str:
    """Return the one form of texts that stand for the same category.

    ``1.0`` is ``1``: a column of whole numbers turns into floats where one is missing.
    ``True`` is ``true``: programs write it either way.
    """
    lowered = text.lower()
    if lowered in TRUTHS:
        return lowered
    drifted = DRIFTED.fullmatch(text)
    return drifted.group(1) if drifted else text


def labels(categories: Sequence[str]) -> list[Any]:
    """Return what the categories stand for.

    Truth values where all are, whole numbers where all are, then numbers, then texts.
    """
    texts = [canonical(category) for category in categories]
    if all(text in TRUTHS for text in texts):
        return [TRUTHS[text] for text in texts]
    if all(map(WHOLE.fullmatch, texts)):
        return list(map(int, texts))
    if all(map(DECIMAL.fullmatch, texts)):
        numbers = list(map(float, texts))
        if len(set(numbers)) == len(numbers):
            return numbers
    return list(categories)


def runs_as_formula(text: str) -> bool:
    """Whether a spreadsheet that opens the text would run it."""
    return text.startswith(FORMULA) and NUMBER.fullmatch(text) is None
