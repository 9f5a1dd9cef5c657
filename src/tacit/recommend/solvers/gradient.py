"""Differentially private projected gradient descent on a nuclear ball."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers, at_least, at_most, moderate, plain
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Event, GaussianNoise, Repeated, calibrate
from tacit.recommend.items.side import MOST_NUMBERS, check_size, usual_row_norm
from tacit.recommend.items.steps import MOST_STEPS, ReplayedItems
from tacit.recommend.ratings.table import RatingFacts, Ratings, public_key
from tacit.recommend.solvers.base import USUAL_DELTA, CompletionSolver, counted
from tacit.recommend.solvers.moments import NoisyMoments, leading, strengths
from tacit.solvers._base import require_delta

__all__ = [
    "ProjectedGradientCompletion",
    "ProjectedGradientCompletionPlan",
    "onto_simplex",
]


Array = NDArray[np.float64]

# Decreasing step sizes, by the power of one over the step number
SCHEDULES = {"inverse_root": 0.5, "inverse": 1.0}
# Largest default step: gradient descent on squares diverges from two on
LARGEST_STEP = 1.9
# Norm to which rows are clipped, over the norm of the longest row of ratings
LARGEST_RADIUS = 2.0


@dataclass(frozen=True)
class ProjectedGradientCompletionPlan(PlainNumbers):
    """Noise and bounds of all steps, fixed without data."""

    facts: RatingFacts
    row_norm: float
    nuclear_norm: float
    step_sizes: tuple[float, ...]
    moments: NoisyMoments

    @property
    def radii(self) -> tuple[float, ...]:
        """Norms that rows are clipped to, where that of ratings is at most one.

        They are no longer than rows can get, as projections are contractions: a step
        adds at most its size, and less where it is at most one, since it then contracts
        too.
        """
        radii, reached = [], 0.0
        for size in self.step_sizes:
            longest = reached + size
            if size <= 1:
                longest = min(longest, sqrt(reached**2 + size / (2 - size)))
            # [gradient:radius] clipped to it, so that it is a bound in any case
            reached = min(longest, LARGEST_RADIUS)
            radii.append(reached)
        return tuple(radii)

    @property
    def most_directions(self) -> int:
        """Maximum number of directions of a step, so that all can be saved."""
        n_items = self.facts.n_items
        room = MOST_NUMBERS // n_items // (len(self.step_sizes) + 1) - 1
        return min(n_items, room)

    @property
    def event(self) -> Event:
        """Event of all releases together."""
        return Repeated(self.moments.event, len(self.step_sizes))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee besides the bounds."""
        return noise_assumptions(self.moments.noise)


