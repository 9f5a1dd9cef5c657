"""Rows of plain values as features, none of them refused: it would tell about it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.data._files.csv_file import NULLS
from tacit.tables._column import OTHER, Column
from tacit.tables._encode import Encoder, text_of
from tacit.tables._schema import Schema
from tacit.tables._text import NUMBER, canonical

__all__ = ["LenientEncoder"]

Floats = NDArray[np.float64]
# Values in the order of the columns, or None where a row could not be read
Row = Sequence[Any] | None

MISSING_TEXTS = frozenset(NULLS)


class LenientEncoder:
    """Features and targets, with NaN in each row that the schema has no place for.

    Parameters
    ----------
    schema
        Confirmed facts, with a target.

    Notes
    -----
    **Guarantee.** Each encoded row depends on that row and the schema alone, and no
    row is an error. Usable rows are encoded as `tacit.tables.read_rows` does.
    """

    def __init__(self, path: Path, schema: Schema) -> None:
        assert schema.target is not None
        self._encoder = Encoder(path, schema)
        self._labels = schema.target.labels
        self.columns = [c for c in schema.every_column if c.kind != "ignore"]

    def encode(self, rows: Sequence[Row]) -> tuple[Floats, NDArray[Any]]:
        """Return features, and labels or numbers, one for each row."""
        usable = np.array([row is not None for row in rows], dtype=bool)
        arrays = []
        for position, column in enumerate(self.columns):
            cells = [None if row is None else row[position] for row in rows]
            numeric = column.kind == "number"
            read = _as_numbers if numeric else _as_texts
            values, known = read(column, cells)
            # [durable:row] what a row cannot be used for is decided by that row alone
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
    """Return finite numbers, with the public one for those missing, and which count."""
    missing = inf if column.missing is None else float(column.missing)
    numbers = [missing if isnan(x) else x for x in map(_number, cells)]
    stand_in = 0.0 if column.range is None else column.range[0]
    return (
        [x if isfinite(x) else stand_in for x in numbers],
        np.array([isfinite(x) for x in numbers], dtype=bool),
    )


def _number(value: Any) -> float:
    """Return a number, NaN where it is missing, infinity where there is none."""
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


def _as_texts(
    column: Column, cells: Sequence[Any]
) -> tuple[list[str], NDArray[np.bool_]]:
    """Return texts that the encoder has a place for, and which of them count."""
    positions = {canonical(category) for category in column.indicators}
    # an empty text goes where all others go, where there is such a place
    stand_in = "" if column.unseen == OTHER else column.categories[0]
    texts = [_text(cell) for cell in cells]
    known = [canonical(text) in positions for text in texts]
    return (
        [text if k else stand_in for text, k in zip(texts, known, strict=True)],
        np.array(known, dtype=bool) | (column.unseen == OTHER),
    )


def _text(value: Any) -> str:
    """Return a value as the text of a category; nothing for what can be none."""
    return "" if isinstance(value, list | dict | bytes) else text_of(value)
