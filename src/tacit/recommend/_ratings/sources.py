"""Where ratings come from, as batches of three columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from tacit.data._files.table_files import CSV, open_table

__all__ = ["BATCH", "batches", "is_csv"]

# Rows of a batch, some hundred bytes each while they are told apart
BATCH = 2**19

NO_RATINGS = (
    "ratings must be a sparse matrix of users by items, rows of user, item and rating, "
    "a data frame with these columns, or the path of a CSV, Parquet or Arrow file or "
    "of a folder of Parquet files; of a dense matrix make a sparse one, such as "
    "scipy.sparse.coo_array, that stores what was rated alone."
)

Batch = tuple[Any, Any, Any]


def is_csv(source: Any) -> bool:
    """Return whether this is the path of a file in which all labels are texts."""
    if not isinstance(source, str | os.PathLike):
        return False
    # a folder may have any name
    return Path(source).suffix.lower() in CSV and not Path(source).is_dir()


def batches(source: Any, columns: Sequence[str]) -> Iterator[Batch]:
    """Yield users, items and ratings of some rows at a time, as columns."""
    if isinstance(source, str | os.PathLike):
        return _of_path(Path(source), columns)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _of_pandas(source, columns)
    if hasattr(source, "__arrow_c_stream__"):
        try:
            stream = pa.RecordBatchReader.from_stream(source)
        except (pa.ArrowException, TypeError):  # one column, without a name
            raise ValueError(NO_RATINGS) from None
        _refuse_lacking(stream.schema.names, columns)
        return _of_arrow(stream, columns)
    return _of_triples(source)


def _of_triples(source: Any) -> Iterator[Batch]:
    if isinstance(source, np.ma.MaskedArray):
        raise ValueError(
            "ratings must not be a masked array; leave out the rows that are masked."
        )
    if isinstance(source, np.ndarray):
        source = np.asarray(source)  # a column of a matrix would be a matrix
        three = source.ndim == 2 and source.shape[1] == 3
    else:
        three = isinstance(source, Sequence) and all(
            isinstance(row, Sequence | np.ndarray)
            and not isinstance(row, str | bytes | bytearray)
            and len(row) == 3
            for row in source
        )
    if not three:
        raise ValueError(NO_RATINGS)
    for first in range(0, len(source), BATCH):
        rows = source[first : first + BATCH]
        if isinstance(rows, np.ndarray):
            yield rows[:, 0], rows[:, 1], rows[:, 2]
        else:
            # [ratings:cells] one text would make texts of all numbers to numpy
            users, items, ratings = map(list, zip(*rows, strict=True))
            yield users, items, ratings


def _of_pandas(frame: Any, columns: Sequence[str]) -> Iterator[Batch]:
    _refuse_lacking(list(frame.columns), columns)
    for first in range(0, len(frame), BATCH):
        rows = frame.iloc[first : first + BATCH]
        users, items, ratings = (_series(rows[name]) for name in columns)
        yield users, items, ratings


def _series(series: Any) -> Any:
    """Return a column with a type of its own as Arrow has it, else a list of cells."""
    # [ratings:cells] objects and categories may be of several kinds, and for those
    # Arrow would guess one, by which a cell of one user changed those of all
    if series.dtype != object and not hasattr(series.dtype, "categories"):
        try:
            column = pa.Array.from_pandas(series)
        except (pa.ArrowException, TypeError, ValueError):
            pass  # a type that Arrow has not
        else:
            if not isinstance(column.type, pa.BaseExtensionType):
                return column
    return series.astype(object).tolist()


def _of_arrow(stream: Any, columns: Sequence[str]) -> Iterator[Batch]:
    for whole in stream:
        for first in range(0, len(whole), BATCH):
            batch = whole.slice(first, BATCH)
            users, items, ratings = (batch.column(name) for name in columns)
            yield users, items, ratings


def _of_path(path: Path, columns: Sequence[str]) -> Iterator[Batch]:
    # [ratings:lines] the reader of all tables, by which a line is a row whatever is in
    # it: a reader of its own let the quotes of one user swallow the lines of others
    table = open_table(path)
    _refuse_lacking(table.names, columns)
    user, item, rating = columns
    for batch in table.read({user: "raw", item: "raw", rating: "number"}, BATCH):
        users, items = batch.column(user), batch.column(item)
        if is_csv(path):
            users, items = _empty_as_missing(users), _empty_as_missing(items)
        yield users, items, batch.column(rating)


def _empty_as_missing(texts: Any) -> Any:
    missing = pa.scalar(None, texts.type)
    return compute.if_else(compute.equal(texts, ""), missing, texts)


def _refuse_lacking(names: Sequence[Any], columns: Sequence[str]) -> None:
    for name in columns:
        if list(names).count(name) != 1:
            raise ValueError(
                f"ratings must have one column {name!r}; name the columns of user, "
                "item and rating with columns, and melt a table that has a column for "
                "each item into such rows."
            )
