"""Predictions block by block, from a file into a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from tacit.cli._console import Rejected
from tacit.persistence import SavedModel
from tacit.tables import Schema, batches

__all__ = ["SUFFIXES", "fill_table", "predictions", "write_table"]

# Files that tables are written to
SUFFIXES = (".csv", ".parquet")


def predictions(
    saved: SavedModel,
    data: Path,
    keep: tuple[str, ...],
    probabilities: bool,
    **reading: Any,
) -> Iterator[pa.Table]:
    """Yield tables of kept columns and predictions."""
    assert saved.schema is not None
    schema = Schema.from_dict(saved.schema)
    assert schema.target is not None  # a model was fitted to it
    model, name = saved.estimator, schema.target.name
    added = [name]
    if probabilities:
        added += [f"{name}={label}" for label in model.classes_]
    if set(added) & set(keep):
        raise Rejected(f"--keep cannot keep {name!r}, which is what is predicted.")
    for block in batches(data, schema, keep=keep, **reading):
        columns: dict[str, Any] = {key: block.kept[key] for key in keep}
        columns[name] = pa.array(model.predict(block.X))
        if probabilities:
            chances = model.predict_proba(block.X).T
            columns.update(zip(added[1:], chances, strict=True))
        yield pa.table(columns)


def write_table(path: Path, blocks: Iterator[pa.Table]) -> int:
    """Write blocks to a file that appears whole or not at all; return the rows."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        rows = fill_table(partial, blocks, path.suffix)
        if not rows:
            raise Rejected("DATA holds no row to predict.")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return rows


def fill_table(path: Any, blocks: Iterable[pa.Table], suffix: str) -> int:
    """Write blocks to a file of a kind, ``.csv`` or ``.parquet``; return the rows."""
    kind = csv.CSVWriter if suffix == ".csv" else parquet.ParquetWriter
    rows = 0
    writer: Any = None
    for block in blocks:
        writer = writer or kind(path, block.schema)
        writer.write_table(block)
        rows += len(block)
    if writer is not None:
        writer.close()
    return rows
