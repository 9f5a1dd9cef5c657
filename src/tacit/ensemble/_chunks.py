"""Which rows each teacher gets, by keyed digests of what rows contain."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from tacit._execution import attempt
from tacit._random import noise_generator
from tacit._validate import at_least
from tacit.data.bounds import canonical
from tacit.data.rows import plain_category, row_indexer
from tacit.mechanisms.subsets import block_members
from tacit.privacy import Neighbors
from tacit.stability._rows import as_table

__all__ = [
    "DIGEST",
    "UnknownCellType",
    "cell_bytes",
    "checked_ids",
    "chunk_members",
    "hasher",
    "id_bytes",
    "row_digests",
]

Hash = Callable[[bytes | memoryview], bytes]

# Kinds of arrays whose bytes are their whole content; objects are elsewhere in memory
_BYTES = "biufcmMSU"
# Extended floats have padding bytes
_PADDED = (np.longdouble, np.clongdouble)
# Types of Python and pandas whose ``repr`` is complete
_PRINTED = {
    *("builtins.NoneType", "builtins.bool", "decimal.Decimal", "fractions.Fraction"),
    *("datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta"),
    *("pandas.NAType", "pandas.NaTType", "pandas.Period", "pandas.Timedelta"),
    *("pandas.Timestamp", "uuid.UUID"),
}
_ZONES = {"builtins", "datetime", "dateutil", "pytz", "zoneinfo"}


class UnknownCellType(TypeError):
    """A cell of a type without a complete representation as bytes."""


def cell_bytes(cell: Any, digest: Hash) -> bytes:
    """Return the type and the exact content of a cell, as bytes.

    Only code of Python, NumPy and pandas is run.

    Parameters
    ----------
    cell
        A number, string, bytes, a date, or an array, list, tuple or dict of them.
    digest
        Hash for the parts of containers.

    Raises
    ------
    UnknownCellType
        For all other types: two cells that differ may print alike.
    """
    kind = type(cell)
    name = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    return f"{name} ".encode() + _content(cell, kind, name, digest)


def _content(cell: Any, kind: type, name: str, digest: Hash) -> bytes:
    if kind is str:
        return str.encode(cell, errors="surrogatepass")
    if kind is bytes:
        return bytes(cell)
    if kind is int:
        # Python limits the digits of integers in base ten
        return f"{cell:x}".encode()
    if kind is float:
        return struct.pack("<d", cell)
    if kind is complex:
        return struct.pack("<dd", cell.real, cell.imag)
    if kind is np.ndarray:
        return _array(cell, digest)
    if issubclass(kind, np.generic):
        shown = issubclass(kind, _PADDED)
        return repr(cell).encode() if shown else _array(np.asarray(cell), digest)
    if kind is list or kind is tuple:
        return _parts(cell, digest)
    if kind is dict:
        return _parts((part for item in cell.items() for part in item), digest)
    if name == "pandas.Interval":
        return _parts((cell.left, cell.right, cell.closed), digest)
    zone = type(getattr(cell, "tzinfo", None)).__module__.partition(".")[0]
    if name not in _PRINTED or zone not in _ZONES:
        raise UnknownCellType
    return f"{cell!r} {getattr(cell, 'unit', '')}".encode()


def _array(cells: NDArray[Any], digest: Hash) -> bytes:
    # sums may round differently in another memory order
    head = f"{cells.dtype!r} {cells.shape} {np.isfortran(cells)} ".encode()
    if cells.dtype.kind in _BYTES and not issubclass(cells.dtype.type, _PADDED):
        return head + cells.tobytes()
    return head + _parts(cells.reshape(-1).tolist(), digest)


def _parts(cells: Iterable[Any], digest: Hash) -> bytes:
    try:
        return b"".join([digest(cell_bytes(cell, digest)) for cell in cells])
    except RecursionError:  # a list within itself
        raise UnknownCellType from None


# Bytes of a digest: among billions of rows two share one with probability below 2**-60
DIGEST = 16
NUMBERS = "biuf"
# Integers up to this are exact as floats; larger ones lose these bits
EXACT, LOST = 2**53, 2**12 - 1
# Rows that are converted to bytes together
BLOCK_ROWS = 2**14

UNREADABLE = (
    "X and y must hold cells that Python can read; leave out rows with strings that "
    "are not UTF-8, or with dates beyond the year 9999."
)

Bytes = NDArray[np.uint8]


def hasher(key: bytes, purpose: bytes) -> Hash:
    """Return a keyed hash; each purpose has its own."""
    begun = blake2b(key=key, digest_size=DIGEST, person=purpose)

    def digest(content: bytes | memoryview) -> bytes:
        one = begun.copy()
        one.update(content)
        return one.digest()

    return digest


def row_digests(X: Any, y: Any, key: bytes, *, exact: bool = False) -> Iterator[bytes]:
    """Yield a keyed digest of each row with its target.

    Numbers of up to 64 bits are distinguished bit by bit, and are the same in each type
    that represents them. Strings, dates, arrays and lists are distinguished by type and
    content. So a digest does not depend on other rows, which determine the width of
    strings, the codes of categories and often the types of numbers.

    Parameters
    ----------
    X
        Rows: an array, a data frame or a matrix in CSR.
    y
        One target a row.
    key
        Secret of 16 to 64 bytes.
    exact
        Whether cells of other types are rejected. Otherwise they are distinguished by
        their type and how they print, which may be alike for two that differ.
    """
    row_hash = hasher(key, b"row")
    cells = _Cells(hasher(key, b"cell"), exact)
    for start in range(0, X.shape[0], BLOCK_ROWS):
        features, targets = _block(X, start), _block(y, start)
        blocks = cells.of(targets)
        if not sparse.issparse(features):
            blocks += cells.of(features)
        fixed = np.concatenate(blocks, axis=1)
        width, content = fixed.shape[1], fixed.reshape(-1).data
        digests = (
            row_hash(content[position : position + width])
            for position in range(0, width * len(fixed), width)
        )
        if sparse.issparse(features):
            stored = zip(digests, _entries(features), strict=True)
            digests = (row_hash(digest + entries) for digest, entries in stored)
        yield from digests


class _Cells:
    """Cells of a block of rows as bytes, of one width for all rows."""

    def __init__(self, cell_hash: Hash, exact: bool) -> None:
        self._hash = cell_hash
        self._exact = exact
        self._known: dict[Any, bytes] = {}

    def of(self, piece: Any) -> list[Bytes]:
        """Return arrays of bytes, each with one row for each row."""
        if not hasattr(piece, "iloc"):
            return self._of_array(piece.reshape(len(piece), -1))
        columns = [piece] if piece.ndim == 1 else [c for _, c in piece.items()]
        return [block for column in columns for block in self._of_column(column)]

    def _of_column(self, column: Any) -> list[Bytes]:
        if isinstance(column.dtype, np.dtype):
            return self._of_array(column.to_numpy()[:, None])
        if hasattr(column, "cat"):
            # by the categories themselves; the last is for missing cells
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
            # in their own unit, which is part of the type
            return [np.ascontiguousarray(block).view(np.uint8)]
        digests = [self._digest(cell) for cell in block.reshape(-1).tolist()]
        return [_rows_of(digests).reshape(len(block), -1)]

    def _digest(self, cell: Any) -> bytes:
        kind = type(cell)
        # 1, 1.0 and True are equal in Python, yet they are distinguished
        plain = (kind, cell) if kind in (str, int, bool, bytes) else None
        known = None if plain is None else self._known.get(plain)
        if known is not None:
            return known
        digest = self._hash(self._bytes_of(cell))
        if plain is not None:
            self._known[plain] = digest
        return digest

    def _bytes_of(self, cell: Any) -> bytes:
        try:
            return cell_bytes(cell, self._hash)
        except UnknownCellType:
            # [teachers:exact]
            if self._exact:
                raise ValueError(
                    "X and y must hold numbers, strings, bytes, dates, or arrays, "
                    "lists, tuples and dicts of them, where neighbors add or remove a "
                    "row and there are no ids: rows are distinguished by their "
                    "content; give ids, or convert other cells."
                ) from None
        kind = type(cell)
        shown = f"{kind.__module__}.{kind.__qualname__} {attempt(repr, cell)}"
        return shown.encode(errors="backslashreplace")


def _valued(category: Any) -> Any:
    """Return a category in the form that represents all equal ones in a digest."""
    # the form in which teachers get each category
    plain = plain_category(category)
    if type(plain) in (int, float):
        with suppress(OverflowError):
            return float(plain)
    return plain


def _exactly(numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers as floats, and the bits that large integers lose as floats."""
    with np.errstate(all="ignore"):
        floats = np.ascontiguousarray(numbers, dtype=np.float64)
    lost = np.zeros(numbers.shape, dtype=np.int16)
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8:
        large = np.abs(floats) >= EXACT
        lost[large] = numbers[large] & numbers.dtype.type(LOST)
    return floats, lost


