"""Numbers, dates and events as strings, and the templates that use them."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from math import ceil, exp, floor, isfinite, log10
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tacit.privacy.budget import SPENT_ERROR
from tacit.privacy.event_data import restore
from tacit.privacy.report import in_words

__all__ = [
    "NOTHING",
    "TIMES",
    "at_most",
    "clean",
    "count",
    "environment",
    "event_words",
    "factor",
    "fixed",
    "fixed_down",
    "fixed_up",
    "markdown_text",
    "moment",
    "number",
    "number_down",
    "number_up",
    "one_in",
    "percent",
    "spent_up",
    "stamp",
    "tiny",
    "tiny_up",
    "truncated",
]

# Sign for a missing value, and the sign between a name and its count
NOTHING, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SCALES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# characters with a meaning anywhere in a line, an underscore at the edge of a word; a
# colon before a word, a dot after www and an at sign turn plain text into a link
_SIGNS = re.compile(
    r"[\\`*{}\[\]#|~$@]|(?<![^\W_])_|_(?![^\W_])|:(?![\s\d]|$)|(?<=www)\.",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^(\s*\d+)([.)])(?=\s|$)")


def clean(value: Any) -> str:
    """Return a string on one line, without control or bidirectional characters.

    Escaping markup leaves these characters in; XML forbids some, and others make a name
    look like a different one.
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if character in "\t\r\n":
            kept.append(" ")
        elif category in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp"):
            kept.append("\N{REPLACEMENT CHARACTER}")
        else:
            kept.append(character)
    return "".join(kept)


def truncated(value: Any, length: int = 120) -> str:
    """Return a clean string of at most this length."""
    text = clean(value)
    return text if len(text) <= length else text[: length - 1] + "…"


def count(n: float) -> str:
    """Return an integer with thousands separators."""
    return f"{n:,.0f}"


def _rounded(value: float, digits: int, rounding: str) -> float:
    """Return the number rounded to significant digits, in decimal arithmetic."""
    context = Context(prec=digits, rounding=rounding)
    return float(context.create_decimal(repr(float(value))))


def _placed(value: float, positions: int, rounding: str) -> Decimal:
    """Return the number rounded to a number of decimals."""
    exact = Decimal(repr(float(value)))
    return exact.quantize(Decimal(1).scaleb(-positions), rounding=rounding)


def number(
    value: float | None, digits: int = 4, rounding: str = ROUND_HALF_EVEN
) -> str:
    """Return significant digits, without an exponent for numbers of usual size."""
    if value is None:
        return NOTHING
    if not isfinite(value):
        return "infinite" if value > 0 else NOTHING
    if value == 0:
        return "0"
    kept = max(digits, floor(log10(abs(value))) + 1)
    value = _rounded(value, kept, rounding)
    size = floor(log10(abs(value)))
    if size < -4:
        return tiny(value, rounding)
    if size >= digits:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{max(digits - 1 - size, 0)}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\N{MINUS SIGN}")


def number_up(value: float | None) -> str:
    """Return a guarantee or an upper limit, rounded up."""
    return number(value, rounding=ROUND_CEILING)


def spent_up(epsilon: float | None) -> str:
    """Return what is spent, rounded up as the command line and reports print it."""
    return number_up(epsilon if epsilon is None else epsilon * (1 - SPENT_ERROR))


def number_down(value: float | None) -> str:
    """Return a lower limit, rounded down."""
    return number(value, rounding=ROUND_FLOOR)


def fixed(
    value: float | None, positions: int = 3, rounding: str = ROUND_HALF_EVEN
) -> str:
    """Return a score with a fixed number of decimals."""
    if value is None or not isfinite(value):
        return NOTHING
    return f"{_placed(value, positions, rounding):,f}".replace("-", "\N{MINUS SIGN}")


def fixed_up(value: float | None) -> str:
    """Return the upper end of a score, rounded up."""
    return fixed(value, rounding=ROUND_CEILING)


def fixed_down(value: float | None) -> str:
    """Return the lower end of a score, rounded down."""
    return fixed(value, rounding=ROUND_FLOOR)


