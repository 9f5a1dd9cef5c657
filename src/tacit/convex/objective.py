"""The smooth part of an empirical risk, summed over rows, and its round-off.

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

__all__ = [
    "UNIT",
    "Objective",
    "chunks",
    "gamma",
    "gradient_roundoff",
    "moment_roundoff",
    "norm_roundoff",
    "second_moments",
]

# Unit round-off of float64
UNIT = 2.0**-53
# Operations in the derivatives of one row, each of relative error within four units:
# exp, a division and a few sums, for softmax a sum over the outputs as well
DERIVATIVE_UNITS = 32
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


def gamma(operations: float) -> float:
    """Return a bound on the relative error of a chain of rounded operations.

    Higham's ``m u / (1 - m u)`` is at most this while ``m u <= 0.009``, and this,
    unlike that, is linear, so it may be averaged over rows.
    """
    return 1.01 * operations * UNIT


def norm_roundoff(norm: float, size: int) -> float:
    """Return an upper bound on a norm of ``size`` entries from its computed value."""
    return norm * (1 + gamma(size + 4))


def moment_roundoff(n_rows: int, additions: float, row: float) -> float:
    """Return a bound on the error of computed second moments, in Frobenius norm.

    ``row`` bounds the norm of the matrix of absolute terms of one row.
    """
    # each entry goes through two scalings, a product, the target's division by the
    # root of two and the additions
    return gamma(additions + 16) * row * n_rows


def gradient_roundoff(
    *,
    n_rows: int,
    shape: tuple[int, int],
    additions: float,
    x_norm: float,
    derivative: float,
    curvature: float,
    w_norm: float,
    ridge: float = 0.0,
    tilt_norm: float = 0.0,
    products: float | None = None,
) -> float:
    """Return a bound on the Frobenius norm of the error of a computed gradient.

    The gradient is ``sum_i x_i s(x_i W)^T + ridge W + tilt``, in float64. No argument
    depends on a row, once W of this shape (p, k) is given, but for ``products`` where
    it is not left out. The others bound L2 norms of rows and of their derivatives and
    the curvature of the loss, or are Frobenius norms of W and the tilt.

    Parameters
    ----------
    additions
        Number of additions that a row's term goes through in the sum, on average over
        rows; at most ``n_rows``. For sums over blocks of m rows done in chunks of c it
        is ``c + m / c + n_rows / m``.
    products
        Number of products in a row's margins, on average over rows; None for p. Less
        for sparse rows.

    Notes
    -----
    **Bound.** Higham's model of floating point [1]_, Sections 3.1 and 3.5, for sums
    in any order, with or without fused operations. Underflow adds less than 1e-290
    for fewer than 1e15 entries and is left out.

    References
    ----------
    .. [1] N. Higham, "Accuracy and stability of numerical algorithms", 2002.
    """
    p, k = shape
    # Margins: p products and their sum, so |fl(x W) - x W| <= gamma_p |x| |W|
    # (Cauchy-Schwarz in each column). The derivative there differs by the curvature
    # times that, and its own evaluation adds a few units of the largest derivative. In
    # softmax, exp(z - max) has a relative error of |z - max| units, but is itself
    # exp(-|z - max|), and t exp(-t) < 1: the constant covers it.
    products = p if products is None else products
    derivative_error_bound = curvature * gamma(products) * x_norm * w_norm
    derivative_error_bound += gamma(DERIVATIVE_UNITS + 4 * k) * derivative
    # Each computed term is x_i times a derivative of at most this norm.
    terms = n_rows * x_norm * (derivative + derivative_error_bound)
    # Sum: one product, the additions, then ridge * W (a product, an addition) and the
    # tilt (an addition). Entry by entry the error is gamma times the sum of absolute
    # terms, whose matrix has at most the sum of the terms' norms as its norm.
    summed = gamma(additions + 5) * (terms + ridge * w_norm + tilt_norm)
    # The computed norms of W and the tilt, and this formula, round as well.
    return (n_rows * x_norm * derivative_error_bound + summed) * (
        1 + gamma(4 * p * k + 64)
    )
