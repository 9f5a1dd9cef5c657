"""Weights in numpy's own format, read without trust."""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.persistence._json import checked_keys

__all__ = ["Arrays", "claims_of", "packed", "unpacked"]

Arrays = dict[str, NDArray[np.float64]]

FILE = "weights.npz"
MOST_BYTES = 2**31
# Bytes of the headers and the table of the archive
OVERHEAD = 4096


def claims_of(arrays: Arrays) -> dict[str, Any]:
    """Return the types and shapes of the arrays, for the header."""
    return {
        name: {"dtype": "float64", "shape": list(array.shape)}
        for name, array in arrays.items()
    }


def packed(arrays: Arrays) -> bytes:
    """Return the arrays as an archive; equal numbers give equal bytes."""
    for name, array in arrays.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ModelFileError(f"{name}_ must hold finite numbers of type float64.")
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES:
        raise ModelFileError(f"The weights take more than {MOST_BYTES} bytes.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                little = np.array(array, dtype="<f8", order="C")
                npy.write_array(member, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def unpacked(content: bytes, claims: Any, names: tuple[str, ...]) -> Arrays:
    """Return the arrays, which must have these names and be as claimed."""
    shapes = _claimed(claims, names)
    if len(content) > largest(shapes):
        raise ModelFileError(f"{FILE} is larger than the arrays it should hold.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sorted(m.filename for m in members) != sorted(f"{n}.npy" for n in names):
                raise ModelFileError(f"{FILE} has other members than the weights.")
            return {
                name: _read(archive, archive.getinfo(f"{name}.npy"), shapes[name])
                for name in names
            }
    except ModelFileError:
        raise
    except Exception as error:  # the archive may be broken in any way
        raise ModelFileError(f"{FILE} is damaged.") from error


def largest(shapes: dict[str, tuple[int, ...]]) -> int:
    """Return the maximum bytes of an archive of such arrays."""
    return sum(8 * math.prod(s) + OVERHEAD for s in shapes.values()) + OVERHEAD


def _claimed(claims: Any, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for name, claim in checked_keys(claims, set(names), "'arrays'").items():
        parts = checked_keys(claim, {"dtype", "shape"}, f"'arrays' of {name!r}")
        shape = parts["shape"]
        known = parts["dtype"] == "float64" and isinstance(shape, list)
        if not known or len(shape) > 2 or any(type(n) is not int for n in shape):
            raise ModelFileError(f"'arrays' of {name!r} must state a shape of float64.")
        if any(n < 0 or n > MOST_BYTES for n in shape):
            raise ModelFileError(f"'arrays' of {name!r} states an impossible shape.")
        shapes[name] = tuple(shape)
    if largest(shapes) > MOST_BYTES + OVERHEAD * (len(shapes) + 1):
        raise ModelFileError(f"'arrays' states more than {MOST_BYTES} bytes.")
    return shapes


def _read(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    expected = 8 * math.prod(shape)
    # without compression a member cannot expand
    stored = member.compress_type == zipfile.ZIP_STORED
    if not stored or member.file_size > expected + OVERHEAD:
        raise ModelFileError(f"{FILE} has a member that is compressed or too large.")
    stream = io.BytesIO(archive.read(member))
    with rejected_as(f"{FILE} is damaged and"):
        if npy.read_magic(stream) != (1, 0):
            raise ModelFileError(f"{FILE} has an array in another format.")
        found, fortran, dtype = npy.read_array_header_1_0(stream)
    if dtype != np.dtype("<f8") or found != shape or (fortran and len(shape) > 1):
        raise ModelFileError(f"{FILE} has an array of another type or shape.")
    numbers = stream.read()
    if len(numbers) != expected:
        raise ModelFileError(f"{FILE} has an array of another length.")
    array = np.frombuffer(numbers, dtype="<f8").reshape(shape).astype(np.float64)
    if not np.isfinite(array).all():
        raise ModelFileError(f"{FILE} has numbers that are not finite.")
    return array
