"""Pairs of columns: which are chosen, by noisy gradients, and how they are fitted.

Pairs are fitted to what the shapes of single columns leave. Where they are to be
chosen, the gradient of all pairs is released once; those with the longest stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers
from tacit.additive._bins import Bins
from tacit.additive._columns import Column
from tacit.additive._shrink import shrink
from tacit.additive._terms import (
    PAIR_CATEGORIES,
    PAIR_WAVES,
    Term,
    pair_factor,
    ranges_of,
)
from tacit.convex import Loss
from tacit.convex._protocols import Array
from tacit.convex.objective import UNIT, chunks
from tacit.data import bounded_rows
from tacit.data.rows import ArrayRows
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian
from tacit.preprocessing._parameters import is_list, shown
from tacit.privacy import Budget, Composed, Event, GaussianNoise
from tacit.solvers import PreconditionedGD, Problem
from tacit.solvers._gradients.descent import (
    clip_needed,
    gradient_sensitivity,
    norm_clipped,
)
from tacit.solvers._gradients.response import approximate_noise
from tacit.solvers.preconditioned_gd import MOST_FEATURES, PreconditionedGDPlan

__all__ = ["PairsPlan", "chosen_pairs", "pairs_planner"]

# Squared norm to which the features of a pair are clipped on average: the mean of the
# product of two squared cosines is a quarter
PAIR_NORM = 0.31
# Margins of single columns are clipped here, far beyond any useful model
MOST_SHIFT = 1e3
# Fraction of the squared privacy parameter of pairs that choosing them gets
CHOICE_FRACTION = 0.15
# Pairs are left out whose squared gradient exceeds that of noise by less than this many
# standard deviations
VISIBLE = 4.0


@dataclass(frozen=True)
class Shifted:
    """A loss at margins that start from given ones, which stand beside the targets.

    Notes
    -----
    **Bound.** Constants are those of the loss: adding a number to a margin of a row
    changes none of them.
    """

    loss: Loss

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "loss"), name)

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        """Return the gradient in the margins, at the shifted ones."""
        targets = y[:, 0]
        if self.loss.targets == "codes":
            targets = targets.astype(np.intp)
        return self.loss.derivative(targets, Z + y[:, 1:])


@dataclass(frozen=True)
class PairsPlan(PlainNumbers):
    """Noise of the choice of pairs and of their fit, fixed without data.

    Notes
    -----
    **Guarantee.** The choice is post-processing of one gradient of all pairs at weights
    of zero, a Gaussian mechanism whose sensitivity is that of a clipped gradient with
    rows in a ball of radius ``choice_norm``; the fit is a preconditioned descent.
    """

    n_pairs: int
    pairs: tuple[tuple[int, int], ...] | None
    choice_norm: float
    choice_multiplier: float
    choice_sensitivity: float
    descent: PreconditionedGDPlan

    @property
    def choice(self) -> Gaussian:
        """What draws the noise of the gradient of all pairs."""
        return Gaussian(
            self.choice_multiplier, self.choice_sensitivity, self.descent.noise
        )

    @property
    def event(self) -> Event:
        if self.pairs is not None:
            return self.descent.event
        return Composed((GaussianNoise(self.choice_multiplier), self.descent.event))

    def check_noise(self) -> None:
        """Reject noise that is too large for the grid; before the charge."""
        self.choice.scale(1)
        self.descent.check_noise()

    def run(
        self, bins: Sequence[Bins], row_bins: NDArray[np.intp], y: Array, rng: Generator
    ) -> list[tuple[Term, Array]]:
        """Return the term of each pair, and its weights.

        ``y`` has the targets and, beside them, the margins to start from.
        """
        y[:, 1:] = np.clip(y[:, 1:], -MOST_SHIFT, MOST_SHIFT)
        factors = [pair_factor(each) for each in bins]
        pairs = self.pairs
        if pairs is None:
            pairs = self._chosen(factors, row_bins, y, rng)
        if not pairs:
            return []
        terms = [Term(pair, tuple(factors[k] for k in pair)) for pair in pairs]
        problem = self.descent.problem
        features = np.zeros((len(row_bins), problem.n_features))
        blocks = [slice(start, end) for start, end in ranges_of(terms)]
        for term, block in zip(terms, blocks, strict=True):
            features[:, block] = term.features(row_bins)
        rows = bounded_rows(features, y, problem.bounds)
        landing = PreconditionedGD().landing(self.descent, rows, rng)
        W, used = landing.W.copy(), blocks[-1].stop
        if self.pairs is not None and W.shape[1] == 1:
            # chosen pairs stand out from the noise, and given ones may not
            noise = approximate_noise(self.descent, landing)[:used, :used]
            W[:used, 0], _ = shrink(W[:used, 0], noise, blocks)
        return [(term, W[block]) for term, block in zip(terms, blocks, strict=True)]

    def _chosen(
        self,
        factors: Sequence[Array],
        row_bins: NDArray[np.intp],
        y: Array,
        rng: Generator,
    ) -> tuple[tuple[int, int], ...]:
        """Return the pairs whose noisy gradients are longest."""
        ends = np.cumsum([0, *(factor.shape[1] for factor in factors)])
        blocks = [slice(a, b) for a, b in pairwise(ends)]
        features = np.concatenate(
            [factor[row_bins[:, k]] for k, factor in enumerate(factors)], axis=1
        )
        gradient = _PairGradient(self, tuple(blocks))
        found = ArrayRows(features, y).sum(gradient)[0]
        candidates = [
            (j, k) for j in range(len(blocks)) for k in range(j + 1, len(blocks))
        ]
        parts = [found[:, blocks[j], blocks[k]].ravel() for j, k in candidates]
        noisy = self.choice(np.concatenate(parts), rng)
        sizes = np.array([len(part) for part in parts])
        squares = np.add.reduceat(noisy**2, np.append(0, np.cumsum(sizes)[:-1]))
        # of noise alone, a sum of squares over its variance has mean ``sizes``
        excess = squares / self.choice.scale(len(noisy)) ** 2 - sizes
        stands_out = excess > VISIBLE * np.sqrt(2 * sizes)
        best = np.argsort(-excess, kind="stable")[: self.n_pairs]
        return tuple(
            candidates[position] for position in sorted(best) if stands_out[position]
        )


@dataclass(frozen=True, eq=False)
class _PairGradient:
    """Sum over a block of the gradients in products of features, at weights of zero.

    Products of all features with all are a matrix, whose blocks off the diagonal are
    the pairs.
    """

    plan: PairsPlan
    blocks: tuple[slice, ...]

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        plan, size = self.plan, X.shape[1]
        problem = plan.descent.problem
        clip = clip_needed(problem, plan.descent.clip)
        n_outputs = problem.loss.n_outputs
        total = np.zeros((n_outputs, size, size))
        for part, targets in chunks(X, y):
            derivative = problem.loss.derivative(
                targets, np.zeros((len(part), n_outputs))
            )
            derivative = norm_clipped(derivative, clip)
            derivative = derivative * self._scales(part)[:, None]
            for output in range(n_outputs):
                total[output] += (part * derivative[:, output, None]).T @ part
        return (total,)

    def _scales(self, X: Array) -> Array:
        """Return the scale that clips the products of each row to the norm."""
        squares = np.stack([(X[:, b] ** 2).sum(axis=1) for b in self.blocks], axis=1)
        # [additive:pairs] squared norm of the products of different columns
        norms = np.sqrt((squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1)) / 2)
        limit = self.plan.choice_norm * (1 - 1e-9)
        scales: Array = limit / np.maximum(norms, limit)
        return scales


def pairs_planner(
    columns: Sequence[Column],
    interactions: int | tuple[tuple[int, int], ...],
    main: Problem,
    budget: Budget,
    descent: Callable[[Problem], Callable[[float], PreconditionedGDPlan]],
) -> Callable[[float], PairsPlan]:
    """Return what plans pairs for one Gaussian mechanism of a given multiplier.

    ``main`` is the problem of the single columns, and ``descent`` gives what plans a
    descent of the problem of the pairs.
    """
    # long: one field of the plan after another
    given = interactions if isinstance(interactions, tuple) else None
    n_pairs = len(interactions) if isinstance(interactions, tuple) else interactions
    products = _products(columns)
    # any pairs may be chosen, so there is room for the largest
    sizes = sorted(products.values())[-n_pairs:]
    if given is not None:
        sizes = [products[pair] for pair in given]
    if sum(sizes) > MOST_FEATURES:
        raise PlanError(
            f"interactions may have up to {MOST_FEATURES} products of features, and "
            f"{n_pairs} pairs have up to {sum(sizes)}; give fewer pairs."
        )

    def within(squared_norm: float, n_features: int) -> Problem:
        bounds = replace(main.bounds, x_norm=sqrt(squared_norm))
        return replace(main, bounds=bounds, n_features=n_features, constant=None)

    problem = within(PAIR_NORM * n_pairs, sum(sizes))
    shown = within(PAIR_NORM * len(products), sum(products.values()))
    fit = descent(problem)

    def planned(multiplier: float) -> PairsPlan:
        fraction = 0.0 if given is not None else CHOICE_FRACTION
        plan = fit(multiplier / sqrt(1 - fraction))
        fitted = replace(
            plan,
            problem=replace(problem, loss=Shifted(problem.loss)),
            sensitivity=plan.sensitivity + _shift_roundoff(problem),
        )
        # [additive:choice] a clipped gradient, and the round-off of shifted margins
        sensitivity = gradient_sensitivity(shown, plan.clip, budget.neighbors)
        sensitivity += _shift_roundoff(shown)
        return PairsPlan(
            n_pairs,
            given,
            shown.bounds.x_norm,
            multiplier / sqrt(fraction) if fraction else 1.0,
            sensitivity,
            fitted,
        )

    return planned


def _products(columns: Sequence[Column]) -> dict[tuple[int, int], int]:
    """Return the number of products of features of each pair of columns."""
    sizes = [
        PAIR_WAVES.count if each.is_numeric else min(PAIR_CATEGORIES, each.n_codes)
        for each in columns
    ]
    return {
        (j, k): sizes[j] * sizes[k]
        for j in range(len(sizes))
        for k in range(j + 1, len(sizes))
    }


def _shift_roundoff(problem: Problem) -> float:
    """Return how far rounding shifted margins moves the sums of both neighbors."""
    # [additive:shift] a rounding of each margin, at most as large as both its parts
    off = UNIT * sqrt(problem.loss.n_outputs) * 2 * MOST_SHIFT
    moved = problem.loss.max_curvature() * off * problem.bounds.x_norm
    return 2 * problem.most_rows * moved


def chosen_pairs(
    interactions: Any, names: Sequence[Any], n_columns: int
) -> int | tuple[tuple[int, int], ...]:
    """Return a number of pairs, or the positions of given ones, checked."""
    most = n_columns * (n_columns - 1) // 2
    if isinstance(interactions, int | np.integer) and not isinstance(
        interactions, bool
    ):
        if not 0 <= interactions <= most:
            raise ValueError(
                f"interactions must be a number from 0 to {most}, the pairs of "
                f"{n_columns} columns, or a list of pairs, got {shown(interactions)}."
            )
        return int(interactions)
    position = {name: k for k, name in enumerate(names)}
    try:
        # the letters of a string are no columns
        pairs = [
            tuple(sorted(position[name] for name in pair)) if is_list(pair) else ()
            for pair in (interactions if is_list(interactions) else [()])
        ]
    except (TypeError, KeyError):
        pairs = [()]
    if any(len(pair) != 2 or pair[0] == pair[1] for pair in pairs):
        raise ValueError(
            "interactions must be a number of pairs, or a list of pairs of names of "
            f"different columns of X, got {shown(interactions)}."
        )
    distinct = tuple(dict.fromkeys((pair[0], pair[1]) for pair in pairs))
    return distinct or 0