def _rows_of(digests: list[bytes]) -> Bytes:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST)


def _block(table: Any, start: int) -> Any:
    return row_indexer(table)[start : start + BLOCK_ROWS]


def _entries(piece: Any) -> Iterator[bytes]:
    """Yield the stored entries of each row of a matrix in CSR."""
    # SciPy takes a wider type where there are more entries
    parts = (piece.indices.astype(np.int64), *_exactly(piece.data))
    for start, end in pairwise(piece.indptr.tolist()):
        yield b"".join(part[start:end].tobytes() for part in parts)


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
    """Return the rows of each chunk; every row is in exactly one.

    Parameters
    ----------
    X
        Rows: an array, a sparse matrix or a data frame.
    y
        One target a row.
    n_chunks
        Number of chunks; some may be empty.
    key
        Secret of 16 to 64 bytes. Equal keys give equal chunks.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    ids
        The person each row belongs to, for ``"add_or_remove_one"`` only: integers,
        strings or bytes. Rows with the same id are in the same chunk.

    Notes
    -----
    **Guarantee.** Between neighbors one chunk differs, and by one row; all others are
    the same rows in the same order. Where a row is replaced, chunks are sets of
    positions in an order drawn with the key, and differ in size by at most one. Where a
    row is added or removed, its chunk is a keyed hash of its id, or without ids of its
    content and of the number of equal rows before it; those rows come in the order of
    their hashes, so that it does not matter which of equal rows is removed. Cells
    without a complete representation are rejected there. With ids, neighbors may differ
    in all rows of one id. Types and names of columns are public. The hashes have 128
    bits, and are assumed to be free of collisions.

    Examples
    --------
    >>> import numpy as np
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
        own = map(hasher(key, b"id"), id_bytes(people))
        return _grouped(own, n_rows, n_chunks, by_digest=False)
    # [teachers:contents]
    digests = _numbered_copies(row_digests(table, targets, key, exact=True), key)
    return _grouped(digests, n_rows, n_chunks, by_digest=True)


def checked_ids(ids: Any, n_rows: int, neighbors: str | Neighbors) -> Ids | None:
    """Return ids as plain Python values.

    They are rejected under a relation that has none, and where there is not one for
    each row.
    """
    if ids is None:
        return None
    if Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        raise ValueError(
            "ids must be None where neighbors replace a row: the new row may have "
            "another id, and two teachers would change; set "
            'neighbors="add_or_remove_one".'
        )
    found: Ids | None = attempt(_plain_ids, ids)
    if found is None or len(found) != n_rows:
        raise ValueError(
            "ids must be one for each row, all of them integers, or strings, or bytes, "
            "and none of them missing."
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


def id_bytes(ids: Ids) -> Iterator[bytes]:
    """Yield each id as distinct bytes."""
    for one in ids:
        if isinstance(one, bytes):
            yield b"bytes " + one
        elif isinstance(one, str):
            yield f"text {one}".encode(errors="surrogatepass")
        else:
            # Python limits the digits of integers in base ten
            yield f"number {one:x}".encode()


def _numbered_copies(digests: Iterable[bytes], key: bytes) -> Iterator[bytes]:
    """Yield digests of rows, with the number of equal rows before them."""
    seen: Counter[bytes] = Counter()
    copy_hash = hasher(key, b"copy")
    for digest in digests:
        copy = seen[digest]
        seen[digest] = copy + 1
        yield copy_hash(digest + copy.to_bytes(8, "big")) if copy else digest


def _grouped(
    digests: Iterable[bytes], n_rows: int, n_chunks: int, *, by_digest: bool
) -> list[Indices]:
    """Return the rows of each chunk, in rising order or in that of digests."""
    words = np.frombuffer(b"".join(digests), dtype=">u8").reshape(n_rows, DIGEST // 8)
    # the remainder of 64 bits is uniform up to one part in billions
    chunks = words[:, 0] % np.uint64(n_chunks)
    within = (words[:, 1], words[:, 0]) if by_digest else ()
    order = np.lexsort((np.arange(n_rows), *within, chunks)).astype(np.intp)
    ends = np.searchsorted(chunks[order], np.arange(n_chunks + 1))
    return [order[ends[c] : ends[c + 1]] for c in range(n_chunks)]
