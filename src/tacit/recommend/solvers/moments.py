"""Second moments of users' rows: noisy sums, and the directions above the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from tacit._validate import one_of, plain
from tacit.exceptions import PlanError
from tacit.mechanisms import DiscreteGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend.items.side import Block
from tacit.recommend.ratings.table import summed

__all__ = [
    "MARGIN",
    "MATRIX_SOLVERS",
    "MOST_MATRIX_ITEMS",
    "NoisyMoments",
    "directions",
    "factor_with_room",
    "integer_factor",
    "leading",
    "leading_pair",
    "packed_size",
    "second_moments",
    "strengths",
    "unpacked",
]


Integers = NDArray[np.int64]

# Relative bound on floating-point errors of products, with ample margin
MARGIN = 1e-9


def factor_with_room(units: int, room: float, what: str, remedy: str) -> float:
    """Return the factor of parts that leaves room for their truncation to integers.

    Truncation towards zero moves two parts up to ``room`` apart, in integers. ``what``
    and ``remedy`` are the purpose of the units, and another remedy, for the error.

    Notes
    -----
    **Bound.** Parts of norm at most one, times the factor and truncated, are no further
    apart than ``units`` times their distance.
    """
    factor = units * (1 - MARGIN) - room
    # with less, rounding errors would matter
    if factor < units / 2:
        raise PlanError(
            f"Noise of this budget leaves {units} units for {what}, too coarse; "
            f"raise epsilon or delta, or {remedy}."
        )
    return factor


Array = NDArray[np.float64]
# A block, or a function for it that is called in the thread that adds it
Blocks = Iterable[Block | Callable[[], Block]]

# Largest number of items for a matrix of items by items: it takes 3.2 GB, and the sum
# of each thread half as much
MOST_MATRIX_ITEMS = 20_000


def packed_size(n_items: int) -> int:
    """Return the number of entries of an upper triangle."""
    return n_items * (n_items + 1) // 2


def integer_factor(units: int, n_items: int) -> float:
    """Return the factor of outer products of rows within the unit ball.

    Notes
    -----
    **Bound.** A product of at most ``units - room`` moves towards zero by less than one
    in each entry, and two of them come apart by less than one more in each entry that
    both have, hence by less than the root of the entries. So neighboring tables move
    the sums by at most ``units`` times what they move exact sums by: the square root of
    two if a row is replaced, and one if it is added or removed. Truncation keeps norms,
    but not that inner products of outer products are at least zero, hence the room.
    """
    if n_items > MOST_MATRIX_ITEMS:
        raise PlanError(
            f"items must be at most {MOST_MATRIX_ITEMS:,}, got {n_items:,}: sums over "
            "all pairs of more do not fit in memory; take fewer, or solver='als'."
        )
    # [completion:room] half the root, as the square root of two multiplies the factor
    room = sqrt(packed_size(n_items) / 2)
    return factor_with_room(
        units, room, f"sums over {n_items} items", "take fewer items"
    )


def second_moments(blocks: Blocks, n_items: int, units: int) -> Integers:
    """Return the upper triangle of the integer sum over users of ``a a^T``.

    Entries off the diagonal are times the square root of two, so that the triangle is
    as long as the matrix; rows of the triangle follow each other, as in
    ``numpy.triu_indices``. It is private: `DiscreteGaussian` adds the noise, with a
    sensitivity of the square root of two, or of one if neighbors add or remove a user.

    Blocks have ``indptr``, ``items`` and ``parts``: each user's items ascending without
    duplicates, and their row's numbers, of norm at most one. The first entry of
    ``indptr`` need not be zero, and is where both arrays begin. A function without
    arguments is called for its block, in the thread that adds it.
    """
    from tacit.recommend.solvers import _kernels as kernels  # noqa: PLC0415 - numba

    factor = integer_factor(units, n_items)
    return summed(kernels.add_outer, blocks, packed_size(n_items), n_items, factor)


def unpacked(noisy: Integers, n_items: int, units: int) -> Array:
    """Return the symmetric matrix of this upper triangle, in units of one row.

    It divides by the factor, and off the diagonal by the square root of two.
    """
    factor = integer_factor(units, n_items)
    matrix = np.empty((n_items, n_items))
    begin = 0
    # row by row, as the matrix may nearly fill the memory
    for i in range(n_items):
        row = noisy[begin : begin + n_items - i] / factor
        row[1:] /= sqrt(2)
        matrix[i, i:] = matrix[i:, i] = row
        begin += len(row)
    return matrix


@dataclass(frozen=True)
class NoisyMoments:
    """Release of the sum over users of ``a a^T``, for rows of norm at most one.

    Notes
    -----
    **Guarantee.** A Gaussian mechanism of this multiplier, exactly. Outer products of
    unit rows are within one, and their inner products are squares and hence at least
    zero, so that a replaced row moves the sum by at most the square root of two and an
    added one by one, in the Frobenius norm. Sums are of integers, and the upper
    triangle has the norm of the matrix (Dwork, Talwar, Thakurta and Zhang 2014).
    """

    n_items: int
    multiplier: float
    neighbors: Neighbors
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        # what exceeds integers or memory is rejected before the charge
        integer_factor(self.mechanism.units, self.n_items)

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the sum for one user, in the Frobenius norm."""
        # [spectral:moments] the root of one row, or of two at right angles
        return sqrt(self.neighbors.rows_changed)

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on the upper triangle."""
        return DiscreteGaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        """Event of the release."""
        return self.mechanism.event

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on the diagonal; off it, over root two."""
        mechanism = self.mechanism
        return mechanism.scale / integer_factor(mechanism.units, self.n_items)

    def run(self, blocks: Blocks, rng: Generator) -> Array:
        """Sum over users in blocks, add the noise, and return the symmetric matrix."""
        units = self.mechanism.units
        total = second_moments(blocks, self.n_items, units)
        return unpacked(self.mechanism(total, rng), self.n_items, units)


