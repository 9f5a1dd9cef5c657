"""What an additive fit learns, releases and finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.additive._bands import shape_noise
from tacit.additive._bins import Bins
from tacit.additive._columns import Codes, Column
from tacit.additive._plan import FARTHEST, AdditivePlan
from tacit.additive._shapes import monotone_values
from tacit.additive._terms import Term, main_term, term_features
from tacit.convex import Loss
from tacit.data import RowBounds, bounded_rows
from tacit.solvers import PreconditionedGD

__all__ = ["Found", "Task", "run"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """What a fit learns: its loss, the public facts and the targets of the rows.

    ``targets`` are -1 and 1 or codes of classes, or numbers in their own unit; none for
    a plan.
    """

    loss: Loss
    assumptions: tuple[str, ...]
    classes: NDArray[Any] | None = None
    y_range: tuple[float, float] | None = None
    targets: NDArray[Any] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Found:
    """What a fit released, in units of the targets: bins, shapes and an intercept."""

    bins: list[Bins]
    values: list[Array]
    intercept: Array
    center: float
    unit: float
    pairs: list[tuple[tuple[int, ...], Array]]
    std: list[Array] | None = None


def run(
    plan: AdditivePlan,
    columns: Sequence[Column],
    codes: Codes,
    task: Task,
    n_rows: int | None,
    rng: np.random.Generator,
) -> Found:
    """Release bins, units and weights, one after the other."""
    bins, total = plan.bins.run(codes, columns, n_rows, rng)
    center, unit, y = 0.0, 1.0, task.targets
    if plan.targets is not None:
        center, unit = plan.targets.run(y, total, rng)
        y = np.clip((y - center) / unit, -FARTHEST, FARTHEST)
    terms = [main_term(k, each) for k, each in enumerate(bins)]
    of_rows = np.column_stack([each.of(codes[:, k]) for k, each in enumerate(bins)])
    constant = plan.descent.problem.constant
    bounds = RowBounds(plan.x_norm, y_range=plan.descent.problem.bounds.y_range)
    rows = bounded_rows(term_features(terms, of_rows), y, bounds, constant)
    landing = PreconditionedGD().landing(plan.descent, rows, rng)
    W = landing.W
    values, intercept = _values(terms, W[:-1]), W[-1] * float(constant or 0.0)
    values = [monotone_values(b, v) for b, v in zip(bins, values, strict=True)]
    pairs: list[tuple[tuple[int, ...], Array]] = []
    if plan.pairs is not None:
        margins = intercept + sum(each[of_rows[:, k]] for k, each in enumerate(values))
        shifted = np.column_stack([y, margins])
        pairs = [
            (term.columns, term.shape(weights))
            for term, weights in plan.pairs.run(bins, of_rows, shifted, rng)
        ]
    count_noise = plan.bins.mechanism.scale(1)
    std = shape_noise(plan.descent, landing, terms, bins, total, count_noise)
    return Found(bins, values, intercept, center, unit, pairs, std)


def _values(terms: Sequence[Term], weights: Array) -> list[Array]:
    ends = np.cumsum([term.n_features for term in terms])
    parts = np.split(weights, ends[:-1])
    return [term.shape(part) for term, part in zip(terms, parts, strict=True)]
