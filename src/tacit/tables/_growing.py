"""Tables that are written to while they are read, some rows at a time."""

from __future__ import annotations

import csv
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from tacit._json import canonical
from tacit._validate import at_least
from tacit.data._files import TableError
from tacit.data._files.csv_file import csv_header
from tacit.data._files.table_files import CSV, JSON_LINES, parquet_parts, reading
from tacit.data.rows import UNREADABLE, cells_of
from tacit.tables._encode import LenientEncoder, Row
from tacit.tables._read import check_names
from tacit.tables._schema import Schema

__all__ = ["GrowingTable", "Taken"]

Position = dict[str, Any]

# Bytes before a position by which it is known again
TAIL = 2**12
# Bytes of a line that are kept; a longer line is a row that cannot be used
LONGEST = 2**20
# Metadata key of a Parquet file that lists which strings are categories
ARROW_TYPES = b"ARROW:schema"


class Taken(NamedTuple):
    """Rows that were taken, and up to where; no ``X`` and ``y`` where too few wait."""

    n_rows: int
    X: NDArray[np.float64] | None
    y: NDArray[Any] | None
    position: Position | None


class GrowingTable:
    """A file of lines that grows, or a folder that gets new Parquet files.

    Parameters
    ----------
    path
        A .csv or .tsv file with a header, a .jsonl or .ndjson file with one object a
        line, or a folder of .parquet files. Every line is a row, and one that has no
        end yet waits. Files of a folder are taken in the order of their names, so that
        a new one must sort after all before it; it must be complete when it appears,
        so write it elsewhere and rename it.
    schema
        Public facts; each must be confirmed. It must have a target.
    encoding, delimiter
        Of a CSV file, as in `read_rows`.

    Notes
    -----
    **Guarantee.** Each row depends on one line, or one row of a Parquet file, and the
    schema alone. A line that cannot be read, or has a value the schema has no place
    for, is a row of NaN; nothing is refused for what a row holds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: Schema,
        *,
        encoding: str = "utf-8",
        delimiter: str | None = None,
    ) -> None:
        schema.require_confirmed()
        if schema.target is None:
            raise TableError("The schema has no target, and a stream needs one.")
        self.path = Path(path)
        self._encoder = LenientEncoder(self.path, schema)
        self._facts = _digest_of([[c.name, c.seal] for c in self._encoder.columns])
        names = [column.name for column in self._encoder.columns]
        suffix = self.path.suffix.lower()
        self._source: _Source
        if self.path.is_dir():
            self._source = _ParquetFolder(self.path, schema, names)
        elif suffix in CSV:
            given = "\t" if suffix == ".tsv" else delimiter
            self._source = _CSVLines(self.path, schema, names, encoding, given)
        elif suffix in JSON_LINES:
            self._source = _JSONLines(self.path, names)
        else:
            raise TableError(
                f"{path}: a stream is read from a .csv, .tsv, .jsonl or .ndjson file, "
                "or from a folder of .parquet files; there must be one."
            )

    def take(self, position: Position | None, rows: int) -> Taken:
        """Return the next rows, or how many wait where there are fewer.

        Parameters
        ----------
        position
            What the last `Taken` says; None at the beginning.
        rows
            How many to take.

        Raises
        ------
        TableError
            When what was taken before is no longer there as it was.
        """
        at_least(1, rows=rows)
        began = self.check(position)
        found, reached = self._source.take(began, rows)
        if len(found) < rows:
            return Taken(len(found), None, None, position)
        X, y = self._encoder.encode(found)
        kept = {**reached, "source": type(self._source).__name__, "facts": self._facts}
        return Taken(rows, X, y, kept)

    def check(self, position: Position | None) -> Position | None:
        """Refuse a position in another source, or by another schema."""
        if position is None:
            return None
        if position["facts"] != self._facts:
            raise TableError(
                "The schema is not the one that the stream was begun with; go on with "
                "that one, or begin another stream."
            )
        if position["source"] != type(self._source).__name__:
            raise TableError(f"{self.path}: the stream was begun with another source.")
        return position


class _Source(ABC):
    """Rows after a position, and the position after them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def take(
        self, position: Position | None, rows: int
    ) -> tuple[list[Row], Position]: ...

    def _reject(self, words: str) -> NoReturn:
        raise TableError(
            f"{self.path}: {words}; put back what was there, or begin another stream."
        )


