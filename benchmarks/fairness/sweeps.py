"""Bounds and what really happens, by the number of rows and by epsilon.

``python -m benchmarks.fairness.sweeps`` measures each recipe of
`benchmarks.fairness.models` on each data set, on 20 numbers of rows at epsilon one and
on 20 values of epsilon with all rows; delta is one over the squared number of rows, and
bounds hold with probability 0.99. It stops and goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.fairness import common
from benchmarks.fairness.bounds import SHOWN, Judge
from benchmarks.fairness.data import SETS, Array, load
from benchmarks.fairness.models import (
    FAILURE,
    N_MODELS,
    RECIPES,
    Fits,
    Reference,
)
from benchmarks.tables import Log, arguments

FIELDS = (
    "dataset",
    "sweep",
    "recipe",
    "n",
    "epsilon",
    "notion",
    "bound",
    "empirical",
    "refined",
    "least",
    "most",
    "outside",
    "models",
    "accuracy",
    "private_accuracy",
    "code",
)
N_POINTS, QUICK_POINTS, QUICK_MODELS = 20, 3, 10
FEWEST_ROWS = 10
LEAST_EPSILON, MOST_EPSILON = 1e-3, 10.0
SEED = 0
# of sums over rows
ROUNDING = 1e-12


@dataclass(frozen=True)
class Position:
    """One point of a sweep."""

    sweep: str
    n: int
    epsilon: float


def positions(n_rows: int, n_points: int) -> Iterator[Position]:
    """Yield the points of both sweeps."""
    for n in np.unique(np.geomspace(FEWEST_ROWS, n_rows, n_points).round()):
        yield Position("n", int(n), 1.0)
    for epsilon in np.geomspace(LEAST_EPSILON, MOST_EPSILON, n_points):
        yield Position("epsilon", n_rows, float(f"{epsilon:.6g}"))


def outcomes(
    judge: Judge, recipe: str, reference: Reference, n_models: int
) -> Iterator[dict[str, Any]]:
    """Yield, for each notion, what is certified and the range of private models."""
    models = reference.draws(SEED, n_models)
    margins = judge.margins(reference.weights)
    right, private_right = judge.right(reference.weights), judge.right(models)
    accuracies = {
        "accuracy": float(right.mean()),
        "private_accuracy": float(private_right.mean()),
    }
    for notion in SHOWN:
        before = judge.figures(notion, right)
        after = judge.figures(notion, private_right)
        moved = np.abs(after - before).mean(axis=0)
        moved[moved < ROUNDING] = 0.0
        row = {"notion": notion, "least": moved.min(), "most": moved.max()}
        if recipe == "printed":
            bound = judge.printed(notion, margins, reference.distance)
            row |= {"bound": bound, "outside": int((moved > bound + ROUNDING).sum())}
        else:
            row |= certified(judge, reference, notion, models, after)
        yield row | {"models": n_models} | accuracies


def certified(
    judge: Judge, reference: Reference, notion: str, models: Array, after: Array
) -> dict[str, Any]:
    """Return the bound, what knowing the models would make of it, and who leaves it."""
    margins, norms = judge.margins(reference.weights), judge.norms

    def change(lipschitz: Array, distance: float) -> float:
        found = judge.certificate(notion, margins, lipschitz, distance)
        return float(found.change.mean())

    found = judge.certificate(notion, margins, norms, reference.distance)
    low, high = found.lower[:, None] - ROUNDING, found.upper[:, None] + ROUNDING
    moves = models - reference.weights
    distances = np.linalg.norm(moves, axis=1)
    # how far each margin moves to the farthest model, which is a constant of its own
    along = np.abs(judge.problem.X_test @ moves[distances.argmax()])
    return {
        "bound": float(found.change.mean()),
        "empirical": change(norms, float(np.quantile(distances, 1 - FAILURE))),
        "refined": change(along, 1.0),
        "outside": int(((after < low) | (after > high)).any(axis=0).sum()),
    }


def measure(name: str, log: Log, *, quick: bool) -> None:
    """Measure what the log does not have of one data set."""
    problem = load(name, quick=quick)
    judge, fits = Judge(problem), Fits(problem)
    n_models = QUICK_MODELS if quick else N_MODELS
    done = {tuple(row[key] for key in FIELDS[:6]) for row in log.rows}
    for position in positions(problem.n_rows, QUICK_POINTS if quick else N_POINTS):
        for recipe in RECIPES:
            known = (
                name,
                position.sweep,
                recipe,
                str(position.n),
                str(position.epsilon),
            )
            if all((*known, notion) in done for notion in SHOWN):
                continue
            reference = fits.reference(recipe, position.n, position.epsilon)
            for row in outcomes(judge, recipe, reference, n_models):
                if (*known, row["notion"]) not in done:
                    head = dict(zip(FIELDS, known, strict=False))
                    log.append({**head, **row, "code": common.CODE})


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all sets, and print where the bounds end."""
    quick = arguments(argv, __doc__).quick
    with common.RESULTS.log(
        "sweeps",
        FIELDS,
        lambda row: row["code"] == common.CODE,
        quick=quick,
    ) as log:
        for name in SETS:
            measure(name, log, quick=quick)
            print(f"{name}: {sum(r['dataset'] == name for r in log.rows)} rows")


if __name__ == "__main__":
    main()
