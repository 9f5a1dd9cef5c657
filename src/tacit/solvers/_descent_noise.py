"""How much of a descent's last weights is noise, seen from what it released.

Near its end a preconditioned descent is a linear recursion driven by noise of known
size. Its contraction is the product of the preconditioner and the Hessian; the latter
is modeled from the noisy second moments and the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.convex import Logistic
from tacit.solvers._base import WeightNoise
from tacit.solvers.noisy_gd import DescentPlan, clip_needed

__all__ = ["Landing", "descent_noise"]

Array = NDArray[np.float64]

# Points of a normal distribution, and their weights
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# The noisy moments are moved by this many deviations of an entry, down and up: where
# any stated deviation changes by more than the factor, the moments do not settle it
DOUBT = 2.0
LEAST_CERTAIN = 1.25


class ClippedDescent(DescentPlan, Protocol):
    """What is read of a plan."""

    @property
    def clip(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Landing:
    """What a descent released: its last weights and what led to them.

    ``moment_scale`` is the noise on the diagonal of ``moments``, ``scale`` that on
    each entry of a gradient.
    """

    W: Array
    direction: Array
    moments: Array
    moment_scale: float
    scale: float


def descent_noise(plan: ClippedDescent, landing: Landing) -> WeightNoise | None:
    """Return the noise of the last weights, or None where it does not show.

    For the logistic loss of two classes, as others do not tell what curvature their
    rows have, and where the moments are known well enough.
    """
    loss = plan.problem.loss
    if not isinstance(loss, Logistic) or isfinite(clip_needed(plan.problem, plan.clip)):
        return None
    values, axes = np.linalg.eigh(landing.moments)
    best = _cleaned(values, landing.moment_scale)
    doubt = DOUBT * landing.moment_scale
    stated, low, high = (
        _std(plan, loss, landing, (axes * np.maximum(spread, 0.0)) @ axes.T)
        for spread in (best, best + doubt, np.maximum(best, 0.0) - doubt)
    )
    certain = np.isfinite(stated) & (high <= LEAST_CERTAIN * low)
    if not bool(certain.all()):
        return None
    return WeightNoise(
        stated[:, None],
        "approximate: the response of the last steps to their noise, for rows that are "
        "about normal and weights near the minimum",
    )


def _cleaned(values: Array, scale: float) -> Array:
    """Return what the exact moments are along the axes of the noisy ones.

    Noise pushes eigenvalues apart; this takes it back (Bun, Allez, Bouchaud and Potters
    2016, for symmetric Gaussian noise).
    """
    gaps = values[:, None] - values
    push = gaps / (gaps**2 + 2 * scale**2)
    cleaned: Array = values - scale**2 * push.sum(axis=1)
    return cleaned


def _std(
    plan: ClippedDescent, loss: Logistic, landing: Landing, moments: Array
) -> Array:
    """Return the deviation of the last weights if these are the exact moments."""
    P = landing.direction
    values, axes = np.linalg.eigh(P)
    root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    hessian = _hessian(plan, loss, moments, landing.W[:, 0])
    if hessian is None:
        return np.full(len(P), np.nan)
    contraction, basis = np.linalg.eigh(root @ hessian @ root)
    response = _responses(plan, np.maximum(contraction, 0.0))
    spread = (response.T @ response) * (basis.T @ P @ basis)
    back = root @ basis
    variance: Array = np.einsum("ij,jk,ik->i", back, spread, back)
    return landing.scale * np.sqrt(np.maximum(variance, 0.0))


def _hessian(
    plan: ClippedDescent, loss: Logistic, moments: Array, w: Array
) -> Array | None:
    """Return the Hessian at ``w`` of rows that are about normal with these moments.

    None where margins would have no spread, which is a sign of too much noise.

    Labels follow the model itself. A function f of the margin z has by Stein's identity
    ``E f(z) x x^T = E f C + E f'' C w w^T C`` for centered rows of covariance C, and
    the mean adds terms with f'.
    """
    problem, n = plan.problem, plan.problem.n_rows
    second = moments / n
    # without a constant feature the moments do not tell the mean
    constant = problem.constant
    mean = np.zeros(len(w)) if constant is None else second[-1] / constant
    covariance = second - np.outer(mean, mean)
    center = float(w @ mean)
    variance = float(w @ covariance @ w)
    if not variance > 0:
        return None
    width = sqrt(variance)
    z = center + width * NODES
    up = loss.probability(z)
    ones = np.ones(len(z))
    curved = up * loss.curvature(ones, z[:, None])[:, 0]
    curved += (1 - up) * loss.curvature(-ones, z[:, None])[:, 0]
    flat, tilt, bend = (
        float(WEIGHTS @ (curved * part)) for part in (ones, NODES, NODES**2 - 1)
    )
    along = covariance @ w / width
    hessian = flat * second + bend * np.outer(along, along)
    hessian += tilt * (np.outer(along, mean) + np.outer(mean, along))
    result: Array = n * hessian + problem.ridge * np.eye(len(w))
    return result


def _responses(plan: ClippedDescent, contraction: Array) -> Array:
    """Return, for noise one step ago, two and so on, how far it moved the weights."""
    out = np.zeros((plan.n_steps, len(contraction)))
    W = np.zeros(len(contraction))
    ahead, noise = W, 1.0
    for row in out:
        moved = ahead - plan.step * (contraction * ahead + noise)
        ahead, W, noise = moved + plan.momentum * (moved - W), moved, 0.0
        row[:] = W
    return out
