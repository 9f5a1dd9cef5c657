"""The worst delta of adaptive compositions of bounded-range mechanisms."""

from __future__ import annotations

from math import ceil, exp, expm1, log, sqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["bounded_range_deltas"]

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
