"""Private rows and public rows to label, as ``tacit label`` reads them."""

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

__all__ = ["Pool", "PoolRows", "read_pool", "read_private"]


@dataclass(frozen=True)
class Pool:
    """Public rows to label: their features, and their columns that may be published."""

    X: NDArray[np.float64]
    columns: Any
    n_queries: int

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Indices of the rows to label, in the order of the queries.

        They are shuffled by a fixed seed, because labels may end before the rows do and
        a table may be sorted.
        """
        return as_generator(0).permutation(len(self.X))[: self.n_queries]

    @property
    def digest(self) -> str:
        """Digest of all queries."""
        queries = np.ascontiguousarray(self.X[self.order])
        return sha256(repr(queries.shape).encode() + queries.tobytes()).hexdigest()


@dataclass(frozen=True)
class PoolRows:
    """Private rows and targets, and the person of each row."""

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
    """Return the public rows of a file, without the target.

    With ``features_only`` all other columns are left out too: nobody said that they are
    public, and one of them may reveal the target.
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
) -> PoolRows:
    """Return private rows, with the person of each row if a column has their ids.

    The schema ignores that column, so it is read separately, as strings in which 7.0 is
    7: one missing id turns a column of integers into floats. Rows without an id count
    as those of one person.
    """
    X, y = read_rows(path, schema, progress=shown, **reading)
    if ids is None:
        return PoolRows(X, y)
    names: list[str] = []
    for block in batches(path, schema, keep=[ids], **reading):
        found = cells_of(block.kept.column(ids))
        names += ("" if c is UNREADABLE else canonical(text_of(c)) for c in found)
    # objects, because an array of strings gives each the length of the longest
    return PoolRows(X, y, np.array(names, dtype=object))
