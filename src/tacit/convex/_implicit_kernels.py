"""Derivatives at the end of an implicit step, and passes over rows.

Plain arrays in, plain arrays out: no noise is drawn here and nothing is accounted.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ends = NDArray[np.int64]

LOGISTIC, HINGE, HUBER, ABSOLUTE, SOFTMAX = 0, 1, 2, 3, 4

# Steps of Newton's method that bring an error of a quarter below all rounding
NEWTON = 6
# Relative margin of the radius below which a plainly summed norm is surely inside
SURE = 1e-9
# Squares of norms below this, or above one over it, are not computed plainly
SMALL = 1e-280


@njit(cache=True, error_model="numpy")
def _logistic_pull(t: float, weight: float, knee: float) -> float:
    """Return v with ``v = 1 / (1 + exp(max(t + weight v, knee)))``.

    With ``x = t + weight v`` it is the root of ``x - t - weight / (1 + exp(x))``,
    which rises by 1 at least and whose second derivative is below the first: halving
    an interval around the root down to a quarter, Newton's steps square the error.
    """
    cap = float(1.0 / (1.0 + np.exp(knee)))
    if t + weight * cap <= knee:
        return cap
    if weight == 0.0:
        return float(1.0 / (1.0 + np.exp(t)))
    low, high = t, t + weight
    while high - low > 0.25:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:  # neighboring numbers
            break
        if middle - t < weight / (1.0 + np.exp(middle)):
            low = middle
        else:
            high = middle
    x = 0.5 * (low + high)
    for _ in range(NEWTON):
        v = 1.0 / (1.0 + np.exp(x))
        x -= (x - t - weight * v) / (1.0 + weight * v * (1.0 - v))
        x = min(max(x, low), high)
    return min(float(1.0 / (1.0 + np.exp(x))), cap)


@njit(cache=True, error_model="numpy")
def implicit_derivative(
    kind: int, shape: float, target: float, z: float, weight: float
) -> float:
    """Return the derivative s of the loss at the margin ``z - weight * s``.

    ``shape`` is the knee of the logistic loss, the half-width of the hinge (zero for
    a corner) or the threshold of Huber's loss.
    """
    if kind == LOGISTIC:
        return -target * _logistic_pull(target * z, weight, shape)
    if kind == HINGE:
        short = 1.0 - target * z + shape
        width = 2.0 * shape + weight
        if short <= 0.0 or width == 0.0:
            return -target if short > 0.0 else 0.0
        return -target * min(short / width, 1.0)
    if kind == HUBER:
        return min(max((z - target) / (1.0 + weight), -shape), shape)
    gap = z - target
    if weight == 0.0:
        return float(np.sign(gap))
    return min(max(gap / weight, -1.0), 1.0)


@njit(cache=True, error_model="numpy")
def implicit_derivatives(
    kind: int, shape: float, targets: Floats, z: Floats, weights: Floats, out: Floats
) -> None:
    """Fill ``out`` with the derivative of each margin."""
    for i in range(len(z)):
        out[i] = implicit_derivative(kind, shape, targets[i], z[i], weights[i])


@njit(cache=True, error_model="numpy")
def softmax_derivatives(target: int, z: Floats) -> None:
    """Replace the margins of one row by its derivative, in place."""
    top, total = np.max(z), 0.0
    for c in range(len(z)):
        z[c] = np.exp(z[c] - top)
        total += z[c]
    for c in range(len(z)):
        z[c] /= total
    z[target] -= 1.0


@njit(cache=True, error_model="numpy")
def _norm_clipped(V: Floats, radius: float) -> None:
    """Bring the weights into the ball, in place, within a few units of round-off."""
    flat = V.reshape(-1)
    sure = (radius * (1.0 - SURE)) ** 2
    # a square that vanished or became infinite says nothing
    if SMALL < sure < 1.0 / SMALL and np.dot(flat, flat) <= sure:
        return
    largest = 0.0
    for value in flat:
        largest = max(largest, abs(value))
    if largest == 0.0:
        return
    # a power of two, which rounds nothing and keeps all squares within range
    unit = 2.0 ** min(-np.floor(np.log2(largest)), 1000.0)
    total, rest = 0.0, 0.0
    for value in flat:
        # what an addition loses is carried over, so that squares lose a unit in all
        part = (value * unit) * (value * unit) - rest
        added = total + part
        rest = (added - total) - part
        total = added
    norm = np.sqrt(total) / unit
    if norm > radius:
        V *= radius / norm


@njit(cache=True, error_model="numpy")
def run_leaves(
    X: Floats,
    y: Floats,
    ends: Ends,
    before: Floats,
    steps: Floats,
    after: Floats,
    implicit: bool,
    several: bool,
    kind: int,
    shape: float,
    radius: float,
    V: Floats,
    out: Floats,
) -> None:
    """Take leaf after leaf of rows, changing ``V`` of shape (outputs, features).

    Leaf t multiplies the weights by ``before[t]``, makes a step of ``steps[t]`` along
    each of its rows, one after another, and multiplies by ``after[t]``; ``out[t]`` is
    what it ends with. ``several`` is for one margin a class, each against the rest.
    """
    # long: one compiled loop over rows
    k = V.shape[0]
    z = np.empty(k)
    low = 0
    for t in range(len(ends)):
        V *= before[t]
        step = steps[t]
        for i in range(low, ends[t]):
            for c in range(k):
                z[c] = np.dot(X[i], V[c])
            if kind == SOFTMAX:
                softmax_derivatives(int(y[i]), z)
            else:
                weight = step * np.dot(X[i], X[i]) if implicit else 0.0
                for c in range(k):
                    label = y[i]
                    if several:
                        label = 1.0 if c == int(y[i]) else -1.0
                    z[c] = implicit_derivative(kind, shape, label, z[c], weight)
            for c in range(k):
                move = step * z[c]
                for j in range(X.shape[1]):
                    V[c, j] -= move * X[i, j]
            # the same as projecting to the radius after the factor
            _norm_clipped(V, radius / after[t])
        low = ends[t]
        V *= after[t]
        _norm_clipped(V, radius)
        out[t] = V
