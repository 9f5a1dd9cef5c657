"""The smooth part of an empirical risk, summed over rows.

Every sum goes through ``rows.sum`` with a frozen dataclass as the function, so that
its fields say what travels to the rows. A block is read once, in chunks that stay in
cache between the margins and the product with the transpose.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import nonnegative, plain
from tacit.convex._protocols import Array, Loss
from tacit.data.rows import MOST_BLOCK_ROWS, Rows, cut

__all__ = ["Objective", "chunks", "second_moments"]

# Rows of one chunk: enough for the speed of BLAS, and not so many that the bound on
# round-off, which grows with the longest sum, becomes large
DENSE_ROWS = 2048
SPARSE_ROWS = 4096
# Entries of the scaled copy of a chunk in a Hessian
HESSIAN_ENTRIES = 2**19
# A term is added in its chunk, with the chunks of its block and in the tree of blocks:
# at most this often in all
MOST_ADDITIONS = SPARSE_ROWS + MOST_BLOCK_ROWS // DENSE_ROWS + 2 * 64


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def chunks(
    X: Any, y: NDArray[Any], dense_rows: int = DENSE_ROWS
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Split a block into float64 chunks that stay in cache."""
    n = X.shape[0]
    rows = SPARSE_ROWS if _is_sparse(X) else dense_rows
    for low in range(0, n, rows):
        high = min(low + rows, n)
        yield cut(X, low, high).astype(np.float64, copy=False), y[low:high]


def second_moments(X: Any) -> Array:
    """Return ``X^T X``, dense."""
    product = X.T @ X
    return cast(Array, product.toarray() if _is_sparse(X) else product)


def _additions(X: Any) -> int:
    """Return how many additions a row's term goes through inside its block."""
    n = int(X.shape[0])
    rows = SPARSE_ROWS if _is_sparse(X) else DENSE_ROWS
    return min(n, rows) + -(-n // rows)


def _products(X: Any) -> int:
    """Return the most products in a margin of this block."""
    if _is_sparse(X):
        return int(np.diff(X.indptr).max(initial=0))
    return int(X.shape[1])


@dataclass(frozen=True, eq=False)
class ValueAndGradient:
    """Sum of losses, and of their gradients, over a block."""

    loss: Loss
    W: Array

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[float, Array]:
        total, G = 0.0, np.zeros(self.W.shape)
        for part, targets in chunks(X, y):
            Z = part @ self.W
            total += float(self.loss.value(targets, Z).sum())
            G += part.T @ self.loss.derivative(targets, Z)
        return total, G


@dataclass(frozen=True, eq=False)
class Gradient:
    """Sum of gradients over a block, and what its round-off bound needs.

    The second number sums over rows the additions that a row's term goes through, the
    third the products in its margin; the last counts blocks.
    """

    loss: Loss
    W: Array

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array, float, float, int]:
        G = np.zeros(self.W.shape)
        for part, targets in chunks(X, y):
            G += part.T @ self.loss.derivative(targets, part @ self.W)
        n = X.shape[0]
        return G, float(n * _additions(X)), float(n * _products(X)), 1


@dataclass(frozen=True, eq=False)
class HessianProduct:
    """Sum of Hessians over a block, times ``V``."""

    loss: Loss
    W: Array
    V: Array

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        H = np.zeros(self.W.shape)
        for part, targets in chunks(X, y):
            Z, Q = part @ self.W, part @ self.V
            H += part.T @ self.loss.curvature_product(targets, Z, Q)
        return (H,)


@dataclass(frozen=True, eq=False)
class LineDerivatives:
    """Derivatives over a block of the losses at ``W + step * D``, for each step."""

    loss: Loss
    W: Array
    D: Array
    steps: tuple[float, ...]

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        derivatives = np.zeros(len(self.steps))
        for part, targets in chunks(X, y):
            Z, Q = part @ self.W, part @ self.D
            for i, step in enumerate(self.steps):
                derivatives[i] += np.vdot(
                    self.loss.derivative(targets, Z + step * Q), Q
                )
        return (derivatives,)


