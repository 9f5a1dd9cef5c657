"""The law of the difference of two Laplace variables."""

from __future__ import annotations

from math import exp, expm1, log

import numpy as np
from numpy.typing import NDArray

__all__ = ["difference_tail", "laplace_tail", "tail_point", "tail_points"]

Array = NDArray[np.float64]

# more than the round-off of a tail, and far less than a cell of any grid
MARGIN = 1e-12


def difference_tail(at: float, first: float, second: float) -> float:
    """Return the probability that Laplace noise passes another by more than ``at``.

    Parameters
    ----------
    at
        Level, of either sign.
    first
        Scale of the one.
    second
        Scale of the other.

    Notes
    -----
    **Bound.** For scales p > q and a level w from zero on the probability is
    ``(p^2 exp(-w/p) - q^2 exp(-w/q)) / (2 (p^2 - q^2))``, by integration of the
    product of the densities. It is written so that nothing cancels where they are
    equal, when it is ``exp(-w/p) (2 + w/p) / 4``.
    """
    if at < 0:
        return 1.0 - difference_tail(-at, first, second)
    p, q = max(first, second), min(first, second)
    x = at * (p - q) / (p * q)
    part = -expm1(-x) / x if x > 1e-12 else 1.0
    return exp(-at / p) * (0.5 + at * q / (2 * p * (p + q)) * part)


def tail_point(probability: float, first: float, second: float) -> float:
    """Return a level that is passed with at most this probability; zero from 1/2 on.

    Notes
    -----
    **Bound.** The log of the tail is concave, so each step of Newton's method ends at
    or above the root; a relative `MARGIN` covers its round-off.
    """
    if probability >= 0.5:
        return 0.0
    scales = np.array([max(first, second)]), np.array([min(first, second)])
    at = float(tail_points(log(probability), *scales)[0]) * (1 + MARGIN)
    while difference_tail(at, first, second) * (1 + MARGIN) > probability:
        at *= 1 + MARGIN
    return at


def tail_points(log_probability: float, first: Array, second: Array) -> Array:
    """Return `tail_point` for many pairs of scales, without its margin."""
    p, q = np.maximum(first, second), np.minimum(first, second)
    at = np.zeros_like(p)
    rate = (p - q) / (p * q)
    weight = q / (2 * p * (p + q))
    for _ in range(60):
        x = rate * at
        small = x < 1e-12
        safe = np.where(small, 1.0, x)
        part = np.where(small, 1.0, -np.expm1(-safe) / safe)
        inside = 0.5 + at * weight * part
        derivative = -1 / p + weight * np.exp(-x) / inside
        step = (log_probability + at / p - np.log(inside)) / derivative
        at = np.maximum(at + step, 0.0)
        if np.all(np.abs(step) <= 1e-14 * at):
            break
    return at


def laplace_tail(at: Array) -> Array:
    """Return the probabilities that Laplace noise of scale one passes these levels."""
    below = np.exp(-np.abs(at)) / 2
    return np.where(at > 0, below, 1 - below)
