"""Keyed digests of what rows hold, each by its own row alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit._suppress_output import attempt
from tacit.data.cells import plain_category
from tacit.ensemble._cell_bytes import Hash, UnknownCell, written

__all__ = ["DIGEST", "hasher", "row_digests"]

# Bytes of a digest: two rows out of billions share one with chance below 2**-60
DIGEST = 16
NUMBERS = "biuf"
# Whole numbers up to this are exact as floats; of larger ones these bits are lost
EXACT, LOST = 2**53, 2**12 - 1
# Rows that are written as bytes together
PIECE = 2**14

UNREADABLE = (
    "X and y must hold cells that Python can read; leave out rows with text that is "
    "not UTF-8, or with dates beyond the year 9999."
)

Bytes = NDArray[np.uint8]


def hasher(key: bytes, purpose: bytes) -> Hash:
    """Return a hash with a secret key, another for each purpose."""
    begun = blake2b(key=key, digest_size=DIGEST, person=purpose)

    def digest(content: Any) -> bytes:
        one = begun.copy()
        one.update(content)
        return one.digest()

    return digest


def row_digests(X: Any, y: Any, key: bytes, *, exact: bool = False) -> Iterator[bytes]:
    """Yield a digest of each row with its target.

    Numbers of up to 64 bits are told apart bit by bit, and are the same in each type
    that holds them. Texts, dates, arrays and lists are told apart by their type and all
    that they hold. So a digest says nothing of other rows, by which the width of texts,
    the codes of categories and often the types of numbers are.

    Parameters
    ----------
    X
        Rows: an array, a data frame or a matrix in CSR.
    y
        One target a row.
    key
        Secret of 16 to 64 bytes.
    exact
        Whether cells of other types are refused. Else they are told apart by their type
        and how they print, which two that differ may do alike.
    """
    row_hash = hasher(key, b"row")
    cells = _Cells(hasher(key, b"cell"), exact)
    for start in range(0, X.shape[0], PIECE):
        features, targets = _piece(X, start), _piece(y, start)
        blocks = cells.of(targets)
        if not sparse.issparse(features):
            blocks += cells.of(features)
        fixed = np.concatenate(blocks, axis=1)
        width, content = fixed.shape[1], memoryview(fixed.reshape(-1))
        digests = (
            row_hash(content[position : position + width])
            for position in range(0, width * len(fixed), width)
        )
        if sparse.issparse(features):
            stored = zip(digests, _entries(features), strict=True)
            digests = (row_hash(digest + entries) for digest, entries in stored)
        yield from digests


class _Cells:
    """Bytes of the cells of a piece, as many for each row."""

    def __init__(self, cell_hash: Hash, exact: bool) -> None:
        self._hash = cell_hash
        self._exact = exact
        self._known: dict[Any, bytes] = {}

    def of(self, piece: Any) -> list[Bytes]:
        """Return one block of bytes or more, each with a row for each row."""
        if not hasattr(piece, "iloc"):
            return self._of_array(piece.reshape(len(piece), -1))
        columns = [piece] if piece.ndim == 1 else [c for _, c in piece.items()]
        return [block for column in columns for block in self._of_column(column)]

    def _of_column(self, column: Any) -> list[Bytes]:
        if isinstance(column.dtype, np.dtype):
            return self._of_array(column.to_numpy()[:, None])
        if hasattr(column, "cat"):
            # by what they stand for, and the last is for what is missing
            kinds = attempt(column.cat.categories.tolist)
            if kinds is None:
                raise ValueError(UNREADABLE)
            values = map(_valued, kinds)
            table = _rows_of([*map(self._digest, values), self._digest(None)])
            return [table[column.cat.codes.to_numpy()]]
        plain = getattr(column.dtype, "numpy_dtype", None)
        if plain is not None and plain.kind in NUMBERS:
            missing = column.isna().to_numpy()
            filled = column.to_numpy(dtype=plain, na_value=plain.type(0))
            return [*self._of_array(filled[:, None]), missing[:, None].view(np.uint8)]
        cells = attempt(lambda: column.astype(object).to_numpy()[:, None])
        if cells is None:
            raise ValueError(UNREADABLE)
        return self._of_array(cells)

    def _of_array(self, block: NDArray[Any]) -> list[Bytes]:
        if block.dtype.kind in NUMBERS and block.dtype.itemsize <= 8:
            return [part.view(np.uint8) for part in _exactly(block)]
        if block.dtype.kind in "mM":
            # in their own unit, which is a matter of type
            return [np.ascontiguousarray(block).view(np.uint8)]
        digests = [self._digest(cell) for cell in block.reshape(-1).tolist()]
        return [_rows_of(digests).reshape(len(block), -1)]

    def _digest(self, cell: Any) -> bytes:
        kind = type(cell)
        # 1, 1.0 and True are equal to Python, yet they are told apart
        plain = (kind, cell) if kind in (str, int, bool, bytes) else None
        known = None if plain is None else self._known.get(plain)
        if known is not None:
            return known
        digest = self._hash(self._written(cell))
        if plain is not None:
            self._known[plain] = digest
        return digest

    def _written(self, cell: Any) -> bytes:
        try:
            return written(cell, self._hash)
        except UnknownCell:
            # [teachers:exact]
            if self._exact:
                raise ValueError(
                    "X and y must hold numbers, texts, bytes, dates, or arrays, lists, "
                    "tuples and dicts of them, where neighbors add or remove a row and "
                    "there are no ids: rows are told apart by all that they hold; give "
                    "ids, or turn other cells into these."
                ) from None
        kind = type(cell)
        shown = f"{kind.__module__}.{kind.__qualname__} {attempt(repr, cell)}"
        return shown.encode(errors="backslashreplace")


def _valued(category: Any) -> Any:
    """Return what stands for a category, and for all that equal it, in a digest."""
    # as teachers see it, who get each category in this form
    plain = plain_category(category)
    if type(plain) in (int, float):
        with suppress(OverflowError):
            return float(plain)
    return plain


def _exactly(numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers as floats, and the bits that large whole numbers lose by it."""
    with np.errstate(all="ignore"):
        floats = np.ascontiguousarray(numbers, dtype=np.float64)
    lost = np.zeros(numbers.shape, dtype=np.int16)
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8:
        large = np.abs(floats) >= EXACT
        lost[large] = numbers[large] & numbers.dtype.type(LOST)
    return floats, lost


def _rows_of(digests: list[bytes]) -> Bytes:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST)


def _piece(table: Any, start: int) -> Any:
    rows = table.iloc if hasattr(table, "iloc") else table
    return rows[start : start + PIECE]


def _entries(piece: Any) -> Iterator[bytes]:
    """Yield the stored entries of each row of a matrix in CSR."""
    # scipy takes a wider type where there are more entries
    parts = (piece.indices.astype(np.int64), *_exactly(piece.data))
    for start, end in pairwise(piece.indptr.tolist()):
        yield b"".join(part[start:end].tobytes() for part in parts)
