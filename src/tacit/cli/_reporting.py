"""Reports of a saved model: their facts, and the files they are written to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from tacit import __version__
from tacit._json import plain, readable_parameters
from tacit.audit._attacked import solver_name
from tacit.cli._attachments import ATTACHMENTS, Attachments, read_attachments
from tacit.cli._console import Rejected, account_facts, clean
from tacit.cli._output_files import write_text
from tacit.evaluation import noise_intervals
from tacit.exceptions import BudgetExceeded, LedgerDamaged, LedgerUnavailable
from tacit.persistence import ModelFileError, SavedModel, digest
from tacit.persistence._sides import SavedSide
from tacit.privacy._store import StoredLedger
from tacit.reports import card_html, card_markdown, report_html
from tacit.reports._audits import audits_of
from tacit.reports._fairness import charged_table
from tacit.reports._format import truncated
from tacit.tables import Schema

__all__ = [
    "LATE_ERRORS",
    "account_of_model",
    "audit_of",
    "certificate_of",
    "charge_facts",
    "check_ledger",
    "feature_names",
    "made_now",
    "model_reads_cells",
    "noted",
    "report_facts",
    "selected_names",
    "selection_facts",
    "side_facts",
    "stream_facts",
    "terms_of",
    "witness",
    "write_reports",
]

REPORT, CARD = "report.html", "card"
# Errors after the charge of a fit, which must not lose it
LATE_ERRORS = (ValueError, BudgetExceeded, LedgerUnavailable, LedgerDamaged)
# Facts of the intervals of coefficients in a report
INTERVAL_FACTS = ("level", "low", "high", "covers", "how")


def report_facts(
    saved: SavedModel,
    ledger: StoredLedger | None,
    attached: Attachments | None = None,
) -> dict[str, Any]:
    """Return the facts of the report of a model.

    ``attached`` certificates and audits come from other commands.
    """
    # long: one entry for each fact of a report
    attached = attached or Attachments()
    model, facts = saved.estimator, saved.facts
    assert saved.privacy is not None  # steps without one have no report
    common = {
        "created": facts.get("created"),
        "tacit": facts.get("tacit"),
        "rows": facts.get("rows"),
        "dataset": account_of_model(saved).get("dataset"),
        "privacy": saved.privacy.to_dict(),
        "releases": facts.get("releases"),
        "charge": facts.get("charge"),
        "ledger": None if ledger is None else _account(ledger),
        "fairness": list(attached.fairness),
        "audits": list(attached.audits),
        "budget": None if attached.account is None else attached.account["budget"],
    }
    if isinstance(model, SavedSide):
        return {**common, **_side_facts(model, facts)}
    student, weights = facts.get("student"), {}
    if model_reads_cells(model):
        weights["shapes"] = model.shape_facts()
    elif student is None:
        intercept = np.atleast_1d(getattr(model, "intercept_", 0.0))
        weights["coef"] = _coefficients(model).tolist()
        weights["intercept"] = intercept.tolist()
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
        **weights,
        "noise": _noise(model, facts.get("intervals")),
        "score": facts.get("score"),
        "schema": saved.schema,
    }


def _side_facts(model: SavedSide, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of the report of the item side of a recommender."""
    parameters, most = facts.get("parameters"), facts.get("max_ratings")
    return {
        "title": facts.get("label", "recommender"),
        "estimator": "MatrixCompletion",
        "parameters": parameters if isinstance(parameters, dict) else None,
        "features": [],
        "side": side_facts(model.side, most if type(most) is int else None),
    }


def _solver(model: Any, rows: Any) -> str | None:
    """Return the solver of a fit, which an audit must have attacked."""
    expected = getattr(model, "expected_rows", None)
    n_features = getattr(model, "n_features_in_", 0)
    return solver_name(model, expected if rows is None else rows, n_features)


def side_facts(side: Any, max_ratings: int | None) -> dict[str, Any]:
    """Return the public facts of an item side."""
    return {
        "items": side.n_items,
        "vectors": int(side.vectors.shape[1]),
        "max_ratings": max_ratings,
        "low": side.low,
        "high": side.high,
        "released": side.released,
    }


