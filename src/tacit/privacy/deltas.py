"""Deltas of Gaussian and bounded-range mechanisms, computed without cancellation."""

from __future__ import annotations

from math import ceil, exp, expm1, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import special

__all__ = [
    "bounded_range_deltas",
    "gaussian_delta",
    "gaussian_deltas",
]

# Shift below which the two terms of the Gaussian delta cancel, and the rule of
# quadrature that replaces their difference there
NARROW = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the exact delta of a Gaussian mechanism with shift ``mu``.

    Notes
    -----
    **Bound.** Equality in Balle and Wang (2018), Theorem 8, for any real epsilon, to a
    relative error below 1e-11 where delta is above 1e-280.
    """
    # in plain floats, as calibration asks for one delta at a time
    if mu == 0:
        return -expm1(min(epsilon, 0.0))
    low = _lower_end(abs(epsilon), mu)
    density = exp(-0.5 * low * low) / sqrt(2 * pi)
    if density == 0:
        found = 0.0 if low > 0 else 1.0
    elif mu < NARROW:
        found = density * float(_mills_fall(np.float64(low), mu))
    else:
        upper = density * mills(low) if low >= 0 else special.ndtr(-low)
        found = float(upper - density * mills(low + mu))
    return found if epsilon >= 0 else exp(epsilon) * found - expm1(epsilon)


def gaussian_deltas(epsilons: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
    """Return `gaussian_delta` of many epsilons."""
    if mu == 0:
        return np.asarray(-np.expm1(np.minimum(epsilons, 0.0)), dtype=np.float64)
    size = np.abs(epsilons)
    low = _lower_end(size, mu)
    density = np.exp(-0.5 * low * low) / sqrt(2 * pi)
    if mu < NARROW:
        found = density * _mills_fall(low, mu)
    else:
        # erfcx overflows far below zero, where nothing cancels
        upper = density * mills(np.maximum(low, 0.0))
        upper = np.where(low < 0, special.ndtr(-low), upper)
        found = upper - density * mills(low + mu)
    if np.all(epsilons >= 0):
        return np.asarray(found)
    # the other direction is the same pair with its members exchanged
    below = np.minimum(epsilons, 0.0)
    exchanged = np.exp(below) * found - np.expm1(below)
    return np.asarray(np.where(below < 0, exchanged, found))


def _lower_end(size: Any, mu: float) -> Any:
    """Return the end of a normal tail from which delta follows."""
    # [gaussian:mills] delta = density(low) (mills(low) - mills(low + mu))
    return size / mu - mu / 2


def mills(x: Any) -> Any:
    """Return the normal tail above ``x`` divided by the normal density at ``x``."""
    return sqrt(pi / 2) * special.erfcx(x / sqrt(2))


def _mills_fall(low: Any, width: float) -> NDArray[np.float64]:
    """Return ``mills(low) - mills(low + width)`` as an integral, without cancelling."""
    # -mills'(x) = 1 - x mills(x)
    x = low[..., None] + (0.5 * width * (1 + _NODES))
    return np.asarray((1 - x * mills(x)) @ (0.5 * width * _WEIGHTS))


Floats = NDArray[np.float64]

# Fewest and most grid points in one range, and the delta below which the grid ends
FEWEST, MOST = 16, 96
SMALLEST = 1e-24


def bounded_range_deltas(epsilon: float, count: int) -> tuple[float, Floats]:
    """Return a spacing, and delta after ``count`` events at its multiples from zero on.

    Notes
    -----
    **Bound.** The loss of one event lies in ``[t - epsilon, t]`` for some t between 0
    and epsilon, which may depend on the past. For each t the worst loss takes the two
    ends as values (Dong, Durfee and Rogers 2020). So the largest delta of one event and
    what follows is the largest over t of a mean of two deltas of what follows; see the
    page on curves. Deltas between grid points are bounded by chords.
    """
    # delta of a small count has corners, which take a finer grid
    n_points = min(MOST, max(FEWEST, ceil(160 * max(1.0, epsilon) / sqrt(count))))
    spacing = epsilon / n_points
    far = sqrt(-2 * log(SMALLEST)) * sqrt(count) / 2 + count * epsilon / 8
    n = min(count * n_points, n_points * ceil(far + 1))
    t = spacing * np.arange(n_points + 1)[:, None]
    upper = np.expm1(t - epsilon) / expm1(-epsilon)  # probability of the loss t
    # largest rise above the chord of two neighboring t, see below
    bend = exp(spacing) * expm1(spacing) / (-4 * expm1(-epsilon))
    shrunk = exp(-epsilon)
    below = spacing * np.arange(n_points, 0, -1)
    linear, weight = -np.expm1(-below), np.exp(-below)
    # delta from one range below zero to one beyond the end, and its shifts by t
    padded = np.zeros(n + 1 + 2 * n_points)
    shifted = sliding_window_view(padded, n + 1)
    lose, win = shifted[n_points::-1], shifted[2 * n_points : n_points - 1 : -1]
    delta = padded[n_points:-n_points]
    for _ in range(count):
        # below zero by exchange of the pair; beyond the end at most what it is there
        padded[:n_points] = linear + weight * delta[n_points:0:-1]
        padded[-n_points:] = delta[-1]
        # [pld:range-step] at t on the grid
        mean = upper * lose + (1 - upper) * win
        # between two of them, delta on chords is concave in exp(t), and below the
        # parabola of the largest curvature through the two ends
        rise = np.abs(np.diff(mean, axis=0))
        lift = bend * np.maximum(
            np.diff(lose, axis=0) - shrunk * np.diff(win, axis=0), 0
        )
        inside = rise < 4 * lift
        top = np.where(
            inside, lift + rise * rise / np.where(inside, 16 * lift, 1.0), rise / 2
        )
        delta[:] = ((mean[1:] + mean[:-1]) / 2 + top).max(axis=0)
    return spacing, delta.copy()
