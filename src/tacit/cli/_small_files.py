"""Small files of labels and ratings, possibly written by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from tacit.cli._console import Rejected
from tacit.data._files.csv_file import of_arrow

__all__ = ["columns_of", "content_of", "label_of", "reading", "table_of"]

# Most bytes of a list of items, or of one user's ratings
MOST_BYTES = 2**28


def columns_of(
    content: bytes, suffix: str, names: Iterable[str], what: str
) -> list[list[Any]]:
    """Return columns of a CSV or Parquet file; cells of CSV stay strings."""
    table = table_of(content, suffix, names, what)
    with reading(what):
        return [table[name].to_pylist() for name in names]


def table_of(content: bytes, suffix: str, names: Iterable[str], what: str) -> pa.Table:
    """Return the table of a CSV or Parquet file with exactly one column per name."""
    with reading(what):
        if content[:4] == b"PAR1":
            table = parquet.read_table(of_arrow(content))
        else:
            table = csv.read_csv(
                of_arrow(content),
                parse_options=csv.ParseOptions(
                    delimiter="\t" if suffix == ".tsv" else ","
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                ),
            )
    for name in names:
        if table.column_names.count(name) != 1:
            raise Rejected(f"{what} must have one column {name!r}; see --columns.")
    return table


def content_of(path: Path, what: str) -> bytes:
    """Return the bytes of a file or of standard input, up to a limit."""
    if str(path) == "-":
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
    elif path.is_dir():
        raise Rejected(f"{what} must be a file, but {path} is a folder.")
    else:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Rejected(f"{what} must have at most {MOST_BYTES} bytes.")
    return content


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Reject an invalid file with a message that quotes nothing of it."""
    try:
        yield
    except (ValueError, TypeError, LookupError, RecursionError, pa.ArrowException):
        wanted = (
            "different labels" if what == "--items" else "items with finite ratings"
        )
        raise Rejected(
            f"{what} must contain {wanted}, as CSV, Parquet or JSON; a part of it "
            "cannot be read."
        ) from None


def label_of(cell: Any) -> str:
    """Return a label as a string."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # numbers with gaps become floats on their way to Parquet
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise TypeError
    return str(cell)
