"""Tables that grow, read a fixed number of rows at a time."""

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

# Bytes before a position whose digest identifies it
TAIL = 2**12
# Longest line in bytes; a longer one is an invalid row
LONGEST = 2**20
# Metadata key of a Parquet file that says which strings are categories
ARROW_TYPES = b"ARROW:schema"


class Taken(NamedTuple):
    """Rows and the position after them; ``X`` and ``y`` are None if too few wait."""

    n_rows: int
    X: NDArray[np.float64] | None
    y: NDArray[Any] | None
    position: Position | None


class GrowingTable:
    """A file to which lines are appended, or a folder that gets new Parquet files.

    Parameters
    ----------
    path
        A .csv or .tsv file with a header, a .jsonl or .ndjson file with one object per
        line, or a folder of .parquet files. Every line is a row, and a line without an
        end waits. Files of a folder are read in the order of their names, so the name
        of a new file must sort after all others; it must be complete when it appears,
        so write it elsewhere and rename it.
    schema
        Public facts; each must be confirmed. It must have a target.
    encoding, delimiter
        Of a CSV file, as in `read_rows`.

    Notes
    -----
    **Guarantee.** Each row depends only on the schema and one line, or one row of a
    Parquet file. A line that cannot be read or does not fit the schema becomes a row of
    NaN; the content of a row is never an error.
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
                f"{path}: a stream must be an existing .csv, .tsv, .jsonl or .ndjson "
                "file, or a folder of .parquet files."
            )

    def take(self, position: Position | None, rows: int) -> Taken:
        """Return the next rows, or the number of waiting rows if there are fewer.

        Parameters
        ----------
        position
            Position of the last `Taken`; None at the beginning.
        rows
            Number of rows.

        Raises
        ------
        TableError
            If rows that were taken before have changed or are missing.
        """
        at_least(1, rows=rows)
        began = self.check(position)
        found, reached = self._source.take(began, rows)
        if len(found) < rows:
            return Taken(len(found), None, None, position)
        X, y = self._encoder.encode(found)
        source = type(self._source).__name__
        return Taken(rows, X, y, {**reached, "source": source, "facts": self._facts})

    def check(self, position: Position | None) -> Position | None:
        """Return a position; reject one in another source or by another schema."""
        if position is None:
            return None
        if position["facts"] != self._facts:
            raise TableError(
                "The schema is not the one that the stream began with; use that one, "
                "or start another stream."
            )
        if position["source"] != type(self._source).__name__:
            raise TableError(f"{self.path}: the stream began with another source.")
        return position


# deep: two of three kinds of files have a row a line
class _Source(ABC):
    """Rows after a position, and the position after them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def take(
        self, position: Position | None, rows: int
    ) -> tuple[list[Row], Position]: ...

    def _reject(self, problem: str) -> NoReturn:
        raise TableError(
            f"{self.path}: {problem}; restore the original, or start another stream."
        )


class _Lines(_Source):
    """A file in which every line is a row."""

    # bytes before the first row
    header = b""

    @abstractmethod
    def fields(self, line: bytes) -> Row:
        """Return the values of a line, or None if it cannot be read."""

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
        """Return the offset of the next row, after checks that the file is the same."""
        if file.read(len(self.header)) != self.header:
            self._reject("the header is not the one that the stream began with")
        if position is None:
            return len(self.header)
        offset: int = position["offset"]
        if os.fstat(file.fileno()).st_size < offset:
            self._reject("the file is shorter than the part that was already read")
        # [durable:source] no row is read twice or skipped
        if _tail(file, offset) != position["tail"]:
            self._reject("the rows before this position have changed")
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
            pass  # fails early if it cannot be read

    def fields(self, line: bytes) -> Row:
        try:
            found = json.loads(line.decode().removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        return [found.get(name) for name in self._names]


class _ParquetFolder(_Source):
    """A folder of complete files, in the order of their names."""

    def __init__(self, path: Path, schema: Schema, names: Sequence[str]) -> None:
        super().__init__(path)
        self._schema, self._names = schema, list(names)
        self._fingerprints: dict[Path, tuple[tuple[int, int, int], list[Any]]] = {}
        self._group: tuple[Path, int, Any] | None = None
        for part in parquet_parts(path)[:1]:
            self._n_rows(part)  # fails early if it has other columns

    def take(self, position: Position | None, rows: int) -> tuple[list[Row], Position]:
        with reading(self.path):
            parts = parquet_parts(self.path)
            files, row = 0, 0
            if position is not None:
                files, row = position["files"], position["row"]
                # [durable:source] the same for files
                if self._digest(parts[:files]) != position["digest"]:
                    self._reject(
                        "files that were already read have changed or are missing, or "
                        "a new one sorts before them"
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
        return _digest_of([self._fingerprint(part) for part in parts])

    def _fingerprint(self, part: Path) -> list[Any]:
        """Return name, size and digest of the end of a file, until it changes."""
        state = part.stat()
        touched = (state.st_size, state.st_mtime_ns, state.st_ino)
        if part not in self._fingerprints or self._fingerprints[part][0] != touched:
            with open(part, "rb") as file:
                tail = _tail(file, state.st_size)
            name = part.relative_to(self.path).as_posix()
            self._fingerprints[part] = touched, [name, state.st_size, tail]
            self._group = None
        return self._fingerprints[part][1]

    def _n_rows(self, part: Path) -> int:
        with reading(part), parquet.ParquetFile(part) as file:
            check_names(part, file.schema_arrow.names, self._schema, self._names, ())
            return int(file.metadata.num_rows)

    def _rows(self, part: Path, start: int, count: int) -> list[Row]:
        """Return at most so many rows of a file, from one of its row groups."""
        self._fingerprint(part)
        group = self._group
        if (
            group is None
            or group[0] != part
            or not (0 <= start - group[1] < len(group[2]))
        ):
            group = self._group_at(part, start)
        if group is None:
            return []
        self._group = group
        piece = group[2].slice(start - group[1], count)
        rows = zip(*map(cells_of, piece.columns), strict=True)
        # a cell that cannot be read makes its row invalid
        return [None if any(c is UNREADABLE for c in row) else row for row in rows]

    def _group_at(self, part: Path, start: int) -> tuple[Path, int, Any] | None:
        """Return the row group with a row, and the index of its first row."""
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
    """Return a digest of the bytes before an offset."""
    start = max(0, end - TAIL)
    file.seek(start)
    return sha256(file.read(end - start)).hexdigest()


def _digest_of(data: Any) -> str:
    return sha256(canonical(data).encode()).hexdigest()


def _group_columns(
    part: Path, file: Any, group: int, names: Sequence[str]
) -> dict[str, Any]:
    """Return columns of a row group, by their names."""
    try:
        table = file.read_row_group(group, columns=list(names))
        return {name: table.column(name) for name in names}
    except pa.ArrowInvalid:
        return {name: _group_column(part, file, group, name) for name in names}


def _group_column(part: Path, file: Any, group: int, name: str) -> Any:
    """Return a column, as plain strings if pyarrow rejects its list of categories.

    A single category that is not UTF-8 would otherwise make the whole row group an
    error.
    """
    try:
        return file.read_row_group(group, columns=[name]).column(name)
    except pa.ArrowInvalid:
        content = part.read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        footer = content[start:].replace(ARROW_TYPES, ARROW_TYPES.lower())
        with parquet.ParquetFile(pa.BufferReader(content[:start] + footer)) as plain:
            return plain.read_row_group(group, columns=[name]).column(name)
