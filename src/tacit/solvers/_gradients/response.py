"""Noise of the last weights of a preconditioned descent, from what it released.

The last weights are about linear in the noise of each step. How far noise moves them
follows from the preconditioner, which was released, and from the Hessian, which is
estimated from released moments and gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, isfinite, ldexp, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.convex import Logistic
from tacit.solvers._base import WeightNoise
from tacit.solvers._gradients.descent import clip_needed

if TYPE_CHECKING:
    from tacit.solvers.preconditioned_gd import PreconditionedGDPlan

__all__ = [
    "Landing",
    "approximate_noise",
    "cleaned_eigenvalues",
    "descent_noise",
    "mean_hessian",
    "path_curvature",
    "weight_covariance",
]

Array = NDArray[np.float64]

# Points of a normal distribution, and their weights
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# The noisy moments are moved by this many standard deviations of an entry, down and up:
# where any stated standard deviation changes by more than the factor, the moments do
# not settle it
DOUBT = 2.0
LEAST_CERTAIN = 1.25
# The curvature of a path is that of its last part, near where it ends
PATH_START = 1 / 3
# Rows of a fitted model have about this part of the curvature at zero margins. Half of
# it and twice as much shrink pairs of synthetic tables about alike
USUAL_CURVATURE = 0.4


@dataclass(frozen=True, eq=False)
class Landing:
    """What a descent released: its last weights and what led to them.

    Parameters
    ----------
    W
        Last weights.
    root
        Root R of the preconditioner ``R R^T``, the inverse of the damped noisy Hessian
        at zero weights; its columns are orthogonal.
    moments, moment_scale
        Noisy second moments, and the noise on their diagonal.
    scale
        Noise on each entry of a gradient.
    path
        Where each gradient was taken, and that gradient with its noise.
    """

    W: Array
    root: Array
    moments: Array
    moment_scale: float
    scale: float
    path: tuple[tuple[Array, Array], ...] = ()

    @property
    def direction(self) -> Array:
        """Preconditioner."""
        return self.root @ self.root.T


def descent_noise(plan: PreconditionedGDPlan, landing: Landing) -> WeightNoise | None:
    """Return the noise of the last weights, or None where it does not show.

    For the logistic loss of two classes, as others do not determine what curvature
    their rows have, and where the moments are known well enough.
    """
    loss = plan.problem.loss
    if not isinstance(loss, Logistic) or isfinite(clip_needed(plan.problem, plan.clip)):
        return None
    values, axes = np.linalg.eigh(landing.moments)
    best = cleaned_eigenvalues(values, landing.moment_scale)
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


def cleaned_eigenvalues(values: Array, scale: float) -> Array:
    """Return what the exact moments are along the axes of the noisy ones.

    Noise pushes eigenvalues apart; this takes it back (Bun, Allez, Bouchaud and Potters
    2016, for symmetric Gaussian noise).
    """
    unit = _unit(scale)
    gaps, scale = (values[:, None] - values) / unit, scale / unit
    push = gaps / (gaps**2 + 2 * scale**2)
    cleaned: Array = values - scale**2 * push.sum(axis=1) * unit
    return cleaned


def _unit(size: float) -> float:
    """Return what to divide numbers of a size by, so that their squares are numbers.

    One for usual sizes, and a power of two for others, which rounds nothing.
    """
    return 1.0 if 1e-70 < size < 1e70 else ldexp(1.0, frexp(size)[1])


def _std(
    plan: PreconditionedGDPlan, loss: Logistic, landing: Landing, moments: Array
) -> Array:
    """Return the standard deviation of the last weights, given exact moments."""
    hessian = mean_hessian(plan, loss, moments, landing.W[:, 0], plan.problem.n_rows)
    if hessian is None:
        return np.full(len(landing.W), np.nan)
    variance = np.diag(weight_covariance(plan, landing, hessian))
    return np.sqrt(np.maximum(variance, 0.0))


def weight_covariance(
    plan: PreconditionedGDPlan, landing: Landing, hessian: Array
) -> Array:
    """Return the covariance that noise gives to the last weights of one output.

    ``hessian`` is that of all rows near the last weights, without the ridge.
    """
    unit = _unit(float(np.abs(landing.root).max())) ** 2
    root = landing.root / sqrt(unit)
    hessian = hessian + plan.problem.ridge * np.eye(len(root))
    contraction, basis = np.linalg.eigh(root.T @ (hessian * unit) @ root)
    response = _responses(plan, contraction)[0]
    noise = (root * root).sum(axis=0)  # the columns of a root are orthogonal
    spread = (response.T @ response) * ((basis.T * noise) @ basis)
    back = root @ basis
    covariance: Array = (landing.scale * unit) ** 2 * (back @ spread @ back.T)
    return covariance


def mean_hessian(
    plan: PreconditionedGDPlan,
    loss: Logistic,
    moments: Array,
    w: Array,
    n_rows: float,
) -> Array | None:
    """Return the Hessian at ``w`` of rows that are about normal with these moments.

    None where margins would have no spread, which is a sign of too much noise.

    Labels follow the model itself. A function f of the margin z has by Stein's identity
    ``E f(z) x x^T = E f C + E f'' C w w^T C`` for centered rows of covariance C, and
    the mean adds terms with f'.
    """
    second = moments / n_rows
    # without a constant feature the moments do not contain the mean
    constant = plan.problem.constant
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
    result: Array = n_rows * hessian
    return result


def path_curvature(
    plan: PreconditionedGDPlan, landing: Landing, moments: Array
) -> float:
    """Return the curvature of a row near the last weights, as the path shows it.

    The Hessian is taken as this number times the moments. It is the coefficient of a
    regression of released gradients on where they were taken, over all directions,
    with an intercept for each. Positions depend on the noise of earlier gradients, and
    the intercepts are means over few steps: the bias of both is known and removed.
    """
    root = landing.root
    values = (root * root).sum(axis=0)  # the columns of a root are orthogonal
    spread, basis = np.linalg.eigh(root.T @ moments @ root)
    spread = np.maximum(spread, 0.0)
    late = landing.path[int(PATH_START * len(landing.path)) :]
    W, gradients = (np.stack([each[part][:, 0] for each in late]) for part in (0, 1))
    moved = (W @ (root / values) @ basis) * spread
    seen = gradients @ root @ basis
    moved, seen = moved - moved.mean(axis=0), seen - seen.mean(axis=0)
    # variance of the noise of each direction, in units of that of an entry
    noise = values @ basis**2
    both, own = (float((moved * each / noise).sum()) for each in (seen, moved))
    if not own > 0:
        return 0.0
    ages = len(late) - np.arange(1, len(late))
    found = both / own
    for _ in range(40):
        response = _responses(plan, found * spread)[1][: len(ages)]
        bias = landing.scale**2 * float((ages @ (response * spread)).sum()) / len(late)
        found = (found + (both + bias) / own) / 2
    return max(found, 0.0)


def approximate_noise(plan: PreconditionedGDPlan, landing: Landing) -> Array:
    """Return the approximate covariance of the last weights of one output.

    For rows of any kind: it assumes the curvature that rows usually have.
    """
    moments = _shrunk_to_identity(landing.moments, landing.moment_scale)
    return weight_covariance(plan, landing, USUAL_CURVATURE * plan.curvature * moments)


def _shrunk_to_identity(noisy: Array, scale: float) -> Array:
    """Return moments shrunk to a multiple of the identity.

    As Ledoit and Wolf (2004) do, with privacy noise instead of sampling error.
    """
    size = len(noisy)
    even = max(float(np.trace(noisy)) / size, scale / sqrt(size)) * np.eye(size)
    # off the diagonal the noise has half of its variance
    noise = scale**2 * (size + size * (size - 1) / 2)
    seen = float(((noisy - even) ** 2).sum())
    kept = 1.0 - noise / seen if seen > noise else 0.0
    values, axes = np.linalg.eigh(even + kept * (noisy - even))
    moments: Array = (axes * np.maximum(values, 0.0)) @ axes.T
    return moments


def _responses(plan: PreconditionedGDPlan, contraction: Array) -> tuple[Array, Array]:
    """Return how far unit noise moved the weights, and where gradients are taken.

    Rows are for noise one step ago, two and so on.
    """
    # far beyond, the descent would have diverged: estimates are too large there
    contraction = np.clip(contraction, 0.0, 1 / plan.step)
    weights = np.zeros((plan.n_steps, len(contraction)))
    taken = np.zeros_like(weights)
    W = np.zeros(len(contraction))
    ahead, noise = W, 1.0
    for age in range(plan.n_steps):
        moved = ahead - plan.step * (contraction * ahead + noise)
        ahead, W, noise = moved + plan.momentum * (moved - W), moved, 0.0
        weights[age], taken[age] = W, ahead
    return weights, taken
