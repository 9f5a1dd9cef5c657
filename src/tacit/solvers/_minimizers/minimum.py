"""A certified minimum that is found whatever the rows are.

An error after the charge would leak information, so the tolerance of the minimizer
must be within reach for all of them: the weights are kept in a public ball, and the
tolerance is planned above the round-off of gradients inside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.convex import L1, ElasticNet, Free, GroupL1, L2Ball, Objective, minimize
from tacit.convex._protocols import Regularizer, is_set
from tacit.convex.certificate import Minimum, NotCertified
from tacit.convex.objective import MOST_ADDITIONS, gradient_roundoff
from tacit.convex.proximal import InBall
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.privacy import Neighbors
from tacit.solvers._base import LARGEST_MARGIN, Problem

__all__ = ["certified_minimum", "gradient_tolerance", "largest_weights"]

# Entries of more rows than this, zeros left out, fill a thousand gigabytes
MOST_ENTRIES = 2**36
# Units of round-off of a proximal map, by the norm of what it returns: of a ball, which
# `certified_minimum` may fall back on, and of any other penalty or set, in a ball too
BALL_UNITS, PROXIMAL_UNITS = 24, 128
UNIT = float(np.finfo(np.float64).eps) / 2
# Curvature of a loss, in units of its largest derivative, beyond which Newton steps can
# stall at a bend: that of a hinge rounded over 1e-4. Stalls were found at 3e-6 and less
SHARPEST = 5e3


def _rows(problem: Problem, neighbors: Neighbors) -> int:
    private = neighbors is Neighbors.ADD_OR_REMOVE_ONE
    guessed = private or problem.guessed_rows
    return problem.most_rows if guessed else problem.n_rows


def largest_weights(
    problem: Problem, neighbors: Neighbors, ridge: float, tilt_norm: float = 0.0
) -> float:
    """Return the norm to which weights are kept, or that they cannot pass.

    A set has its own. Penalties are least at zero, where no gradient is longer than all
    rows and the tilt together, and the ridge outweighs that from here on. Shorter
    weights will do, which have margins far beyond any useful model: `certified_minimum`
    stays within them.
    """
    if is_set(problem.regularizer):
        return problem.regularizer.radius
    pulled = _rows(problem, neighbors) * problem.lipschitz / ridge
    if _in_ball(problem.regularizer, 1.0) is not None:
        pulled = min(pulled, LARGEST_MARGIN / problem.bounds.x_norm)
    return pulled + tilt_norm / ridge


def _in_ball(regularizer: Regularizer, reach: float) -> Regularizer | None:
    """Return a regularizer for weights of this norm at most; None for others."""
    if isinstance(regularizer, Free):
        return L2Ball(reach)
    if isinstance(regularizer, L1 | ElasticNet | GroupL1):
        return InBall(regularizer, reach)
    return None


def gradient_tolerance(
    problem: Problem,
    neighbors: Neighbors,
    noise: float,
    ridge: float,
    tilt_norm: float = 0.0,
) -> float:
    """Return the gradient norm to certify: far below ``noise``, above round-off.

    ``noise`` is in units of the gradient: the sensitivity, or what noise hides it if
    that is less. Where the number of rows is private or a guess, the tolerance is one
    that any number of them can reach, and the plan depends on the guess only.
    ``tilt_norm`` is hardly ever passed by the norm of the tilt.
    """
    if not problem.loss.max_curvature() <= SHARPEST * (1 + 1e-9):
        raise PlanError(
            f"{problem.loss!r} bends too sharply for its minimum to be certified; give "
            "HuberizedHinge an h of at least 1e-4, or use solver='noisy_gd'."
        )
    n_rows = _rows(problem, neighbors)
    x_norm = problem.bounds.x_norm
    w_norm = largest_weights(problem, neighbors, ridge, tilt_norm)
    roundoff = gradient_roundoff(
        n_rows=n_rows,
        shape=problem.shape,
        additions=MOST_ADDITIONS,
        x_norm=x_norm,
        derivative=problem.loss.max_derivative(x_norm * w_norm, problem.bounds.y_range),
        curvature=problem.loss.max_curvature(),
        w_norm=w_norm,
        ridge=ridge,
        tilt_norm=tilt_norm,
        # rows so long that all of them together would not fit in memory are not there
        products=min(problem.n_features, max(1024, MOST_ENTRIES // n_rows)),
    )
    curved = 3 * ridge + 2 * n_rows * problem.smoothness
    unconstrained = isinstance(problem.regularizer, Free)
    roundoff += (
        (BALL_UNITS if unconstrained else PROXIMAL_UNITS) * UNIT * w_norm * curved
    )
    return max(1e-6 * noise, 2 * roundoff)


def certified_minimum(
    problem: Problem, objective: Objective, rows: Rows, tolerance: float, reach: float
) -> NDArray[np.float64]:
    """Return the minimizer among weights of norm at most ``reach``.

    Where no set bounds the weights, those of all norms are tried first: a minimum
    that is short enough is also the one in the ball. It is the ball's minimum that
    is released in either case, so which way it was found does not matter.

    The tolerance is planned so that it can be certified for all rows. Should the steps
    run out nonetheless, the nearest point found is returned: rows have been charged
    for, and an error would depend on them.
    """

    def found(regularizer: Regularizer) -> Minimum:
        try:
            return minimize(
                objective,
                rows,
                tolerance=tolerance,
                x_norm=problem.bounds.x_norm,
                y_range=problem.bounds.y_range,
                regularizer=regularizer,
            )
        except NotCertified as failure:
            return failure.nearest

    minimum, ball = found(problem.regularizer), _in_ball(problem.regularizer, reach)
    if ball is not None:
        certified = minimum.gradient_norm <= tolerance
        if not certified or float(np.linalg.norm(minimum.W)) > reach:
            minimum = found(ball)
    return minimum.W