def _features(saved: SavedModel) -> list[str]:
    model = saved.estimator
    whole = saved.facts.get("student") is not None or model_reads_cells(model)
    p = model.n_features_in_ if whole else _coefficients(model).shape[1]
    names = saved.facts.get("features") or [f"x{i}" for i in range(p)]
    valid = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not valid or len(names) != p:
        raise ModelFileError(
            "The feature names of the model do not match its columns or coefficients."
        )
    return names


def model_reads_cells(model: Any) -> bool:
    """Return whether a model takes columns as they are, instead of features."""
    return getattr(type(model), "reads_cells", False)


def feature_names(model: Any, schema: Schema) -> list[str]:
    """Return the names of what a model reads: columns, or the features made of them."""
    if not model_reads_cells(model):
        return schema.feature_names
    return [column.name for column in schema.columns if column.kind != "ignore"]


def terms_of(model: Any) -> dict[str, Any] | None:
    """Return the columns and pairs of columns that an additive model has shapes of."""
    if not model_reads_cells(model):
        return None
    return {
        "columns": [str(shape.column) for shape in model.shapes_],
        "pairs": [list(map(str, pair.columns)) for pair in model.pairs_],
    }


def _coefficients(model: Any) -> NDArray[np.float64]:
    """Return coefficients, one row per output; weights of experts are one row."""
    found = model.weights_ if hasattr(model, "weights_") else model.coef_
    return np.atleast_2d(found)


def selected_names(saved: SavedModel) -> list[str] | None:
    """Return the columns with a nonzero coefficient of a model that selects columns."""
    model = getattr(saved.estimator, "estimator_", saved.estimator)
    selected = getattr(model, "selected_features_", None)
    if selected is None:
        return None
    features = _features(saved)
    return [features[j] for j in selected]


def selection_facts(model: Any) -> dict[str, Any] | None:
    """Return how columns were selected before the fit; None if they were not."""
    if not hasattr(model, "selection_"):
        return None
    return {
        "asked": int(model.n_features_to_select),
        "answered": model.released_,
        "epsilon": model.selection_spent_,
    }


def stream_facts(model: Any) -> dict[str, int | None] | None:
    """Return horizon and steps of a model of a stream; None for other models."""
    if not hasattr(model, "n_steps_"):
        return None
    return {
        "steps": int(model.n_steps_),
        "horizon": int(model.horizon),
        "rows_per_person": int(model.rows_per_person),
        "last_refit": getattr(model, "last_refit_", None),
    }


def certificate_of(path: Path, model: str) -> dict[str, Any]:
    """Return the charged certificate in a file, which must be about this model."""
    found = _outcome_of(path, "--fairness")
    if found.get("model") != model:
        raise Rejected(f"{path} is about another model; give another --fairness.")
    charged_table(found, str(path))
    return found


def audit_of(path: Path, saved: SavedModel) -> dict[str, Any]:
    """Return the audit in a file, which must be about the estimator of this model."""
    found = _outcome_of(path, "--audit")
    _require_about([found], str(path), report_facts(saved, None))
    return found


def _require_about(audits: list[Any], name: str, facts: dict[str, Any]) -> None:
    names = ("tacit", "estimator", "privacy", "solver", "parameters")
    audits_of(audits, name, {part: facts.get(part) for part in names})


