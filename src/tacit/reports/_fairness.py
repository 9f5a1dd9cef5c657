"""Fairness figures of groups for a page, measured and certified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from tacit.reports._format import clean, truncated

__all__ = ["GroupTable", "charged_table", "table_of"]

# The figure of each notion of fairness
NOTIONS = {
    "equalized_odds": "the accuracy on the rows of a group with one label, minus the "
    "accuracy on all rows with that label",
    "equal_opportunity": "the accuracy on the rows of a group with a desirable label, "
    "minus the accuracy on all rows with that label",
    "accuracy_parity": "the accuracy on the rows of a group, minus the accuracy on all "
    "rows",
    "demographic_parity": "how often a label is predicted for the rows of a group, "
    "minus how often it is predicted for all rows",
    "accuracy": "the accuracy on all rows",
}
MOST_DRAWN = 30
MOST_LISTED = 200

WRONG = "must be what 'tacit fairness --json' printed"


@dataclass(frozen=True)
class GroupTable:
    """Figures of the groups, one row each, and their certificate.

    ``confidence`` is None if there is no certificate. ``charge`` is None if nothing was
    charged: then all of it is private data.
    """

    notion: str
    compares: str
    target: str
    sensitive: str
    rows: list[dict[str, Any]]
    n_groups: int
    aggregate: float
    confidence: float | None = None
    change: float | None = None
    population: bool = False
    no_certificate: str | None = None
    charge: Mapping[str, Any] | None = None

    @property
    def drawn(self) -> list[dict[str, Any]]:
        """Rows of the chart."""
        return self.rows[:MOST_DRAWN]


def table_of(facts: Any, name: str) -> GroupTable:
    """Return the table of an outcome of ``tacit fairness``; reject anything else."""
    try:
        return _table(facts)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{name} {WRONG}.") from None


def charged_table(facts: Any, name: str) -> GroupTable:
    """Return the table of a charged certificate; no other is public."""
    found = table_of(facts, name)
    if found.charge is None:
        raise ValueError(
            f"{name} must be a certificate that was charged: without --epsilon the "
            "outcome of 'tacit fairness' is private data, for a page of its own."
        )
    return found


def _table(facts: Any) -> GroupTable:
    certificate, columns = facts["certificate"], list(map(str, facts["sensitive"]))
    found = facts["measured"] if certificate is None else certificate
    rows = [_row(group, columns) for group in found["groups"][:MOST_LISTED]]
    table = GroupTable(
        str(found["notion"]).replace("_", " "),
        NOTIONS[found["notion"]],
        truncated(facts["target"]),
        ", ".join(map(truncated, columns)),
        rows,
        len(found["groups"]),
        _number(found["aggregate"]),
    )
    if certificate is None:
        reason = facts.get("no_certificate")
        return replace(table, no_certificate=None if reason is None else clean(reason))
    return replace(
        table,
        confidence=1 - _number(found["failure"]),
        change=_optional(found["largest_change"]),
        population=any(row["population_low"] is not None for row in rows),
        charge=found["privacy"] if found["charged"] is True else None,
    )


def _row(group: Mapping[str, Any], columns: list[str]) -> dict[str, Any]:
    certified = "lower" in group
    return {
        "name": truncated(_name(group["label"], group["sensitive"], columns), 80),
        "rows": None if group["rows"] is None else int(group["rows"]),
        "value": _number(group["value"]),
        "low": _number(group["lower"]) if certified else None,
        "high": _number(group["upper"]) if certified else None,
        "population_low": _optional(group.get("population_lower")),
        "population_high": _optional(group.get("population_upper")),
    }


def _name(label: Any, sensitive: Any, columns: list[str]) -> str:
    """Return the name of a group, such as ``female yes, label no``."""
    values = sensitive if isinstance(sensitive, list) else [sensitive]
    pairs = [] if sensitive is None else zip(columns, values, strict=True)
    parts = [f"{column} {value}" for column, value in pairs]
    if label is not None:
        parts.append(f"label {label}")
    return ", ".join(parts) or "all rows"


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isfinite(value):
        raise TypeError
    return float(value)


def _optional(value: Any) -> float | None:
    return None if value is None else _number(value)
