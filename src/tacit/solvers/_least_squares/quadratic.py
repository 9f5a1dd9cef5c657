"""Minima of quadratics in a box or a ball, certified in floating point.

The sums of least squares are read off the rows once. What is left is a quadratic of as
many weights as there are features, whose minimum in a set is found to a subgradient of
norm at most a tolerance that is planned from public facts, above all round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, hypot, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.convex import Box, L2Ball, Squared
from tacit.convex.objective import UNIT, chunks, norm_roundoff, second_moments
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.privacy import Neighbors
from tacit.solvers._base import Problem

__all__ = [
    "MOST_WEIGHTS",
    "JointMoments",
    "Quadratic",
    "check_problem",
    "gradient_sensitivity",
    "in_ball",
    "joint_sensitivity",
    "least_squares_sums",
    "minimum_in",
    "minimum_in_box",
    "quadratic_of",
    "quadratic_tolerance",
    "require_squared",
    "sums_roundoff",
]

Array = NDArray[np.float64]

# Most features: time grows with their cube
MOST_WEIGHTS = 2000
# Certified subgradients, in units of the sensitivity, where round-off lets them be
FINEST = 1e-9
# Round-off of products with the matrix, of its eigenvectors and of a proximal step, in
# units of p^1.5 times the norms: measured below one
ARITHMETIC_UNITS = 64
# Least ridge, in units of the curvature of all rows, that float64 resolves
LEAST_RIDGE = 1e-11
# Largest size of rows and targets, and one over the least: fourth powers of it, and
# their squares, neither overflow nor vanish
LARGEST = 1e25
# Rounds of projected gradients and of steps on faces of the box: a dozen is much
BOX_ROUNDS = 100
# Projected gradient steps from a minimum that is exact but for round-off, and steps of
# the accelerated method from one certificate to the next
PLAIN_STEPS = 8
STEPS_BETWEEN = 32


def require_squared(problem: Problem, solver: str, instead: str) -> None:
    """Reject all losses but that of least squares."""
    if not isinstance(problem.loss, Squared):
        raise PlanError(
            f"{solver} solves least squares only, got {problem.loss!r}; use {instead}."
        )


def check_problem(problem: Problem, solver: str) -> None:
    """Reject all but least squares in L2 with a set whose minimum is certified here."""
    require_squared(problem, solver, "AMP")
    problem.require_l2_rows(solver)
    if problem.n_features > MOST_WEIGHTS:
        raise PlanError(
            f"{solver} takes at most {MOST_WEIGHTS} features, got "
            f"{problem.n_features}; use AMP or NoisyGD."
        )
    for name, size in (
        ("rows", problem.bounds.x_norm),
        ("targets", problem.largest_target),
    ):
        if not 1 / LARGEST <= size <= LARGEST:
            raise PlanError(
                f"{solver} takes {name} of a size from {1 / LARGEST:g} to {LARGEST:g}, "
                f"got {size:.3g}, whose squares float64 cannot hold; use other units."
            )


def gradient_sensitivity(
    problem: Problem, neighbors: Neighbors, turn: float = 1.0
) -> float:
    """Return how far neighbors can move the gradient of least squares, in the set.

    ``turn`` is how much further two rows can move the matrix than the difference of
    their squares does in spectral norm.

    Notes
    -----
    **Bound.** With ``a = |x|^2 B`` and ``y = |x| Y``, B the radius of the set, it is
    ``a + y`` for a row more or less. Two rows whose targets pull one way turn the
    matrix little: with s and c the sine and cosine of half their angle, the matrix
    moves weights by at most ``2 a s c`` times ``turn`` and the linear part by
    ``2 y c``. The largest sum is where ``2 a s^2 + y s = a``, well below the
    ``2 (a + y)`` of two rows by themselves.
    """
    a = turn * problem.smoothness * problem.regularizer.radius
    y = problem.bounds.x_norm * problem.largest_target
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return a + y
    # [quadratic:replaced] a few units of round-off are covered by the factor
    sine = (hypot(y, sqrt(8) * a) - y) / (4 * a)
    return 2 * sqrt(1 - sine * sine) * (a * sine + y) * (1 + 1e-12)


@dataclass(frozen=True)
class JointMoments:
    """Sum over a block of the second moments of ``(x, y)``, with a corner of zero.

    Rows and targets are in units of their bounds. The matrix holds ``x x^T`` and,
    twice, ``x y / sqrt(2)``.
    """

    x_norm: float
    y_max: float
    n_features: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        p = self.n_features
        total = np.zeros((p + 1, p + 1))
        for part, targets in chunks(X, y):
            unit = part / self.x_norm
            # targets beyond the public bound would break the guarantee
            target = np.clip(targets / self.y_max, -1.0, 1.0) / sqrt(2.0)
            total[:p, :p] += second_moments(unit)
            total[:p, p] += unit.T @ target
        total[p, :p] = total[:p, p]
        return (total,)


def joint_sensitivity(neighbors: Neighbors) -> float:
    """Return how far neighbors can move `JointMoments`, in Frobenius norm."""
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return sqrt(2.0)
    # [ada-ssp:joint] (2 + c^2) / sqrt(2) at c = 1, where the rows are 60 degrees apart
    return 3 / sqrt(2.0)


def least_squares_sums(problem: Problem, rows: Rows) -> tuple[Array, Array]:
    """Return the sums over rows of ``x x^T`` and of ``x y``, in one pass."""
    p, x_norm, y_max = (
        problem.n_features,
        problem.bounds.x_norm,
        problem.largest_target,
    )
    moments = rows.sum(JointMoments(x_norm, y_max, p))[0]
    second: Array = x_norm**2 * moments[:p, :p]
    first: Array = (sqrt(2.0) * x_norm * y_max) * moments[:p, p]
    return second, first


def sums_roundoff(problem: Problem, n_rows: int, w_norm: float) -> float:
    """Return a bound on the error of ``second w - first`` that the sums bring in.

    In units where rows and targets are at most one, the errors of both sums together
    are within `Problem.moment_roundoff`, which is in proportion to the rows; by
    Cauchy-Schwarz they move the difference by at most that times the norm of
    ``(x_norm w, y_max)``.
    """
    joint = problem.moment_roundoff(sqrt(2.0)) * n_rows / problem.most_rows
    x_norm = problem.bounds.x_norm
    return joint * x_norm * hypot(x_norm * w_norm, problem.largest_target)


def _arithmetic(
    problem: Problem, n_rows: int, ridge: float, w_norm: float, tilt_norm: float
) -> float:
    """Return a bound on the round-off of everything that is done with the sums."""
    x_norm = problem.bounds.x_norm
    pull = n_rows * x_norm * problem.largest_target + tilt_norm
    curved = (n_rows * x_norm**2 + ridge) * w_norm
    operations = ARITHMETIC_UNITS * float(problem.n_features**1.5)
    return operations * UNIT * (pull + curved)


def quadratic_tolerance(
    problem: Problem,
    neighbors: Neighbors,
    sensitivity: float,
    ridge: float,
    tilt_norm: float,
) -> float:
    """Return the subgradient norm to certify: far below the noise, above round-off.

    Where the number of rows is private it is within reach for any number of them.
    """
    private = neighbors is Neighbors.ADD_OR_REMOVE_ONE
    n_rows = problem.most_rows if private else max(problem.n_rows, 2**20)
    if ridge < LEAST_RIDGE * n_rows * problem.smoothness:
        raise PlanError(
            f"A ridge of {ridge:.3g} is lost in the round-off of this many rows; raise "
            "ridge, or lower epsilon."
        )
    w_norm = problem.regularizer.radius
    roundoff = sums_roundoff(problem, n_rows, w_norm)
    roundoff += _arithmetic(problem, n_rows, ridge, w_norm, tilt_norm)
    most = 10 * LARGEST**2
    if not (1 / most <= w_norm <= most and roundoff <= most**2):
        # squares that overflow or vanish would be found after the charge
        raise PlanError(
            f"Weights in {problem.regularizer!r} with a ridge of {ridge:.3g} are of a "
            "size whose squares float64 cannot hold; use other units."
        )
    return max(FINEST * sensitivity, 2 * roundoff)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``w^T A w / 2 - <first, w>`` for a matrix A known by its product ``A w``.

    No eigenvalue of A is below ``ridge`` or above ``steepest``, and ``roundoff`` bounds
    the error of a computed gradient, for any w in the set.
    """

    product: Callable[[Array], Array]
    first: Array
    ridge: float
    steepest: float
    roundoff: float

    def gradient(self, w: Array) -> Array:
        return self.product(w) - self.first

    def fall(self, G: Array, move: Array) -> float:
        """Return how far a move from a point with this gradient leads down.

        It is not the difference of two large numbers.
        """
        return -float(G @ move + self.product(move) @ move / 2)

    def judge(self, w: Array, within: Box | L2Ball) -> tuple[Array, float]:
        """Return the end V of a projected gradient step and a bound on a subgradient.

        Let ``U = w - size G`` as computed, and V* its exact projection: ``(U - V*) /
        size`` is normal to the set at V*, so with the gradient at V* it is a
        subgradient there. Computed at V instead, it is off by the round-off of the
        gradient and by ``(1 / size + steepest) |V - V*|``; ``ridge |V - V*|`` is added,
        so that V as well is within the bound over the ridge of the minimizer.
        """
        size = 1 / self.steepest
        U = w - size * self.gradient(w)
        V = within.prox(U, size)
        pull = (U - V) / size
        R = pull + self.gradient(V)
        norm = float(np.linalg.norm(R))
        rounded = 4 * UNIT * (float(np.linalg.norm(pull)) + norm)
        apart = within.prox_roundoff(U[:, None], V[:, None])
        rounded += 1.01 * apart * (2 * self.steepest + self.ridge)
        return V, norm_roundoff(norm, len(w)) + rounded + self.roundoff


