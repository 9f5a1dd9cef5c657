"""Charts of a report, drawn as SVG in the colors of the page that shows them.

All markup comes from `Markup.format`, which escapes what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any
from unicodedata import east_asian_width

from markupsafe import Markup

from tacit.reports._format import clean, number, percent, tiny

__all__ = [
    "BETWEEN",
    "BOTH",
    "NARROW",
    "Chart",
    "attacker_chart",
    "axis",
    "chart",
    "coefficient_chart",
    "curve_chart",
    "names_axis",
    "spend_chart",
]

Points = Sequence[Mapping[str, Any]]
Positions = Iterable[tuple[float, float]]

# Marks of the records of a ledger: a color of style.css, and corners in dot radii
KINDS: dict[str, tuple[str, Sequence[tuple[float, float]]]] = {
    "charge": ("accent", []),
    "reserve": ("amber", [(0, -1.2), (1.2, 0.9), (-1.2, 0.9)]),
    "cancel": ("amber", [(-1, -1), (1, -1), (1, 1), (-1, 1)]),
    "void": (
        "warn",
        [
            *((-0.5, -1.4), (0.5, -1.4), (0.5, -0.5), (1.4, -0.5), (1.4, 0.5)),
            *((0.5, 0.5), (0.5, 1.4), (-0.5, 1.4), (-0.5, 0.5), (-1.4, 0.5)),
            *((-1.4, -0.5), (-0.5, -0.5)),
        ],
    ),
    "allow": ("ink", [(0, -1.4), (1.2, 0), (0, 1.4), (-1.2, 0)]),
}

# Charts are drawn twice, for desktop and phone; style.css shows one of them.
# The panels of many classes are drawn once, in between
WIDE, NARROW, BETWEEN = 720, 340, 480
BOTH = (WIDE, NARROW)

_TOP, _RIGHT, _BOTTOM = 8, 18, 44
_LETTER = 7.5  # width of a letter of a label in most fonts, in pixels
_LARGEST = 8e307  # largest value drawn: the difference of two is still finite


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


def attacker_chart(fit: Points, budget: Points | None, width: int) -> Chart:
    """Chart of the largest true-positive rate against the false-positive rate."""
    ticks = {k / 5: percent(k / 5) for k in range(6)}
    chart = Chart(
        _Axis("false alarms (false-positive rate)", 0, 1, ticks),
        _Axis("detected (true-positive rate)", 0, 1, ticks),
        width,
        min(width, 430) - 62,
    )
    chart.line([(0, 0), (1, 1)], "muted", 1.5, stroke_dasharray="2,4")
    if budget is not None:
        bound = [(point["false"], point["true"]) for point in budget]
        chart.line(bound, "warn", stroke_dasharray="7,4")
    chart.line([(point["false"], point["true"]) for point in fit], "accent")
    return chart


def curve_chart(points: Points, guarantee: Mapping[str, float], width: int) -> Chart:
    """Chart of delta against epsilon on a log scale, with the guarantee as a point."""
    lowest = min(point["delta"] for point in points)
    x, y = guarantee["epsilon"], log10(max(guarantee["delta"], lowest))
    right = max(1.05 * x, *(point["epsilon"] for point in points))
    bottom = min(log10(lowest), y) - 0.3
    powers = range(0, floor(-bottom) + 1, ceil(-bottom / 6))
    chart = Chart(
        axis("epsilon (ε)", 0, right, 4 if width < 500 else 7),
        _Axis(
            "delta (δ), log scale",
            bottom,
            0,
            {-power: tiny(10.0**-power) if power else "1" for power in powers},
        ),
        width,
        230 if width < 500 else 280,
    )
    dots = {"stroke_dasharray": "3,3", "opacity": 0.8}
    chart.line([(x, bottom), (x, 0)], "warn", 1, **dots)
    chart.line([(0, y), (right, y)], "warn", 1, **dots)
    chart.line([(p["epsilon"], log10(p["delta"])) for p in points], "accent")
    chart.mark(x, y, 5, "warn")
    # the curve falls, so the corner below on the left is empty
    across, down = chart.at(x, y)
    style = {"text_anchor": "end", "font_size": 13}
    chart.text((across - 8, down + 18), "guarantee", "warn", **style)
    return chart


def spend_chart(
    steps: Points, marks: Points, budget: float, last: int, width: int
) -> Chart:
    """Chart of the spend after each record, with the budget as a line."""
    right = last + max(1, last // 50)
    # the spend stays until the next record
    ends = [(step["seq"], step["spent"]) for step in steps]
    ends.append((right, ends[-1][1]))
    stairs = [
        [(seq, spent), (later, spent)] for (seq, spent), (later, _) in pairwise(ends)
    ]
    chart = Chart(
        axis("record", 0, right, 6, least=1),
        axis("epsilon spent", 0, 1.08 * max(budget, *(e[1] for e in ends)), 7),
        width,
        210 if width < 500 else 260,
    )
    chart.line([(0, budget), (right, budget)], "warn", stroke_dasharray="7,4")
    chart.line([point for stair in stairs for point in stair], "accent")
    radius = 4.7 if len(marks) <= 40 else 3
    for mark in marks:
        chart.mark(mark["seq"], mark["spent"], radius, *KINDS[mark["kind"]])
    return chart


def coefficient_chart(
    rows: Points,
    width: int,
    title: str = "coefficient",
    among: tuple[float, ...] = (),
) -> Chart:
    """Chart of coefficients, first on top, with bars from low to high if known.

    The axis has all numbers of ``among`` too.
    """
    ends = [row[name] for row in rows for name in ("value", "low", "high")]
    known = [0.0, *among, *(1.04 * end for end in ends if _is_known(end))]
    chart = Chart(
        axis(title, min(known), max(known), 4 if width < 500 else 9),
        names_axis([row["name"] for row in rows], width),
        width,
        20 * len(rows),
    )
    chart.line([(0, 0), (0, len(rows))], "muted", 1)
    for k, row in enumerate(rows):
        if _is_known(row["low"]) and _is_known(row["high"]):
            bar = [(row["low"], k + 0.5), (row["high"], k + 0.5)]
            chart.line(bar, "accent", 6, opacity=0.3, stroke_linecap="round")
        if _is_known(row["value"]):
            chart.mark(row["value"], k + 0.5, 4.2, "accent")
    return chart


@dataclass(frozen=True)
class _Axis:
    """An axis: its two ends and its labels by value.

    An axis of names has no title, no line and no grid.
    """

    title: str
    start: float
    end: float
    labels: Mapping[float, str]

    def fraction(self, value: float) -> float:
        return (value - self.start) / (self.end - self.start)


def names_axis(names: Sequence[str], width: int) -> _Axis:
    """Return an axis of names, the first on top."""
    shown = [_truncated(name, 16 if width < 500 else 32) for name in names]
    return _Axis("", len(names), 0, {k + 0.5: name for k, name in enumerate(shown)})


def axis(title: str, low: float, high: float, most: int, least: float = 0) -> _Axis:
    """Return an axis with at most ``most`` round steps of at least ``least``."""
    if high - low < 1 / _LARGEST:
        low, high = low - 1, high + 1
    power = 10.0 ** floor(log10((high - low) / most))
    steps = (factor * power for factor in (1, 2, 5, 10))
    step = max(least, next(step for step in steps if (high - low) / step <= most))
    values = (k * step for k in range(ceil(low / step), floor(high / step) + 1))
    labels = {
        value: number(value) if abs(value) < 1e6 else tiny(value) for value in values
    }
    return _Axis(title, low, high, labels)


class Chart:
    """Lines, marks and text in a frame of two axes.

    The width is that of the chart with all labels, in pixels, the height of the frame.
    """

    def __init__(self, x: _Axis, y: _Axis, width: int, height: int) -> None:
        self._x, self._y, self._width, self._height = x, y, width, height
        longest = max(map(_columns, y.labels.values()))
        self._left = _LETTER * longest + (32 if y.title else 12)
        self._parts: list[Markup] = []
        self._frame()

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of two values in pixels from the left and the top."""
        across = self._width - _RIGHT - self._left
        return (
            self._left + across * self._x.fraction(x),
            _TOP + self._height * (1 - self._y.fraction(y)),
        )

    def line(
        self, points: Positions, color: str, width: float = 2, **style: Any
    ) -> None:
        """Draw a line through points."""
        path = _path([self.at(*point) for point in points])
        style = {"stroke": f"var(--{color})", "stroke_width": width, **style}
        self._add("path", d=path, fill="none", **style)

    def area(self, points: Positions, color: str, opacity: float) -> None:
        """Fill the polygon with these corners."""
        path = _path([self.at(*point) for point in points])
        self._add("path", d=path + "Z", fill=f"var(--{color})", opacity=opacity)

    def mark(
        self, x: float, y: float, radius: float, color: str, corners: Positions = ()
    ) -> None:
        """Draw a dot, or a shape with these corners, in radii from the point."""
        (cx, cy), fill = self.at(x, y), f"var(--{color})"
        path = _path([(cx + radius * dx, cy + radius * dy) for dx, dy in corners])
        if path:
            self._add("path", d=path, fill=fill)
        else:
            self._add("circle", cx=cx, cy=cy, r=radius, fill=fill)

    def text(
        self, at: tuple[float, float], text: str, color: str, **style: Any
    ) -> None:
        """Write text at a position in pixels: its start, middle or end."""
        style = {"font_size": 12, "fill": f"var(--{color})", **style}
        self._add("text", text, x=at[0], y=at[1], **style)

    def svg(self, name: str, title: str, description: str) -> Markup:
        """Return the drawing, with a title and a description for screen readers.

        Identifiers inside start with ``name``, which is unique in the page.
        """
        return Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img"'
            ' aria-labelledby="{name}-title {name}-text">'
            '<title id="{name}-title">{}</title><desc id="{name}-text">{}</desc>{}'
            "</svg>"
        ).format(
            self._width,
            _TOP + self._height + _BOTTOM,
            clean(title),
            clean(description),
            Markup().join(self._parts),
            name=name,
        )

    def _add(self, tag: str, text: str = "", **attributes: Any) -> None:
        inside = Markup().join(
            Markup(' {}="{}"').format(
                name.replace("_", "-"),
                round(value, 2) if isinstance(value, float) else value,
            )
            for name, value in attributes.items()
        )
        self._parts.append(Markup("<{0}{1}>{2}</{0}>").format(tag, inside, text))

    def _frame(self) -> None:
        x, y = self._x, self._y
        for value in x.labels:
            self.line([(value, y.start), (value, y.end)], "grid", 1)
        for value in y.labels if y.title else ():
            self.line([(x.start, value), (x.end, value)], "grid", 1)
        if y.title:
            corner = [(x.start, y.end), (x.start, y.start), (x.end, y.start)]
            self.line(corner, "muted", 1)
        bottom = _TOP + self._height
        for value, label in x.labels.items():
            across = self.at(value, y.start)[0]
            self.text((across, bottom + 17), label, "muted", text_anchor="middle")
        for value, label in y.labels.items():
            down = self.at(x.start, value)[1] + 4
            self.text(
                (self._left - 8, down),
                label,
                "muted" if y.title else "ink",
                text_anchor="end",
            )
        style = {"text_anchor": "middle", "font_size": 13}
        middle = (self._left + self._width - _RIGHT) / 2
        self.text((middle, bottom + 37), x.title, "ink", **style)
        if y.title:
            middle = -_TOP - self._height / 2
            self.text((middle, 13), y.title, "ink", **style, transform="rotate(-90)")


def _path(points: Positions) -> str:
    # a hundredth of a pixel is enough, and halves the file
    corners = "L".join(f"{x:.2f},{y:.2f}" for x, y in points).replace(".00", "")
    return corners and "M" + corners


def _is_known(value: float | None) -> bool:
    return value is not None and abs(value) <= _LARGEST


def _columns(text: str) -> int:
    """Return the width of a string in letters; wide scripts count twice."""
    return sum(1 + (east_asian_width(sign) in "WF") for sign in text)


def _truncated(text: str, longest: int) -> str:
    if _columns(text) <= longest:
        return text
    while _columns(text) >= longest:
        text = text[:-1]
    return text + "…"