def _outcome_of(path: Path, option: str) -> dict[str, Any]:
    """Return the JSON object that a command printed into a file."""
    content = path.read_bytes()
    try:
        found = plain(json.loads(content), str(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Rejected(
            f"{path}: {option} must be a file with the JSON that its command printed."
        )
    if set(found) == {"error", "exit_code"}:
        raise Rejected(
            f"{path} contains an error of its command instead of a result: "
            f"{truncated(found['error'], 500)}"
        )
    return found


def write_reports(
    folder: Path,
    saved: SavedModel,
    ledger: StoredLedger | None,
    fairness: Sequence[dict[str, Any]] = (),
    audits: Sequence[dict[str, Any]] = (),
) -> dict[str, str]:
    """Write the report and the card of a model; return their paths.

    New certificates and audits are stored in the folder, and earlier ones are shown
    again: a charge on one page must be on every later page.
    """
    model = digest(folder)
    before = read_attachments(folder, model)
    attached = replace(
        before.added(fairness, audits), account=_shown_account(before.account, ledger)
    )
    facts = report_facts(saved, ledger, attached)
    _require_about(facts["audits"], ATTACHMENTS, facts)
    pages = {
        "report": (REPORT, report_html(facts)),
        "card": (f"{CARD}.md", card_markdown(facts)),
        "card_html": (f"{CARD}.html", card_html(facts)),
    }
    if attached != before:  # before the pages, which can be written again from it
        write_text(folder / ATTACHMENTS, attached.content(model))
    if before.account is not None and before.account["shown"] and ledger is None:
        click.echo(
            "tacit: the pages no longer show the ledger of "
            f"{clean(before.account['dataset'])!r}; give --ledger to show it",
            err=True,
        )
    for name, text in pages.values():
        write_text(folder / name, text)
    return {key: str(folder / name) for key, (name, _) in pages.items()}


def _shown_account(
    account: dict[str, Any] | None, ledger: StoredLedger | None
) -> dict[str, Any] | None:
    """Return the ledger that pages show, or the one they showed last."""
    if ledger is not None:
        budget = ledger.budget.to_dict()
        return {"dataset": ledger.dataset, "budget": budget, "shown": True}
    return None if account is None else {**account, "shown": False}


def made_now() -> dict[str, str]:
    """Return the time and the version that a saved model states."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"created": now, "tacit": __version__}


def witness(
    ledger: StoredLedger | None, failed: dict[str, str], words: str
) -> dict[str, Any]:
    """Return charge, data set and head of the ledger, which a model stores.

    An error is added to ``failed``, after ``words``.
    """
    if ledger is None:
        return {"charge": None, "ledger": None}
    head = None
    try:
        head = list(ledger.head)
    except LATE_ERRORS as error:
        failed["ledger"] = f"{words}; {error}"
    stored = {"dataset": ledger.dataset, "head": head}
    return {"charge": ledger.made[0], "ledger": stored}


def noted(
    folder: Path,
    saved: SavedModel,
    ledger: StoredLedger | None,
    found: dict[str, Any],
    words: str,
) -> dict[str, Any]:
    """Return the facts of a fit, after a note in the ledger, with its reports.

    The fit is charged: errors of the ledger are reported, after ``words``.
    """
    if ledger is not None:
        name = "side.json" if isinstance(saved.estimator, SavedSide) else "model.json"
        try:
            note = f"{found['label']}: {name} has sha256 {found['digest']}"
            ledger.note(note, refers_to=ledger.made[0])
            found["ledger"] = account_facts(ledger)
        except LATE_ERRORS as error:
            found["failed"]["ledger"] = f"{words}; {error}"
            ledger = None
    return {**found, **write_reports(folder, saved, ledger)}


def charge_facts(ledger: Any, label: str) -> dict[str, Any]:
    """Return charge, data set and head of the ledger, which a model stores."""
    if not isinstance(ledger, StoredLedger):
        return {"charge": None, "ledger": None}
    try:
        charges = (r for r in ledger.history() if r.kind == "charge")
        seq = next((r.seq for r in charges if r.label == label), None)
        head = list(ledger.head)
    except (LedgerUnavailable, LedgerDamaged):  # the charge was made all the same
        seq = head = None
    return {"charge": seq, "ledger": {"dataset": ledger.dataset, "head": head}}


def account_of_model(saved: SavedModel) -> dict[str, Any]:
    """Return data set and head of the ledger that a model was charged to."""
    kept = saved.facts.get("ledger")
    return kept if isinstance(kept, dict) else {}


def check_ledger(saved: SavedModel, ledger: StoredLedger) -> None:
    """Reject a ledger that is damaged, or was rewritten since the model was charged."""
    head = account_of_model(saved).get("head")
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


def _noise(model: Any, intervals: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return intervals of the coefficients: charged ones, or of the noise, or None."""
    if intervals is None:
        if getattr(model, "noise_", None) is None:
            return None
        intervals = noise_intervals(model).to_dict()
    return {name: intervals[name] for name in INTERVAL_FACTS}


def _account(ledger: StoredLedger) -> dict[str, Any]:
    return {
        "dataset": ledger.dataset,
        "budget": ledger.budget.to_dict(),
        "spent": ledger.spent(),
        "records": ledger.spending(),
        "as_of": datetime.now(UTC).isoformat(timespec="seconds"),
        "assumptions": list(ledger.report().assumptions),
    }
