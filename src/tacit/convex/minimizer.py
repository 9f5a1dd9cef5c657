"""A minimizer with a certificate that holds in floating-point arithmetic."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, sqrt

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize as scipy_minimize

from tacit._validate import positive
from tacit.convex._protocols import Array, Certified, Regularizer
from tacit.convex.certificate import (
    NEWTON_STEPS,
    Certificate,
    Minimum,
    NotCertified,
    Thinned,
    line_search,
    worth_reusing,
)
from tacit.convex.composite import newton_composite
from tacit.convex.foreign import unshared
from tacit.convex.large_scale import search_composite
from tacit.convex.objective import Objective, norm_roundoff
from tacit.convex.proximal import certified_names, is_certified
from tacit.convex.sets import Free
from tacit.data.rows import Rows

__all__ = ["Minimum", "minimize"]

# Weights up to which a dense Hessian is formed and factorized
DENSE_SIZE = 2000
CG_STEPS = 1000
# The warm start reads at most one row in this many, and this many rows a weight
WARM_STRIDE = 16
WARM_ROWS = 25
FREE = Free()

Solve = Callable[[Array], Array]


def minimize(
    objective: Objective,
    rows: Rows,
    *,
    tolerance: float,
    x_norm: float,
    y_range: tuple[float, float],
    start: Array | None = None,
    regularizer: Regularizer = FREE,
) -> Minimum:
    """Return weights with a certified bound on the norm of the gradient.

    With a regularizer the gradient is a subgradient of the objective plus it.

    Parameters
    ----------
    objective
        What to minimize; its ridge must be positive.
    rows
        The rows to sum over.
    tolerance
        Largest Frobenius norm of the exact gradient at the answer.
    x_norm
        Public bound on the L2 norm of every row.
    y_range
        Public bound on the targets; only losses with unbounded derivatives need it.
    start
        Weights to start from, zero by default. Must not depend on the rows.
    regularizer
        Convex function r to add to the objective, or a set to stay in, with a stated
        bound on the rounding of its proximal map.

    Notes
    -----
    **Guarantee.** The exact gradient at the returned W has norm at most
    ``gradient_norm <= tolerance``, whatever the rounding of the sums, so that W is
    within ``tolerance / ridge`` of the minimizer by strong convexity. The tolerance
    is never loosened: where it cannot be reached, nothing is returned. The steps are
    Newton's [1]_, Section 9.5, with a line search on the sign of the derivative.

    With a regularizer the last step is a proximal one, and W is what float64 makes of
    its exact end V: in the set up to rounding, and with exact zeros. Some subgradient
    of ``F + r`` at V has a norm of at most ``gradient_norm - ridge |W - V|``, so that
    the distance of W from the minimizer is within ``gradient_norm / ridge`` as
    before. The steps are proximal Newton's [2]_.

    References
    ----------
    .. [1] S. Boyd, L. Vandenberghe, "Convex optimization", 2004.
    .. [2] J. Lee, Y. Sun, M. Saunders, "Proximal Newton-type methods for minimizing
       composite functions", SIAM Journal on Optimization 24, 2014.
    """
    positive(tolerance=tolerance, x_norm=x_norm, ridge=objective.ridge)
    penalty = regularizer if is_certified(regularizer) else None
    if penalty is None and not isinstance(regularizer, Free):
        names = ", ".join(certified_names())
        raise ValueError(f"regularizer must be one of {names}, got {regularizer!r}.")
    objective = replace(objective, loss=unshared(objective.loss))
    certify = Certificate(objective, rows, x_norm, y_range)
    certify.check_possible(tolerance)
    p, k = rows.n_features, objective.loss.n_outputs
    W = np.zeros((p, k)) if start is None else np.array(start, dtype=np.float64)
    if W.shape != (p, k):
        raise ValueError(f"start must have shape {(p, k)}, got {W.shape}.")
    if p * k > DENSE_SIZE:
        if penalty is not None:
            return search_composite(certify, penalty, W, tolerance, DENSE_SIZE // 2)
        W = _lbfgs(objective, rows, W, tolerance)
        newton = partial(_conjugate_gradients, objective, rows, tolerance)
        return _descend(certify, W, tolerance, newton, chords=0)
    stride = min(WARM_STRIDE, rows.n_rows // (WARM_ROWS * p * k))
    if start is None and stride >= 4:
        W = _warm_start(certify, W, stride, penalty)
    # a pass for the Hessian costs about this many passes for the gradient
    chords = min(8, max(1, p * k // 16))
    if penalty is not None:
        return newton_composite(certify, penalty, W, tolerance, chords)
    return _descend(
        certify, W, tolerance, partial(_factorized, objective, rows), chords
    )


def _descend(
    certify: Certificate,
    W: Array,
    tolerance: float,
    newton: Callable[[Array], Solve],
    chords: int,
) -> Minimum:
    """Take Newton steps until the gradient is certified.

    A full step is taken when the function still falls at its end, hence all along it,
    or when it halves the least gradient norm so far. The first kind lowers a strongly
    convex function, the second happens finitely often, so the steps converge, and no
    decision compares function values, which rounding blurs long before gradients.
    """
    G, norm, roundoff = certify.gradient(W)
    solve: Solve | None = None
    least = norm
    nearest = Minimum(W, inf)
    for _ in range(NEWTON_STEPS):
        bound = norm_roundoff(norm, W.size) + roundoff
        if bound <= tolerance:
            return Minimum(W, bound)
        nearest = nearest.better(Minimum(W, bound))
        if roundoff >= tolerance and norm <= roundoff:
            break  # as near as can be seen, and still not certified
        fresh = solve is None
        if solve is None:
            solve = newton(W)
        D = -solve(G)
        ahead = W + D
        G_ahead, norm_ahead, roundoff_ahead = certify.gradient(ahead)
        if np.vdot(G_ahead, D) <= 0 or norm_ahead <= least / 2:
            # an old factor contracts about twice as badly as its own first step
            rate = (2.0 if fresh else 1.0) * norm_ahead / norm
            if not worth_reusing(rate, norm_ahead, tolerance - roundoff_ahead, chords):
                solve = None
            W, G, norm, roundoff = ahead, G_ahead, norm_ahead, roundoff_ahead
        else:
            solve = None
            if fresh:
                W = W + line_search(certify, W, D) * D
                G, norm, roundoff = certify.gradient(W)
        least = min(least, norm)
    raise NotCertified(nearest)


def _factorized(objective: Objective, rows: Rows, W: Array) -> Solve:
    """Return what solves with the dense Hessian at a point."""
    H = objective.hessian(rows, W)
    # rounding may cost a nearly singular Hessian its sign; any shift that mends it
    # still gives a direction of descent
    shift = 0.0
    while True:
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
            break
        except LinAlgError:
            grown = max(10 * shift, float(np.finfo(float).eps * np.trace(H)))
            H.flat[:: H.shape[0] + 1] += grown - shift
            shift = grown

    def solve(G: Array) -> Array:
        solution: Array = cho_solve(factor, G.ravel(), check_finite=False)
        return solution.reshape(G.shape)

    return solve


def _conjugate_gradients(
    objective: Objective, rows: Rows, tolerance: float, W: Array
) -> Solve:
    """Return an approximate solver, exact as far as the step needs; steps descend."""

    def solve(G: Array) -> Array:
        D = np.zeros_like(G)
        R = G.copy()
        P = R.copy()
        square = float(np.vdot(R, R))
        norm = sqrt(square)
        # exact enough to end the search in this step, if the Hessian stays the same
        goal = norm * min(0.1, max(1e-8, 0.1 * tolerance / norm))
        for _ in range(CG_STEPS):
            HP = objective.hessian_product(rows, W, P)
            alpha = square / float(np.vdot(P, HP))
            D += alpha * P
            R -= alpha * HP
            previous, square = square, float(np.vdot(R, R))
            if sqrt(square) <= goal:
                break
            P = R + (square / previous) * P
        return D

    return solve


def _lbfgs(objective: Objective, rows: Rows, W: Array, tolerance: float) -> Array:
    """Return a point near the minimum, without a certificate."""

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        value, G = objective.value_and_gradient(rows, w.reshape(W.shape))
        return value, G.ravel()

    result = scipy_minimize(
        value_and_gradient,
        W.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "ftol": 0.0,
            "gtol": tolerance / sqrt(W.size),
            "maxls": 50,
            "maxiter": 1000,
            "maxcor": 20,
        },
    )
    found: Array = result.x.reshape(W.shape)
    return found


def _warm_start(
    certify: Certificate, W: Array, stride: int, penalty: Certified | None
) -> Array:
    """Return the minimizer over a subset of the rows, to its statistical precision."""
    whole = certify.objective
    tilt = None if whole.tilt is None else whole.tilt / stride
    objective = replace(whole, ridge=whole.ridge / stride, tilt=tilt)
    rows = Thinned(certify.rows, stride)
    thin = replace(certify, objective=objective, rows=rows)
    enough = 0.01 * certify.x_norm * sqrt(rows.n_rows)
    try:
        if penalty is not None:
            light = penalty.scaled(1 / stride)
            return newton_composite(thin, light, W, enough, chords=1).W
        return _descend(
            thin, W, enough, partial(_factorized, objective, rows), chords=1
        ).W
    except NotCertified:  # only a start: zero serves as well
        return W
