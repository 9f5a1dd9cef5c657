"""Coefficients, parameters and schema of a model for a page of limited size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.reports._facts import Facts
from tacit.reports._format import NOTHING, clean, number, truncated
from tacit.tables import Schema, TableError

__all__ = [
    "Panel",
    "SchemaTable",
    "panels_of",
    "parameters_of",
    "schema_of",
    "selection_of",
    "target_of",
]

# Coefficients drawn and listed of one output (FEWER_LISTED if there are more than
# MOST_LISTED), and outputs and columns shown
MOST_DRAWN = 30
MOST_LISTED = 200
FEWER_LISTED = 50
MOST_PANELS = 20
MOST_COLUMNS = 300

# Keys of a schema as heads of a table. A column has only one of the keys of a head
HEADS = {
    "range": "values",
    "categories": "values",
    "zero": "zero at",
    "missing": "if missing or not listed",
    "unseen": "if missing or not listed",
    "confirmed_by": "confirmed by",
    "row_norm": "largest row norm",
}

# Keys that people cannot read, or that have a table of their own
UNSHOWN = ("columns", "seal", "version")

Row = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """The coefficients of one output, largest first."""

    name: str
    intercept: float
    rows: list[Row]
    n_features: int
    has_units: bool

    @property
    def drawn(self) -> list[Row]:
        """Rows of the chart."""
        return self.rows[:MOST_DRAWN]

    @property
    def is_truncated(self) -> bool:
        """Whether the table lists fewer columns than the model has."""
        return len(self.rows) < self.n_features


def panels_of(facts: Facts) -> tuple[list[Panel], int]:
    """Return panels of the outputs, and the number of outputs without one."""
    outputs, p = facts.coef.shape
    listed = p if p <= MOST_LISTED else FEWER_LISTED
    names = _output_names(facts)
    scales = _scales(facts)
    panels = []
    for k in range(min(outputs, MOST_PANELS)):
        sizes = np.nan_to_num(np.abs(facts.coef[k]), nan=-1.0)
        largest = np.argsort(-sizes, kind="stable")[:listed]
        rows = []
        for j in map(int, largest):
            low, high = (
                None if end is None else float(end[k, j])
                for end in (facts.low, facts.high)
            )
            value = float(facts.coef[k, j])
            covers_zero = (
                None
                if low is None or high is None
                else bool(np.isfinite(low) and low <= 0 <= high)
            )
            rows.append(
                {
                    "name": truncated(facts.features[j], 80),
                    "value": value,
                    "low": low,
                    "high": high,
                    "covers_zero": covers_zero,
                    "per_unit": value * scales[j] if j in scales else None,
                }
            )
        panels.append(Panel(names[k], float(facts.intercept[k]), rows, p, bool(scales)))
    return panels, max(0, outputs - MOST_PANELS)


def _scales(facts: Facts) -> dict[int, float]:
    """Return the change of a feature for one unit of its column, for numbers."""
    try:
        schema = Schema.from_dict(facts.plain["schema"])
    except TableError:  # no schema, or one of another library
        return {}
    if schema.feature_names != facts.features:
        return {}
    found, position = {}, 0
    for column in schema.columns:
        if column.kind == "number" and column.range is not None:
            (low, high), (first, last) = column.range, column.scaled
            found[position] = (last - first) / (high - low)
        position += len(column.features)
    return found


def selection_of(facts: Facts) -> dict[str, Any] | None:
    """Return the columns with a nonzero coefficient, if the model leaves others out."""
    chosen = facts.plain["selected"]
    if chosen is None:
        return None
    names = [truncated(name, 80) for name in chosen[:MOST_LISTED]]
    first = facts.plain["selection"]
    return {
        "names": names,
        "count": len(chosen),
        "more": len(chosen) - len(names),
        "first": first,
        # if all columns are requested, no selection is made or charged
        "all": first is not None and first["asked"] >= len(facts.features),
        "total": facts.parts[0].guarantee.epsilon,
    }


def target_of(schema: dict[str, Any] | None) -> str | None:
    """Return the name of the target, if the schema has one."""
    target = (schema or {}).get("target")
    name = target.get("name") if isinstance(target, dict) else None
    return None if name is None else truncated(name)


def _output_names(facts: Facts) -> list[str]:
    outputs = len(facts.coef)
    classes = facts.plain["classes"]
    if classes is None:
        return (
            ["prediction"] if outputs == 1 else [f"output {k}" for k in range(outputs)]
        )
    labels = [truncated(label, 60) for label in classes]
    if outputs == 1 and len(labels) == 2:
        return [f"{labels[1]} rather than {labels[0]}"]
    if outputs == len(labels):
        return labels
    return [f"output {k}" for k in range(outputs)]


def parameters_of(facts: Facts) -> list[tuple[str, str]]:
    """Return the public parameters as strings; a seed is not shown."""
    shown = []
    for name, value in sorted((facts.plain["parameters"] or {}).items()):
        text = truncated(value if isinstance(value, str) else repr(value), 160)
        if name == "random_state" and value is not None:
            # anyone with the seed can remove the noise
            text = "fixed; the seed is not shown"
        shown.append((clean(name), text))
    return shown


@dataclass(frozen=True)
class SchemaTable:
    """Public facts about the columns."""

    heads: list[str]
    rows: list[list[str]]
    n_columns: int
    others: list[tuple[str, str]]


def schema_of(schema: dict[str, Any] | None) -> SchemaTable | None:
    """Return a table of the columns of a schema, which is plain data."""
    if schema is None:
        return None
    try:
        columns = [
            {"name": _cell(name), **_in_words(facts)}
            for name, facts in schema["columns"].items()
        ]
    except (AttributeError, KeyError, TypeError):
        raise ValueError(
            "facts['schema'] must be what Schema.to_dict returned."
        ) from None
    # heads in the order in which they first appear; the name first
    heads = list(dict.fromkeys(head for column in columns for head in column))
    rows = [[column.get(head, NOTHING) for head in heads] for column in columns]
    others = list(_in_words(schema).items())
    return SchemaTable(heads, rows[:MOST_COLUMNS], len(rows), others)


def _in_words(facts: dict[str, Any]) -> dict[str, str]:
    """Return keys and values for people, without empty values."""
    return {
        clean(HEADS.get(key, key)): _cell(value)
        for key, value in facts.items()
        if key not in UNSHOWN and value is not None and value != "" and value != []
    }


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, int | float):
        return number(float(value), 6)
    if isinstance(value, list):
        between = ", " if all(isinstance(part, str) for part in value) else " to "
        return truncated(between.join(map(_cell, value)), 160)
    if isinstance(value, dict):
        parts = (f"{key}: {item}" for key, item in _in_words(value).items())
        return truncated("; ".join(parts), 160)
    return truncated(value, 160)