def quadratic_of(
    problem: Problem,
    sums: tuple[Array, Array],
    n_rows: int,
    ridge: float,
    tilt: Array,
    product: Callable[[Array], Array],
    extra: float = 0.0,
) -> Quadratic:
    """Return the tilted quadratic of these rows, with its round-off.

    ``extra`` bounds the spectral norm of whatever else separates the matrix of
    ``product`` from the exact one.
    """
    w_norm = problem.regularizer.radius
    tilt_norm = float(np.linalg.norm(tilt))
    roundoff = sums_roundoff(problem, n_rows, w_norm) + extra * w_norm
    # products with eigenvectors: the figure of the tolerance, without its margin
    roundoff += _arithmetic(problem, n_rows, ridge, w_norm, tilt_norm) / 8
    # one part in a thousand covers the round-off of the sums
    steepest = 1.001 * (n_rows * problem.smoothness + ridge)
    return Quadratic(product, sums[1] - tilt, ridge, steepest, roundoff)


def minimum_in(
    quadratic: Quadratic, start: Array, within: Box | L2Ball, tolerance: float
) -> Array:
    """Return the minimizer in a set, from a point that is nearly always it already.

    Notes
    -----
    **Bound.** Where a few projected gradient steps do not certify it, accelerated ones
    do, after at most `_most_steps` [1]_. No error is raised, which could leak
    information.

    References
    ----------
    .. [1] Y. Nesterov, "Lectures on convex optimization", 2018, Section 2.2.4.
    """
    w = start
    for _ in range(PLAIN_STEPS):
        w, bound = quadratic.judge(w, within)
        if bound <= tolerance:
            return w
    size = 1 / quadratic.steepest
    root = sqrt(quadratic.steepest / quadratic.ridge)
    momentum = (root - 1) / (root + 1)
    ahead = best = w
    least = bound
    for step in range(_most_steps(quadratic, within, tolerance)):
        last, w = w, within.prox(ahead - size * quadratic.gradient(ahead), size)
        ahead = w + momentum * (w - last)
        if step % STEPS_BETWEEN == 0:
            end, bound = quadratic.judge(w, within)
            if bound < least:
                best, least = end, bound
            if bound <= tolerance:
                break
    return best


