"""Tables in files as data frames of their very cells, for models that need no encoding.

Numbers stay in their unit, categories are the values that their strings stand for, and
missing cells are missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._execution import bar
from tacit._validate import at_least
from tacit.data._files import TableError
from tacit.data._files.table_files import BATCH, reading
from tacit.tables._column import OTHER, Column
from tacit.tables._encode import Encoder
from tacit.tables._read import Block, _Source, _Targets
from tacit.tables._schema import Schema

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["CellTable", "cell_batches", "read_cells"]


class CellTable(NamedTuple):
    """A data frame, and labels or targets; None without a target."""

    X: DataFrame
    y: NDArray[Any] | None


def read_cells(
    path: str | os.PathLike[str],
    schema: Schema,
    *,
    with_target: bool = True,
    progress: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> CellTable:
    """Read the columns of a schema as a data frame in memory.

    Parameters
    ----------
    path
        CSV, Parquet or Arrow file, or a folder of Parquet files.
    schema
        Public facts; each must be confirmed.
    with_target
        Whether to read the target.
    progress
        Whether to show a progress bar.
    encoding, delimiter
        Of a CSV file, as in `read_rows`.

    Notes
    -----
    **Guarantee.** Each cell depends only on that cell of the file and the schema, as in
    `read_rows`. A missing cell is NaN, whatever replaces it in the schema.
    """
    schema.require_confirmed()
    _require_pandas()
    source = _Source.open(path, schema, with_target, (), encoding, delimiter)
    found = _Targets(source) if with_target else None
    parts: list[list[NDArray[Any]]] = []
    with bar("Reading", source.file.n_rows, shown=progress) as move:
        n_rows = 0
        for batch in source.batches(BATCH):
            with reading(source.path):
                parts.append(_cells(source.encoder, batch))
                if found is not None:
                    found.add(batch)
            n_rows += batch.num_rows
            move(n_rows)
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    X = _framed(schema, columns)
    return CellTable(X, None if found is None else found.finish())


def cell_batches(
    path: str | os.PathLike[str],
    schema: Schema,
    rows: int = 65536,
    *,
    keep: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Iterator[Block]:
    """Yield a table as data frames of at most so many rows, as in `read_cells`.

    Parameters and blocks are those of `batches`.
    """
    at_least(1, rows=rows)
    schema.require_confirmed()
    _require_pandas()
    names = list(keep)
    source = _Source.open(path, schema, False, names, encoding, delimiter)
    for batch in source.batches(rows):
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            with reading(source.path):
                cells = _cells(source.encoder, piece)
            kept = piece.select(names) if names else None
            yield Block(_framed(schema, cells), kept)


def _require_pandas() -> None:
    try:
        import pandas  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise TableError(
            "Columns that are not encoded need pandas; install tacit[pandas]."
        ) from None


def _used(schema: Schema) -> list[Column]:
    return [column for column in schema.columns if column.kind != "ignore"]


def _cells(encoder: Encoder, batch: Any) -> list[NDArray[Any]]:
    """Return numbers of each column, or positions among its categories."""
    return [
        encoder.cells(column, batch.column(column.name))
        for column in _used(encoder.schema)
    ]


def _framed(schema: Schema, columns: Iterable[NDArray[Any]]) -> DataFrame:
    """Return numbers as they are, and categories by their positions."""
    import pandas  # noqa: PLC0415 - as above

    found = {}
    for column, cells in zip(_used(schema), columns, strict=True):
        if column.kind == "number":
            found[column.name] = cells
            continue
        labels: list[Any] = list(column.labels or ())
        if len(column.indicators) > len(labels):
            labels.append(OTHER)
        # of one type, so that no label changes another
        listed = pandas.Index(
            np.array([*labels, None], dtype=object)[:-1], dtype=object
        )
        found[column.name] = pandas.Categorical.from_codes(cells, categories=listed)
    return pandas.DataFrame(found)
