"""Which rows each teacher gets, such that one row reaches one teacher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from tacit._random import noise_generator
from tacit._suppress_output import attempt
from tacit._validate import at_least
from tacit.data.bounds import canonical
from tacit.ensemble._row_digests import DIGEST, hasher, row_digests
from tacit.mechanisms.subsets import block_members
from tacit.privacy import Neighbors
from tacit.stability._base import as_table

__all__ = ["checked_ids", "chunk_members", "written_ids"]

# Bytes that a key of blake2b has, and of a generator at least
KEY_BYTES = range(16, 65)

Indices = NDArray[np.intp]
Ids = list[int] | list[str] | list[bytes]


def chunk_members(
    X: Any,
    y: Any,
    n_chunks: int,
    *,
    key: bytes,
    neighbors: str | Neighbors,
    ids: Any = None,
) -> list[Indices]:
    """Return the rows of each chunk; every row is in one.

    Parameters
    ----------
    X
        Rows: an array, a sparse matrix or a data frame.
    y
        One target a row.
    n_chunks
        Number of chunks; some may be empty.
    key
        Secret of 16 to 64 bytes. The same key gives the same chunks.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    ids
        Under ``"add_or_remove_one"`` alone, who each row is of: whole numbers, texts or
        bytes. Rows with one id are in one chunk.

    Notes
    -----
    **Guarantee.** Between neighbors one chunk differs, and by one row; all others are
    the same rows in the same order. Where a row is replaced, chunks are of positions in
    an order drawn with the key, and differ in size by at most one. Where a row is added
    or removed, its chunk is a keyed hash of its id, or without ids of what it holds and
    of how many rows before it hold the same; those come in the order of their hashes,
    so that it does not matter which of equal rows is gone. Cells that cannot be told
    apart by all that they hold are refused there. With ids, neighbors may differ in all
    rows of one id. Types and names of columns are public. The hashes have 128 bits, and
    are taken to differ where what is hashed does.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.ensemble._chunks import chunk_members
    >>> X, y = np.arange(12.0).reshape(6, 2), np.zeros(6)
    >>> terms = {"key": bytes(16), "neighbors": "add_or_remove_one"}
    >>> ids = ["ann", "bob", "ann", "eve", "bob", "ann"]
    >>> chunks = chunk_members(X, y, 3, ids=ids, **terms)
    >>> sorted(row for rows in chunks for row in rows.tolist())
    [0, 1, 2, 3, 4, 5]
    >>> any({0, 2, 5} <= set(rows.tolist()) for rows in chunks)
    True
    """
    at_least(1, n_chunks=n_chunks)
    if not isinstance(key, bytes) or len(key) not in KEY_BYTES:
        raise ValueError("key must be 16 to 64 bytes.")
    table, targets = canonical(as_table("X", X)), as_table("y", y)
    n_rows = int(table.shape[0])
    if targets.shape[0] != n_rows:
        raise ValueError("X and y must have as many rows as each other.")
    neighbors = Neighbors.of(neighbors)
    people = checked_ids(ids, n_rows, neighbors)
    if neighbors is Neighbors.REPLACE_ONE:
        # [teachers:positions]
        rng = noise_generator(SeedSequence(int.from_bytes(key, "big")), "chunks")
        return block_members(n_rows, n_chunks, True, rng)
    if people is not None:
        # [teachers:ids]
        digests = map(hasher(key, b"id"), written_ids(people))
        return _grouped(digests, n_rows, n_chunks, by_digest=False)
    # [teachers:contents]
    digests = _of_copies(row_digests(table, targets, key, exact=True), key)
    return _grouped(digests, n_rows, n_chunks, by_digest=True)


def checked_ids(ids: Any, n_rows: int, neighbors: str | Neighbors) -> Ids | None:
    """Return ids as Python's own values, or refuse them.

    They are refused under a relation that has none, and where they are not one for each
    row.
    """
    if ids is None:
        return None
    if Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        raise ValueError(
            "ids must be None where neighbors replace a row: the new row may be of "
            "another id, and two teachers would change; set "
            'neighbors="add_or_remove_one".'
        )
    found: Ids | None = attempt(_plain_ids, ids)
    if found is None or len(found) != n_rows:
        raise ValueError(
            "ids must be one for each row, all of them whole numbers, or texts, or "
            "bytes, and none of them missing."
        )
    return found


def _plain_ids(ids: Any) -> Ids:
    cells = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if all(isinstance(cell, str) for cell in cells):
        return [str.__str__(cell) for cell in cells]
    if all(isinstance(cell, bytes) for cell in cells):
        return [bytes.__bytes__(cell) for cell in cells]
    if all(isinstance(c, Integral) and not isinstance(c, bool) for c in cells):
        return [int(cell) for cell in cells]
    raise TypeError


def written_ids(ids: Ids) -> Iterator[bytes]:
    """Yield each id as bytes, which no other id has."""
    for one in ids:
        if isinstance(one, bytes):
            yield b"bytes " + one
        elif isinstance(one, str):
            yield f"text {one}".encode(errors="surrogatepass")
        else:
            # in base ten Python refuses to print thousands of digits
            yield f"number {one:x}".encode()


def _of_copies(digests: Iterable[bytes], key: bytes) -> Iterator[bytes]:
    """Yield digests of rows and of how many before them hold the same."""
    seen: Counter[bytes] = Counter()
    copy_hash = hasher(key, b"copy")
    for digest in digests:
        copy = seen[digest]
        seen[digest] = copy + 1
        yield copy_hash(digest + copy.to_bytes(8, "big")) if copy else digest


def _grouped(
    digests: Iterable[bytes], n_rows: int, n_chunks: int, *, by_digest: bool
) -> list[Indices]:
    """Return the rows of each chunk, in rising order or in that of their digests."""
    words = np.frombuffer(b"".join(digests), dtype=">u8").reshape(n_rows, DIGEST // 8)
    # what is left of 64 bits after division is even but for one part in billions
    chunks = words[:, 0] % np.uint64(n_chunks)
    within = (words[:, 1], words[:, 0]) if by_digest else ()
    order = np.lexsort((np.arange(n_rows), *within, chunks)).astype(np.intp)
    ends = np.searchsorted(chunks[order], np.arange(n_chunks + 1))
    return [order[ends[c] : ends[c + 1]] for c in range(n_chunks)]