@dataclass(frozen=True, eq=False)
class Hessian:
    """Sum of Hessians over a block, in the order of ``W.ravel()``."""

    loss: Loss
    W: Array

    def __call__(self, X: Any, y: NDArray[Any]) -> tuple[Array]:
        p, k = self.W.shape
        # by class pairs, of which the half with a <= b is enough
        H = np.zeros((k, p, k, p))
        rows = max(64, HESSIAN_ENTRIES // (p * k))
        for part, targets in chunks(X, y, rows):
            Z = part @ self.W
            if k == 1:
                C = self.loss.curvature(targets, Z)
                H[0, :, 0, :] += _gram(part, C[:, 0])
                continue
            for b in range(k):
                unit = np.zeros(Z.shape)
                unit[:, b] = 1.0
                C = self.loss.curvature_product(targets, Z, unit)
                H[: b + 1, :, b, :] += _pairs(part, C[:, : b + 1])
        for b in range(1, k):
            H[b, :, :b, :] = H[:b, :, b, :].transpose(2, 0, 1)
        return (H.transpose(1, 0, 3, 2).reshape(p * k, p * k),)


def _gram(X: Any, c: Array) -> Array:
    """Return ``X^T diag(c) X`` for weights that are not negative."""
    if _is_sparse(X):
        scaled = X.copy()
        scaled.data *= np.repeat(c, np.diff(X.indptr))
        return cast(Array, (scaled.T @ X).toarray())
    # the product of a matrix with its own transpose costs half of any other
    scaled = X * np.sqrt(c)[:, None]
    return cast(Array, scaled.T @ scaled)


def _pairs(X: Any, C: Array) -> Array:
    """Return ``X^T diag(c) X``, of shape (p, p), for each column c, of any sign."""
    p = X.shape[1]
    if _is_sparse(X):
        return np.stack([_gram(X, c) for c in C.T])
    scaled = (X[:, None, :] * C[:, :, None]).reshape(X.shape[0], -1)
    return cast(Array, (scaled.T @ X).reshape(-1, p, p))


@dataclass(frozen=True, eq=False)
class Objective:
    """``F(W) = sum_i loss(y_i, x_i W) + ridge / 2 |W|^2 + <tilt, W>``.

    Parameters
    ----------
    loss
        Loss of a row's margins.
    ridge
        Factor of half the squared Frobenius norm; also the strong convexity of F.
    tilt
        Linear term, of the shape of the weights, or None for zero.

    Notes
    -----
    **Bound.** F is ``ridge``-strongly convex, and its gradient is Lipschitz with
    constant ``ridge + sum_i |x_i|^2 max_curvature``: the Hessian of a row is the
    Kronecker product of ``x x^T`` and the loss's own.
    """

    loss: Loss
    ridge: float
    tilt: Array | None = None

    def __post_init__(self) -> None:
        plain(self)
        nonnegative(ridge=self.ridge)

    def linear(self, W: Array) -> Array:
        """Return the gradient at ``W`` of the terms that no row enters."""
        G = self.ridge * W
        if self.tilt is not None:
            G += self.tilt
        return G

    def value_and_gradient(self, rows: Rows, W: Array) -> tuple[float, Array]:
        """Return F and its gradient, shape (p, k), in one pass."""
        value, G = rows.sum(ValueAndGradient(self.loss, W))
        value += 0.5 * self.ridge * float(np.vdot(W, W))
        if self.tilt is not None:
            value += float(np.vdot(self.tilt, W))
        return float(value), G + self.linear(W)

    def gradient(self, rows: Rows, W: Array) -> Array:
        """Return the gradient of F, shape (p, k)."""
        G: Array = rows.sum(Gradient(self.loss, W))[0]
        return G + self.linear(W)

    def hessian(self, rows: Rows, W: Array) -> Array:
        """Return the Hessian of F, shape (p k, p k), in the order of ``W.ravel()``."""
        H: Array = rows.sum(Hessian(self.loss, W))[0]
        H.flat[:: H.shape[0] + 1] += self.ridge
        return H

    def hessian_product(self, rows: Rows, W: Array, V: Array) -> Array:
        """Return the Hessian of F at ``W`` times ``V``, shape (p, k)."""
        H: Array = rows.sum(HessianProduct(self.loss, W, V))[0]
        H += self.ridge * V
        return H
