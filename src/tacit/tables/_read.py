"""Reading of tables as arrays, as a whole or block by block."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._execution import bar
from tacit._validate import at_least
from tacit.data._files import TableError
from tacit.data._files.table_files import BATCH, TableFile, open_table, reading
from tacit.tables._encode import Encoder
from tacit.tables._row_store import RowStore, memory_limit
from tacit.tables._schema import Schema

__all__ = ["Block", "Table", "batches", "check", "check_names", "read_rows"]

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Encoded features, and labels or targets; None without a target."""

    X: Floats
    y: NDArray[Any] | None


class Block(NamedTuple):
    """Features of some rows, and a pyarrow batch of kept columns, or None."""

    X: Floats
    kept: Any


def read_rows(
    path: str | os.PathLike[str],
    schema: Schema,
    *,
    with_target: bool = True,
    progress: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    memory: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Table:
    """Read a table, encoded by its schema.

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
        Of a CSV file. None detects whether fields are separated by comma, semicolon or
        tab.
    memory
        Bytes that features may use in memory; None for a third of what is available
        under the limits of this process. If they need more, they are written to an
        unnamed temporary file, and ``X`` is a read-only `numpy.memmap` of it.
    scratch
        Folder for that file; None for the default temporary folder.

    Returns
    -------
    Table
        Features in float64, and labels or numbers.

    Notes
    -----
    **Guarantee.** Each row of ``X`` depends only on that row of the file and the
    schema. A file that does not agree with the schema is rejected with one sentence
    that names the column and quotes no value.
    """
    schema.require_confirmed()
    if memory is not None:
        at_least(0, memory=memory)
    source = _Source.open(path, schema, with_target, (), encoding, delimiter)
    limit = memory_limit() if memory is None else memory
    store = RowStore(source.encoder.n_features, source.file.n_rows, limit, scratch)
    found = _Targets(source) if with_target else None
    try:
        with bar("Reading", source.file.n_rows, shown=progress) as move:
            for batch in source.batches(BATCH):
                with reading(source.path):
                    source.encoder.encode(batch, store.block(batch.num_rows))
                    if found is not None:
                        found.add(batch)
                store.add(batch.num_rows)
                move(len(store))
        X = store.finish()
    except BaseException:
        store.close()
        raise
    return Table(X, None if found is None else found.finish())


def batches(
    path: str | os.PathLike[str],
    schema: Schema,
    rows: int = 65536,
    *,
    keep: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Iterator[Block]:
    """Yield a table block by block, encoded by its schema.

    The target is not read, and the file need not have it.

    Parameters
    ----------
    path
        CSV, Parquet or Arrow file, or a folder of Parquet files.
    schema
        Public facts; each must be confirmed.
    rows
        Largest number of rows of a block.
    keep
        Columns to return unchanged, whether the schema names them or not.
    encoding, delimiter
        Of a CSV file, as in `read_rows`.

    Yields
    ------
    Block
        Features, and a pyarrow batch of the kept columns, or None.
    """
    at_least(1, rows=rows)
    schema.require_confirmed()
    names = list(keep)
    source = _Source.open(path, schema, False, names, encoding, delimiter)
    return (
        Block(X, piece.select(names) if names else None)
        for piece, X in _pieces(source, rows)
    )


def _pieces(source: _Source, rows: int) -> Iterator[tuple[Any, Floats]]:
    """Yield batches of at most so many rows, and their features."""
    for batch in source.batches(rows):
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            X = np.empty((piece.num_rows, source.encoder.n_features))
            with reading(source.path):
                source.encoder.encode(piece, X)
            yield piece, X


def check(
    path: str | os.PathLike[str],
    schema: Schema,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> None:
    """Check that a table agrees with its schema.

    The error names every column that does not.

    Parameters
    ----------
    path
        CSV, Parquet or Arrow file, or a folder of Parquet files.
    schema
        Facts, confirmed or not, but all filled in.
    encoding, delimiter
        Of a CSV file, as in `read_rows`.
    """
    empty = [repr(c.name) for c in schema.every_column if not c.is_filled]
    if empty:
        raise TableError(
            f"The schema has no range or categories for {', '.join(empty)}; fill them "
            "in first."
        )
    # as strings, so that the CSV reader does not stop at the first invalid number
    numbers = [c.name for c in schema.every_column if c.kind == "number"]
    with_target = schema.target is not None
    source = _Source.open(path, schema, with_target, numbers, encoding, delimiter)
    wrong: dict[str, str] = {}
    for batch in source.batches(BATCH):
        for column in schema.every_column:
            if column.kind == "ignore" or column.name in wrong:
                continue
            try:
                with reading(source.path):
                    source.encoder.check(column, batch)
            except TableError as error:
                wrong[column.name] = str(error).removeprefix(f"{source.path}: ")
    if wrong:
        raise TableError(f"{source.path}: {' Also, '.join(wrong.values())}")


@dataclass(frozen=True)
class _Source:
    """A file with the columns of the schema."""

    path: Path
    file: TableFile
    encoder: Encoder
    kinds: dict[str, str]

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        schema: Schema,
        with_target: bool,
        keep: Sequence[str],
        encoding: str,
        delimiter: str | None,
    ) -> _Source:
        if with_target and schema.target is None:
            raise TableError(
                "The schema has no target; set it with Schema.with_target, or 'tacit "
                "schema confirm' and its --target."
            )
        file = open_table(path, encoding=encoding, delimiter=delimiter)
        columns = [column for column in schema.columns if column.kind != "ignore"]
        if with_target and schema.target is not None:
            columns.append(schema.target)
        kinds = {column.name: column.kind for column in columns}
        check_names(Path(path), file.names, schema, list(kinds), keep)
        is_csv = hasattr(file, "delimiter")
        texts = frozenset(n for n in keep if kinds.get(n) == "number" and is_csv)
        kinds |= dict.fromkeys(keep, "raw")
        return cls(Path(path), file, Encoder(Path(path), schema, texts), kinds)

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield the batches of a file, which must not change in the meantime."""
        before, seen = _state(self.path), 0
        for batch in self.file.read(self.kinds, rows):
            seen += batch.num_rows
            if batch.num_rows:
                yield batch
        known = self.file.n_rows
        if before != _state(self.path) or known not in (None, seen):
            raise TableError(
                f"{self.path}: the file changed while it was read; try again when no "
                "program writes to it."
            )
        if not seen:
            raise TableError(f"{self.path}: the table has a header and no rows.")

    def labels(self, found: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of indices among the categories; numbers unchanged."""
        target = self.encoder.schema.target
        labels = None if target is None else target.labels
        return found if labels is None else np.array(labels)[found]


class _Targets:
    """Labels or numbers, collected batch by batch without a second copy."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._codes: list[NDArray[Any]] = []
        self._numbers: RowStore | None = None
        target = source.encoder.schema.target
        if target is not None and target.kind == "number":
            self._numbers = RowStore(1, source.file.n_rows, sys.maxsize)

    def add(self, batch: Any) -> None:
        found = self._source.encoder.targets(batch)
        if self._numbers is None:
            self._codes.append(found)  # a byte each, mostly
        else:
            self._numbers.block(len(found))[:, 0] = found
            self._numbers.add(len(found))

    def finish(self) -> NDArray[Any]:
        if self._numbers is not None:
            return self._numbers.finish()[:, 0]
        labels = self._source.labels(self._codes[0][:0])
        n_rows, filled = sum(map(len, self._codes)), 0
        found = np.empty(n_rows, dtype=labels.dtype)
        for codes in self._codes:
            found[filled : filled + len(codes)] = self._source.labels(codes)
            filled += len(codes)
        return found


def check_names(
    path: Path,
    names: list[str],
    schema: Schema,
    needed: Sequence[str],
    keep: Sequence[str],
) -> None:
    """Reject a header that does not agree with the schema.

    Names that only the file has are quoted last: if all names of the schema are there,
    the first line is a header and not a row.
    """
    for name in (*needed, *keep):
        if names.count(name) > 1:
            raise TableError(f"{path}: the table has the column {name!r} twice.")
    absent = _listed(name for name in needed if name not in names)
    if absent:
        raise TableError(
            f"{path}: the table has no column {absent}; its header must name every "
            "column of the schema that is not ignored."
        )
    absent = _listed(name for name in keep if name not in names)
    if absent:
        raise TableError(f"{path}: the table has no column {absent} to keep.")
    known = {*(column.name for column in schema.every_column), *keep}
    unknown = _listed(name for name in names if name not in known)
    if unknown:
        raise TableError(
            f"{path}: the schema does not name the column {unknown}; add it, with "
            'kind = "ignore" to leave it out.'
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, dict.fromkeys(names)))


def _state(path: Path) -> list[tuple[str, int, int]]:
    """Return sizes and times that change if a file or folder is written to."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    try:
        states = [(str(file), file.stat()) for file in files]
    except OSError:
        return []
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]
