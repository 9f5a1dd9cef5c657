"""Reports of a model folder: what they are told, and where they go."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._json import readable_parameters
from tacit.audit._attacked import solver_name
from tacit.cli._console import Refused
from tacit.exceptions import LedgerDamaged, LedgerUnavailable
from tacit.inference import noise_intervals
from tacit.privacy.store import StoredLedger
from tacit.reports import card_html, card_markdown, report_html
from tacit.saved import ModelFileError, SavedModel, SavedSide

__all__ = [
    "kept_account",
    "outcome_of",
    "paid_from",
    "put",
    "refuse_unsound",
    "report_facts",
    "selected_names",
    "selection_facts",
    "side_facts",
    "stream_facts",
    "write_reports",
]

REPORT, CARD = "report.html", "card"
# What a report is told of the bars around coefficients
BARS = ("level", "low", "high", "covers", "how")


def report_facts(
    saved: SavedModel,
    ledger: StoredLedger | None,
    beside: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a report says about a model, as plain data.

    What is told ``beside`` the model was released by other commands.
    """
    model, facts = saved.estimator, saved.facts
    assert saved.privacy is not None  # steps without one have no report
    common = {
        "created": facts.get("created"),
        "tacit": facts.get("tacit"),
        "rows": facts.get("rows"),
        "dataset": kept_account(saved).get("dataset"),
        "privacy": saved.privacy.to_dict(),
        "releases": facts.get("releases"),
        "charge": facts.get("charge"),
        "ledger": None if ledger is None else _account(ledger),
        **(beside or {}),
    }
    if isinstance(model, SavedSide):
        return {**common, **_side_facts(model, facts)}
    student = facts.get("student")
    return {
        **common,
        "title": facts.get("label", type(model).__name__),
        "estimator": type(model).__name__,
        "parameters": readable_parameters(model),
        "solver": _solver(model, facts.get("rows")),
        "features": _features(saved),
        "selected": selected_names(saved),
        "selection": selection_facts(model),
        "stream": stream_facts(model),
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "student": student,
        **({} if student is not None else _weight_facts(model)),
        "noise": _noise(model, facts.get("intervals")),
        "score": facts.get("score"),
        "schema": saved.schema,
    }


