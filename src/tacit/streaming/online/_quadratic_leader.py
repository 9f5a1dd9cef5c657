"""Private follow-the-leader for quadratic losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import PlainNumbers, nonnegative, one_of, plain, positive
from tacit.convex import Free, L2Ball, Softmax
from tacit.convex.losses import has_residuals
from tacit.convex.objective import DERIVATIVE_UNITS, UNIT, chunks
from tacit.mechanisms.continual._base import packed_size, to_matrix, to_vector
from tacit.mechanisms.continual._growing import SUMS
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, GaussianNoise, calibrate
from tacit.solvers import Problem
from tacit.solvers._base import MOST_ROWS, require_delta
from tacit.solvers._gradients.descent import norm_clipped
from tacit.solvers._least_squares.quadratic import in_ball, joint_sensitivity
from tacit.solvers.ada_ssp import RIDGE_FACTOR
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._gradient_sums import (
    LEAF_ADDITIONS,
    RECENT,
    check_recent,
    leaf_assumptions,
)

__all__ = ["QuadraticLeader", "QuadraticLearner", "QuadraticState"]

Array = NDArray[np.float64]

# Accelerated steps per release, from the last weights, for sets without a formula
SET_STEPS = 100


@kept
@dataclass(frozen=True)
class QuadraticState:
    """Mean of released moments, weights, and the exact sums."""

    n_steps: int
    mean: Array
    released: Array
    _private_sums: Any = field(repr=False)


@dataclass(frozen=True)
class QuadraticLearner(PlainNumbers):
    """Learner by noisy sums of moments, and a ridge.

    Parameters
    ----------
    problem
        Public facts about rows and weights.
    mechanism
        Mechanism that releases the sums of both moments after each step.
    ridge
        Ridge in units of the summed loss; None for the rule.
    half_life
        Steps after which a row counts half; None to keep the weight of all rows.
    recent
        Fraction of the steps so far over which moments are averaged.
    """

    problem: Problem
    mechanism: Any
    ridge: float | None = None
    half_life: float | None = None
    recent: float = RECENT

    @property
    def event(self) -> Event:
        """One Gaussian mechanism, for all steps together."""
        event: Event = self.mechanism.event
        return event

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, in words."""
        return leaf_assumptions(self.problem, self.mechanism.noise)

    @property
    def size(self) -> int:
        """Size of the vector of moments of a step."""
        return packed_size(self.problem.n_features) + self.problem.size

    @property
    def unit(self) -> float:
        """Weight for the largest derivative at zero along the longest row."""
        problem = self.problem
        curved = problem.loss.max_curvature() * problem.bounds.x_norm
        return steepest_at_zero(problem) / curved

    def init(self) -> QuadraticState:
        """Return the state before the first step, at zero."""
        sums = self.mechanism.init((self.size,))
        return QuadraticState(
            0, np.zeros(self.size), np.zeros(self.problem.shape), sums
        )

    def step(
        self, state: QuadraticState, X: Array, y: NDArray[Any], rng: Generator
    ) -> QuadraticState:
        """Return the state after the rows of one step."""
        leaf = joint_moments(self.problem, X, y)
        sums, noisy = self.mechanism.step(state._private_sums, leaf, rng)
        # [quadratic-leader:solve] post-processing of released sums from here on
        t = state.n_steps + 1
        if self.half_life is None:
            mean = state.mean + (noisy - state.mean) / max(1.0, self.recent * t)
            moments = mean
        else:
            moments = noisy - state.mean
            mean = state.mean + (1 - 0.5 ** (1 / self.half_life)) * moments
        W = self._solved(moments, self._ridge_at(t), state.released)
        return QuadraticState(t, mean, W, sums)

    def weights(self, state: QuadraticState) -> Array:
        """Return the weights released last, shape (p, k)."""
        return state.released

    def _ridge_at(self, t: int) -> float:
        """Return the ridge at a step, in units of rows and derivatives up to one."""
        given = self.problem.ridge if self.ridge is None else self.ridge
        ridge = given / self.problem.smoothness
        if self.ridge is not None:
            return ridge
        # no step so far has more noise than both of these, the first for trees that end
        # before the second is all binary ones; the cache needs few of them
        ones = 2 ** (t.bit_length() - 1) - 1
        steps = max(1, ones), min(self.mechanism.horizon, 2 * ones + 1)
        noise = max(_std(self.mechanism, step, self.size) for step in steps)
        return max(ridge, RIDGE_FACTOR * (1 + sqrt(self.problem.n_features)) * noise)

    def _solved(self, moments: Array, ridge: float, start: Array) -> Array:
        """Return the minimizer of the quadratic without its negative curvature."""
        p = self.problem.n_features
        first = moments[-self.problem.size :].reshape(self.problem.shape)
        values, axes = np.linalg.eigh(to_matrix(moments[: -self.problem.size]))
        curvature = np.maximum(values, 0.0) + ridge
        flat = curvature <= 1e-14 * max(float(curvature[-1]), 1e-300)
        along = np.where(flat[:, None], 0.0, axes.T @ first)
        curvature = np.where(flat, 1.0, curvature)[:, None]
        regularizer = self.problem.regularizer
        if isinstance(regularizer, Free | L2Ball):
            radius = regularizer.radius / self.unit
            W: Array = self.unit * (axes @ in_ball(along, curvature, radius))
            return W
        # the objective in the units of the problem, which penalties are in
        scale = self.problem.smoothness
        return _in_set(
            lambda V: scale * (axes @ (curvature * (axes.T @ V) - self.unit * along)),
            scale * float(curvature.max()),
            start.reshape(p, -1),
            regularizer,
        )