# Methods for the leading direction
MATRIX_SOLVERS = ("dense", "lanczos")

# Maximum number of times the diagonal is replaced
DIAGONAL_ROUNDS = 10
# and its change, over the largest eigenvalue, at which that ends
SETTLED = 1e-3
# Numbers of rows from which an iteration is faster than all eigenvalues: for directions
# above the noise, and for any small number of directions
LARGE, VERY_LARGE = 500, 2000


def leading(matrix: Array, rank: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues, descending, and their vectors in columns."""
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=[size - rank, size - 1])
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def leading_pair(matrix: Array, solver: str) -> tuple[float, Array]:
    """Return the largest eigenvalue of a symmetric matrix, and its unit vector.

    The matrix must be public, as the time of the search depends on it. ``"lanczos"``,
    by products with vectors, is faster from a few thousand rows on than ``"dense"``.
    """
    one_of(MATRIX_SOLVERS, solver=solver)
    size = len(matrix)
    if solver == "lanczos" and size > 2:
        # a fixed start, so that the result is a function of the matrix
        start = np.full(size, 1 / sqrt(size))
        start[::2] *= -0.5
        try:
            values, vectors = eigsh(matrix, k=1, which="LA", v0=start)
            return float(values[0]), vectors[:, 0].copy()
        except ArpackError:  # no convergence: then by all entries at once
            pass
    values, vectors = leading(matrix, 1)
    return float(values[0]), vectors[:, 0].copy()


def _iterated(matrix: Array, rank: int, start: Array) -> tuple[Array, Array]:
    """Return the same as `leading`, by products of the matrix with vectors."""
    try:
        values, vectors = eigsh(matrix, rank, which="LA", v0=start)
    except ArpackNoConvergence:
        return leading(matrix, rank)
    order = np.argsort(-values)
    return values[order], np.ascontiguousarray(vectors[:, order])


def _leading_fast(matrix: Array, rank: int) -> tuple[Array, Array]:
    """Return the same as `leading`, by the method that is faster for this rank."""
    size = len(matrix)
    if size < VERY_LARGE or rank > size // 100:
        return leading(matrix, rank)
    return _iterated(matrix, rank, np.ones(size))


def _leading_near(matrix: Array, vectors: Array) -> tuple[Array, Array]:
    """Return as many leading values and vectors, which are near the given ones.

    It is for directions above the noise, to which products with vectors converge fast.
    """
    size, rank = vectors.shape
    if size < LARGE or rank > size // 4:
        return leading(matrix, rank)
    return _iterated(matrix, rank, vectors.sum(axis=1) + 1 / sqrt(size))


def strengths(values: Array, noise_scale: float, size: int) -> Array:
    """Return eigenvalues with the noise removed: zero for pure noise.

    Notes
    -----
    **Bound.** Symmetric noise of standard deviation ``s`` on the diagonal, and half the
    variance off it, has eigenvalues up to ``2 t`` with ``t = s sqrt(size / 2)``. One of
    ``x`` above ``t`` comes out as ``x + t^2 / x`` and its vector keeps ``1 - t^2 /
    x^2`` of its squared norm, in the limit (F. Benaych-Georges and R. R. Nadakuditi,
    "The eigenvalues and eigenvectors of finite, low rank perturbations of large random
    matrices", 2011). The result is the product of ``x`` and what the vector keeps.
    """
    edge = noise_scale * sqrt(size / 2)
    # quantile of the largest eigenvalue of pure noise, once in a hundred beyond
    seen = values > max(edge * (2 + 2 * size ** (-2 / 3)), 0.0)
    kept = np.where(seen, values, 1.0)
    true = kept / 2 + np.sqrt(np.maximum(kept**2 / 4 - edge * edge, 0.0))
    return np.where(seen, true - edge * edge / true, 0.0)


def directions(matrix: Array, rank: int, noise_scale: float) -> tuple[Array, Array]:
    """Return strengths and vectors of directions, from entries off the diagonal.

    The diagonal of second moments includes the variance of single ratings, most for
    items that are rated most. It is replaced by that of the leading directions, and
    these are computed anew, several times. ``noise_scale`` is the standard deviation of
    the noise on the diagonal.
    """
    matrix = matrix.copy()
    size = len(matrix)
    rank = min(rank, size)
    values, vectors = _leading_fast(matrix, rank)
    strong = strengths(values, noise_scale, size)
    for _ in range(DIAGONAL_ROUNDS if rank < size else 0):
        # by strengths above the noise, or the noise would amplify itself
        diagonal = (vectors**2) @ strong
        moved = np.abs(diagonal - np.diag(matrix)).max()
        np.fill_diagonal(matrix, diagonal)
        seen = int(np.count_nonzero(strong))
        if seen:
            values, vectors = _leading_near(matrix, vectors[:, :seen])
            strong = strengths(values, noise_scale, size)
        if not seen or moved <= SETTLED * np.abs(values).max():
            break
    # once more for all directions: the first diagonal may have hidden one
    values, vectors = _leading_fast(matrix, rank)
    strong = strengths(values, noise_scale, size)
    return strong[strong > 0], np.ascontiguousarray(vectors[:, strong > 0])
