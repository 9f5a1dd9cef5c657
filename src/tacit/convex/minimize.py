"""A minimizer whose answer carries a certificate that holds in floating point."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize as scipy_minimize

from tacit._validate import positive
from tacit.convex._protocols import Array
from tacit.convex.objective import Gradient, LineSlopes, Objective
from tacit.convex.roundoff import gradient_roundoff, norm_roundoff
from tacit.data.rows import BlockFunction, Rows

__all__ = ["Minimum", "minimize"]

# Weights up to which a dense Hessian is formed and factorized
DENSE_SIZE = 2000
NEWTON_STEPS = 200
CG_STEPS = 1000
# Trial steps of the line search, all tried in one pass, and those of the next pass
HALVINGS = tuple(0.5**i for i in range(1, 50))
REFINEMENTS = 32
# The warm start reads at most one row in this many, and this many rows a weight
WARM_STRIDE = 16
WARM_ROWS = 25

FAILURE = (
    "The gradient norm could not be certified to be within tolerance; raise the "
    "tolerance or the ridge."
)

Solve = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Weights, and a bound on the norm of the exact gradient there.

    Parameters
    ----------
    W
        The weights, shape (p, k).
    gradient_norm
        Upper bound on the Frobenius norm of the gradient, round-off included.
    """

    W: Array
    gradient_norm: float


