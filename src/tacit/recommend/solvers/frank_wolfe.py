"""Differentially private Frank-Wolfe for matrix completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from tacit._execution import steps
from tacit._validate import PlainNumbers, at_least, moderate, one_of, plain
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.recommend.items.side import Block, check_size, usual_row_norm
from tacit.recommend.items.steps import WalkItems
from tacit.recommend.ratings.table import RatingFacts, Ratings, UsedRatings, public_key
from tacit.recommend.solvers.base import USUAL_DELTA, CompletionSolver, counted
from tacit.recommend.solvers.frank_wolfe_sums import (
    NOISES,
    PRODUCT_SOLVERS,
    NoisyProducts,
    StepLength,
)
from tacit.recommend.solvers.item_means import ItemMeans
from tacit.recommend.solvers.moments import (
    MATRIX_SOLVERS,
    MOST_MATRIX_ITEMS,
    NoisyMoments,
    leading_pair,
    strengths,
)
from tacit.solvers._base import require_delta

__all__ = ["FrankWolfeCompletion", "FrankWolfeCompletionPlan"]


Array = NDArray[np.float64]

STEPS = ("search", "standard", "published")
EIGENVECTORS = ("auto", *MATRIX_SOLVERS, *PRODUCT_SOLVERS)
CLIPS = ("residual", "row")
WEIGHTS = ("uniform", "increasing")
# Largest number of items for which a dense eigenvalue solver is used
MOST_DENSE = 3000
# Fractions of the squared Gaussian parameter for item means, and of a step for its
# length
MEANS_FRACTION, LENGTH_FRACTION = 0.1, 0.05
# Least strength of a direction that is worth a step, over the sum of all rows
WORTH_A_STEP = 1 / 80
MOST_STEPS = 20
# Probability with which an inflated eigenvalue is still too small
INFLATION_FAILURE = 0.05
# Least value of published eigenvalues, in units of one squared row
TINY = 1e-6


@dataclass(frozen=True)
class FrankWolfeCompletionPlan(PlainNumbers):
    """Bounds, steps and the noise of all releases, fixed without data."""

    facts: RatingFacts
    solver: FrankWolfeCompletion
    n_iter: int
    row_norm: float
    means: ItemMeans | None
    directions: tuple[NoisyMoments | NoisyProducts, ...]
    lengths: tuple[StepLength, ...]

    @property
    def bound(self) -> float:
        """Norm bound on a row of residuals in the sums."""
        # [completion:bound] ratings and predictions of a clipped row are each in it
        return self.row_norm * (2 if self.solver.clip == "row" else 1)

    @property
    def event(self) -> Event:
        """Event of all releases."""
        first = () if self.means is None else (self.means,)
        released = (*first, *self.directions, *self.lengths)
        return Composed(tuple(each.event for each in released))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee besides the bounds."""
        return noise_assumptions(self.solver.noise)

    @property
    def widest(self) -> float:
        """Nuclear norm of a matrix of rank one in which all ratings are extreme."""
        facts = self.facts
        return facts.half_width * sqrt(facts.n_users * facts.n_items)


