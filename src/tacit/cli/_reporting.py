"""Reports of a model folder: what they are told, and where they go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tacit.inference import noise_intervals
from tacit.privacy.store import StoredLedger
from tacit.reports import card_html, card_markdown, report_html
from tacit.saved import SavedModel

__all__ = ["report_facts", "write_reports"]

REPORT, CARD = "report.html", "card"
# What a report is told of the bars around coefficients
BARS = ("level", "low", "high", "covers", "how")


def report_facts(saved: SavedModel, ledger: StoredLedger | None) -> dict[str, Any]:
    """Return what a report says about a model, as plain data."""
    model, facts = saved.estimator, saved.facts
    coef = np.atleast_2d(model.coef_)
    return {
        "title": facts.get("label", type(model).__name__),
        "created": facts.get("created"),
        "tacit": facts.get("tacit"),
        "estimator": type(model).__name__,
        "parameters": {
            name: _readable(value) for name, value in model.get_params().items()
        },
        "rows": facts.get("rows"),
        "dataset": (facts.get("ledger") or {}).get("dataset"),
        "privacy": model.privacy_.to_dict(),
        "features": facts.get("features") or [f"x{i}" for i in range(coef.shape[1])],
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "coef": coef.tolist(),
        "intercept": np.atleast_1d(model.intercept_).tolist(),
        "noise": _noise(model, facts.get("intervals")),
        "score": facts.get("score"),
        "ledger": None if ledger is None else _account(ledger),
        "schema": saved.schema,
    }


def write_reports(
    folder: Path, saved: SavedModel, ledger: StoredLedger | None
) -> dict[str, str]:
    """Write the report and the card of a model; return where they are."""
    facts = report_facts(saved, ledger)
    pages = {
        "report": (REPORT, report_html(facts)),
        "card": (f"{CARD}.md", card_markdown(facts)),
        "card_html": (f"{CARD}.html", card_html(facts)),
    }
    for name, text in pages.values():
        (folder / name).write_text(text, encoding="utf-8")
    return {key: str(folder / name) for key, (name, _) in pages.items()}


def _noise(model: Any, intervals: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return bars for the coefficients: paid intervals, or noise alone, or nothing."""
    if intervals is not None:
        return {name: intervals[name] for name in BARS}
    if getattr(model, "noise_", None) is None:
        return None
    bars = noise_intervals(model).to_dict()
    return {name: bars[name] for name in BARS}


def _account(ledger: StoredLedger) -> dict[str, Any]:
    return {
        "dataset": ledger.dataset,
        "budget": ledger.budget.to_dict(),
        "spent": ledger.spent(),
        "records": ledger.spending(),
    }


def _readable(value: Any) -> Any:
    """Return a parameter as a person would write it."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, list | tuple | range | np.ndarray):
        return [_readable(part) for part in list(value)]
    return value.item() if isinstance(value, np.generic) else repr(value)
