"""Where ratings come from, as batches of three columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from csv import Error as CsvError
from csv import reader as csv_rows
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

__all__ = ["BATCH", "batches", "is_csv"]

# Rows of a batch, some hundred bytes each while they are told apart
BATCH = 2**19
# bytes of a CSV file
CSV_BLOCK = 2**24
CSV = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")

NO_RATINGS = (
    "ratings must be a sparse matrix of users by items, rows of user, item and rating, "
    "a data frame with these columns, or the path of a CSV or Parquet file or of a "
    "folder of Parquet files; of a dense matrix make a sparse one, such as "
    "scipy.sparse.coo_array, that stores what was rated alone."
)

Batch = tuple[Any, Any, Any]


def is_csv(source: Any) -> bool:
    """Return whether this is the path of a file in which all labels are texts."""
    return isinstance(source, str | os.PathLike) and Path(source).suffix.lower() in CSV


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
    suffix = path.suffix.lower()
    if not path.exists():
        raise ValueError(f"{path}: there is no such file or folder.")
    if path.is_dir():
        parts = _parquet_parts(path)
    elif suffix in (*CSV, *PARQUET):
        parts = [path]
    else:
        raise ValueError(
            f"{path}: ratings are read from .csv, .tsv and .parquet files and from "
            "folders of .parquet files; save them as one of these."
        )
    for part in parts:
        with _reading(part):
            if suffix in CSV:
                yield from _of_csv(part, columns, CSV[suffix])
            else:
                with parquet.ParquetFile(part) as file:
                    _refuse_lacking(file.schema_arrow.names, columns)
                    wanted = list(columns)
                    yield from _of_arrow(
                        file.iter_batches(BATCH, columns=wanted), columns
                    )


def _parquet_parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, always in the order of their names."""
    # names with these beginnings are marks of the programs that write such folders
    parts = sorted(
        part
        for part in folder.rglob("*")
        if part.suffix.lower() in PARQUET and not part.name.startswith(("_", "."))
    )
    if not parts:
        raise ValueError(f"{folder}: the folder holds no .parquet files.")
    return parts


def _of_csv(path: Path, columns: Sequence[str], delimiter: str) -> Iterator[Batch]:
    """Yield the columns of a CSV file, with labels as texts and ratings as numbers.

    What looks like a number in the first lines need not be one in the last.
    """
    with path.open(encoding="utf-8-sig", newline="") as text:
        names = next(csv_rows(text, delimiter=delimiter), [])
        more = text.read(1)
    _refuse_lacking(names, columns)
    if not more:
        return  # Arrow refuses a file that ends within its first line
    user, item, rating = columns
    types = {user: pa.string(), item: pa.string(), rating: pa.float64()}
    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=CSV_BLOCK),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=list(columns),
            null_values=[""],
            strings_can_be_null=True,
        ),
    ) as stream:
        yield from _of_arrow(stream, columns)


def _refuse_lacking(names: Sequence[Any], columns: Sequence[str]) -> None:
    for name in columns:
        if list(names).count(name) != 1:
            raise ValueError(
                f"ratings must have one column {name!r}; name the columns of user, "
                "item and rating with columns, and melt a table that has a column for "
                "each item into such rows."
            )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file into one sentence that quotes nothing of it."""
    try:
        yield
    except PermissionError:
        words = "permission to read it was denied"
    except (pa.ArrowException, CsvError, OSError, UnicodeError, EOFError):
        words = (
            "the file is damaged or of another kind, or a rating in it is no number; "
            "mend or leave out such rows"
        )
    else:
        return
    raise ValueError(f"{path}: {words}.") from None