@dataclass(frozen=True)
class FrankWolfeCompletion(CompletionSolver):
    """Differentially private Frank-Wolfe, along leading directions of the residuals.

    In each step users' residuals are summed up to a noisy matrix of second moments. Its
    leading eigenvector is public, and each user moves their own row along it.

    Parameters
    ----------
    nuclear_norm
        Bound on the nuclear norm of all predictions together. ``"auto"`` is that of a
        matrix of rank one whose entries are all at the end of the range if steps are
        searched, whose length then does not depend on it. Else it is the searched
        length of the first step times the sum of the roots of the first matrix's
        eigenvalues beyond the noise, over the root of the largest.
    n_iter
        Number of steps. None takes the largest number that leaves the noise below an
        eightieth of the sum of all rows of residuals, from 1 to 20.
    row_norm
        Norm to which rows are clipped. None is a quarter of the half-width of the range
        times the square root of the most ratings of a user, and twice that for
        ``clip="row"``.
    step
        ``"search"`` chooses the length that predicts each rating best from the user's
        other ratings, by a release of two numbers a step; ``"standard"`` goes ``2 / (t
        + 2)`` of the way in step t; ``"published"`` goes one over ``n_iter`` of the
        way, and is charged for a step that it does not take.
    eigenvector
        ``"dense"`` or ``"lanczos"`` for a noisy matrix; ``"oja"`` or ``"power"`` for
        noisy products, which need no matrix; ``"auto"`` for the first up to 3,000
        items, the second up to 20,000 and the third beyond.
    n_products
        Products of a step for ``"oja"`` and ``"power"``.
    clip
        ``"residual"`` clips rows of residuals in the sums; ``"row"`` clips rows of
        ratings and of predictions, for four times the noise with the same ``row_norm``,
        and 16 times with the usual ones.
    weights
        Fractions of the steps in the squared Gaussian parameter: ``"uniform"``, or
        ``"increasing"`` for less noise later.
    item_means
        Whether to release mean ratings of items first, and subtract them.
    inflate
        Whether to add a bound on the noise to each eigenvalue, as published.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** All releases are Gaussian mechanisms of sums over users of
    integers, calibrated together and exactly (Balle and Wang 2018; Dong, Roth and Su
    2022); a user's row of residuals has the norm ``c``, so that they move the matrix by
    ``sqrt(2) c^2`` if they are replaced and by ``c^2`` if they are added or removed.
    ``c`` is ``row_norm``, or twice that for ``clip="row"``. Users' rows together are
    jointly private (Kearns, Pai, Roth and Ullman 2014). After [1]_ and [2]_, Algorithm
    13, with the steps of [3]_, a symmetric noise matrix, and the sensitivity for a
    replaced user, of which they have the part for an added one.

    References
    ----------
    .. [1] P. Jain, O. Thakkar, A. Thakurta, "Differentially private matrix completion
       revisited", ICML 2018.
    .. [2] O. Thakkar, PhD thesis, Boston University 2019, chapter 6.
    .. [3] M. Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex
       optimization", ICML 2013.
    """

    nuclear_norm: float | str = "auto"
    n_iter: int | None = None
    row_norm: float | None = None
    step: str = "search"
    eigenvector: str = "auto"
    n_products: int = 30
    clip: str = "residual"
    weights: str = "uniform"
    item_means: bool = False
    inflate: bool = False
    noise: str = "grid"

    name: ClassVar[str] = "frank_wolfe"

    def __post_init__(self) -> None:
        plain(self)
        if isinstance(self.nuclear_norm, str):
            one_of(("auto",), nuclear_norm=self.nuclear_norm)
        else:
            moderate(nuclear_norm=self.nuclear_norm)
        if self.n_iter is not None:
            at_least(2 if self.step == "published" else 1, n_iter=self.n_iter)
        if self.row_norm is not None:
            moderate(row_norm=self.row_norm)
        at_least(1, n_products=self.n_products)
        one_of(STEPS, step=self.step)
        one_of(EIGENVECTORS, eigenvector=self.eigenvector)
        one_of(CLIPS, clip=self.clip)
        one_of(WEIGHTS, weights=self.weights)
        one_of((True, False), item_means=self.item_means)
        one_of((True, False), inflate=self.inflate)
        check_noise(self.noise)

    def plan(self, facts: RatingFacts, budget: Budget) -> FrankWolfeCompletionPlan:
        """Find the steps and the least noise that fits; reads no rating."""
        require_delta(budget, "FrankWolfeCompletion", USUAL_DELTA)
        neighbors, noise = budget.neighbors, self.noise
        n_iter = self.n_iter
        if n_iter is None:
            n_iter = self._usual_steps(facts, budget)
        check_size(facts.n_items, n_iter + 5, "a lower n_iter")
        first = MEANS_FRACTION if self.item_means else 0.0
        weights, lengths = self._fractions(n_iter, 1 - first)

        def event(multiplier: float) -> Event:
            # [completion:budget] squared inverses of the multipliers add up
            fractions = (first, *weights.tolist(), *lengths.tolist())
            return Composed(
                tuple(GaussianNoise(multiplier / sqrt(s)) for s in fractions if s > 0)
            )

        multiplier = calibrate(event, budget)
        return FrankWolfeCompletionPlan(
            facts,
            self,
            n_iter,
            self._row_norm(facts),
            ItemMeans(facts, multiplier / sqrt(first), neighbors, noise)
            if self.item_means
            else None,
            tuple(
                self._direction(facts, budget, multiplier / sqrt(weight))
                for weight in weights.tolist()
            ),
            tuple(
                StepLength(multiplier / sqrt(weight), neighbors, noise)
                for weight in lengths.tolist()
            ),
        )

    def _fractions(self, n_iter: int, total: float) -> tuple[Array, Array]:
        """Return the fractions of directions and of lengths in the budget."""
        weights = np.ones(n_iter)
        if self.weights == "increasing":
            weights = np.arange(1.0, n_iter + 1)
        weights *= total / weights.sum()
        # only the first step's length, where it determines the nuclear norm
        searched = n_iter if self.step == "search" else int(self.nuclear_norm == "auto")
        lengths = weights[:searched] * LENGTH_FRACTION
        weights[:searched] *= 1 - LENGTH_FRACTION
        return weights, lengths

    def sums(self, plan: FrankWolfeCompletionPlan) -> str:
        """Describe the sums over users that a run of this plan releases."""
        means = "" if plan.means is None else "counts and means of items, then "
        moments = any(isinstance(each, NoisyMoments) for each in plan.directions)
        what = "second moments of" if moments else f"{self.n_products:,} products with"
        n_lengths = len(plan.lengths)
        lengths = f", and lengths of {n_lengths:,} of them" if n_lengths else ""
        # the published algorithm is charged for a step that it does not take
        taken = plan.n_iter - (self.step == "published")
        return (
            f"{means}in up to {counted(taken, 'step')} {what} users' residuals{lengths}"
        )

    def run(
        self, plan: FrankWolfeCompletionPlan, ratings: Ratings, rng: Generator
    ) -> WalkItems:
        """Release a direction a step, and return all of them."""
        facts = plan.facts
        used = UsedRatings(ratings, facts.max_ratings, public_key(rng))
        side = self._start(plan, used, rng)
        k = self._nuclear_norm(plan)
        published = self.step == "published"
        # the published algorithm begins without a direction
        for t in steps(plan.n_iter - published, "steps"):
            rows = partial(side.unit_residuals, bound=plan.bound)
            vector, values = self._released(
                plan.directions[t],
                partial(used.each, rows),
                rng,
                every=k is None,
            )
            # from here on post-processing, until the length is released
            strength = float(values[0])
            if strength <= 0:
                continue  # a direction of pure noise
            value = self._singular_value(plan, t, strength)
            fraction = 1 / plan.n_iter if published else 2 / (len(side.keeps) + 2)
            if self.step == "search" or k is None:
                length = plan.lengths[t if self.step == "search" else 0]
                reach = (plan.widest if k is None else k) / value
                found = length.run(
                    used.each(side.visited),
                    vector,
                    reach,
                    facts.max_ratings,
                    plan.bound,
                    rng,
                )
                if k is None:
                    k = found * plan.widest * float(np.sqrt(values / strength).sum())
                else:
                    fraction = found
            side = side.moved(vector, 1 - fraction, fraction * k / value, strength)
        return side

    def _start(
        self, plan: FrankWolfeCompletionPlan, used: UsedRatings, rng: Generator
    ) -> WalkItems:
        """Return the side before the first step, with item means if requested."""
        facts = plan.facts
        offsets, level = np.zeros(facts.n_items), facts.middle
        if plan.means is not None:
            means = plan.means.run(used, rng)
            offsets, level = means.offsets, means.level
        return WalkItems.start(
            offsets,
            facts.low,
            facts.high,
            level,
            facts.max_ratings,
            plan.row_norm if self.clip == "row" else None,
        )

    def _released(
        self,
        direction: NoisyMoments | NoisyProducts,
        blocks: Callable[[], Iterator[Callable[[], Block]]],
        rng: Generator,
        *,
        every: bool,
    ) -> tuple[Array, Array]:
        """Release a unit vector, and its eigenvalue or ``every`` one, less noise."""
        if isinstance(direction, NoisyProducts):
            value, vector = direction.run(blocks, rng)
            return vector, self._seen(value, value > NOISES * direction.scale)
        matrix = direction.run(blocks(), rng)
        if self.step == "search":
            # a rating's own square does not help to predict it when it is left out
            np.fill_diagonal(matrix, 0.0)
        solver = self._eigenvector(len(matrix))
        value, vector = leading_pair(matrix, solver)
        values = strengths(np.array([value]), direction.scale, len(matrix))
        if every and solver == "dense":
            found = strengths(eigvalsh(matrix)[::-1], direction.scale, len(matrix))
            values = np.append(values, found[1:])
        if self.step == "published":
            values[0] = max(value, TINY)
        return vector, values

    def _seen(self, value: float, more_than_noise: bool) -> Array:
        if self.step == "published":
            return np.array([max(value, TINY)])
        return np.array([value if more_than_noise else 0.0])

    def _singular_value(
        self, plan: FrankWolfeCompletionPlan, t: int, strength: float
    ) -> float:
        """Return the largest singular value of the residuals, from public numbers."""
        value = sqrt(strength)
        if self.inflate:
            n_items = plan.facts.n_items
            scale = plan.directions[t].scale
            value += sqrt(scale * log(n_items / INFLATION_FAILURE)) * n_items**0.25
        return plan.bound * value

    def _nuclear_norm(self, plan: FrankWolfeCompletionPlan) -> float | None:
        """Return the bound on the nuclear norm, or None if the first step finds it."""
        if not isinstance(self.nuclear_norm, str):
            return self.nuclear_norm
        return plan.widest if self.step == "search" else None

    def _row_norm(self, facts: RatingFacts) -> float:
        if self.row_norm is not None:
            return self.row_norm
        return usual_row_norm(facts) / (1 if self.clip == "row" else 2)

    def _eigenvector(self, n_items: int) -> str:
        if self.eigenvector != "auto":
            return self.eigenvector
        if n_items <= MOST_DENSE:
            return "dense"
        return "lanczos" if n_items <= MOST_MATRIX_ITEMS else "oja"

    def _direction(
        self, facts: RatingFacts, budget: Budget, multiplier: float
    ) -> NoisyMoments | NoisyProducts:
        """Return the release of one direction with this noise multiplier."""
        method = self._eigenvector(facts.n_items)
        if method in MATRIX_SOLVERS:
            return NoisyMoments(facts.n_items, multiplier, budget.neighbors, self.noise)
        # [completion:products] one for each product and one for the eigenvalue
        each = multiplier * sqrt(self.n_products + 1)
        return NoisyProducts(facts.n_items, self.n_products, each, method, self.noise)

    def _usual_steps(self, facts: RatingFacts, budget: Budget) -> int:
        """Return the number of steps for which directions can exceed the noise."""
        one = self._direction(facts, budget, calibrate(GaussianNoise, budget))
        # twice the spectral norm that noise would have in a single step
        noise = one.scale * sqrt(2 * facts.n_items)
        if isinstance(one, NoisyProducts):
            noise *= sqrt(2)
        n_steps = int((WORTH_A_STEP * facts.n_users / noise) ** 2)
        return min(max(n_steps, 2 if self.step == "published" else 1), MOST_STEPS)