def _side_facts(model: SavedSide, facts: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says about the item side of a recommender."""
    parameters, most = facts.get("parameters"), facts.get("max_ratings")
    return {
        "title": facts.get("label", "recommender"),
        "estimator": "MatrixCompletion",
        "parameters": parameters if isinstance(parameters, dict) else None,
        "features": [],
        "side": side_facts(model.side, most if type(most) is int else None),
    }


def _solver(model: Any, rows: Any) -> str | None:
    """Return the solver of a fit, for an audit to be compared with."""
    expected = getattr(model, "expected_rows", None)
    n_features = getattr(model, "n_features_in_", 0)
    return solver_name(model, expected if rows is None else rows, n_features)


def side_facts(side: Any, max_ratings: int | None) -> dict[str, Any]:
    """Return what is told of an item side, which is public."""
    return {
        "items": side.n_items,
        "vectors": int(side.vectors.shape[1]),
        "max_ratings": max_ratings,
        "low": side.low,
        "high": side.high,
        "released": side.released,
    }


def _weight_facts(model: Any) -> dict[str, Any]:
    return {
        "coef": _weights(model).tolist(),
        "intercept": np.atleast_1d(getattr(model, "intercept_", 0.0)).tolist(),
    }


def _features(saved: SavedModel) -> list[str]:
    model = saved.estimator
    is_student = saved.facts.get("student") is not None
    p = model.n_features_in_ if is_student else _weights(model).shape[1]
    names = saved.facts.get("features") or [f"x{i}" for i in range(p)]
    told = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not told or len(names) != p:
        raise ModelFileError("The facts of the model name other features than it has.")
    return names


def _weights(model: Any) -> NDArray[np.float64]:
    """Return coefficients, one row for each output; those of experts are one row."""
    found = model.weights_ if hasattr(model, "weights_") else model.coef_
    return np.atleast_2d(found)


def selected_names(saved: SavedModel) -> list[str] | None:
    """Return the columns with a weight, for a model that leaves others out."""
    model = getattr(saved.estimator, "estimator_", saved.estimator)
    selected = getattr(model, "selected_features_", None)
    if selected is None:
        return None
    features = _features(saved)
    return [features[j] for j in selected]


def selection_facts(model: Any) -> dict[str, Any] | None:
    """Return how columns were selected before the fit, where they were."""
    if not hasattr(model, "selection_"):
        return None
    return {
        "asked": int(model.n_features_to_select),
        "answered": model.released_,
        "epsilon": model.selection_spent_,
    }


def stream_facts(model: Any) -> dict[str, int | None] | None:
    """Return how far a stream was paid for and how far it went, for a model of one."""
    if not hasattr(model, "n_steps_"):
        return None
    return {
        "steps": int(model.n_steps_),
        "horizon": int(model.horizon),
        "rows_per_person": int(model.rows_per_person),
        "last_refit": getattr(model, "last_refit_", None),
    }


def outcome_of(path: Path, option: str, model: str | None = None) -> dict[str, Any]:
    """Return what a command printed with ``--json`` into a file, about this model."""
    content = path.read_bytes()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused(
            f"{option} must be a file with the JSON that its command printed."
        )
    if model is not None and found.get("model") != model:
        raise Refused(f"{path} is about another model; give another {option}.")
    return found


def write_reports(
    folder: Path,
    saved: SavedModel,
    ledger: StoredLedger | None,
    beside: dict[str, Any] | None = None,
) -> dict[str, str]:
    """Write the report and the card of a model; return where they are."""
    facts = report_facts(saved, ledger, beside)
    pages = {
        "report": (REPORT, report_html(facts)),
        "card": (f"{CARD}.md", card_markdown(facts)),
        "card_html": (f"{CARD}.html", card_html(facts)),
    }
    for name, text in pages.values():
        put(folder / name, text)
    return {key: str(folder / name) for key, (name, _) in pages.items()}


def paid_from(ledger: Any, label: str) -> dict[str, Any]:
    """Return what a model keeps of the ledger that paid for it, by its charge."""
    if not isinstance(ledger, StoredLedger):
        return {"charge": None, "ledger": None}
    try:
        charges = (r for r in ledger.history() if r.kind == "charge")
        seq = next((r.seq for r in charges if r.label == label), None)
        head = list(ledger.head)
    except (LedgerUnavailable, LedgerDamaged):  # it is paid for all the same
        seq = head = None
    return {"charge": seq, "ledger": {"dataset": ledger.dataset, "head": head}}


def kept_account(saved: SavedModel) -> dict[str, Any]:
    """Return what a model keeps of the ledger that paid for it."""
    kept = saved.facts.get("ledger")
    return kept if isinstance(kept, dict) else {}


def refuse_unsound(saved: SavedModel, ledger: StoredLedger) -> None:
    """Refuse a ledger that is damaged, or no longer the one the model was paid from."""
    head = kept_account(saved).get("head")
    if head is not None:
        known = isinstance(head, list) and [type(part) for part in head] == [int, str]
        if not known:
            raise ModelFileError("'ledger' in the facts must have a number and a hash.")
        head = tuple(head)
    result = ledger.verify(head=head)
    if not result.ok:
        raise LedgerDamaged(
            f"The ledger is not sound, and no report was written: "
            f"{'; '.join(result.findings)}."
        )


def put(path: Path, text: str) -> None:
    """Write a file as a whole, in place of whatever has the name.

    A folder may come from anyone: a link in it must not lead out, a pipe not block.
    """
    partial = path.with_name(f".tacit-{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except BaseException:
        with suppress(FileNotFoundError):
            partial.unlink()
        raise


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
        "as_of": datetime.now(UTC).isoformat(timespec="seconds"),
        "assumptions": list(ledger.report().assumptions),
    }