def tiny(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number as a power of ten."""
    if value == 0:
        return "0"
    value = _rounded(value, 3, rounding)
    mantissa, power = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    ten = "10" + str(int(power)).translate(_RAISED)
    if mantissa == "1":
        return ten
    return f"{mantissa} {TIMES} {ten}".replace("-", "\N{MINUS SIGN}")


def tiny_up(value: float) -> str:
    """Return a small upper limit, such as a delta, as a power of ten, rounded up."""
    return tiny(value, ROUND_CEILING)


def one_in(probability: float) -> str:
    """Return a small probability as ``1 in N``, with N rounded down."""
    if probability <= 0:
        return "never"
    if probability >= 1:
        return "always"
    n = 1 / probability * (1 + 1e-14)  # one over one over n is n again
    if n >= 1e15:
        return f"1 in {tiny(n, ROUND_FLOOR)}"
    for scale, name in _SCALES:
        if n >= scale:
            figure = f"{floor(n / scale * 100) / 100:.2f}".rstrip("0").rstrip(".")
            return f"1 in {figure} {name}"
    return f"1 in {floor(n):,}" if n >= 10 else f"1 in {floor(n * 10) / 10:g}"


def percent(fraction: float, digits: int = 1) -> str:
    """Return a fraction in percent, rounded."""
    return f"{100 * fraction:.{digits}f}".rstrip("0").rstrip(".") + "%"


def at_most(fraction: float) -> str:
    """Return an upper bound on a fraction in percent, rounded up."""
    positions = 3 if fraction >= 0.0095 else 4
    figure = 100 * min(_placed(fraction, positions, ROUND_CEILING), Decimal(1))
    return f"{figure:.{positions - 2}f}".removesuffix(".0") + "%"


def factor(epsilon: float) -> str:
    """Return e to the power epsilon, rounded up."""
    if epsilon > 20:
        return f"e to the power {number_up(epsilon)}"
    grown = exp(epsilon)
    positions = 2 if grown < 100 else 0
    return f"{ceil(grown * 10**positions) / 10**positions:,.{positions}f}"


def moment(text: Any) -> str:
    """Return an ISO time with the name of the month, in UTC; other strings as is."""
    when = _utc(text)
    return clean(text) if when is None else f"{when.day} {when:%B %Y, %H:%M} UTC"


def stamp(text: Any) -> str:
    """Return an ISO time for a table, in UTC; other strings as they are."""
    when = _utc(text)
    return clean(text) if when is None else f"{when:%Y-%m-%d %H:%M}"


def _utc(text: Any) -> datetime | None:
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return when if when.tzinfo is None else when.astimezone(UTC)


def event_words(data: Any) -> str:
    """Return a described event as a phrase."""
    return clean(in_words(restore(data)))


def markdown_text(value: Any) -> Markup:
    """Return a value as Markdown that shows it literally, on one line.

    Safe text of the templates is returned as it is.
    """
    if isinstance(value, Markup):
        return value
    text = clean(value)
    text = "".join(_ENTITIES.get(c, c) for c in text)
    text = _SIGNS.sub(lambda match: "\\" + match.group(), text)
    text = _NUMBERED.sub(r"\1\\\2", text)
    if text[:1] in ("-", "+", "="):  # a list or a heading, where a line begins
        text = "\\" + text
    return Markup(text)


_FILTERS = {
    **{"event": event_words, "figure": str, "text": clean},
    **{
        function.__name__: function
        for function in (
            *(at_most, count, factor, fixed, fixed_down, fixed_up, moment, number),
            *(number_down, number_up, one_in, percent, spent_up, tiny_up),
        )
    },
}


@lru_cache(maxsize=2)
def environment(html: bool) -> Environment:
    """Return the templates, whose output is HTML or Markdown."""
    environment = Environment(
        loader=PackageLoader("tacit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # applied to every expression, so that no template can forget it
        finalize=None if html else markdown_text,
    )
    environment.filters |= _FILTERS if html else _safe(_FILTERS)
    return environment


def _safe(filters: dict[str, Any]) -> dict[str, Any]:
    """Return filters whose results Markdown need not escape.

    The results of the others contain strings of the facts.
    """
    figures = set(filters) - {"event", "moment", "text"}

    def safe(function: Any) -> Any:
        return lambda *args: Markup(function(*args))

    return {
        name: safe(function) if name in figures else function
        for name, function in filters.items()
    }
