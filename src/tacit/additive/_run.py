"""What an additive fit learns, releases and finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.additive._bands import shape_noise, weight_noise
from tacit.additive._bins import Bins
from tacit.additive._columns import Codes, Column
from tacit.additive._plan import FARTHEST, AdditivePlan
from tacit.additive._shapes import monotone_values
from tacit.additive._shrink import blocks_of, shrink, unseen
from tacit.additive._sums import BinSums, binned_rows
from tacit.additive._terms import ROW_NORM, Term, main_terms, shapes_of
from tacit.convex import Loss
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
    center, unit, y = _in_units(plan, task.targets, total, rng)
    terms = main_terms(bins, plan.waves)
    row_bins = np.empty(codes.shape, dtype=np.intp, order="F")
    for k, each in enumerate(bins):
        row_bins[:, k] = each.of(codes[:, k])
    sums = BinSums(plan.descent.problem, plan.descent.clip, terms)
    rows = binned_rows(terms, row_bins, y, ROW_NORM)
    landing = PreconditionedGD().landing(plan.descent, rows, rng, sums)
    count_noise = plan.bins.mechanism.scale(1)
    noise = weight_noise(plan.descent, landing, terms, bins, total, count_noise)
    W, std = landing.W, None
    if noise is not None:
        W = W.copy()
        W[:, 0], for_bands = shrink(W[:, 0], noise, blocks_of(terms, bins))
        std = shape_noise(terms, for_bands)
    constant = float(plan.descent.problem.constant or 0.0)
    values, intercept = shapes_of(terms, W[:-1]), W[-1] * constant
    empty = [unseen(each, count_noise / total) for each in bins]
    values = [
        monotone_values(each, np.where(is_empty[:, None], 0.0, shape))
        for each, is_empty, shape in zip(bins, empty, values, strict=True)
    ]
    pairs: list[tuple[tuple[int, ...], Array]] = []
    if plan.pairs is not None:
        margins = intercept + sum(each[row_bins[:, k]] for k, each in enumerate(values))
        shifted = np.column_stack([y, margins])
        fitted = plan.pairs.run(bins, row_bins, shifted, rng)
        pairs = [(term.columns, _pair_values(term, w, empty)) for term, w in fitted]
    return Found(bins, values, intercept, center, unit, pairs, std)


def _in_units(
    plan: AdditivePlan, y: NDArray[Any], total: float, rng: np.random.Generator
) -> tuple[float, float, NDArray[Any]]:
    """Return the released center and unit of targets, and targets in that unit."""
    if plan.targets is None:
        return 0.0, 1.0, y
    center, unit = plan.targets.run(y, total, rng)
    y = np.clip(y, plan.targets.low, plan.targets.high)
    return center, unit, np.clip((y - center) / unit, -FARTHEST, FARTHEST)


def _pair_values(
    term: Term, weights: Array, empty: Sequence[NDArray[np.bool_]]
) -> Array:
    """Return what a pair adds for each pair of bins, zero where one has no rows."""
    first, second = term.columns
    values = term.shape(weights)
    values[empty[first]] = 0.0
    values[:, empty[second]] = 0.0
    return values