@dataclass(frozen=True)
class QuadraticLeader:
    """Private follow-the-leader for quadratic losses, by one noisy sum of moments.

    After each step the noisy sums over all rows so far of ``x x^T`` and of x times the
    target are released, and weights minimize their quadratic, with a ridge. Other
    losses are replaced by the quadratic that touches them at zero and has their largest
    curvature, which is above them everywhere.

    Parameters
    ----------
    sums
        How sums are released: ``"blt"``, ``"tree"``, ``"honaker"`` or
        ``"square_root"``.
    ridge
        Ridge in units of the summed loss, or ``"auto"`` for at least 0.7 (1 + sqrt(p))
        times the noise of an entry of the second moments at that step.
    half_life
        Number of steps after which a row counts half, for streams that change; None to
        keep the weight of all rows.
    recent
        Fraction of the steps so far whose sums are averaged, without ``half_life``: the
        average has less noise, and less weight on the last rows. 0 for the last sum.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy of the multiplier of the whole stream.
    Both moments are one element of one stream of sums, whose joint sensitivity is
    ``3 / sqrt(2)`` for a replaced row and ``sqrt(2)`` for one more or less, in units of
    the bounds; round-off is included. Averages, the ridge and the solution are
    post-processing.

    **Bound.** The quadratic of Logistic and Softmax is that of Boehning [2]_, whose
    curvature is at most 1/4 and 1/2. Regret of the leader of squared losses grows with
    the logarithm of the number of steps [1]_.

    References
    ----------
    .. [1] P. Jain, P. Kothari, A. Thakurta, "Differentially private online learning",
       COLT 2012, Section 4.
    .. [2] D. Boehning, "Multinomial logistic regression algorithm", Annals of the
       Institute of Statistical Mathematics 44, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.streaming import OnlineLinearRegression, QuadraticLeader
    >>> model = OnlineLinearRegression(
    ...     1.0, 1e-6, horizon=100, rows_per_step=50, y_range=(0.0, 1.0),
    ...     method=QuadraticLeader(half_life=20),x_norm=1.0
    ... )
    >>> model.partial_fit(np.full((50, 2), 0.5), np.ones(50)).coef_.shape
    (2,)
    """

    saved = True
    name = "quadratic_leader"

    sums: str = "blt"
    ridge: float | str = "auto"
    half_life: float | None = None
    recent: float = RECENT
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        one_of(tuple(SUMS), sums=self.sums)
        check_noise(self.noise)
        check_recent(self.recent)
        if self.ridge != "auto":
            if isinstance(self.ridge, str):
                raise ValueError(
                    f"ridge must be a number >= 0 or 'auto', got {self.ridge!r}."
                )
            nonnegative(ridge=self.ridge)
        if self.half_life is not None:
            positive(half_life=self.half_life)

    def plan(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> QuadraticLearner:
        """Return the learner of a problem with the least noise that fits."""
        require_delta(budget, "QuadraticLeader", "epsilon alone with Hedge")
        problem.require_l2_rows("QuadraticLeader")
        problem.require_smooth("QuadraticLeader")
        # [quadratic-leader:moments] moments of a row, and the round-off of both sums
        sensitivity = joint_sensitivity(budget.neighbors) + 2 * leaf_roundoff(problem)
        mechanism = SUMS[self.sums](
            terms.horizon,
            calibrate(GaussianNoise, budget),
            # [quadratic-leader:person] all rows of one person, wherever they are
            terms.rows_per_person * sensitivity,
            self.noise,
        )
        given = None if isinstance(self.ridge, str) else max(self.ridge, problem.ridge)
        learner = QuadraticLearner(
            problem, mechanism, given, self.half_life, self.recent
        )
        # rejects noise too large for the grid now, not after the charge
        mechanism.std_at(terms.horizon, learner.size)
        return learner


def joint_moments(problem: Problem, X: Array, y: NDArray[Any]) -> Array:
    """Return sums over rows of ``x x^T`` and of x times its derivative at zero.

    As a vector, in units where rows and derivatives are at most one.
    """
    p, k = problem.shape
    second, first = np.zeros((p, p)), np.zeros((p, k))
    steepest = steepest_at_zero(problem)
    for part, targets in chunks(X, y):
        unit = part / problem.bounds.x_norm
        derivative = (
            -problem.loss.derivative(targets, np.zeros((len(targets), k))) / steepest
        )
        second += unit.T @ unit
        # targets beyond the public bound would void the guarantee
        first += unit.T @ norm_clipped(derivative, 1.0)
    return np.concatenate([to_vector(second), first.ravel()])


def steepest_at_zero(problem: Problem) -> float:
    """Return the largest norm of a row's derivative at weights of zero."""
    if isinstance(problem.loss, Softmax):
        ends = np.arange(problem.loss.n_classes)
    else:
        residuals = has_residuals(problem.loss)
        ends = np.array(problem.bounds.y_range if residuals else (-1.0, 1.0))
    derivatives = problem.loss.derivative(
        ends, np.zeros((len(ends), problem.loss.n_outputs))
    )
    return float(np.linalg.norm(derivatives, axis=1).max())


def leaf_roundoff(problem: Problem) -> float:
    """Return a bound on the round-off of the moments of one step, in L2 norm."""
    # each number goes through the evaluation of a derivative, two scalings, a product,
    # the weight of an entry off the diagonal and the additions
    operations = LEAF_ADDITIONS + DERIVATIVE_UNITS + 4 * problem.loss.n_outputs + 16
    return 1.01 * operations * UNIT * sqrt(2.0) * MOST_ROWS


@lru_cache(maxsize=1024)
def _std(mechanism: Any, t: int, size: int) -> float:
    std: float = mechanism.std_at(t, size)
    return std


def _in_set(gradient: Any, steepest: float, start: Array, regularizer: Any) -> Array:
    """Return the minimum with a penalty or in a set, by accelerated steps."""
    W = ahead = start
    momentum = 1.0
    for _ in range(SET_STEPS):
        moved = regularizer.prox(ahead - gradient(ahead) / steepest, 1 / steepest)
        last, momentum = momentum, (1 + sqrt(1 + 4 * momentum**2)) / 2
        W, ahead = moved, moved + (last - 1) / momentum * (moved - W)
    return W
