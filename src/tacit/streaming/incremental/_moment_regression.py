"""Least squares on a stream, from one noisy sum of all moments."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import PlainNumbers, one_of, plain, positive
from tacit.convex import Free, L2Ball
from tacit.convex._protocols import ConvexSet, Regularizer, is_set
from tacit.exceptions import PlanError
from tacit.mechanisms.continual._growing import SUMS
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Event, GaussianNoise, calibrate
from tacit.solvers import Problem
from tacit.streaming._model import StreamTerms
from tacit.streaming.incremental._moments import (
    FULL_WEIGHT,
    Moments,
    MomentSums,
    Projection,
    best_weight,
    check_problem,
    most_step_rows,
)
from tacit.streaming.incremental._sets import absolute_width, stretched
from tacit.streaming.incremental._solve import (
    SOLVERS,
    NoisyQuadratic,
    excess_of_clipped,
    weights_of,
)

__all__ = [
    "MomentLearner",
    "MomentRegression",
    "bounded",
    "checked_domain",
    "step_assumptions",
]

Array = NDArray[np.float64]


@kept
@dataclass(frozen=True, eq=False)
class MomentState:
    """State of the sums of moments. ``released`` and ``weights`` were released."""

    n_steps: int
    released: Array
    weights: Array
    _private_sums: Any = field(repr=False)


@dataclass(frozen=True)
class MomentLearner(PlainNumbers):
    """Learner of least squares by sums of moments, their noise, and a solver."""

    problem: Problem
    terms: StreamTerms
    multiplier: float
    sums: MomentSums
    solver: str
    noise: str
    projection: Projection | None = None

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return step_assumptions(self.terms, self.noise)

    @property
    def unit(self) -> float:
        """Weight that turns the longest row into the largest target."""
        return self.problem.largest_target / self.problem.bounds.x_norm

    @property
    def domain(self) -> Regularizer:
        """The set of the weights, in that unit."""
        return stretched(self.problem.regularizer, 1 / self.unit)

    def init(self) -> MomentState:
        """Return the state before the first step."""
        start = self.problem.regularizer.prox(np.zeros(self.problem.shape), 1.0)
        return MomentState(0, np.zeros(self.sums.size), start, self.sums.init())

    def step(
        self, state: MomentState, X: Array, y: Array, rng: Generator
    ) -> MomentState:
        """Add the rows of a step to the sums, and solve for weights."""
        lift = None
        if self.projection is not None:
            lift = self.projection.matrix()
            X = self.projection.rows(X, lift, self.problem.bounds)
        sums, released = self.sums.step(state._private_sums, X, y, rng)
        moments = self.sums.moments(released)
        n_steps = state.n_steps + 1
        weights = weights_of(
            NoisyQuadratic(
                moments.second, moments.first, *self.sums.stds(n_steps), lift
            ),
            self.domain,
            constant=self.problem.constant is not None,
            ridge=self.problem.ridge / self.problem.bounds.x_norm**2,
            solver=self.solver,
            start=state.weights / self.unit,
        )
        return MomentState(n_steps, released, self.unit * weights, sums)

    def weights(self, state: MomentState) -> Array:
        """Return the weights released last."""
        return state.weights

    def moments(self, state: MomentState) -> Moments:
        """Return the sums released last, in units of the bounds."""
        return self.sums.moments(state.released)

    def residual_sum(self, state: MomentState) -> float | None:
        """Return the released sum of squared residuals, if ``squares`` are summed."""
        if not self.sums.squares:
            return None
        moments = self.moments(state)
        w = state.weights[:, 0] / self.unit
        rest = w @ moments.second @ w - 2 * float(moments.first @ w)
        return (
            max(0.0, (moments.total or 0.0) + float(rest))
            * self.problem.largest_target**2
        )

    def expected_excess_risk(self, step: int) -> float:
        """Return a bound on the mean excess risk, from public facts.

        The risk is the sum of squared residuals over all rows so far. Without a set the
        bound is for weights up to `unit`.
        """
        domain, p = bounded(self.domain), self.problem.n_features
        radius = domain.radius
        stds, size = self.sums.stds(step), self.sums.n_features
        excess = excess_of_clipped(*stds, size, radius)
        if self.projection is not None:
            # the error of each prediction is twice this fraction of the radius
            n_rows = self.terms.rows_per_step * step
            width = self.projection.row_width + absolute_width(domain, p) / radius
            off = 2 * width / sqrt(self.projection.n_components) * radius
            excess = 2 * excess + (4 * off + 5 * off**2) * n_rows
        return excess * self.problem.largest_target**2


def bounded(domain: Regularizer) -> ConvexSet:
    """Return the set, or the unit ball where there is no set."""
    if isinstance(domain, Free):
        return L2Ball(1.0)
    assert is_set(domain)  # as `checked_domain` has found
    return domain


def step_assumptions(terms: StreamTerms, noise: str) -> tuple[str, ...]:
    """Return the assumptions of moments of steps, in words."""
    most = most_step_rows(terms.rows_per_step)
    return (f"there are at most {most} rows in a step", *noise_assumptions(noise))


def checked_domain(problem: Problem, budget: Budget, method: str) -> None:
    """Reject problems that are not least squares in a set."""
    check_problem(problem, budget, method)
    domain = problem.regularizer
    if not isinstance(domain, Free) and not is_set(domain):
        raise PlanError(
            f"{method} takes a set of weights, such as L1Ball(), and no penalty other "
            f"than a ridge, got {domain!r}."
        )
    if problem.ridge > 0 and is_set(domain):
        raise PlanError(
            f"{method} takes a ridge or a set, got ridge={problem.ridge:g} and "
            f"{domain!r}; pass one of them."
        )


@dataclass(frozen=True)
class MomentRegression:
    """Least squares on a stream from noisy second moments, the default method.

    After each step the sums of ``x x^T`` and ``x y`` over all rows so far are released
    together, and solved for the weights.

    Parameters
    ----------
    sums
        How sums over the stream are released: ``"blt"``, ``"tree"``, ``"honaker"`` or
        ``"square_root"``; see `tacit.mechanisms.prefix_sums`.
    weight
        Weight of products with targets relative to second moments, in units of the
        bounds; ``"auto"`` is the best for the radius of the set.
    squares
        Also release the sum of squared targets, which costs no budget at the weight
        ``sqrt(2)`` that it requires.
    solver
        Treatment of second moments that the noise made negative along some directions,
        in a set other than a ball. ``"clipped"`` sets them to zero and minimizes.
        ``"raw"`` leaves them as they are and averages gradient steps, whose bound only
        grows with the Gaussian width of the set. ``"auto"`` takes the second where its
        bound is far lower: sets such as L1 balls of a thousand features, with noise
        above the signal.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** All steps together are one Gaussian mechanism with the multiplier
    that the budget allows. A replaced row moves its step by at most
    ``(2 + c^2) / sqrt(2)`` for a weight c up to ``sqrt(2)``, and a row more or less by
    ``sqrt(1 + c^2)``, in units of the bounds. The method follows [1]_, Algorithm 2,
    which releases two separate sums with more noise; weights are post-processing.

    Without a set, a ridge of the order of the noise is added. In an L2 ball the
    minimizer is exact.

    References
    ----------
    .. [1] S. P. Kasiviswanathan, K. Nissim, H. Jin, "Private incremental regression",
       PODS 2017.

    Examples
    --------
    >>> from tacit.streaming import IncrementalLinearRegression, MomentRegression
    >>> model = IncrementalLinearRegression(
    ...     1.0, horizon=50, y_range=(0, 1), x_norm=1.0,
    ...     method=MomentRegression(sums="tree"),
    ... )
    >>> model.plan(3).learner.sums.mechanism.horizon
    50
    """

    saved = True
    name = "moments"

    sums: str = "blt"
    weight: float | str = "auto"
    squares: bool = False
    solver: str = "auto"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        one_of(tuple(SUMS), sums=self.sums)
        one_of(SOLVERS, solver=self.solver)
        if self.weight != "auto":
            positive(weight=self.weight)
        if self.squares and self.weight != "auto":
            raise ValueError(
                f"weight must be 'auto' with squares=True, got {self.weight!r}: "
                "squared targets cost no budget at one weight only."
            )

    @classmethod
    def of(cls, sums: str, noise: str, row_width: float | None) -> MomentRegression:
        """Return the method with the parameters of an estimator."""
        return cls(sums=sums, noise=noise)

    def plan(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> MomentLearner:
        """Return the learner with the least noise that fits the budget."""
        checked_domain(problem, budget, "MomentRegression")
        return self.planned(problem, budget, terms, None)

    def planned(
        self,
        problem: Problem,
        budget: Budget,
        terms: StreamTerms,
        projection: Projection | None,
    ) -> MomentLearner:
        multiplier = calibrate(GaussianNoise, budget)
        size = problem.n_features
        if projection is not None:
            size = projection.n_components + projection.constant
        sums = MomentSums.planned(
            self.sums,
            multiplier=multiplier,
            problem=problem,
            terms=terms,
            n_features=size,
            weight=self._weight(problem, budget),
            squares=self.squares,
            neighbors=budget.neighbors,
            noise=self.noise,
        )
        return MomentLearner(
            problem, terms, multiplier, sums, self.solver, self.noise, projection
        )

    def _weight(self, problem: Problem, budget: Budget) -> float:
        if self.squares:
            return FULL_WEIGHT
        if self.weight != "auto":
            return float(self.weight)
        unit = problem.largest_target / problem.bounds.x_norm
        radius = problem.regularizer.radius / unit
        if isinstance(problem.regularizer, Free):
            radius = 1.0
        return best_weight(radius, budget.neighbors)
