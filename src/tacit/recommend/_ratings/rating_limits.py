"""Which ratings of a user count, where there are more than are allowed."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._validate import at_least
from tacit.recommend._ratings.table import Ratings

__all__ = ["kept"]


def kept(
    ratings: Ratings, most: int, key: bytes, weights: ArrayLike | None = None
) -> Ratings:
    """Return at most ``most`` ratings of each user.

    Parameters
    ----------
    ratings
        Rows of users, or a block of them.
    most
        Most ratings of a user.
    key
        Any bytes, the same for all users: what is chosen changes with them.
    weights
        A positive number for each item, which must be public: ratings are drawn one
        after the other without replacement, with odds in proportion. None draws all
        with the same odds.

    Notes
    -----
    **Guarantee.** What is kept of a row is a function of the key, the weights and that
    row alone. It depends neither on other users nor on the place of the row, so that
    neighbors differ in the kept ratings of one user. Items wait exponential times with
    their weights as rates, and the first are kept, which is weighted sampling without
    replacement [1]_; the times come from a hash of key, row and item, taken for random.

    Blocks of rows are answered as the whole table is, so that a table on disk can be
    gone through block by block.

    References
    ----------
    .. [1] P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir",
       Information Processing Letters 97, 2006.

    Examples
    --------
    >>> from tacit.recommend._ratings.rating_limits import kept
    >>> from tacit.recommend._ratings.table import Ratings
    >>> row = Ratings.of_row([4, 1, 7], [3.0, 5.0, 1.0], n_items=9)
    >>> few = kept(row, 2, b"public")
    >>> few.n_ratings, set(few.items.tolist()) < {1, 4, 7}
    (2, True)
    """
    from tacit.recommend._ratings import row_kernels  # noqa: PLC0415 - numba

    at_least(1, most=most)
    rates = _rates(weights, ratings.n_items)
    lengths = np.diff(ratings.indptr)
    if not (lengths > most).any():
        return ratings
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.minimum(lengths, most), out=indptr[1:])
    items = np.empty(indptr[-1], dtype=np.int32)
    values = np.empty(indptr[-1], dtype=np.float32)
    row_kernels.keep_rows(
        ratings.indptr,
        ratings.items,
        ratings.values.view(np.uint32),
        ratings.values,
        np.frombuffer(blake2b(key, digest_size=16).digest(), dtype="<u8").copy(),
        rates,
        most,
        indptr,
        items,
        values,
    )
    return Ratings(indptr, items, values, ratings.n_items)


def _rates(weights: ArrayLike | None, n_items: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n_items)
    rates = np.ascontiguousarray(weights, dtype=np.float64)
    if rates.shape != (n_items,):
        raise ValueError(f"weights must be one for each of {n_items} items.")
    if not (np.isfinite(rates) & (rates > 0)).all():
        raise ValueError("weights must be finite numbers > 0.")
    return rates
