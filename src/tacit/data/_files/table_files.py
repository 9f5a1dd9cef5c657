"""Files of tables, as streams of record batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import ipc, parquet

from tacit.data._files import TableError
from tacit.data._files.csv_file import CSVFile

__all__ = [
    "BATCH",
    "CSV",
    "JSON_LINES",
    "TableFile",
    "open_table",
    "parquet_parts",
    "reading",
]

# Rows of a batch, where the file lets us choose
BATCH = 2**15
CSV = (".csv", ".tsv")
ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")


class TableFile(Protocol):
    """A table that is read in batches of rows.

    ``n_rows`` is None where it is unknown before reading. ``read`` gives batches with
    the columns named in ``kinds``: ``"number"``, ``"category"``, or ``"raw"`` for one
    that is passed through as it is.
    """

    @property
    def names(self) -> list[str]: ...
    @property
    def n_rows(self) -> int | None: ...
    @property
    def schema(self) -> Any: ...
    def read(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]: ...


@dataclass(frozen=True)
class ParquetFiles:
    """One Parquet file, or all of a folder in the order of their names."""

    paths: tuple[Path, ...]
    n_rows: int
    schema: Any

    @classmethod
    def open(cls, paths: Sequence[Path]) -> ParquetFiles:
        n_rows, schema = 0, None
        for path in paths:
            with reading(path), parquet.ParquetFile(path) as file:
                n_rows += file.metadata.num_rows
                if schema is not None and file.schema_arrow.names != schema.names:
                    raise TableError(
                        f"{path}: the files of the folder must have the same columns, "
                        "in the same order."
                    )
                schema = schema or file.schema_arrow
        return cls(tuple(paths), n_rows, schema)

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def read(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        for path in self.paths:
            with reading(path):
                listed = _texts(parquet.read_schema(path), kinds)
                with parquet.ParquetFile(path, read_dictionary=listed) as file:
                    yield from file.iter_batches(rows, columns=list(kinds))


def _texts(schema: Any, kinds: Mapping[str, str]) -> list[str]:
    """Return the categories that are stored as text, whose texts can come listed."""
    return [
        field.name
        for field in schema
        if kinds.get(field.name) == "category" and pa.types.is_string(field.type)
    ]


@dataclass(frozen=True)
class ArrowFile:
    """An Arrow IPC file or stream; Feather is another name of it."""

    path: Path
    schema: Any
    n_rows: int | None = None  # the file has it for each batch only

    @classmethod
    def open(cls, path: Path) -> ArrowFile:
        with reading(path), _ipc_reader(path) as reader:
            return cls(path, reader.schema)

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def read(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        fields = [self.names.index(name) for name in kinds]
        options = ipc.IpcReadOptions(included_fields=fields)
        with reading(self.path), _ipc_reader(self.path, options) as reader:
            if hasattr(reader, "get_batch"):
                for i in range(reader.num_record_batches):
                    yield reader.get_batch(i)
            else:
                yield from reader


def _ipc_reader(path: Path, options: Any = None) -> Any:
    # not mapped to memory: a file that is cut off meanwhile would end the process
    file = pa.OSFile(str(path))
    try:
        return ipc.open_file(file, options=options)
    except pa.ArrowInvalid:
        file.seek(0)
        return ipc.open_stream(file, options=options)


def open_table(
    path: str | os.PathLike[str],
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> TableFile:
    """Return the table of a file, or of a folder of Parquet files.

    Encoding and delimiter are those of a CSV file; None looks at its header.
    """
    path = Path(path)
    with reading(path):
        if path.is_dir():
            return _with_columns(path, ParquetFiles.open(_parts(path)))
        size = path.stat().st_size
    suffix = path.suffix.lower()
    if suffix not in (*CSV, *ARROW, *PARQUET):
        raise TableError(
            f"{path}: tables are read from .csv, .tsv, .parquet, .arrow and .feather "
            "files; save it as one of them."
        )
    if size == 0:
        raise TableError(f"{path}: the file is empty; it needs a header and rows.")
    if suffix in PARQUET:
        return _with_columns(path, ParquetFiles.open([path]))
    if suffix in ARROW:
        return _with_columns(path, ArrowFile.open(path))
    with reading(path):
        file = CSVFile.open(path, encoding, "\t" if suffix == ".tsv" else delimiter)
    return _with_columns(path, file)


def _parts(folder: Path) -> list[Path]:
    parts = parquet_parts(folder)
    if not parts:
        raise TableError(f"{folder}: the folder holds no .parquet files.")
    return parts


def parquet_parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, in the order of their names."""
    # names with these beginnings are marks of the programs that write such folders
    return sorted(
        part
        for part in folder.rglob("*")
        if part.suffix.lower() in PARQUET and not part.name.startswith(("_", "."))
    )


def _with_columns(path: Path, table: TableFile) -> TableFile:
    if not table.names:
        raise TableError(f"{path}: the table has no columns.")
    return table


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file into one sentence that quotes nothing of it."""
    try:
        yield
    except TableError:
        raise
    except FileNotFoundError:
        words = "there is no such file or folder"
    except PermissionError:
        words = "permission to read it was denied"
    except (pa.ArrowException, OSError, ValueError, OverflowError, EOFError):
        kind = "Arrow" if path.suffix.lower() in ARROW else "Parquet"
        kind = "CSV" if path.suffix.lower() in CSV else kind
        kind = "text" if path.suffix.lower() in JSON_LINES else kind
        words = f"the file is not {kind}, or it is damaged or cut off"
    else:
        return
    raise TableError(f"{path}: {words}.") from None