def _most_steps(quadratic: Quadratic, within: Box | L2Ball, tolerance: float) -> int:
    """Return how many accelerated steps certify the minimum.

    After a projected gradient step the function is at most ``L D^2 / 2`` above its
    minimum, L the steepest curvature, D the diameter; the least curvature adds as much
    at most. A step divides that by ``1 - sqrt(ridge / L)``. From ``g`` above the
    minimum, a projected gradient step ends in a subgradient of norm at most
    ``sqrt(2 L g)``.
    """
    root = sqrt(quadratic.steepest / quadratic.ridge)
    slack = max(tolerance - quadratic.roundoff, tolerance / 16)
    diameter = within.diameter(len(quadratic.first))
    start = sqrt(2.0) * quadratic.steepest * diameter
    return STEPS_BETWEEN + ceil(2 * root * log(max(2.0, start / slack)))


def in_ball(along: Array, curvature: Array, radius: float) -> Array:
    """Return the minimizer of ``sum(curvature w^2) / 2 - <along, w>`` in a ball.

    On the surface the multiplier of the constraint solves the secular equation: the
    norm of the weights falls as the multiplier grows.
    """

    def length(extra: float) -> float:
        return float(np.linalg.norm(along / (curvature + extra)))

    extra = 0.0
    if length(0.0) > radius:
        # |along| / radius is too much
        low, high = 0.0, float(np.linalg.norm(along)) / radius
        while high - low > 1e-15 * high:
            extra = (low + high) / 2
            if extra in (low, high):
                break
            low, high = (extra, high) if length(extra) > radius else (low, extra)
        extra = high
    weights: Array = along / (curvature + extra)
    return weights