@dataclass(frozen=True)
class ProjectedGradientCompletion(CompletionSolver):
    """Differentially private gradient descent, projected onto a nuclear ball.

    Every step moves each user's row towards their ratings, releases the noisy sum of
    outer products of all rows, and projects rows by its eigenvectors, so that the
    singular values of all rows together sum to at most ``nuclear_norm``. A user takes
    their own row through the released projections.

    Parameters
    ----------
    n_iter
        Number of steps, each with a release of its own.
    step
        Size of all steps, or ``"inverse_root"`` for ``1 / sqrt(t)`` and ``"inverse"``
        for ``1 / t`` in step ``t``. None is the square root of items over
        ``max_ratings``, and 1.9 at most: a step of one makes less progress where a user
        may rate a smaller fraction of the items.
    nuclear_norm
        Bound on the sum of singular values, in ratings. None is that of a matrix of
        rank one whose entries are half a half-width of the range.
    row_norm
        Norm that rows of ratings are clipped to. None is half the half-width of the
        range for each of the most ratings of a user.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The item side is a sequence of ``n_iter`` Gaussian mechanisms, and
    composes exactly (Dong, Roth and Su 2022); users' rows together are jointly private
    (Kearns, Pai, Roth and Ullman 2014). After [1]_, Algorithm 16, with corrections:
    steps go downhill, rows are clipped before the sums so that these have a bounded
    sensitivity, the noise is symmetric, and eigenvalues that the noise explains, all
    negative ones among them, are dropped. The others are reduced by the variance of
    single ratings, which adds about the same to all of them.

    Rows start from zero, and a step makes progress of its size times the fraction of
    items that are rated. So a small number of steps ends before the optimum, however
    large the budget: a larger one is worth more steps. With hardly any noise, the
    variance of single ratings is kept as if it were taste, as in the published
    algorithm, and a smaller ``nuclear_norm`` is better.

    References
    ----------
    .. [1] O. Thakkar, PhD thesis, Boston University 2019, chapter 6; P. Jain, O.
       Thakkar and A. Thakurta, "Differentially private matrix completion revisited",
       ICML 2018.
    """

    n_iter: int = 3
    step: float | str | None = None
    nuclear_norm: float | None = None
    row_norm: float | None = None
    noise: str = "grid"

    name: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_iter=self.n_iter)
        at_most(MOST_STEPS, n_iter=self.n_iter)
        if self.step is not None and self.step not in SCHEDULES:
            if isinstance(self.step, str):
                raise ValueError(
                    "step must be a number, 'inverse_root' or 'inverse', got "
                    f"{self.step!r}."
                )
            moderate(step=self.step)
        if self.nuclear_norm is not None:
            moderate(nuclear_norm=self.nuclear_norm)
        if self.row_norm is not None:
            moderate(row_norm=self.row_norm)
        check_noise(self.noise)

    def plan(
        self, facts: RatingFacts, budget: Budget
    ) -> ProjectedGradientCompletionPlan:
        """Find the least noise that fits; reads no rating."""
        require_delta(budget, "ProjectedGradientCompletion", USUAL_DELTA)
        # one direction a step at least, and once more for the last one
        check_size(facts.n_items, 2 * (self.n_iter + 1), "a lower n_iter")
        multiplier = calibrate(
            lambda noise: Repeated(GaussianNoise(noise), self.n_iter), budget
        )
        if isinstance(self.step, str):
            power = SCHEDULES[self.step]
            sizes = [t**-power for t in range(1, self.n_iter + 1)]
        else:
            step = self.step
            if step is None:
                step = min(sqrt(facts.n_items / facts.max_ratings), LARGEST_STEP)
            sizes = [step] * self.n_iter
        nuclear_norm = self.nuclear_norm
        if nuclear_norm is None:
            entries = sqrt(facts.n_users * facts.n_items)
            nuclear_norm = facts.half_width / 2 * entries
        return ProjectedGradientCompletionPlan(
            facts,
            usual_row_norm(facts) if self.row_norm is None else self.row_norm,
            nuclear_norm,
            tuple(sizes),
            NoisyMoments(facts.n_items, multiplier, budget.neighbors, self.noise),
        )

    def sums(self, plan: ProjectedGradientCompletionPlan) -> str:
        """Describe the sums over users that a run of this plan releases."""
        n_steps = len(plan.step_sizes)
        return f"second moments of users' rows, in {counted(n_steps, 'step')}"

    def run(
        self, plan: ProjectedGradientCompletionPlan, ratings: Ratings, rng: Generator
    ) -> ReplayedItems:
        """Make all steps, of which each releases second moments of all rows."""
        facts, n_items = plan.facts, plan.facts.n_items
        side = ReplayedItems(
            vectors=np.empty((n_items, 0)),
            offsets=np.zeros(n_items),
            low=facts.low,
            high=facts.high,
            projections=np.empty((n_items, 0)),
            shrinks=np.empty(0),
            ranks=np.empty(0, dtype=np.int64),
            step_sizes=np.array(plan.step_sizes),
            radii=np.array(plan.radii),
            row_norm=plan.row_norm,
            max_ratings=facts.max_ratings,
            key=np.frombuffer(public_key(rng), dtype=np.uint8),
        )
        bound = plan.nuclear_norm / plan.row_norm
        for radius in plan.radii:
            noisy = plan.moments.run(side.next_rows(ratings), rng)
            # from here on post-processing
            side = side.stepped(
                *_projection(
                    noisy, plan.moments.scale, bound / radius, plan.most_directions
                )
            )
        return side


def _projection(
    noisy: Array, noise_scale: float, bound: float, most: int
) -> tuple[Array, Array]:
    """Return the directions that are kept, and their factors."""
    size = len(noisy)
    values, vectors = leading(noisy, size)
    # the variance of single ratings raises all eigenvalues alike, while those of noise
    # are around zero; no more of it is subtracted than the noise would hide
    lifted = min(max(float(np.median(values)), 0.0), noise_scale * sqrt(2 * size))
    strong = strengths(values - lifted, noise_scale, size)
    strong[most:] = 0.0
    singular = np.sqrt(strong)
    inside = onto_simplex(singular, bound)
    left = inside > 0
    return np.ascontiguousarray(vectors[:, left]), inside[left] / singular[left]


def onto_simplex(values: Array, bound: float) -> Array:
    """Return the nearest point to non-negative values that sums to at most ``bound``.

    A constant is subtracted from all values, and negative ones become zero (Duchi,
    Shalev-Shwartz, Singer and Chandra 2008, Figure 1).
    """
    if values.sum() <= bound:
        return values
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - bound) / np.arange(1, len(values) + 1)
    # the first always is, unless rounding loses the bound
    n_left = max(1, int(np.count_nonzero(ordered > excess)))
    nearest: Array = np.maximum(values - excess[n_left - 1], 0.0)
    return nearest
