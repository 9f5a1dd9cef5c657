"""Text that stays text in Markdown."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

from tacit.reports._words import clean

__all__ = ["markdown_text"]

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# signs with a meaning anywhere in a line, an underscore at the edge of a word; a colon
# before a word, a dot after www and an at sign are what makes a link of bare text
_SIGNS = re.compile(
    r"[\\`*{}\[\]#|~$@]|(?<![^\W_])_|_(?![^\W_])|:(?![\s\d]|$)|(?<=www)\.",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^(\s*\d+)([.)])(?=\s|$)")


def markdown_text(value: Any) -> Markup:
    """Return a value as Markdown that shows it literally, on one line.

    Text the templates made safe passes as it is.
    """
    if isinstance(value, Markup):
        return value
    text = clean(value)
    text = "".join(_ENTITIES.get(sign, sign) for sign in text)
    text = _SIGNS.sub(lambda match: "\\" + match.group(), text)
    text = _NUMBERED.sub(r"\1\\\2", text)
    if text[:1] in ("-", "+", "="):  # a list or a heading, where a line begins
        text = "\\" + text
    return Markup(text)
