"""Rows of users: grouped, ordered, and limited in their number of ratings."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

SIGN = np.uint32(2**31)
ALL = np.uint32(2**32 - 1)
# mixing steps of 64 bits: Steele, Lea and Flood, "Fast splittable pseudorandom number
# generators", OOPSLA 2014
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


# in one piece: one loop over users, whose arrays are made once
@njit(cache=True, nogil=True)
def group_rows(
    users: NDArray[np.uint16],
    items: NDArray[np.int32],
    bits: NDArray[np.uint32],
    indptr: NDArray[np.int64],
    out_items: NDArray[np.int32],
    out_values: NDArray[np.float32],
) -> None:
    """Group ratings by user, in the order of items, with the mean of repeated ones.

    ``bits`` are those of the ratings. A row is the same whatever the order in which its
    ratings came. ``indptr`` is filled, and the beginnings of ``out_items`` and
    ``out_values``.
    """
    # long: one compiled loop over ratings
    n_users = len(indptr) - 1
    starts = np.zeros(n_users + 1, dtype=np.int64)
    for k in range(len(users)):
        starts[users[k] + 1] += 1
    for i in range(n_users):
        starts[i + 1] += starts[i]
    # [ratings:row] item above, rating below, in bits that sort as ratings do
    keys = np.empty(len(users), dtype=np.uint64)
    ends = starts.copy()
    for k in range(len(users)):
        mask = ALL if bits[k] & SIGN else SIGN
        keys[ends[users[k]]] = (np.uint64(items[k]) << np.uint64(32)) | np.uint64(
            bits[k] ^ mask
        )
        ends[users[k]] += 1
    word = np.empty(1, dtype=np.uint32)
    value = word.view(np.float32)
    end = 0
    indptr[0] = 0
    for i in range(n_users):
        row = keys[starts[i] : starts[i + 1]]
        row.sort()
        k = 0
        while k < len(row):
            item = row[k] >> np.uint64(32)
            total, count = 0.0, 0
            while k < len(row) and row[k] >> np.uint64(32) == item:
                low = np.uint32(row[k] & np.uint64(ALL))
                word[0] = low ^ (SIGN if low & SIGN else ALL)
                total += np.float64(value[0])
                count += 1
                k += 1
            out_items[end] = np.int32(item)
            out_values[end] = np.float32(total / count)
            end += 1
        indptr[i + 1] = end


@njit(cache=True, nogil=True)
def mixed(word: np.uint64) -> np.uint64:
    """Return 64 bits, each of which depends on all bits of ``word``."""
    word = (word ^ (word >> np.uint64(30))) * FIRST
    word = (word ^ (word >> np.uint64(27))) * SECOND
    return word ^ (word >> np.uint64(31))


# in one piece: one loop over users, whose arrays are made once
@njit(cache=True, nogil=True)
def keep_rows(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    bits: NDArray[np.uint32],
    values: NDArray[np.float32],
    key: NDArray[np.uint64],
    weights: NDArray[np.float64],
    most: int,
    out_indptr: NDArray[np.int64],
    out_items: NDArray[np.int32],
    out_values: NDArray[np.float32],
) -> None:
    """Fill ``out_items`` and ``out_values`` with at most ``most`` ratings of a row.

    Where a row is longer, each of its items waits a time that is exponential with the
    item's weight as its rate, and the first ones are kept, in the order of items. The
    times follow from the key and from the content of the row.
    """
    # long: one compiled loop over ratings
    for i in range(len(indptr) - 1):
        begin, n = indptr[i], indptr[i + 1] - indptr[i]
        end = out_indptr[i]
        if n <= most:
            for k in range(n):
                out_items[end + k] = items[begin + k]
                out_values[end + k] = values[begin + k]
            continue
        # [recommend:kept] a hash of the key and the content of this row only
        one, two = key[0], key[1]
        for k in range(begin, begin + n):
            cell = (np.uint64(items[k]) << np.uint64(32)) | np.uint64(bits[k])
            one = mixed((one ^ cell) + GOLDEN)
            two = mixed((two + cell) ^ one)
        waits = np.empty(n)
        for k in range(n):
            item = items[begin + k]
            draw = mixed(one ^ mixed(two + GOLDEN * np.uint64(item + 1)))
            # the middles of 2^52 parts of (0, 1)
            uniform = (np.float64(draw >> np.uint64(12)) + 0.5) * 2.0**-52
            waits[k] = -np.log(uniform) / weights[item]
        # times above zero sort as their bits do
        order = waits.view(np.uint64).copy()
        order.sort()
        last = order.view(np.float64)[most - 1]
        before = 0
        for k in range(n):
            before += waits[k] < last
        ties = most - before
        for k in range(n):
            tied = waits[k] == last and ties > 0
            if waits[k] < last or tied:
                out_items[end] = items[begin + k]
                out_values[end] = values[begin + k]
                end += 1
                ties -= tied