class _Lines(_Source):
    """A file in which every line is a row."""

    # bytes of what comes before the rows
    header = b""

    @abstractmethod
    def fields(self, line: bytes) -> Row:
        """Return the values of a line, or None where it cannot be read."""

    def take(self, position: Position | None, rows: int) -> tuple[list[Row], Position]:
        with reading(self.path), open(self.path, "rb") as file:
            end = self._start(file, position)
            file.seek(end)
            found: list[Row] = []
            while len(found) < rows:
                line, size, complete = _next_line(file)
                if not complete:
                    break
                found.append(None if line is None else self.fields(line))
                end += size
            return found, {"offset": end, "tail": _tail(file, end)}

    def _start(self, file: IO[bytes], position: Position | None) -> int:
        """Return where rows go on, after making sure that it is the same file."""
        if file.read(len(self.header)) != self.header:
            self._reject("the header is not the one that the stream was begun with")
        if position is None:
            return len(self.header)
        offset: int = position["offset"]
        if os.fstat(file.fileno()).st_size < offset:
            self._reject("the file is shorter than what was taken of it")
        # [durable:source] rows that were taken are neither taken again nor passed over
        if _tail(file, offset) != position["tail"]:
            self._reject("the file is not the one that rows were taken of")
        return offset


class _CSVLines(_Lines):
    def __init__(
        self,
        path: Path,
        schema: Schema,
        names: Sequence[str],
        encoding: str,
        delimiter: str | None,
    ) -> None:
        super().__init__(path)
        with reading(path), open(path, "rb") as file:
            line, _, complete = _next_line(file)
        if line is None or not complete:
            raise TableError(f"{path}: the file has no header in its first line.")
        text, self._encoding, self._delimiter = csv_header(
            path, line, encoding, delimiter
        )
        if "\n".encode(self._encoding) != b"\n":
            raise TableError(
                f"encoding must have a line feed of one byte, got {encoding!r}; write "
                "the stream in UTF-8."
            )
        self.header = line
        header = self._cells(text.removeprefix("\ufeff").encode(self._encoding))
        check_names(path, header or [], schema, names, ())
        assert header is not None  # it has the columns by now
        self._width = len(header)
        self._positions = [header.index(name) for name in names]

    def fields(self, line: bytes) -> Row:
        cells = self._cells(line)
        if cells is None or len(cells) != self._width:
            return None
        return [cells[position] for position in self._positions]

    def _cells(self, line: bytes) -> list[str] | None:
        try:
            text = line.decode(self._encoding).removesuffix("\n").removesuffix("\r")
            (cells,) = csv.reader([text], delimiter=self._delimiter, strict=True)
        except (ValueError, csv.Error):
            return None
        return cells


