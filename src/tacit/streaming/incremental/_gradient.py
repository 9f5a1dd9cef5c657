"""Least squares on a stream by the published descent along noisy gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, log2, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import PlainNumbers, at_least, one_of, plain
from tacit.convex import Free
from tacit.convex._protocols import ConvexSet, is_set
from tacit.exceptions import PlanError
from tacit.mechanisms.continual import TreeSum
from tacit.mechanisms.continual._base import packed_size, to_matrix, to_vector
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.solvers import Problem
from tacit.streaming._model import StreamTerms
from tacit.streaming.incremental._moment_regression import (
    checked_domain,
    step_assumptions,
)
from tacit.streaming.incremental._moments import (
    longest_step,
    most_step_rows,
    row_moments,
    step_roundoff,
)
from tacit.streaming.incremental._sets import stretched
from tacit.streaming.incremental._solve import (
    NoisyQuadratic,
    averaged_descent,
    descent_steps,
    gradient_error,
)

__all__ = ["GradientRegression", "TwoTreeLearner"]

Array = NDArray[np.float64]

# Published sensitivity of either sum
PUBLISHED_SENSITIVITY = 2.0
# Smallest number of steps for which the published noise is private
PUBLISHED_STEPS = 3


@kept
@dataclass(frozen=True, eq=False)
class TwoTreeState:
    """State of both sums. ``weights`` were released."""

    n_steps: int
    weights: Array
    _private_second: Any = field(repr=False)
    _private_first: Any = field(repr=False)


@dataclass(frozen=True)
class TwoTreeLearner(PlainNumbers):
    """Learner by two noisy sums of moments, and descent along their gradients."""

    problem: Problem
    terms: StreamTerms
    multiplier: float
    second_sums: Any
    first_sums: Any
    most_iterations: int
    noise: str

    @property
    def event(self) -> Event:
        return _both(self.multiplier)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return step_assumptions(self.terms, self.noise)

    @property
    def unit(self) -> float:
        """Weight that turns the longest row into the largest target."""
        return self.problem.largest_target / self.problem.bounds.x_norm

    @property
    def domain(self) -> ConvexSet:
        """The set of the weights, in that unit."""
        domain = stretched(self.problem.regularizer, 1 / self.unit)
        assert is_set(domain)  # as `GradientRegression.plan` has found
        return domain

    def init(self) -> TwoTreeState:
        """Return the state before the first step."""
        start = self.problem.regularizer.prox(np.zeros(self.problem.shape), 1.0)
        p = self.problem.n_features
        return TwoTreeState(
            0,
            start,
            self.second_sums.init((packed_size(p),)),
            self.first_sums.init((p,)),
        )

    def step(
        self, state: TwoTreeState, X: Array, y: Array, rng: Generator
    ) -> TwoTreeState:
        """Add the rows of a step to both sums, and descend."""
        x_norm, y_max = self.problem.bounds.x_norm, self.problem.largest_target
        moments = row_moments(X, y, x_norm, y_max)
        second_state, second = self.second_sums.step(
            state._private_second, to_vector(moments.second), rng
        )
        first_state, first = self.first_sums.step(
            state._private_first, moments.first, rng
        )
        n_steps = state.n_steps + 1
        weights = self.descended(to_matrix(second), first, n_steps)
        return TwoTreeState(n_steps, self.unit * weights, second_state, first_state)

    def descended(self, second: Array, first: Array, step: int) -> Array:
        """Return the mean of the descent from the sums of a step, in internal units."""
        quadratic = NoisyQuadratic(second, first, *self._stds(step))
        error, derivative, diameter = self._sizes(step)
        n_iterations = descent_steps(error, derivative, self.most_iterations)
        # the diameter, where the paper has the radius: two members can be that far
        size = diameter / (sqrt(n_iterations) * (error + derivative))
        start = self.domain.prox(np.zeros(self.problem.shape), 1.0)
        return averaged_descent(quadratic, self.domain, start, n_iterations, size)

    def weights(self, state: TwoTreeState) -> Array:
        """Return the weights released last."""
        return state.weights

    def residual_sum(self, state: TwoTreeState) -> None:
        """Return None, as squared targets are not released."""

    def expected_excess_risk(self, step: int) -> float:
        """Return a bound on the mean excess risk, from public facts.

        The risk is the sum of squared residuals over all rows so far.
        """
        error, derivative, diameter = self._sizes(step)
        n_iterations = descent_steps(error, derivative, self.most_iterations)
        excess = diameter * ((error + derivative) / sqrt(n_iterations) + error)
        return excess * self.problem.largest_target**2

    def _stds(self, step: int) -> tuple[float, float]:
        p = self.problem.n_features
        return (
            float(self.second_sums.std_at(step, packed_size(p))),
            float(self.first_sums.std_at(step, p)),
        )

    def _sizes(self, step: int) -> tuple[float, float, float]:
        """Return the error of gradients, their size, and the diameter of the set."""
        domain, p = self.domain, self.problem.n_features
        error = gradient_error(*self._stds(step), p, domain.radius)
        n_rows = self.terms.rows_per_step * step
        return error, 2 * n_rows * (1 + domain.radius), domain.diameter(p)


@dataclass(frozen=True)
class GradientRegression:
    """Least squares on a stream by noisy projected gradients, as published.

    Two trees release the sums of ``x x^T`` and of ``x y`` after each step. These give
    the gradient at any weights for projected steps, whose mean is released.
    `MomentRegression` has less noise and a better solver: this is for comparisons.

    Parameters
    ----------
    accounting
        ``"exact"`` for the least noise with which both trees together fit the budget,
        ``"paper"`` for the published noise, if its guarantee is true.
    most_iterations
        Maximum number of gradient steps after each step of the stream. The published
        number grows with the square of the stream.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Two Gaussian mechanisms. A replaced row moves ``x x^T`` by at most
    ``sqrt(2)`` and ``x y`` by at most 2, in units of the bounds; a row more or less
    moves both by 1. The published noise [1]_, Algorithms 2 and 4, uses 2 for both, half
    of epsilon and of delta for each tree, and logarithms to base two. Its true privacy
    is computed and charged, and it is rejected if that is above the budget, as for
    large epsilon, and for fewer than three steps.

    **Bound.** With gradients of size at most L and of mean error at most a, in a set of
    diameter D, r steps of size ``D / (sqrt(r) (a + L))`` have a mean excess of at most
    ``D (a + L) / sqrt(r) + a D``. The published bound has the radius for D, which two
    points of a set can exceed twice, and is too low.

    References
    ----------
    .. [1] S. P. Kasiviswanathan, K. Nissim, H. Jin, "Private incremental regression",
       PODS 2017, Algorithm 2 and Proposition C.1.

    Examples
    --------
    >>> from tacit.convex import L2Ball
    >>> from tacit.streaming import IncrementalLinearRegression
    >>> model = IncrementalLinearRegression(
    ...     1.0, horizon=50, y_range=(0, 1), x_norm=1.0,
    ...     constraint=L2Ball(1.0), method="gradient",
    ... )
    >>> model.plan(3).learner.most_iterations
    1000
    """

    saved = True
    name = "gradient"

    accounting: str = "exact"
    most_iterations: int = 1000
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        one_of(("exact", "paper"), accounting=self.accounting)
        at_least(1, most_iterations=self.most_iterations)
        check_noise(self.noise)

    @classmethod
    def of(cls, sums: str, noise: str, row_width: float | None) -> GradientRegression:
        """Return the method with the parameters of an estimator; sums are trees."""
        return cls(noise=noise)

    def plan(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> TwoTreeLearner:
        """Return the learner with the noise of both sums."""
        checked_domain(problem, budget, "GradientRegression")
        if isinstance(problem.regularizer, Free):
            raise PlanError(
                "GradientRegression requires weights in a set, such as L2Ball(1.0); "
                "pass one, or use MomentRegression."
            )
        multiplier, moved = self._noise(budget, terms)
        roundoff = step_roundoff(1.0, most_step_rows(terms.rows_per_step))
        # [incremental:apart] each of the two sums, including round-off
        second, first = (
            TreeSum(
                terms.horizon,
                multiplier,
                terms.rows_per_person * (most + 2 * roundoff),
                noise=self.noise,
                largest=float(longest_step(terms.rows_per_step)),
            )
            for most in moved
        )
        learner = TwoTreeLearner(
            problem, terms, multiplier, second, first, self.most_iterations, self.noise
        )
        # rejects noise too large for the grid now, not after the charge
        learner.expected_excess_risk(1)
        return learner

    def _noise(
        self, budget: Budget, terms: StreamTerms
    ) -> tuple[float, tuple[float, float]]:
        """Return the noise multiplier of both sums, and the sensitivity of each."""
        if self.accounting == "paper":
            return _published(budget, terms.horizon), (PUBLISHED_SENSITIVITY,) * 2
        changed = budget.neighbors.rows_changed
        # two matrices x x^T are at most orthogonal, two vectors x y can be opposite
        return calibrate(_both, budget), (sqrt(changed), float(changed))


def _published(budget: Budget, horizon: int) -> float:
    """Return the multiplier of the published noise of each tree."""
    if horizon < PUBLISHED_STEPS:
        raise PlanError(
            f"The published noise is not private for horizon={horizon}; use "
            "accounting='exact', or a horizon of at least 3."
        )
    epsilon, delta = budget.epsilon / 2, budget.delta / 2
    multiplier = log2(horizon) * sqrt(2 * log(2 / delta)) / epsilon
    multiplier /= sqrt(horizon.bit_length())
    if not _both(multiplier).curve(budget.neighbors).fits(budget):
        raise PlanError(
            f"The published noise does not keep epsilon={budget.epsilon:g} at "
            f"delta={budget.delta:g}; use accounting='exact'."
        )
    return multiplier


def _both(multiplier: float) -> Event:
    return Composed((GaussianNoise(multiplier), GaussianNoise(multiplier)))
