"""Cells as bytes, which tell each cell from all others."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["UnknownCell", "written"]

Hash = Callable[[bytes], bytes]

# Kinds of arrays whose bytes are all that they hold; objects are elsewhere in memory
_BYTES = "biufcmMSU"
# Extended floats have bytes that mean nothing
_PADDED = (np.longdouble, np.clongdouble)
# Types of Python and pandas that print all that they hold
_PRINTED = {
    ("builtins", "NoneType"),
    ("builtins", "bool"),
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "time"),
    ("datetime", "timedelta"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("pandas", "NAType"),
    ("pandas", "NaTType"),
    ("pandas", "Period"),
    ("pandas", "Timedelta"),
    ("pandas", "Timestamp"),
    ("uuid", "UUID"),
}
_ZONES = {"builtins", "datetime", "dateutil", "pytz", "zoneinfo"}


class UnknownCell(TypeError):
    """A cell of a type that nobody here knows all of."""


def written(cell: Any, digest: Hash) -> bytes:
    """Return the type of a cell and exactly what it holds, as bytes.

    No code of the cell is run but that of Python, numpy and pandas.

    Parameters
    ----------
    cell
        A number, text, bytes, a date, or an array, list, tuple or dict of them.
    digest
        Hash for the parts of what has parts.

    Raises
    ------
    UnknownCell
        For all else: how it prints may be the same for two cells that differ.
    """
    kind = type(cell)
    root = kind.__module__.partition(".")[0]
    return f"{root}.{kind.__qualname__} ".encode() + _stored(cell, kind, root, digest)


def _stored(cell: Any, kind: type, root: str, digest: Hash) -> bytes:
    if kind is str:
        return cell.encode(errors="surrogatepass")
    if kind is bytes:
        return cell
    if kind is int:
        # in base ten Python refuses to print thousands of digits
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
    if (root, kind.__qualname__) == ("pandas", "Interval"):
        return _parts((cell.left, cell.right, cell.closed), digest)
    if (root, kind.__qualname__) not in _PRINTED:
        raise UnknownCell
    zone = type(getattr(cell, "tzinfo", None))
    if zone.__module__.partition(".")[0] not in _ZONES:
        raise UnknownCell
    return f"{cell!r} {getattr(cell, 'unit', '')}".encode()


def _array(cells: NDArray[Any], digest: Hash) -> bytes:
    # sums may round otherwise in another order of memory
    head = f"{cells.dtype!r} {cells.shape} {np.isfortran(cells)} ".encode()
    if cells.dtype.kind in _BYTES and not issubclass(cells.dtype.type, _PADDED):
        return head + cells.tobytes()
    return head + _parts(cells.reshape(-1).tolist(), digest)


def _parts(cells: Iterable[Any], digest: Hash) -> bytes:
    try:
        return b"".join([digest(written(cell, digest)) for cell in cells])
    except RecursionError:  # a list within itself
        raise UnknownCell from None
