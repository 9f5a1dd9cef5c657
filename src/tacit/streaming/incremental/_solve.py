"""Weights from noisy moments: post-processing that reads no row.

Rows and targets are in units of their bounds, and the risk is the sum of squared
residuals, ``w^T S w - 2 <f, w>`` up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from tacit.convex import Free, L2Ball
from tacit.convex._protocols import ConvexSet, Regularizer, is_set
from tacit.solvers._least_squares.quadratic import in_ball
from tacit.solvers.ada_ssp import RIDGE_FACTOR
from tacit.streaming.incremental._sets import WithConstant, absolute_width

__all__ = [
    "SOLVERS",
    "NoisyQuadratic",
    "accelerated",
    "averaged_descent",
    "descent_steps",
    "excess_of_clipped",
    "excess_of_descent",
    "gradient_error",
    "weights_of",
]

Array = NDArray[np.float64]

SOLVERS = ("auto", "clipped", "raw")
# Steps of descent on the raw quadratic, and most of the accelerated one
DESCENT_STEPS, ACCELERATED_STEPS = 1000, 3000
# Length of a move, in radii, at which the accelerated one ends
CLOSE = 1e-12
# Fraction of the largest curvature below which there is only round-off, and a number
# below any nonzero sum of moments
FLAT, TINY = 2.0**-50, 1e-300
# Factor by which the bound for raw moments must be lower: bounds are for worst rows; on
# typical ones clipped moments are better up to about a thousand features. Chosen on
# synthetic streams
DOUBT = 5.0


@dataclass(frozen=True, eq=False)
class NoisyQuadratic:
    """Noisy second moments and products, with the standard deviation of their noise.

    Parameters
    ----------
    second, first
        Released S and f.
    second_std, first_std
        Standard deviation of the noise of a diagonal entry of S, and of an entry of f.
    lift
        Public matrix of a projection, by which weights are multiplied, or None.
    """

    second: Array
    first: Array
    second_std: float
    first_std: float
    lift: Array | None = None

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(self.first) if self.lift is None else self.lift.shape[1]

    def product(self, second: Array, w: Array) -> Array:
        """Return the product of lifted weights with these second moments."""
        if self.lift is None:
            return second @ w
        lifted: Array = self.lift.T @ (second @ (self.lift @ w))
        return lifted

    @property
    def pull(self) -> Array:
        """Products with targets for lifted weights, as a column."""
        first = self.first if self.lift is None else self.lift.T @ self.first
        return first[:, None]

    @property
    def stretch(self) -> float:
        """Square of the norm of the lift."""
        return 1.0 if self.lift is None else float(np.linalg.norm(self.lift, 2)) ** 2

    def reduced(self) -> tuple[NoisyQuadratic, Array | None]:
        """Return the quadratic on the rows of the lift, and an orthonormal base."""
        if self.lift is None:
            return self, None
        base, triangle = np.linalg.qr(self.lift.T)
        second = triangle @ self.second @ triangle.T
        return NoisyQuadratic(
            (second + second.T) / 2,
            triangle @ self.first,
            self.second_std,
            self.first_std,
        ), base


def weights_of(
    quadratic: NoisyQuadratic,
    domain: Regularizer,
    *,
    constant: bool = False,
    ridge: float = 0.0,
    solver: str = "auto",
    start: Array | None = None,
) -> Array:
    """Return weights that nearly minimize a noisy quadratic, as a column.

    Parameters
    ----------
    quadratic
        Noisy moments.
    domain
        Set of the weights, or ``Free()``.
    constant
        Whether the last feature is the same in every row.
    ridge
        Least ridge of weights without a set.
    solver
        One of `SOLVERS`.
    start
        Weights from the step before.
    """
    p = quadratic.size
    if isinstance(domain, Free):
        return _lifted(quadratic, lambda small: _ridge_weights(small, ridge, constant))
    assert is_set(domain)  # as methods check
    if _ball(domain) and solver != "raw":
        return _lifted(quadratic, lambda small: _in_ball(small, domain))
    if start is None:
        start = domain.prox(np.zeros((p, 1)), 1.0)
    if solver == "auto":
        solver = _better(quadratic, domain)
    if solver == "raw":
        derivative = _steepest(quadratic, domain)
        step = _step_size(quadratic, domain, derivative, DESCENT_STEPS)
        first = domain.prox(np.zeros((p, 1)), 1.0)
        return averaged_descent(quadratic, domain, first, DESCENT_STEPS, step)
    return accelerated(quadratic, domain, start)


def _lifted(
    quadratic: NoisyQuadratic, solved: Callable[[NoisyQuadratic], Array]
) -> Array:
    """Return weights as a column, from those of the quadratic on the lift."""
    small, base = quadratic.reduced()
    w = solved(small)
    return (w if base is None else base @ w)[:, None]


def gradient_error(
    second_std: float, first_std: float, size: int, radius: float
) -> float:
    """Return a bound on the mean of the largest error of a gradient in a radius."""
    # the noise of S has half its variance off the diagonal: its spectral norm is on
    # average at most sqrt(2 p) times its standard deviation
    spectral = second_std * sqrt(2 * size)
    return 2 * radius * spectral + 2 * first_std * sqrt(size)


def excess_of_clipped(
    second_std: float, first_std: float, size: int, radius: float
) -> float:
    """Return a bound on the mean excess of a minimizer with clipped moments."""
    spectral = second_std * sqrt(2 * size)
    return 3 * radius**2 * spectral + 4 * radius * first_std * sqrt(size)


def excess_of_descent(
    second_std: float, first_std: float, radius: float, width: float
) -> float:
    """Return a bound on the mean excess of long enough descent on raw moments."""
    return 4 * width * (2 * radius * second_std + first_std)


def descent_steps(error: float, derivative: float, most: int) -> int:
    """Return the steps after which descent is as accurate as its gradient."""
    return int(min(most, ceil((1 + derivative / error) ** 2)))


def averaged_descent(
    quadratic: NoisyQuadratic,
    domain: ConvexSet,
    start: Array,
    n_steps: int,
    step: float,
) -> Array:
    """Return the mean of the starting points of projected gradient steps."""
    w, total, pull = start, np.zeros_like(start), quadratic.pull
    for _ in range(n_steps):
        total = total + w
        gradient = 2 * (quadratic.product(quadratic.second, w) - pull)
        w = domain.prox(w - step * gradient, 1.0)
    return total / n_steps


def accelerated(quadratic: NoisyQuadratic, domain: ConvexSet, start: Array) -> Array:
    """Return the minimizer in a set, with negative second moments set to zero.

    Accelerated projected gradient, restarted where it would ascend.
    """
    second, largest = _positive_part(quadratic.second)
    pull, radius = quadratic.pull, domain.radius
    curvature = 2 * largest * quadratic.stretch + _least(pull, radius)
    w = ahead = domain.prox(start, 1.0)
    momentum = 1.0
    for _ in range(ACCELERATED_STEPS):
        gradient = 2 * (quadratic.product(second, ahead) - pull)
        new = domain.prox(ahead - gradient / curvature, 1.0)
        moved = new - w
        if float(np.vdot(ahead - new, moved)) > 0:
            momentum = 1.0
        grown = (1 + sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / grown * moved
        w, momentum = new, grown
        if float(np.linalg.norm(moved)) <= CLOSE * radius:
            break
    return w


def _ball(domain: Regularizer) -> bool:
    inner = domain.inner if isinstance(domain, WithConstant) else domain
    return isinstance(inner, L2Ball)


def _positive_part(second: Array) -> tuple[Array, float]:
    """Return a matrix without its negative eigenvalues, and its largest one."""
    values, axes = np.linalg.eigh(second)
    kept = np.maximum(values, 0.0)
    return (axes * kept) @ axes.T, float(kept[-1])


def _least(pull: Array, radius: float) -> float:
    """Return a negligible curvature, for moments that may be zero."""
    return CLOSE * float(np.linalg.norm(pull)) / radius + TINY


def _ridge_weights(quadratic: NoisyQuadratic, ridge: float, constant: bool) -> Array:
    """Return weights with a ridge of the order of the noise, less on a constant.

    Along the constant the noise is that of one number.
    """
    second, _ = _positive_part(quadratic.second)
    p, std = len(second), quadratic.second_std
    lifts = np.full(p, RIDGE_FACTOR * (1 + sqrt(p)) * std)
    if constant:
        lifts[-1] = RIDGE_FACTOR * 2 * std
    curved = second + np.diag(np.maximum(lifts, ridge))
    values, axes = np.linalg.eigh(curved)
    values = np.maximum(values, FLAT * float(values[-1]) + TINY)
    weights: Array = axes @ (axes.T @ quadratic.first / values)
    return weights


def _in_ball(quadratic: NoisyQuadratic, domain: ConvexSet) -> Array:
    """Return the minimizer in an L2 ball, negative second moments set to zero."""
    second, largest = _positive_part(quadratic.second)
    least = FLAT * largest + _least(quadratic.first, domain.radius)
    if not isinstance(domain, WithConstant):
        values, axes = np.linalg.eigh(second)
        along = axes.T @ quadratic.first
        return axes @ in_ball(along, np.maximum(values, least), domain.radius)
    values, axes = np.linalg.eigh(second[:-1, :-1])
    curvature = np.maximum(values, least)
    first = quadratic.first
    along, cross = axes.T @ first[:-1], axes.T @ second[:-1, -1]

    def inside(constant: float) -> Array:
        return in_ball(along - constant * cross, curvature, domain.inner.radius)

    def derivative(constant: float) -> float:
        cross_pull = float(cross @ inside(constant))
        return float(second[-1, -1]) * constant + cross_pull - float(first[-1])

    # the risk of the best weights is convex in the intercept, with this derivative
    most = domain.most
    if derivative(-most) >= 0:
        best = -most
    elif derivative(most) <= 0:
        best = most
    else:
        best = brentq(derivative, -most, most, xtol=CLOSE * most)
    return np.append(axes @ inside(best), best)


def _steepest(quadratic: NoisyQuadratic, domain: ConvexSet) -> float:
    """Return a bound on the noisy gradient in the set, from released values."""
    values = np.linalg.eigvalsh(quadratic.second)
    largest = max(abs(float(values[0])), abs(float(values[-1])))
    pull = float(np.linalg.norm(quadratic.pull))
    return 2 * (largest * quadratic.stretch * domain.radius + pull)


def _step_size(
    quadratic: NoisyQuadratic, domain: ConvexSet, derivative: float, n_steps: int
) -> float:
    return domain.diameter(quadratic.size) / (sqrt(n_steps) * (derivative + TINY))


def _better(quadratic: NoisyQuadratic, domain: ConvexSet) -> str:
    """Return the solver with the lower bound on its excess, by released values."""
    p, radius = quadratic.size, domain.radius
    noise = quadratic.second_std, quadratic.first_std
    clipped = excess_of_clipped(*noise, len(quadratic.first), radius)
    raw = excess_of_descent(*noise, radius, absolute_width(domain, p))
    derivative = _steepest(quadratic, domain)
    unfinished = domain.diameter(p) * derivative / sqrt(DESCENT_STEPS)
    return "raw" if DOUBT * raw + unfinished < clipped else "clipped"
