"""Encoding of record batches as rows of features, by public facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from tacit.data._files import TableError
from tacit.data._files.csv_file import NULLS, as_number
from tacit.tables._column import OTHER, Column
from tacit.tables._schema import Schema
from tacit.tables._text import NUMBER, canonical

__all__ = ["Encoder", "LenientEncoder", "Row", "is_listable", "text_of"]

Floats = NDArray[np.float64]
# Values in the order of the columns, or None for a row that cannot be read
Row = Sequence[Any] | None

MISSING_TEXTS = frozenset(NULLS)

# Rows that are encoded together, column by column, and rows that are then transposed
# together: either fit in the caches of one core
PIECE, PART = 8192, 2048
UNSEEN, MISSING = -1, -2
# Up to so many indicators are set by comparison, more by indexing
FEW = 16
# Integers in a range of this width are listed without a search
SPAN = 1024


@dataclass(frozen=True)
class Encoder:
    """Features and targets of batches; ``path`` is for messages.

    Columns of numbers in ``texts`` are read as strings, because they are also passed
    on.
    """

    path: Path
    schema: Schema
    texts: frozenset[str] = frozenset()

    @cached_property
    def n_features(self) -> int:
        return len(self.schema.feature_names)

    @cached_property
    def _positions(self) -> dict[str, dict[str, int]]:
        """Return the index of each category by its string, for every column."""
        return {
            column.name: {canonical(c): i for i, c in enumerate(column.indicators)}
            for column in self.schema.every_column
        }

    def encode(self, batch: Any, out: Floats) -> None:
        """Write the features of a batch to ``out``."""
        for start in range(0, batch.num_rows, PIECE):
            piece = batch.slice(start, PIECE)
            features = np.empty((self.n_features, piece.num_rows))
            for column, positions in self._slots:
                values = piece.column(column.name)
                if column.kind == "number":
                    self._fill(column, values, features[positions][0])
                else:
                    self._indicate(column, values, features[positions])
            for positions, ends in self._scales:
                _clip_and_scale(features[positions], *ends)
            rows = out[start : start + piece.num_rows]
            for low in range(0, piece.num_rows, PART):
                part = rows[low : low + PART]
                for position, values in enumerate(features[:, low : low + PART]):
                    part[:, position] = values

    @cached_property
    def _slots(self) -> list[tuple[Column, slice]]:
        """Return each column with the positions of its features."""
        found, first = [], 0
        for column in self.schema.columns:
            wide = len(column.features)
            if wide:
                found.append((column, slice(first, first + wide)))
            first += wide
        return found

    @cached_property
    def _scales(self) -> list[tuple[slice, Floats]]:
        """Return runs of adjacent numbers, with ranges before and after scaling."""
        runs: list[tuple[int, list[tuple[float, ...]]]] = []
        for column, positions in self._slots:
            if column.kind != "number" or column.range is None:
                continue
            ends = (*column.range, *column.scaled)
            if runs and runs[-1][0] + len(runs[-1][1]) == positions.start:
                runs[-1][1].append(ends)
            else:
                runs.append((positions.start, [ends]))
        return [
            (slice(start, start + len(ends)), np.array(ends).T[..., None])
            for start, ends in runs
        ]

    def targets(self, batch: Any) -> NDArray[Any]:
        """Return the indices of labels among the categories, or numbers."""
        target = self.schema.target
        assert target is not None
        values = batch.column(target.name)
        if target.kind == "number":
            return self._numbers(target, values)
        codes = self._codes(target, values)
        return codes.astype(np.min_scalar_type(len(target.categories)))

    def cells(self, column: Column, values: Any) -> NDArray[Any]:
        """Return the numbers of a column, or positions among its categories.

        Missing numbers are NaN, and the position of a missing category is -1.
        """
        if column.kind == "number":
            return self._read_numbers(column, values)
        positions = self._positions[column.name]
        codes = self._looked_up(column, values, positions.get(OTHER, UNSEEN), MISSING)
        if column.unseen != OTHER:
            self._check_codes(column, codes[codes == UNSEEN])
        return np.maximum(codes, -1)

    def check(self, column: Column, batch: Any) -> None:
        """Reject values of a column that do not agree with the schema."""
        values = batch.column(column.name)
        for start in range(0, len(values), PIECE):
            piece = values.slice(start, PIECE)
            if column.kind == "number":
                self._numbers(column, piece)
            else:
                self._codes(column, piece)

    def _fill(self, column: Column, values: Any, out: Floats) -> None:
        """Write numbers without scaling."""
        if types.is_integer(values.type) and not values.null_count:
            out[:] = values.to_numpy()  # nothing can be missing or infinite
        else:
            out[:] = self._numbers(column, values)

    def _read_numbers(self, column: Column, values: Any) -> Floats:
        """Return finite numbers, and NaN where they are missing."""
        if column.name in self.texts:
            values = as_number(self.path, column.name, values)
        kind = values.type
        if types.is_dictionary(kind):
            values = values.dictionary_decode()
            kind = values.type
        if not types.is_float64(kind):
            if not _is_numeric(kind):
                self._reject(column, "contains no numbers, although the schema says so")
            # integers beyond 2^53 are rounded
            values = compute.cast(values, pa.float64(), safe=False)
        found: Floats = values.to_numpy(zero_copy_only=False)
        if np.isinf(found).any():
            self._reject(column, "contains infinite numbers; correct the file")
        return found

    def _numbers(self, column: Column, values: Any) -> Floats:
        found = self._read_numbers(column, values)
        if not np.isnan(found).any():
            return found
        if column.missing is None:
            self._reject(
                column,
                "has missing values; set missing in the schema to a public number that "
                "replaces them"
                if column is not self.schema.target
                else "is the target and has missing values; leave such rows out",
            )
        filled: Floats = np.where(np.isnan(found), column.missing or 0.0, found)
        return filled

    def _indicate(self, column: Column, values: Any, out: Floats) -> None:
        codes = self._codes(column, values)
        if len(out) <= FEW:
            for position, row in enumerate(out):
                np.equal(codes, position, out=row, casting="unsafe")
        else:
            out[:] = 0.0
            out[codes, np.arange(len(codes))] = 1.0

    def _codes(self, column: Column, values: Any) -> NDArray[np.int32]:
        """Return the index of each value among the indicators."""
        other = column.unseen == OTHER
        unseen = self._positions[column.name][OTHER] if other else UNSEEN
        codes = self._looked_up(column, values, unseen, unseen if other else MISSING)
        if not other:
            self._check_codes(column, codes[codes < 0])
        return codes

    def _looked_up(
        self, column: Column, values: Any, unseen: int, missing: int
    ) -> NDArray[np.int32]:
        """Return the index of each value, with these for values that have none."""
        texts, indices = self._distinct(column, values)
        positions = self._positions[column.name]
        lookup = [
            missing if text == "" else positions.get(canonical(text), unseen)
            for text in texts
        ]
        codes: NDArray[np.int32] = np.array(lookup, dtype=np.int32)[indices]
        return codes

    def _distinct(self, column: Column, values: Any) -> tuple[list[str], NDArray[Any]]:
        """Return distinct strings, and the index of the string of each value."""
        kind = values.type
        if types.is_boolean(kind):
            values, texts = values.cast(pa.uint8()), ["false", "true"]
            return [*texts, ""], values.fill_null(2).to_numpy()
        if types.is_integer(kind) and not values.null_count:
            numbers = values.to_numpy()
            low, high = int(numbers.min()), int(numbers.max())
            # listing all integers between is much faster than a search
            if high - low < SPAN and high < 2**63:
                shifted = np.subtract(numbers, low, dtype=np.int64, casting="unsafe")
                return list(map(str, range(low, high + 1))), shifted
        listed = types.is_dictionary(kind)
        if not is_listable(kind.value_type if listed else kind):
            self._reject(column, "contains neither strings nor numbers")
        if not listed:
            values = values.dictionary_encode()
        elif len(values.dictionary) > len(values):
            # a slice of a column with very many values: only those of the slice
            values = values.dictionary_decode().dictionary_encode()
        texts = list(map(text_of, values.dictionary.to_pylist()))
        indices = values.indices.fill_null(len(texts))
        return [*texts, ""], indices.to_numpy(zero_copy_only=False)

    def _check_codes(self, column: Column, codes: NDArray[np.int32]) -> None:
        """Reject codes of values that are not among the categories, if any."""
        if not len(codes):
            return
        if column is self.schema.target:
            words = (
                "is the target and has {}; leave such rows out, or correct the schema"
            )
        else:
            words = 'has {}; correct the schema, or set unseen = "other" in it'
        missing = MISSING in codes
        what = "missing values" if missing else "values outside its categories"
        self._reject(column, words.format(what))

    def _reject(self, column: Column, words: str) -> None:
        raise TableError(f"{self.path}: column {column.name!r} {words}.")


def _clip_and_scale(
    values: Floats, lows: Floats, highs: Floats, floors: Floats, tops: Floats
) -> None:
    """Clip values to their ranges and scale them, in place.

    The operations and their order are those of PublicScaler, so results are the same.
    """
    # np.clip with a range per column is several times slower
    np.maximum(values, lows, out=values)
    np.minimum(values, highs, out=values)
    values -= lows
    values *= (tops - floors) / (highs - lows)
    values += floors
    np.maximum(values, floors, out=values)
    np.minimum(values, tops, out=values)


def _is_numeric(kind: Any) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def is_listable(kind: Any) -> bool:
    texts = types.is_string(kind) or types.is_large_string(kind)
    return bool(
        texts or types.is_string_view(kind) or _is_numeric(kind) or types.is_date(kind)
    )


def text_of(value: Any) -> str:
    """Return a value as the string that a CSV file would contain."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


