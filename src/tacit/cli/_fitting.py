"""Steps of ``tacit fit``: read, check, fit, measure and write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import evaluation
from tacit._execution import progress
from tacit.cli._console import Rejected, warn_of_budget, warn_of_noise
from tacit.cli._reporting import (
    LATE_ERRORS,
    feature_names,
    made_now,
    model_reads_cells,
    noted,
    selected_names,
    selection_facts,
    terms_of,
    witness,
)
from tacit.evaluation._measures import without_warnings
from tacit.linear_model._sparse import SparseLinearModel
from tacit.persistence import SavedModel, digest
from tacit.persistence import write as write_model
from tacit.privacy import Budget, Event, GaussianNoise, Neighbors, PureDP, calibrate
from tacit.privacy._store import StoredLedger
from tacit.privacy.ledger import labelled
from tacit.tables import Schema, read_cells, read_rows

if TYPE_CHECKING:
    from tacit.evaluation._noise import Intervals
    from tacit.evaluation._score import PrivateScore

__all__ = ["Extras", "Fitted", "check_early", "fitted", "read", "write"]

MADE = "the charge was made"


@dataclass(frozen=True)
class Extras:
    """Charges besides the fit: their epsilons, and the fraction of rows set aside."""

    measure: float | None = None
    set_aside: float = 0.2
    intervals: float | None = None


@dataclass(frozen=True)
class Split:
    """Rows to fit on, and rows set aside to measure on."""

    X: Any
    y: Any
    X_aside: Any = None
    y_aside: Any = None


@dataclass(frozen=True)
class Fitted:
    """A model, and the score and intervals released with it."""

    model: Any
    n_rows: int
    extras: Extras
    failed: dict[str, str]
    score: PrivateScore | None = None
    intervals: Intervals | None = None


def read(
    data: Path, schema: Schema, model: Any, extras: Extras, **reading: Any
) -> Split:
    """Return the rows of a file, some of them set aside by their positions."""
    if model_reads_cells(model):
        reading.pop("scratch", None)  # all columns are needed in memory
        X, y = read_cells(data, schema, **reading)
    else:
        X, y = read_rows(data, schema, **reading)
    if extras.measure is None:
        return Split(X, y)
    if isinstance(X, np.memmap):
        raise Rejected(
            "--measure needs rows that fit in memory; leave it out, and measure on "
            "another file with tacit.evaluation.private_score."
        )
    fit, aside = evaluation.hold_out(
        len(X),
        extras.set_aside,
        neighbors=model.neighbors,
        random_state=model.random_state,
    )
    assert y is not None  # read with its target
    taken = X.iloc if hasattr(X, "iloc") else X
    return Split(taken[fit], y[fit], taken[aside], y[aside])


def check_early(
    model: Any, rows: Split, extras: Extras, ledger: StoredLedger | None, label: str
) -> None:
    """Check that all charges are possible and fit, before the first is made."""
    if extras.intervals is not None and isinstance(model, SparseLinearModel):
        raise Rejected(
            "--intervals are not available for sparse models, which set coefficients "
            "to zero: leave the option out, or give another --model."
        )
    if extras.intervals is not None and model_reads_cells(model):
        raise Rejected(
            "--intervals are not available for additive models, which have no "
            "coefficients: leave the option out, or give another --model."
        )
    planned = model.plan(*rows.X.shape)
    if extras.intervals is not None:
        evaluation._intervals.require_theory(planned)
    budget = planned.budget
    _warn(model, budget, extras, len(rows.X))
    warn_of_noise(planned)
    if ledger is None:
        return
    charges: list[tuple[Event, str, Budget | None]] = [
        (planned.event, type(model).__name__, budget)
    ]
    if extras.intervals is not None:
        part = replace(budget, epsilon=extras.intervals)
        noise = GaussianNoise(calibrate(GaussianNoise, part))
        charges.append((noise, "intervals", part))
    if extras.measure is not None:
        # an upper bound on the charge of any score
        part = replace(budget, epsilon=extras.measure, delta=0.0)
        charges.append((PureDP(extras.measure), "score", part))
    with labelled(label):
        ledger.require_all(charges)


def _warn(model: Any, budget: Budget, extras: Extras, n_rows: int) -> None:
    """Print a warning if the guarantee of all releases together is weak."""
    more = [part for part in (extras.intervals, extras.measure) if part is not None]
    counted = budget.neighbors is Neighbors.REPLACE_ONE
    warn_of_budget(
        replace(budget, epsilon=sum(more, budget.epsilon)),
        n_rows if counted else model.expected_rows,
    )


def fitted(
    model: Any,
    rows: Split,
    extras: Extras,
    ledger: StoredLedger | None,
    label: str,
    shown: bool,
) -> Fitted:
    """Fit, then compute intervals and score; each is charged before it runs."""
    seed = model.random_state
    releases: dict[str, Any] = {}
    failed: dict[str, str] = {}
    # what releases is loaded before the charge
    more = [
        (name, epsilon, getattr(evaluation, function), arguments)
        for name, epsilon, function, arguments in (
            ("intervals", extras.intervals, "coefficient_intervals", (rows.X, rows.y)),
            ("score", extras.measure, "private_score", (rows.X_aside, rows.y_aside)),
        )
        if epsilon is not None
    ]
    with progress(shown), labelled(label):
        reports_steps = "verbose" in model.get_params(deep=False)
        if reports_steps:
            model.set_params(verbose=shown)
        with without_warnings():  # printed before
            model.fit(rows.X, rows.y, ledger=ledger)
        if reports_steps:
            model.set_params(verbose=0)
        account = {"ledger": ledger, "random_state": seed}
        # the fit is charged by now, so an error must not lose it
        for name, epsilon, release, arguments in more:
            try:
                releases[name] = release(model, *arguments, epsilon=epsilon, **account)
            except LATE_ERRORS as error:
                failed[name] = str(error)
    return Fitted(model, len(rows.X), extras, failed=failed, **releases)


def write(
    folder: Path,
    result: Fitted,
    schema: Schema,
    ledger: StoredLedger | None,
    label: str,
    force: bool,
) -> dict[str, Any]:
    """Write the model, its report and its card; note the model in the ledger.

    The fit is charged: errors of the ledger are reported from here on, and the model is
    written all the same.
    """
    # long: one entry for each fact of the folder and of the output
    model = result.model
    counted = model.privacy_.guarantee.neighbors is Neighbors.REPLACE_ONE
    extras = [part for part in (result.intervals, result.score) if part is not None]
    facts = {
        "label": label,
        **made_now(),
        "rows": result.n_rows if counted else None,
        "features": feature_names(model, schema),
        "score": _score(result),
        "intervals": None if result.intervals is None else result.intervals.to_dict(),
        "releases": [
            release.to_dict()
            for release in (model.privacy_, *(extra.privacy for extra in extras))
        ],
        **witness(ledger, result.failed, MADE),
    }
    saved = SavedModel(model, model.privacy_, schema.to_dict(), facts)
    write_model(folder, saved, overwrite=force)
    found = {
        **facts,
        "folder": str(folder),
        "selected": selected_names(saved),
        "selection": selection_facts(model),
        "additive": terms_of(model),
        "digest": digest(folder),
        "privacy": model.privacy_.to_dict(),
        "ledger": None,
        "failed": result.failed,
    }
    return noted(folder, saved, ledger, found, MADE)


def _score(result: Fitted) -> dict[str, Any] | None:
    if result.score is None:
        return None
    part = f"{result.extras.set_aside:.0%} of the rows"
    rows = f"{part}, set aside by their positions"
    return {**result.score.to_dict(), "rows": rows}
