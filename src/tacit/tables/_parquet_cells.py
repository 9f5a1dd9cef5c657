"""Cells of Parquet files, of which one that cannot be read spoils its row alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tacit.data.cells import UNREADABLE, cells_of

__all__ = ["UNREADABLE", "cells_of", "group_columns"]

# Under this key a file says which of its texts are to be read as listed categories
ARROW_TYPES = b"ARROW:schema"


def group_columns(
    part: Path, file: Any, group: int, names: Sequence[str]
) -> dict[str, Any]:
    """Return columns of a group of rows, by their names."""
    try:
        table = file.read_row_group(group, columns=list(names))
        return {name: table.column(name) for name in names}
    except pa.ArrowInvalid:
        return {name: _column(part, file, group, name) for name in names}


def _column(part: Path, file: Any, group: int, name: str) -> Any:
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
