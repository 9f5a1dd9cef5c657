"""Rows that ``tacit label`` reads: private ones, and public ones to label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit._random import as_generator
from tacit.cli._console import Rejected
from tacit.data._files.table_files import open_table
from tacit.data.rows import UNREADABLE, cells_of
from tacit.tables import Schema, batches, read_rows
from tacit.tables._encode import text_of
from tacit.tables._text import canonical

__all__ = ["Pool", "Rows", "read_pool", "read_private"]


@dataclass(frozen=True)
class Pool:
    """Public rows to label: their features, and their columns as they were.

    Parameters
    ----------
    X
        Features by the schema, one row a row.
    columns
        What of the table may be told.
    n_queries
        How many rows are asked about.
    """

    X: NDArray[np.float64]
    columns: Any
    n_queries: int

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Rows to ask about, in the order of the questions.

        They are shuffled by a fixed seed, as answers may end before the rows do and a
        table may be sorted.
        """
        return as_generator(0).permutation(len(self.X))[: self.n_queries]

    @property
    def digest(self) -> str:
        """Digest of all questions."""
        questions = np.ascontiguousarray(self.X[self.order])
        return sha256(repr(questions.shape).encode() + questions.tobytes()).hexdigest()


@dataclass(frozen=True)
class Rows:
    """Private rows and targets, and whose each is."""

    X: Any
    y: Any
    ids: NDArray[Any] | None = None


def read_pool(
    path: Path,
    schema: Schema,
    queries: int | None,
    *,
    features_only: bool = False,
    **reading: Any,
) -> Pool:
    """Return the public rows of a file; its target is left out where it has one.

    With ``features_only`` all other columns are left out too: nobody said that they are
    public, and one of them may tell the target.
    """
    assert schema.target is not None
    names = open_table(path, **reading).names
    if features_only:
        features = {c.name for c in schema.columns if c.kind != "ignore"}
        names = [name for name in names if name in features]
    else:
        names = [name for name in names if name != schema.target.name]
    blocks = list(batches(path, schema, keep=names, **reading))
    X = np.concatenate([block.X for block in blocks])
    columns = pa.Table.from_batches([block.kept for block in blocks])
    if queries is not None and queries > len(X):
        raise Rejected(
            f"--queries must be at most {len(X)}, the number of rows to label, got "
            f"{queries}."
        )
    return Pool(X, columns, len(X) if queries is None else queries)


def read_private(
    path: Path, schema: Schema, ids: str | None, shown: bool, **reading: Any
) -> Rows:
    """Return private rows, and whose each is where a column names the person.

    A schema has no place for names: the column is ``"ignore"`` in it, and is read
    beside as text, in which 7.0 is 7: one missing name turns a column of integers into
    floats. Rows without a name count as one person's.
    """
    X, y = read_rows(path, schema, progress=shown, **reading)
    if ids is None:
        return Rows(X, y)
    names: list[str] = []
    for block in batches(path, schema, keep=[ids], **reading):
        found = cells_of(block.kept.column(ids))
        names += ("" if c is UNREADABLE else canonical(text_of(c)) for c in found)
    # as objects: in an array of strings each would be as long as the longest
    return Rows(X, y, np.array(names, dtype=object))
