"""Loops over rows in an order that was drawn beforehand.

Plain arrays in, plain arrays out: no noise is drawn here and nothing is accounted.
Weights are kept as a number times an array, so that a ridge or a projection, which
shrink all weights alike, cost one product and not one for each weight.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.convex._implicit_kernels import HINGE, LOGISTIC, SOFTMAX, softmax_derivatives

__all__ = []

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

# Below this factor the weights are multiplied out, long before anything underflows
SMALLEST_FACTOR = 1e-60
# Sums of squares below this, or above one over it, are not computed plainly
SMALL = 1e-280


@njit(cache=True)
def _to_derivative(kind: int, shape: float, target: float, z: Floats) -> None:
    """Replace the margins of one row by its derivative, in place.

    ``kind`` and ``shape`` are those of `tacit.convex.implicit.kernel_loss`.
    """
    if kind == SOFTMAX:
        softmax_derivatives(int(target), z)
    elif kind == LOGISTIC:
        z[0] = -target / (1.0 + np.exp(max(target * z[0], shape)))
    elif kind == HINGE:
        ramp = min(max(1.0 - target * z[0] + shape, 0.0), 2.0 * shape)
        z[0] = -target * ramp / (2.0 * shape)
    else:
        z[0] = min(max(z[0] - target, -shape), shape)


@njit(cache=True)
def _multiplied_out(V: Floats, factor: float) -> float:
    """Return the factor, or one after multiplying the weights by it."""
    if factor >= SMALLEST_FACTOR:
        return factor
    V *= factor
    return 1.0


@njit(cache=True)
def _projected(V: Floats, factor: float, radius: float) -> float:
    """Return the factor that brings the weights into the ball."""
    if radius == np.inf:
        return factor
    flat = V.reshape(-1)
    total, largest = np.dot(flat, flat), 1.0
    if not SMALL < total < 1.0 / SMALL:
        # squares vanished or became infinite, or all weights are zero
        largest = np.max(np.abs(flat))
        if largest == 0.0:
            return factor
        total = 0.0
        for value in flat:
            total += (value / largest) ** 2
    norm = factor * largest * np.sqrt(total)
    return factor * (radius / norm) if norm > radius else factor


@njit(cache=True)
def permuted_dense(
    X: Floats,
    y: Floats,
    order: Positions,
    batch: int,
    steps: Floats,
    decays: Floats,
    radius: float,
    kind: int,
    shape: float,
    V: Floats,
) -> None:
    """Make the updates of one pass to ``V``, of shape (outputs, features), in place."""
    k, p = V.shape
    G, z = np.zeros((k, p)), np.empty(k)
    factor = 1.0
    for t in range(len(steps)):
        low = t * batch
        for i in order[low : low + batch]:
            for c in range(k):
                z[c] = factor * np.dot(X[i], V[c])
            _to_derivative(kind, shape, y[i], z)
            for c in range(k):
                derivative = z[c]
                for j in range(p):
                    G[c, j] += derivative * X[i, j]
        factor = _multiplied_out(V, factor * decays[t])
        rate = steps[t] / (batch * factor)
        for c in range(k):
            for j in range(p):
                V[c, j] -= rate * G[c, j]
                G[c, j] = 0.0
        factor = _projected(V, factor, radius)
    V *= factor


@njit(cache=True)
def permuted_csr(
    data: Floats,
    indices: Positions,
    indptr: Positions,
    y: Floats,
    order: Positions,
    batch: int,
    steps: Floats,
    decays: Floats,
    radius: float,
    kind: int,
    shape: float,
    V: Floats,
) -> None:
    """Make the same updates to ``V``, here of shape (features, outputs)."""
    # long: one compiled loop over batches of rows
    p, k = V.shape
    G, z = np.zeros((p, k)), np.empty(k)
    touched, seen = np.empty(p, np.int64), np.full(p, -1)
    factor = 1.0
    for t in range(len(steps)):
        low = t * batch
        n_touched = 0
        for i in order[low : low + batch]:
            z[:] = 0.0
            for a in range(indptr[i], indptr[i + 1]):
                for c in range(k):
                    z[c] += data[a] * V[indices[a], c]
            for c in range(k):
                z[c] *= factor
            _to_derivative(kind, shape, y[i], z)
            for a in range(indptr[i], indptr[i + 1]):
                j = indices[a]
                if seen[j] != t:
                    seen[j] = t
                    touched[n_touched] = j
                    n_touched += 1
                for c in range(k):
                    G[j, c] += data[a] * z[c]
        factor = _multiplied_out(V, factor * decays[t])
        rate = steps[t] / (batch * factor)
        for j in touched[:n_touched]:
            for c in range(k):
                V[j, c] -= rate * G[j, c]
                G[j, c] = 0.0
        factor = _projected(V, factor, radius)
    V *= factor


@njit(cache=True)
def gathered_margins(
    data: Floats, indices: Positions, indptr: Positions, positions: Positions, W: Floats
) -> Floats:
    """Return the margins of some rows of a CSR matrix, without copying them."""
    k = W.shape[1]
    Z = np.zeros((len(positions), k))
    for r in range(len(positions)):
        for a in range(indptr[positions[r]], indptr[positions[r] + 1]):
            for c in range(k):
                Z[r, c] += data[a] * W[indices[a], c]
    return Z


@njit(cache=True)
def gathered_sum(
    data: Floats,
    indices: Positions,
    indptr: Positions,
    positions: Positions,
    derivatives: Floats,
    total: Floats,
) -> None:
    """Add to ``total`` the gradients of some rows of a CSR matrix."""
    k = total.shape[1]
    for r in range(len(positions)):
        for a in range(indptr[positions[r]], indptr[positions[r] + 1]):
            for c in range(k):
                total[indices[a], c] += data[a] * derivatives[r, c]


@njit(cache=True)
def gathered_norms(
    data: Floats, indices: Positions, indptr: Positions, positions: Positions
) -> Floats:
    """Return the L2 norms of some rows of a CSR matrix."""
    norms = np.zeros(len(positions))
    for r in range(len(positions)):
        for a in range(indptr[positions[r]], indptr[positions[r] + 1]):
            norms[r] += data[a] * data[a]
    return np.sqrt(norms)


@njit(cache=True)
def row_margins(X: Floats, positions: Positions, W: Floats) -> Floats:
    """Return the margins of some rows, each by itself and in the same order."""
    k = W.shape[1]
    Z = np.zeros((len(positions), k))
    for r in range(len(positions)):
        for j in range(X.shape[1]):
            for c in range(k):
                Z[r, c] += X[positions[r], j] * W[j, c]
    return Z


@njit(cache=True)
def row_norms(X: Floats, positions: Positions) -> Floats:
    """Return the L2 norms of some rows."""
    norms = np.zeros(len(positions))
    for r in range(len(positions)):
        for j in range(X.shape[1]):
            norms[r] += X[positions[r], j] * X[positions[r], j]
    return np.sqrt(norms)


@njit(cache=True)
def row_sum(
    X: Floats, positions: Positions, derivatives: Floats, total: Floats
) -> None:
    """Add to ``total`` the gradients of some rows."""
    k = total.shape[1]
    for r in range(len(positions)):
        for j in range(X.shape[1]):
            for c in range(k):
                total[j, c] += X[positions[r], j] * derivatives[r, c]


@njit(cache=True)
def ridge_weights(X: Floats, y: Floats, ridge: float) -> Floats:
    """Return the least squares weights with a ridge, by Cholesky's decomposition."""
    n, p = X.shape
    second, weights = np.zeros((p, p)), np.zeros(p)
    for i in range(n):
        for j in range(p):
            x = X[i, j]
            weights[j] += x * y[i]
            for k in range(j + 1):
                second[j, k] += x * X[i, k]
    for j in range(p):
        second[j, j] += ridge
        for k in range(j + 1):
            left = second[j, k]
            for m in range(k):
                left -= second[j, m] * second[k, m]
            second[j, k] = np.sqrt(left) if j == k else left / second[k, k]
    for j in range(p):
        for k in range(j):
            weights[j] -= second[j, k] * weights[k]
        weights[j] /= second[j, j]
    for j in range(p - 1, -1, -1):
        for k in range(j + 1, p):
            weights[j] -= second[k, j] * weights[k]
        weights[j] /= second[j, j]
    return weights
