"""Noise of shapes, stated from what a fit released.

The last weights of the descent respond to the noise of its gradients as the Hessian
says. Second moments within a column follow from the noisy counts of its bins, and
those between columns from the noisy moments, shrunk towards independent columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tacit.additive import _bins
from tacit.additive._bins import ROUNDS, Bins
from tacit.additive._columns import CELLS
from tacit.additive._terms import Term, ranges_of
from tacit.convex import Huber, Logistic
from tacit.solvers._gradients.response import (
    Landing,
    mean_hessian,
    path_curvature,
    weight_covariance,
)
from tacit.solvers.preconditioned_gd import PreconditionedGDPlan

__all__ = ["shape_noise", "weight_noise"]

Array = NDArray[np.float64]

# Least curvature of a row of a regression
LEAST_CURVATURE = 0.02
# The curvature that a path shows is taken to be this much less; by
# benchmarks/additive/coverage.py, with residuals of two modes
PATH_FACTOR = 0.9
# Parts of a range with fewer rows than this many standard deviations of a count have
# less curvature than counts say; single bins with fewer than that many have none. And
# nothing is stated where one is more than this fraction of the rows. All by
# benchmarks/additive/coverage.py
DOUBT, VISIBLE, MOST_COUNT_NOISE = 2.0, 3.0, 0.05
EM_ITERATIONS = 15


def weight_noise(
    plan: PreconditionedGDPlan,
    landing: Landing,
    terms: Sequence[Term],
    bins: Sequence[Bins],
    n_rows: float,
    count_noise: float,
) -> Array | None:
    """Return the covariance that noise gives to the weights.

    None for more than two classes, where the curvature of a row is not one number, and
    where noise hides the bins. ``count_noise`` is the standard deviation of a count of
    bins.
    """
    loss, w = plan.problem.loss, landing.W[:, 0]
    if count_noise > MOST_COUNT_NOISE * n_rows:
        return None
    constant = float(plan.problem.constant or 0.0)
    part = count_noise / n_rows
    moments = _moments(landing, terms, bins, n_rows, constant, part)
    if isinstance(loss, Logistic):
        hessian = mean_hessian(plan, loss, moments, w, n_rows)
    elif isinstance(loss, Huber):
        hessian = _curvature(plan, loss, landing, moments, n_rows) * moments
    else:
        return None
    if hessian is None:
        return None
    covariance = weight_covariance(plan, landing, hessian)
    return covariance if np.isfinite(covariance).all() else None


def shape_noise(terms: Sequence[Term], covariance: Array) -> list[Array]:
    """Return the standard deviation of each value of each shape.

    ``covariance`` is that of the weights. Shapes are centered and in units of the
    targets.
    """
    found = []
    for term, (start, end) in zip(terms, ranges_of(terms), strict=True):
        (factor,) = term.factors
        variance = np.einsum(
            "ij,jk,ik->i", factor, covariance[start:end, start:end], factor
        )
        found.append(np.sqrt(np.maximum(variance, 0.0))[:, None])
    return found


def _curvature(
    plan: PreconditionedGDPlan,
    loss: Huber,
    landing: Landing,
    moments: Array,
    n_rows: float,
) -> float:
    """Return the fraction of residuals that are within the clip.

    Of targets with spread one and residuals that are about normal, or as the released
    gradients show it, whichever is less: less curvature states more noise.
    """
    w = landing.W[:, 0]
    left = max(1.0 - float(w @ moments @ w) / n_rows, 0.0)
    normal = erf(loss.threshold / sqrt(2 * left)) if left > 0 else 1.0
    shown = PATH_FACTOR * path_curvature(plan, landing, moments)
    return max(min(normal, shown), LEAST_CURVATURE)


def _moments(
    landing: Landing,
    terms: Sequence[Term],
    bins: Sequence[Bins],
    n_rows: float,
    constant: float,
    count_noise: float,
) -> Array:
    """Return the sum of ``x x^T`` as counts and noisy moments show it together."""
    noisy = landing.moments / n_rows
    size = len(noisy)
    mean, within = np.zeros(size), np.zeros((size, size))
    between = np.ones((size, size), dtype=bool)
    for term, each, (start, end) in zip(terms, bins, ranges_of(terms), strict=True):
        own = slice(start, end)
        (factor,) = term.factors
        mean[own] = each.fractions @ factor
        part = _least_mass(each, count_noise)
        within[own, own] = factor.T @ (factor * part[:, None])
        between[own, own] = False
    mean[-1] = constant
    within[-1], within[:, -1] = mean * constant, mean * constant
    between[-1] = between[:, -1] = False
    # rows are clipped to the norm, which makes all moments somewhat smaller
    clipped = np.trace(noisy[:-1, :-1]) / np.trace(within[:-1, :-1])
    clipped = float(np.clip(clipped, 0.5, 1.0))
    # independent columns, and what the noisy moments show besides
    prior = np.where(between, np.outer(mean, mean), within)
    known = np.zeros_like(between)
    known[-1] = known[:, -1] = True
    spread = np.sqrt(np.maximum(np.diag(within) - mean**2, 0.0))
    noise = np.full_like(prior, (landing.moment_scale / n_rows / clipped) ** 2 / 2)
    np.fill_diagonal(noise, 2 * noise[0, 0])
    off = noisy / clipped - prior
    found = prior
    for some in (between, ~between & ~known):
        found = found + _denoised(off, noise, spread, some)
    values, axes = np.linalg.eigh(clipped * n_rows * found)
    moments: Array = (axes * np.maximum(values, 0.0)) @ axes.T
    return moments


def _least_mass(bins: Bins, noise: float) -> Array:
    """Return the mass of each bin, less where it may be noise or was assumed.

    Fewer rows in a bin have less curvature, which states more noise. ``noise`` is the
    standard deviation of a count as a fraction of the rows.
    """
    mass = bins.fractions
    counted = np.where(mass > VISIBLE * noise, mass - noise, 0.0)
    if not bins.column.is_numeric:
        return counted
    ends = np.append(bins.starts, CELLS)
    assumed = _bins.UNSEEN * np.diff(ends) / CELLS * (1 - mass[-1])
    seen = np.maximum(mass[:-1] - assumed, 0.0)
    seen /= 1 - _bins.UNSEEN
    # parts of the range that counts of the first round do not show count for little
    parts = np.linspace(0, CELLS, 2 ** ROUNDS[0] + 1)
    of_part = np.diff(np.interp(parts, ends, np.append(0.0, np.cumsum(seen))))
    middles = (ends[:-1] + ends[1:]) / 2
    around = of_part[np.searchsorted(parts, middles, side="right") - 1]
    seen *= np.minimum(around / max(DOUBT * noise, 1e-300), 1.0) ** 2
    return np.append(seen, counted[-1])


def _denoised(
    off: Array, noise: Array, spread: Array, part: NDArray[np.bool_]
) -> Array:
    """Return the posterior means of what noisy moments differ from the prior ones.

    In units of the spread of both features, some differences in ``part`` are normal
    with one variance and the others are zero: which, the noisy ones show together.
    What is noise must go, as the preconditioner has the same noise: directions that it
    made small have the largest steps.
    """
    found = np.zeros_like(off)
    scale = np.outer(spread, spread) ** 2
    # matrices are symmetric: entries below the diagonal are those above it
    part = np.triu(part & (scale > 0))
    if not part.any():
        return found
    squares, units, least = off[part] ** 2, scale[part], noise[part]
    excess = float(((squares - least) * units).sum())
    variance, some = max(1e-4, 3 * excess / float((units**2).sum())), 0.2
    for _ in range(EM_ITERATIONS):
        whole = variance * units + least
        odds = np.log(some / (1 - some)) - np.log(whole / least) / 2
        odds += squares * (1 / least - 1 / whole) / 2
        chance, kept = expit(odds), variance * units / whole
        size = kept**2 * squares + kept * least
        some = float(np.clip(chance.mean(), 1e-3, 0.99))
        variance = float((chance * size / units).sum() / max(chance.sum(), 1e-9))
        variance = max(variance, 1e-8)
    found[part] = chance * kept * off[part]
    return np.where(part, found, found.T)