def minimum_in_box(
    quadratic: Quadratic, matrix: Array, box: Box, tolerance: float
) -> Array:
    """Return the certified minimizer in a box.

    A projected gradient step finds a face, and steps on faces of faces its minimum, or
    a lower point. The function falls from face to face, so that no face returns and the
    last is reached after finitely many rounds [1]_; they are few, and `minimum_in` goes
    on where they are not.

    References
    ----------
    .. [1] J. Moré, G. Toraldo, "On the solution of large quadratic programming problems
       with bound constraints", SIAM Journal on Optimization 1, 1991.
    """
    w: Array = np.clip(np.linalg.solve(matrix, quadratic.first), box.low, box.high)
    for _ in range(BOX_ROUNDS):
        w, bound = quadratic.judge(w, box)
        if bound <= tolerance:
            return w
        w = _face_minimum(quadratic, matrix, box, w)
    return minimum_in(quadratic, w, box, tolerance)


def _face_minimum(quadratic: Quadratic, matrix: Array, box: Box, w: Array) -> Array:
    """Return the minimum of a face at w, or a lower point on a smaller face.

    A Newton step that leaves the box is clipped where it leaves, which is on a smaller
    face, or entry by entry, whichever is lower. The first always falls: along a
    straight line a convex function falls all the way to its minimum.
    """
    G = quadratic.gradient(w)
    unconstrained = ~(((w <= box.low) & (G > 0)) | ((w >= box.high) & (G < 0)))
    while unconstrained.any():
        step = np.zeros_like(w)
        step[unconstrained] = -np.linalg.solve(
            matrix[np.ix_(unconstrained, unconstrained)], G[unconstrained]
        )
        end = np.clip(w + step, box.low, box.high)
        room = np.where(step > 0, box.high - w, w - box.low)
        leaves = unconstrained & (np.abs(step) > room)
        if not leaves.any():
            return end
        reach = room[leaves] / np.abs(step[leaves])
        clipped = np.clip(w + reach.min() * step, box.low, box.high)
        first = np.flatnonzero(leaves)[reach.argmin()]
        clipped[first] = box.high if step[first] > 0 else box.low
        if quadratic.fall(G, end - w) > quadratic.fall(G, clipped - w):
            w, fixed = end, leaves
        else:
            w, fixed = clipped, leaves & ((clipped <= box.low) | (clipped >= box.high))
        unconstrained &= ~fixed
        G = quadratic.gradient(w)
    return w
