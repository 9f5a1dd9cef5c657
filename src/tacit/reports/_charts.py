"""Vega-Lite specifications of the charts of a report."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10
from typing import Any
from unicodedata import east_asian_width

from tacit.reports._words import tiny

__all__ = [
    "COLORS",
    "attacker_chart",
    "coefficient_chart",
    "curve_chart",
    "spend_chart",
]

Spec = dict[str, Any]
Points = Sequence[dict[str, Any]]

# style.css gives each of these another value in the dark and in print
COLORS = {
    "ink": "#1b2026",
    "muted": "#59636e",
    "grid": "#e3e7eb",
    "accent": "#1f5fa8",
    "warn": "#b3261e",
    "amber": "#8a5a00",
}

_AXIS = {
    "labelColor": COLORS["muted"],
    "titleColor": COLORS["ink"],
    "titleFontWeight": "normal",
    "domainColor": COLORS["muted"],
    "tickColor": COLORS["muted"],
    "gridColor": COLORS["grid"],
    "labelFontSize": 12,
    "titleFontSize": 13,
    "titlePadding": 8,
}

# Of records in a ledger, all but charges: shape and color
KINDS = {
    "charge": ("circle", COLORS["accent"]),
    "reserve": ("triangle-up", COLORS["amber"]),
    "cancel": ("square", COLORS["amber"]),
    "void": ("cross", COLORS["warn"]),
    "allow": ("diamond", COLORS["ink"]),
}


def _chart(width: int, height: int, layers: list[Spec], labels: int = 62) -> Spec:
    # fitting a chart to its frame takes twice the time of drawing it, so the room for
    # the labels on the left is estimated; the page scales what is a little off
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": width - labels,
        "height": height,
        "padding": 4,
        "layer": layers,
        "config": {
            "aria": False,
            "font": "sans-serif",
            "view": {"stroke": None},
            "axis": _AXIS,
            "background": "transparent",
        },
    }


def _values(rows: Points) -> Spec:
    return {"values": list(rows)}


def _line(rows: Points, x: Spec, y: Spec, color: str, **mark: Any) -> Spec:
    return {
        "data": _values(rows),
        "mark": {"type": "line", "color": COLORS[color], "strokeWidth": 2, **mark},
        "encoding": {"x": x, "y": y, "order": {"field": x["field"]}},
    }


def _axis(field: str, title: str, *, domain: Any = None, **more: Any) -> Spec:
    scale: Spec = dict(more.pop("scale", {}))
    if domain is not None:
        scale["domain"] = domain
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"tickCount": 5, **more},
    }


def curve_chart(points: Points, promise: dict[str, float], width: int) -> Spec:
    """Delta against epsilon on a log scale; ``promise`` is a point of the plane."""
    narrow = width < 500
    lowest = min(point["delta"] for point in points)
    mark = {"epsilon": promise["epsilon"], "delta": max(promise["delta"], lowest)}
    right = max(point["epsilon"] for point in points)
    right = max(right, 1.05 * promise["epsilon"])
    x = _axis("epsilon", "epsilon (ε)", domain=[0, right])
    y = _axis(
        "delta",
        "delta (δ), log scale",
        domain=[min(lowest, mark["delta"]) / 2, 1],
        scale={"type": "log"},
        labelExpr="powers[format(log(datum.value) / LN10, '.0f')]",
    )
    rules = [
        {
            "data": _values([mark]),
            "mark": {
                "type": "rule",
                "color": COLORS["warn"],
                "strokeDash": [3, 3],
                "opacity": 0.8,
            },
            "encoding": {axis: {"x": x, "y": y}[axis]},
        }
        for axis in ("x", "y")
    ]
    spec = _chart(
        width,
        230 if narrow else 280,
        [
            *rules,
            _line(points, x, y, "accent"),
            {
                "data": _values([mark]),
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 80,
                    "opacity": 1,
                    "color": COLORS["warn"],
                },
                "encoding": {"x": x, "y": y},
            },
            {
                "data": _values([mark]),
                "mark": {
                    "type": "text",
                    "text": "promise",
                    "fontSize": 13,
                    "color": COLORS["warn"],
                    # the curve falls, so this corner is free
                    "align": "right",
                    "dx": -8,
                    "dy": 14,
                },
                "encoding": {"x": x, "y": y},
            },
        ],
    )
    lowest_power = floor(log10(min(lowest, mark["delta"]))) - 1
    powers = {str(power): tiny(10.0**power) for power in range(lowest_power, 0)}
    # d3 writes negative numbers with a minus sign
    signed = {key.replace("-", "\N{MINUS SIGN}"): text for key, text in powers.items()}
    spec["params"] = [
        {"name": "powers", "value": {**powers, **signed, "0": "1", "-0": "1"}}
    ]
    return spec


def attacker_chart(fit: Points, budget: Points | None, width: int) -> Spec:
    """Largest true-positive rate against false-positive rate."""
    axis = {"format": "%", "domain": [0, 1]}
    x = _axis("false", "wrongly accused (false-positive rate)", **axis)
    y = _axis("true", "rightly found (true-positive rate)", **axis)
    coin = [{"false": 0, "true": 0}, {"false": 1, "true": 1}]
    layers = [_line(coin, x, y, "muted", strokeDash=[2, 4], strokeWidth=1.5)]
    if budget is not None:
        layers.append(_line(budget, x, y, "warn", strokeDash=[7, 4]))
    layers.append(_line(fit, x, y, "accent"))
    return _chart(width, min(width, 430) - 62, layers)


def spend_chart(
    steps: Points, marks: Points, budget: float, last: int, width: int
) -> Spec:
    """Spend after each record as steps, special records as marks, the budget a line."""
    top = 1.08 * max([budget, *(step["spent"] for step in steps)])
    right = last + max(1, last // 50)
    steps = [*steps, {**steps[-1], "seq": right}]  # what was spent stays spent
    x = _axis("seq", "record", domain=[0, right], format=",d")
    y = _axis("spent", "epsilon spent", domain=[0, top])
    ceiling = [{"seq": 0, "spent": budget}, {"seq": right, "spent": budget}]
    layers = [
        _line(ceiling, x, y, "warn", strokeDash=[7, 4]),
        _line(steps, x, y, "accent", interpolate="step-after", clip=True),
    ]
    kinds = [kind for kind in KINDS if any(mark["kind"] == kind for mark in marks)]
    if kinds:
        size = 70 if len(marks) <= 40 else 28
        shapes, colors = zip(*(KINDS[kind] for kind in kinds), strict=True)
        layers.append(
            {
                "data": _values(marks),
                "mark": {"type": "point", "filled": True, "size": size, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    "shape": {
                        "field": "kind",
                        "scale": {"domain": kinds, "range": shapes},
                        "legend": None,
                    },
                    "color": {
                        "field": "kind",
                        "scale": {"domain": kinds, "range": colors},
                        "legend": None,
                    },
                },
            }
        )
    return _chart(width, 210 if width < 500 else 260, layers)


def coefficient_chart(rows: Points, width: int, title: str = "coefficient") -> Spec:
    """Coefficients as dots, first on top, with bars from low to high if known."""
    narrow = width < 500
    longest = 16 if narrow else 32
    names = [_label(row["name"], longest) for row in rows]
    values = [
        {"place": place, **{key: row[key] for key in ("value", "low", "high")}}
        for place, row in enumerate(rows)
    ]
    y = {
        "field": "place",
        "type": "ordinal",
        "title": None,
        # names are data of a parameter, so that nothing in them is an expression
        "axis": {
            "labelExpr": "names[datum.value]",
            "labelLimit": 0,  # the names are short already; measuring them is slow
            "labelColor": COLORS["ink"],
            "grid": False,
            "ticks": False,
            "domain": False,
            "labelPadding": 8,
        },
    }
    x = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "axis": {"tickCount": 4 if narrow else 7},
    }
    layers: list[Spec] = [
        {
            "data": _values([{"zero": 0}]),
            "mark": {"type": "rule", "color": COLORS["muted"]},
            "encoding": {"x": {"field": "zero", "type": "quantitative"}},
        }
    ]
    barred = [
        row
        for row in values
        if None not in (row["low"], row["high"])
        and isfinite(row["low"])
        and isfinite(row["high"])
    ]
    if barred:
        layers.append(
            {
                "data": _values(barred),
                "mark": {
                    "type": "rule",
                    "color": COLORS["accent"],
                    "strokeWidth": 6,
                    "opacity": 0.3,
                    "strokeCap": "round",
                },
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "low"},
                    "x2": {"field": "high"},
                },
            }
        )
    layers.append(
        {
            "data": _values(values),
            "mark": {
                "type": "point",
                "filled": True,
                "size": 55,
                "opacity": 1,
                "color": COLORS["accent"],
            },
            "encoding": {"y": y, "x": x},
        }
    )
    labels = 7 * max(map(_columns, names)) + 16
    spec = _chart(width, 20 * len(rows), layers, labels + labels // 10)
    # the reader's font may be wider than the one measured
    spec["padding"] = {"left": 4 + labels // 10, "top": 4, "right": 4, "bottom": 4}
    spec["params"] = [{"name": "names", "value": names}]
    return spec


def _columns(text: str) -> int:
    """Return how wide a text is, in letters; some scripts take two each."""
    return sum(1 + (east_asian_width(sign) in "WF") for sign in text)


def _label(text: str, longest: int) -> str:
    if _columns(text) <= longest:
        return text
    while _columns(text) >= longest:
        text = text[:-1]
    return text + "…"
