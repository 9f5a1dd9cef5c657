"""Templates with their filters, and charts at the widths they are shown at."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tacit.reports import _words
from tacit.reports._charts import Chart
from tacit.reports._markdown import markdown_text

__all__ = ["BETWEEN", "BOTH", "chart", "environment"]

# Charts are drawn twice, for a desk and for a telephone; style.css shows one of them.
# The panels of many classes are drawn once, in between
WIDE, NARROW, BETWEEN = 720, 340, 480
BOTH = (WIDE, NARROW)

_FILTERS = {
    "at_most": _words.at_most,
    "count": _words.count,
    "event": _words.event_words,
    "factor": _words.factor,
    "figure": str,
    "fixed": _words.fixed,
    "fixed_down": _words.fixed_down,
    "fixed_up": _words.fixed_up,
    "moment": _words.moment,
    "number": _words.number,
    "number_down": _words.number_down,
    "number_up": _words.number_up,
    "one_in": _words.one_in,
    "percent": _words.percent,
    "text": _words.clean,
    "tiny_up": _words.tiny_up,
}


@lru_cache(maxsize=2)
def environment(html: bool) -> Environment:
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
    """Return filters whose figures Markdown leaves as they are.

    Those that pass on text of the facts are not among them.
    """
    figures = set(filters) - {"event", "moment", "text"}

    def safe(function: Any) -> Any:
        return lambda *args: Markup(function(*args))

    return {
        name: safe(function) if name in figures else function
        for name, function in filters.items()
    }


def chart(
    name: str,
    title: str,
    text: str,
    draw: Callable[[int], Chart],
    widths: tuple[int, ...] = BOTH,
) -> list[tuple[str, Markup]]:
    """Return a chart at each width, with the class of the width in style.css."""
    classes = {WIDE: "wide", NARROW: "narrow", BETWEEN: "between"}
    return [
        (classes[width], draw(width).svg(f"{name}-{width}", title, text))
        for width in widths
    ]
