"""The runs of a search: fit a candidate, score it, keep the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.random import Generator
from sklearn.base import clone

from tacit._random import spawn
from tacit.evaluation._measures import Measure, predictions, without_warnings
from tacit.evaluation._score import noisy_sums
from tacit.mechanisms.subsets import random_blocks
from tacit.model_selection._candidates import fit_on, private_parts
from tacit.model_selection._plan import SearchPlan
from tacit.privacy import Event, Neighbors

__all__ = ["Prepared", "Run", "best_run"]

Rows = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Run:
    """One candidate, fitted and scored."""

    rank: float
    score: float
    index: int
    model: Any


@dataclass(frozen=True, eq=False)
class Prepared:
    """Candidates with the budget of one run, and the plan of the search.

    ``sample`` is a row of which only the columns matter, not the values.
    """

    plan: SearchPlan
    models: tuple[Any, ...]
    events: tuple[Event, ...]
    sample: Any


def best_run(
    prepared: Prepared, train: Rows, test: Rows, measure: Measure, rng: Generator
) -> Run | None:
    """Return the run with the highest score, or None if none gave a model.

    ``rng`` gives the number of runs, the candidates and all noise.
    """
    best = None
    # [search:repeats] drawn before any run, and never stored
    n_runs = prepared.plan.repeats(rng)
    positions = random_blocks(n_runs, len(prepared.models), rng)
    for index, child in zip(positions, spawn(rng, n_runs), strict=True):
        run = one_run(prepared, int(index), train, test, measure, child)
        if run is not None and (best is None or run.rank > best.rank):
            best = run
    return best


def one_run(
    prepared: Prepared,
    index: int,
    train: Rows,
    test: Rows,
    measure: Measure,
    rng: Generator,
) -> Run | None:
    """Return one candidate fitted and scored, or None where that failed."""
    plan = prepared.plan
    model = clone(prepared.models[index])
    prefixes = [prefix for prefix, _ in private_parts(model)]
    *sources, last = spawn(rng, len(prefixes) + 1)
    seeds = dict(zip(prefixes, sources, strict=True))
    model.set_params(**{f"{prefix}random_state": seeds[prefix] for prefix in prefixes})
    X, y = test
    counted = plan.budget.neighbors is Neighbors.REPLACE_ONE
    with without_warnings():  # their count would leak the number of runs
        try:
            event = prepared.events[index]
            fit_on(model, *train, prepared.sample, plan.per_run, event)
            parts = measure.parts(predictions(model, X, len(y)), y)
        except Exception:
            # [search:failure] a run without a model ranks last; whether it fails
            # depends on its releases only, not on the rows
            return None
        noisy = noisy_sums(plan.noise, parts, counted, last)
    total = float(len(y)) if counted else max(float(noisy.sum()), 1.0)
    mean = min(max(float(noisy[0]) / total, 0.0), 1.0)
    # half the difference is the sum less half the number of rows, the same in all runs
    rank = float(noisy[0] if counted else (noisy[0] - noisy[1]) / 2)
    sign = 1 if measure.labels else -1
    return Run(sign * rank, measure.in_units(mean), index, model)