class LenientEncoder:
    """Features and targets, with NaN in each row that does not fit the schema.

    The schema is confirmed and has a target.

    Notes
    -----
    **Guarantee.** Each encoded row depends only on that row and the schema, and no row
    is an error. Valid rows are encoded as by `tacit.tables.read_rows`.
    """

    def __init__(self, path: Path, schema: Schema) -> None:
        assert schema.target is not None
        self._encoder = Encoder(path, schema)
        self._labels = schema.target.labels
        self.columns = [c for c in schema.every_column if c.kind != "ignore"]

    def encode(self, rows: Sequence[Row]) -> tuple[Floats, NDArray[Any]]:
        """Return the features and the label or number of each row."""
        usable = np.array([row is not None for row in rows], dtype=bool)
        arrays = []
        for position, column in enumerate(self.columns):
            cells = [None if row is None else row[position] for row in rows]
            numeric = column.kind == "number"
            read = _as_numbers if numeric else _as_strings
            values, known = read(column, cells)
            # [durable:row] whether a row is valid depends only on that row
            usable &= known
            arrays.append(pa.array(values, pa.float64() if numeric else pa.string()))
        batch = pa.record_batch(arrays, names=[column.name for column in self.columns])
        X = np.empty((len(rows), self._encoder.n_features))
        self._encoder.encode(batch, X)
        X[~usable] = nan
        y = self._encoder.targets(batch)
        return X, y if self._labels is None else np.array(self._labels)[y]


