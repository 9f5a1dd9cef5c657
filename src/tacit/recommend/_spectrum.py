"""Directions of a symmetric matrix with known noise, and how strong they are.

All of it is post-processing of what was released.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from tacit._validate import one_of

__all__ = ["MATRIX_SOLVERS", "directions", "leading", "leading_pair", "strengths"]

Array = NDArray[np.float64]

# How the one leading direction is found
MATRIX_SOLVERS = ("dense", "lanczos")

# How often the diagonal is replaced, at most
DIAGONAL_ROUNDS = 10
# and how far it may still have moved, over the largest eigenvalue, to be left there
SETTLED = 1e-3
# Rows from which directions that stand out are found faster without the others, and
# from which any few are
LARGE, VERY_LARGE = 500, 2000


def leading(matrix: Array, rank: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues, descending, and their vectors in columns."""
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=[size - rank, size - 1])
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def leading_pair(matrix: Array, solver: str) -> tuple[float, Array]:
    """Return the largest eigenvalue of a symmetric matrix, and its unit vector.

    Parameters
    ----------
    matrix
        Symmetric matrix, which must be public: how long the search takes depends on it.
    solver
        ``"dense"`` for all of its entries at once, or ``"lanczos"`` for products with
        vectors, which is faster from a few thousand rows on.
    """
    one_of(MATRIX_SOLVERS, solver=solver)
    size = len(matrix)
    if solver == "lanczos" and size > 2:
        # the same start for all, so that a matrix always has the same answer
        start = np.full(size, 1 / sqrt(size))
        start[::2] *= -0.5
        try:
            values, vectors = eigsh(matrix, k=1, which="LA", v0=start)
            return float(values[0]), vectors[:, 0].copy()
        except ArpackError:  # no start or no end: then all entries at once
            pass
    values, vectors = leading(matrix, 1)
    return float(values[0]), vectors[:, 0].copy()


def _iterated(matrix: Array, rank: int, start: Array) -> tuple[Array, Array]:
    """Return the same as `leading`, from products of the matrix with vectors."""
    try:
        values, vectors = eigsh(matrix, rank, which="LA", v0=start)
    except ArpackNoConvergence:
        return leading(matrix, rank)
    order = np.argsort(-values)
    return values[order], np.ascontiguousarray(vectors[:, order])


def _few(matrix: Array, rank: int) -> tuple[Array, Array]:
    """Return the same as `leading`, in the way that is fast for a few."""
    size = len(matrix)
    if size < VERY_LARGE or rank > size // 100:
        return leading(matrix, rank)
    return _iterated(matrix, rank, np.ones(size))


def _followed(matrix: Array, vectors: Array) -> tuple[Array, Array]:
    """Return as many leading values and vectors, which are near those given.

    It is for directions that stand out, which products with vectors tell soon.
    """
    size, rank = vectors.shape
    if size < LARGE or rank > size // 4:
        return leading(matrix, rank)
    return _iterated(matrix, rank, vectors.sum(axis=1) + 1 / sqrt(size))


def strengths(values: Array, noise_scale: float, size: int) -> Array:
    """Return what is left of eigenvalues without the noise: zero for noise alone.

    Notes
    -----
    **Bound.** Symmetric noise of deviation ``s`` on the diagonal, and half its square
    off it, has eigenvalues up to ``2 t`` with ``t = s sqrt(size / 2)``. One of ``x``
    above ``t`` comes out as ``x + t^2 / x`` and its vector keeps ``1 - t^2 / x^2`` of
    its square, in the limit (F. Benaych-Georges and R. R. Nadakuditi, "The eigenvalues
    and eigenvectors of finite, low rank perturbations of large random matrices", 2011).
    Returned is the product of ``x`` and what the vector keeps.
    """
    edge = noise_scale * sqrt(size / 2)
    # the largest of noise alone is this far beyond its limit, once in a hundred
    seen = values > max(edge * (2 + 2 * size ** (-2 / 3)), 0.0)
    kept = np.where(seen, values, 1.0)
    true = kept / 2 + np.sqrt(np.maximum(kept**2 / 4 - edge * edge, 0.0))
    return np.where(seen, true - edge * edge / true, 0.0)


def directions(matrix: Array, rank: int, noise_scale: float) -> tuple[Array, Array]:
    """Return strengths and vectors of what is beside the diagonal.

    The diagonal of second moments holds the spread of single ratings besides, most for
    items that are rated most. It is replaced by that of the leading directions, and
    these are found anew, a few times.

    Parameters
    ----------
    matrix
        Symmetric matrix with noise.
    rank
        Most directions.
    noise_scale
        Deviation of the noise on the diagonal.
    """
    matrix = matrix.copy()
    size = len(matrix)
    rank = min(rank, size)
    values, vectors = _few(matrix, rank)
    strong = strengths(values, noise_scale, size)
    for _ in range(DIAGONAL_ROUNDS if rank < size else 0):
        # by what noise alone does not explain, or it would feed on itself
        diagonal = (vectors**2) @ strong
        moved = np.abs(diagonal - np.diag(matrix)).max()
        np.fill_diagonal(matrix, diagonal)
        seen = int(np.count_nonzero(strong))
        if seen:
            values, vectors = _followed(matrix, vectors[:, :seen])
            strong = strengths(values, noise_scale, size)
        if not seen or moved <= SETTLED * np.abs(values).max():
            break
    # once more all of them: one may have been hidden by the first diagonal
    values, vectors = _few(matrix, rank)
    strong = strengths(values, noise_scale, size)
    return strong[strong > 0], np.ascontiguousarray(vectors[:, strong > 0])