def minimize(
    objective: Objective,
    rows: Rows,
    *,
    tolerance: float,
    x_norm: float,
    y_range: tuple[float, float],
    start: Array | None = None,
) -> Minimum:
    """Return weights where the gradient of the objective is certified to be small.

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
        Public bound on the targets; only losses with a slope that grows need it.
    start
        Weights to start from, zero by default. Must not depend on the rows.

    Notes
    -----
    **Guarantee.** The exact gradient at the returned W has norm at most
    ``gradient_norm <= tolerance``, whatever the rounding of the sums, so that W is
    within ``tolerance / ridge`` of the minimizer by strong convexity. The tolerance
    is never loosened: where it cannot be reached, nothing is returned. The steps are
    Newton's [1]_, Section 9.5, with a line search on the sign of the derivative.

    References
    ----------
    .. [1] S. Boyd, L. Vandenberghe, "Convex optimization", 2004.
    """
    positive(tolerance=tolerance, x_norm=x_norm, ridge=objective.ridge)
    certify = _Certificate(objective, rows, x_norm, y_range)
    certify.refuse_impossible(tolerance)
    p, k = rows.n_features, objective.loss.n_outputs
    W = np.zeros((p, k)) if start is None else np.array(start, dtype=np.float64)
    if W.shape != (p, k):
        raise ValueError(f"start must have shape {(p, k)}, got {W.shape}.")
    if p * k > DENSE_SIZE:
        W = _lbfgs(objective, rows, W, tolerance)
        newton = _ConjugateGradients(objective, rows, tolerance)
        return _descend(certify, W, tolerance, newton, chords=0)
    stride = min(WARM_STRIDE, rows.n_rows // (WARM_ROWS * p * k))
    if start is None and stride >= 4:
        W = _warm_start(certify, W, stride)
    # a pass for the Hessian costs about this many passes for the gradient
    chords = min(8, max(1, p * k // 16))
    return _descend(certify, W, tolerance, _Cholesky(objective, rows), chords)


@dataclass(frozen=True, eq=False)
class _Certificate:
    """Computes gradients together with bounds on their exact norm."""

    objective: Objective
    rows: Rows
    x_norm: float
    y_range: tuple[float, float]

    def gradient(self, W: Array) -> tuple[Array, float, float]:
        """Return the gradient, its computed norm, and its round-off bound."""
        n = self.rows.n_rows
        G, added, products, blocks = self.rows.sum(Gradient(self.objective.loss, W))
        G += self.objective.linear(W)
        norm = float(np.linalg.norm(G))
        # blocks are added in pairs, pairs in pairs, and so on
        additions = added / n + 2 * int(blocks).bit_length()
        tilt = self.objective.tilt
        return G, norm, self._roundoff(W, additions, products / n, tilt)

    def _roundoff(
        self, W: Array, additions: float, products: float, tilt: Array | None
    ) -> float:
        loss = self.objective.loss
        w_norm = float(np.linalg.norm(W))
        return gradient_roundoff(
            n_rows=self.rows.n_rows,
            shape=(W.shape[0], W.shape[1]),
            additions=additions,
            x_norm=self.x_norm,
            slope=loss.max_slope(self.x_norm * w_norm, self.y_range),
            curvature=loss.max_curvature(),
            w_norm=w_norm,
            ridge=self.objective.ridge,
            tilt_norm=0.0 if tilt is None else float(np.linalg.norm(tilt)),
            products=products,
        )

    def refuse_impossible(self, tolerance: float) -> None:
        """Refuse a tolerance below the round-off of adding the rows once."""
        zero = np.zeros((self.rows.n_features, self.objective.loss.n_outputs))
        # no tilt: it is noise, and what is refused must follow from public facts
        if self._roundoff(zero, 1.0, 1.0, None) >= tolerance:
            raise ValueError(
                "tolerance must be above the round-off of float64 sums of this many "
                f"rows, got {tolerance!r}."
            )


def _descend(
    certify: _Certificate,
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
    for _ in range(NEWTON_STEPS):
        bound = norm_roundoff(norm, W.size) + roundoff
        if bound <= tolerance:
            return Minimum(W, bound)
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
            if not _worth_reusing(rate, norm_ahead, tolerance - roundoff_ahead, chords):
                solve = None
            W, G, norm, roundoff = ahead, G_ahead, norm_ahead, roundoff_ahead
        else:
            solve = None
            if fresh:
                W = W + _line_search(certify, W, D) * D
                G, norm, roundoff = certify.gradient(W)
        least = min(least, norm)
    raise RuntimeError(FAILURE)


def _worth_reusing(rate: float, norm: float, goal: float, chords: int) -> bool:
    """Return whether so few steps at this rate are left that no Hessian pays."""
    if goal <= 0 or rate >= 0.5 or not norm > goal:
        return False
    return ceil(log(norm / goal) / -log(max(rate, 1e-16))) <= chords


def _line_search(certify: _Certificate, W: Array, D: Array) -> float:
    """Return nearly the longest step at whose end the function still falls.

    The derivative grows along the step, so its sign brackets the least value: first
    between a halving and its double, then in a small part of that. The second pass is
    worth it for losses with corners, where it halves the number of Newton steps.
    """
    low = _longest(certify, W, D, HALVINGS)
    finer = np.linspace(2 * low, low, REFINEMENTS + 1)[1:]
    return _longest(certify, W, D, tuple(finer.tolist()))


def _longest(
    certify: _Certificate, W: Array, D: Array, steps: tuple[float, ...]
) -> float:
    """Return the first of these steps where the function falls, or else the last."""
    objective = certify.objective
    slopes = certify.rows.sum(LineSlopes(objective.loss, W, D, steps))[0]
    along = float(np.vdot(objective.linear(W), D))
    slopes = slopes + along + np.array(steps) * objective.ridge * float(np.vdot(D, D))
    falling = np.flatnonzero(slopes <= 0)
    return steps[int(falling[0]) if falling.size else -1]


@dataclass(frozen=True, eq=False)
class _Cholesky:
    """Solves with the dense Hessian at a point."""

    objective: Objective
    rows: Rows

    def __call__(self, W: Array) -> Solve:
        H = self.objective.hessian(self.rows, W)
        size = H.shape[0]
        # rounding may cost a nearly singular Hessian its sign; any shift that mends it
        # still gives a direction of descent
        shift = 0.0
        while True:
            try:
                factor = cho_factor(H, lower=True, check_finite=False)
            except LinAlgError:
                grown = max(10 * shift, float(np.finfo(float).eps * np.trace(H)))
                H.flat[:: size + 1] += grown - shift
                shift = grown
            else:
                return _Solved(factor)


@dataclass(frozen=True, eq=False)
class _Solved:
    """The inverse of a factorized Hessian."""

    factor: tuple[Array, bool]

    def __call__(self, G: Array) -> Array:
        solution: Array = cho_solve(self.factor, G.ravel(), check_finite=False)
        return solution.reshape(G.shape)


@dataclass(frozen=True, eq=False)
class _ConjugateGradients:
    """Solves with the Hessian at a point, as far as the step needs, by products."""

    objective: Objective
    rows: Rows
    tolerance: float

    def __call__(self, W: Array) -> Solve:
        return _CGSolve(self.objective, self.rows, W, self.tolerance)


@dataclass(frozen=True, eq=False)
class _CGSolve:
    """Approximate inverse of the Hessian at ``W``; positive, so steps descend."""

    objective: Objective
    rows: Rows
    W: Array
    tolerance: float

    def __call__(self, G: Array) -> Array:
        D = np.zeros_like(G)
        R = G.copy()
        P = R.copy()
        square = float(np.vdot(R, R))
        norm = sqrt(square)
        # exact enough to end the search in this step, if the Hessian stays the same
        goal = norm * min(0.1, max(1e-8, 0.1 * self.tolerance / norm))
        for _ in range(CG_STEPS):
            HP = self.objective.hessian_product(self.rows, self.W, P)
            alpha = square / float(np.vdot(P, HP))
            D += alpha * P
            R -= alpha * HP
            previous, square = square, float(np.vdot(R, R))
            if sqrt(square) <= goal:
                break
            P = R + (square / previous) * P
        return D


def _lbfgs(objective: Objective, rows: Rows, W: Array, tolerance: float) -> Array:
    """Return a point near the minimum, without any promise."""

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


@dataclass(frozen=True)
class _EveryNth:
    """Applies a function to one row in ``stride`` of a block."""

    function: BlockFunction
    stride: int

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Any, ...]:
        return self.function(X[:: self.stride], y[:: self.stride])


@dataclass(frozen=True, eq=False)
class _Thinned:
    """Rows of which each block shows one in ``stride``, always the same ones."""

    rows: Rows
    stride: int

    @property
    def n_rows(self) -> int:
        return -(-self.rows.n_rows // self.stride)

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def block_rows(self) -> int:
        return -(-self.rows.block_rows // self.stride)

    def sum(self, function: BlockFunction) -> tuple[Any, ...]:
        return self.rows.sum(_EveryNth(function, self.stride))


def _warm_start(certify: _Certificate, W: Array, stride: int) -> Array:
    """Return the minimizer over some of the rows, to what so few rows can tell."""
    whole = certify.objective
    tilt = None if whole.tilt is None else whole.tilt / stride
    objective = replace(whole, ridge=whole.ridge / stride, tilt=tilt)
    rows = _Thinned(certify.rows, stride)
    thin = replace(certify, objective=objective, rows=rows)
    enough = 0.01 * certify.x_norm * sqrt(rows.n_rows)
    try:
        return _descend(thin, W, enough, _Cholesky(objective, rows), chords=1).W
    except RuntimeError:  # only a start: zero serves as well
        return W