def _as_numbers(
    column: Column, cells: Sequence[Any]
) -> tuple[list[float], NDArray[np.bool_]]:
    """Return finite numbers, missing ones replaced, and which of them are valid."""
    missing = inf if column.missing is None else float(column.missing)
    numbers = [missing if isnan(x) else x for x in map(_number, cells)]
    stand_in = 0.0 if column.range is None else column.range[0]
    return (
        [x if isfinite(x) else stand_in for x in numbers],
        np.array([isfinite(x) for x in numbers], dtype=bool),
    )


def _number(value: Any) -> float:
    """Return a number, NaN for a missing value, infinity for an invalid one."""
    if value is None:
        return nan
    if isinstance(value, str):
        if value in MISSING_TEXTS:
            return nan
        value = value.strip()
        if NUMBER.fullmatch(value) is None:
            return inf
    try:
        return float(value)
    except (TypeError, ValueError, ArithmeticError):
        return inf


def _as_strings(
    column: Column, cells: Sequence[Any]
) -> tuple[list[str], NDArray[np.bool_]]:
    """Return strings that the encoder knows, and which of them are valid."""
    known_categories = {canonical(category) for category in column.indicators}
    # an empty string counts as "other", where the column has that category
    stand_in = "" if column.unseen == OTHER else column.categories[0]
    texts = [_text(cell) for cell in cells]
    known = [canonical(text) in known_categories for text in texts]
    return (
        [text if k else stand_in for text, k in zip(texts, known, strict=True)],
        np.array(known, dtype=bool) | (column.unseen == OTHER),
    )


def _text(value: Any) -> str:
    """Return a value as the string of a category, empty if it is invalid."""
    return "" if isinstance(value, list | dict | bytes) else text_of(value)
