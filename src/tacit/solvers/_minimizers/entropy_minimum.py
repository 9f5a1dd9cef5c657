"""Minimizer of a risk plus negative entropy over the simplex, in log-weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import logsumexp

from tacit.convex import Loss
from tacit.convex.objective import Hessian, HessianProduct, ValueAndGradient
from tacit.data import Rows

__all__ = ["entropy_minimum"]

Array = NDArray[np.float64]

# Features up to which the Hessian is formed and factorized
DENSE_SIZE = 128
NEWTON_STEPS = 40
HALVINGS = 25
CG_STEPS = 200


@dataclass(frozen=True, eq=False)
class _Point:
    """Log-weights that sum to one, the value there, and how far from stationary."""

    phi: Array
    value: float
    gradient: Array
    residual: Array

    @property
    def theta(self) -> Array:
        return np.exp(self.phi)

    @property
    def norm(self) -> float:
        """Distance of the residual from a constant, in the largest entry."""
        return float(self.residual.max() - self.residual.min()) / 2


def entropy_minimum(
    loss: Loss,
    rows: Rows,
    *,
    weight: float,
    tolerance: float,
    smoothness: float,
    n_steps: int,
) -> Array:
    """Return log-weights whose stationarity residual is within tolerance.

    The residual is ``weight phi + gradient`` less the best constant, in its largest
    entry; ``weight`` is the factor of the negative entropy. ``smoothness`` bounds the
    change of the gradient's entries by an L1 change of the weights, from which
    ``n_steps`` mirror steps follow.

    Notes
    -----
    **Guarantee.** Mirror descent in log-weights contracts the divergence from the
    minimizer by kappa / (1 + kappa) a step (Lu, Freund and Nesterov 2018, Theorem 3.1),
    with kappa = smoothness / weight, so the planned steps suffice whatever the rows.
    Newton steps come first, as they nearly always get there much sooner.
    """

    def at(phi: Array) -> _Point:
        phi = phi - logsumexp(phi)
        theta = np.exp(phi)
        value, G = rows.sum(ValueAndGradient(loss, theta[:, None]))
        gradient = G[:, 0]
        entropy = float(theta @ phi)
        residual = weight * phi + gradient
        return _Point(phi, float(value) + weight * entropy, gradient, residual)

    point = at(np.zeros(rows.n_features))
    for _ in range(NEWTON_STEPS):
        if point.norm <= tolerance:
            return point.phi
        ahead = _newton_step(loss, rows, point, weight, at)
        if ahead is None:
            break
        point = ahead
    # from the start again, which the number of steps was planned from
    point = at(np.zeros(rows.n_features))
    for _ in range(n_steps):
        if point.norm <= tolerance:
            break
        step = smoothness * point.phi - point.gradient
        point = at(step / (smoothness + weight))
    return point.phi


def _newton_step(
    loss: Loss, rows: Rows, point: _Point, weight: float, at: Callable[[Array], _Point]
) -> _Point | None:
    """Return a point that is clearly better, or None where rounding hides it.

    With theta and its root s, the Newton direction is ``s z`` for the z orthogonal to s
    that solves ``(weight + s H s) z = -s residual``; no entry is divided by a weight
    that may have underflowed.
    """
    root = np.exp(point.phi / 2)
    residual = point.residual - point.theta @ point.residual
    solved = (
        _dense(loss, rows, root, weight, residual)
        if rows.n_features <= DENSE_SIZE
        else _conjugate(loss, rows, root, weight, residual)
    )
    if solved is None:
        return None
    z, curved = solved
    falls = float((root * z) @ residual)
    direction = -(residual + curved) / weight
    step = 1.0
    for _ in range(HALVINGS):
        ahead = at(point.phi + step * direction)
        enough = ahead.value <= point.value + 1e-4 * step * falls
        if ahead.norm <= point.norm / 2 or (enough and falls < 0):
            return ahead
        step /= 2
    return None


def _dense(
    loss: Loss, rows: Rows, root: Array, weight: float, residual: Array
) -> tuple[Array, Array] | None:
    """Return z and the Hessian times ``s z``, by a factorization."""
    H = rows.sum(Hessian(loss, (root**2)[:, None]))[0]
    M = root[:, None] * H * root[None, :]
    M.flat[:: len(root) + 1] += weight
    try:
        factor = cho_factor(M, lower=True, check_finite=False)
    except LinAlgError:  # rounding cost it its sign: mirror steps need no factor
        return None
    both = cho_solve(factor, np.stack([root * residual, root], axis=1))
    z = both[:, 1] * (root @ both[:, 0]) / (root @ both[:, 1]) - both[:, 0]
    return z, H @ (root * z)


def _conjugate(
    loss: Loss, rows: Rows, root: Array, weight: float, residual: Array
) -> tuple[Array, Array]:
    """Return z and the Hessian times ``s z``, by conjugate gradients."""
    theta = (root**2)[:, None]

    def curved(v: Array) -> Array:
        H: Array = rows.sum(HessianProduct(loss, theta, (root * v)[:, None]))[0]
        return H[:, 0]

    def project(v: Array) -> Array:
        return v - root * (root @ v)

    z, total = np.zeros_like(root), np.zeros_like(root)
    r = project(-root * residual)
    direction, square = r, float(r @ r)
    goal = 1e-6 * square
    for _ in range(CG_STEPS):
        if square <= goal:
            break
        H = curved(direction)
        product = project(weight * direction + root * H)
        alpha = square / float(direction @ product)
        z, total = z + alpha * direction, total + alpha * H
        r = r - alpha * product
        previous, square = square, float(r @ r)
        direction = r + (square / previous) * direction
    return z, total