class _JSONLines(_Lines):
    def __init__(self, path: Path, names: Sequence[str]) -> None:
        super().__init__(path)
        self._names = names
        with reading(path), open(path, "rb"):
            pass  # refused now where it cannot be read

    def fields(self, line: bytes) -> Row:
        try:
            found = json.loads(line.decode().removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        return [found.get(name) for name in self._names]


class _ParquetFolder(_Source):
    """A folder whose files come whole, in the order of their names."""

    def __init__(self, path: Path, schema: Schema, names: Sequence[str]) -> None:
        super().__init__(path)
        self._schema, self._names = schema, list(names)
        self._signs: dict[Path, tuple[tuple[int, int, int], list[Any]]] = {}
        self._group: tuple[Path, int, Any] | None = None
        for part in parquet_parts(path)[:1]:
            self._n_rows(part)  # refused now where it has other columns

    def take(self, position: Position | None, rows: int) -> tuple[list[Row], Position]:
        with reading(self.path):
            parts = parquet_parts(self.path)
            files, row = 0, 0
            if position is not None:
                files, row = position["files"], position["row"]
                # [durable:source] the same for files
                if self._digest(parts[:files]) != position["digest"]:
                    self._reject(
                        "files that rows were taken of have changed or are gone, or a "
                        "new one sorts before them"
                    )
        found: list[Row] = []
        while len(found) < rows:
            more = self._rows(parts[files - 1], row, rows - len(found)) if files else []
            found += more
            row += len(more)
            if not more:
                if files == len(parts):
                    break
                files, row = files + 1, 0
        with reading(self.path):
            digest = self._digest(parts[:files])
        return found, {"files": files, "row": row, "digest": digest}

    def _digest(self, parts: Sequence[Path]) -> str:
        return _digest_of([self._sign(part) for part in parts])

    def _sign(self, part: Path) -> list[Any]:
        """Return what a file is known by; its end is read again when it was touched."""
        state = part.stat()
        touched = (state.st_size, state.st_mtime_ns, state.st_ino)
        if part not in self._signs or self._signs[part][0] != touched:
            with open(part, "rb") as file:
                tail = _tail(file, state.st_size)
            name = part.relative_to(self.path).as_posix()
            self._signs[part] = touched, [name, state.st_size, tail]
            self._group = None
        return self._signs[part][1]

    def _n_rows(self, part: Path) -> int:
        with reading(part), parquet.ParquetFile(part) as file:
            check_names(part, file.schema_arrow.names, self._schema, self._names, ())
            return int(file.metadata.num_rows)

    def _rows(self, part: Path, start: int, count: int) -> list[Row]:
        """Return at most so many rows of a file, from one of its groups."""
        self._sign(part)
        group = self._group
        held = group is not None and group[0] == part
        if group is None or not held or not 0 <= start - group[1] < len(group[2]):
            group = self._group_at(part, start)
        if group is None:
            return []
        self._group = group
        piece = group[2].slice(start - group[1], count)
        rows = zip(*map(cells_of, piece.columns), strict=True)
        # a cell that cannot be read spoils its row, as it does a line
        return [None if any(c is UNREADABLE for c in row) else row for row in rows]

    def _group_at(self, part: Path, start: int) -> tuple[Path, int, Any] | None:
        """Return the group of rows that has this one, and where it begins."""
        if start >= self._n_rows(part):
            return None
        with reading(part), parquet.ParquetFile(part) as file:
            first = 0
            for position in range(file.num_row_groups):
                size = file.metadata.row_group(position).num_rows
                if start < first + size:
                    columns = _group_columns(part, file, position, self._names)
                    return part, first, pa.table(columns)
                first += size
        return None


def _next_line(file: IO[bytes]) -> tuple[bytes | None, int, bool]:
    """Return the next line, its size, and whether it has an end; None if too long."""
    line = piece = file.readline(LONGEST)
    size = len(piece)
    while len(piece) == LONGEST and not piece.endswith(b"\n"):
        piece = file.readline(LONGEST)
        size += len(piece)
    return (line if size == len(line) else None), size, piece.endswith(b"\n")


def _tail(file: IO[bytes], end: int) -> str:
    """Return a digest of the last bytes before a place."""
    start = max(0, end - TAIL)
    file.seek(start)
    return sha256(file.read(end - start)).hexdigest()


def _digest_of(data: Any) -> str:
    return sha256(canonical(data).encode()).hexdigest()


def _group_columns(
    part: Path, file: Any, group: int, names: Sequence[str]
) -> dict[str, Any]:
    """Return columns of a group of rows, by their names."""
    try:
        table = file.read_row_group(group, columns=list(names))
        return {name: table.column(name) for name in names}
    except pa.ArrowInvalid:
        return {name: _group_column(part, file, group, name) for name in names}


def _group_column(part: Path, file: Any, group: int, name: str) -> Any:
    """Return one column, as plain texts where pyarrow rejects their list as a whole.

    It checks all of a list of categories at once, so that one text that is no UTF-8
    would make all rows of the group an error.
    """
    try:
        return file.read_row_group(group, columns=[name]).column(name)
    except pa.ArrowInvalid:
        content = part.read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        footer = content[start:].replace(ARROW_TYPES, ARROW_TYPES.lower())
        with parquet.ParquetFile(pa.BufferReader(content[:start] + footer)) as plain:
            return plain.read_row_group(group, columns=[name]).column(name)
