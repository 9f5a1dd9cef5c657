"""Rows of a fit: checked before the charge, divided among teachers after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_regressor

from tacit._estimators import (
    checked_shape,
    checked_targets,
    checked_values,
    listed,
    numeric,
)
from tacit._random import keyed_generator
from tacit._resumable.record import estimator_string, fingerprint
from tacit._validate import public_range
from tacit.data import RowBounds
from tacit.data.bounds import canonical
from tacit.data.rows import in_columns
from tacit.ensemble._answers import FitStart
from tacit.ensemble._chunks import checked_ids, chunk_members, id_bytes, row_digests
from tacit.ensemble._labeler_plan import (
    LabelerPlan,
    declared_input,
    least_rows,
    public_classes,
    voting_of,
)
from tacit.ensemble._teachers import train_teachers
from tacit.mechanisms.subsets import random_seeds
from tacit.privacy import Neighbors
from tacit.stability._rows import check_selectable

__all__ = [
    "TrainingRows",
    "as_rows",
    "check_declared_input",
    "checked_queries",
    "checked_rows",
    "one_row",
    "teacher_seeds",
    "train_on",
]


def as_rows(X: Any) -> Any:
    """Return rows that can be indexed, as an array, table or CSR matrix.

    Types of columns are the caller's. Lists must hold numbers, as NumPy would turn all
    rows into strings for the sake of one.
    """
    if sparse.issparse(X):
        return canonical(X)
    X = in_columns(X)
    if hasattr(X, "iloc"):
        check_selectable("X", X)
        return X
    if hasattr(X, "shape"):
        return np.asarray(X)
    cells = listed(X)
    # other shapes are rejected elsewhere, with their own message
    return checked_values(cells, finite=False) if cells.ndim == 2 else cells


def one_row(x: Any) -> Any:
    """Return one query as a table of one row."""
    if hasattr(x, "iloc") and x.ndim == 1:
        # a row of a data frame is a column of objects, and has lost their types
        x = x.to_frame().T.infer_objects()
    elif not hasattr(x, "shape"):
        cells = np.asarray(x, dtype=object)
        x = [x] if cells.ndim == 1 else x
    elif len(x.shape) == 1 and not sparse.issparse(x):
        x = np.asarray(x)[None]
    table = as_rows(x)
    if len(table.shape) == 2 and table.shape[0] != 1:
        raise ValueError(
            f"x must be one row, got {table.shape[0]}; use label for several."
        )
    return table


# Where strings become numbers: each teacher learns the encoding from its own rows
WITHIN = "within estimator, such as by a Pipeline with a OneHotEncoder"
PEOPLE = "rows with the same id are of one person, and protected together"


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """Private rows to learn from, and the public classes; None for numbers."""

    _private_X: Any
    _private_y: Any
    _private_ids: Any
    classes: Any

    def __len__(self) -> int:
        return int(self._private_X.shape[0])

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on besides the plan."""
        return () if self._private_ids is None else (PEOPLE,)

    def learnable(self, labeler: Any) -> TrainingRows:
        """Return rows with valid targets, clipped to the public range."""
        check_declared_input(labeler.estimator, self._private_X)
        if self.classes is None:
            low, high = public_range(labeler.y_range)
            return replace(
                self, _private_y=np.clip(numeric(self._private_y), low, high)
            )
        codes = RowBounds(classes=tuple(self.classes.tolist())).codes(self._private_y)
        return replace(self, _private_y=self.classes[codes])

    def digest(self, planned: LabelerPlan, estimator: Any, key: bytes) -> bytes:
        """Return the digest that keys all noise, with the key and the queries.

        Other rows, learners or plans get other noise, also under a key that was used
        before. Cells of unknown types are rejected where chunks depend on the contents
        of rows.
        """
        found = sha256((fingerprint(planned) + estimator_string(estimator)).encode())
        counted = planned.budget.neighbors is Neighbors.REPLACE_ONE
        by_contents = self._private_ids is None and not counted
        # [ensemble:rows]
        for digest in row_digests(
            self._private_X, self._private_y, key, exact=by_contents
        ):
            found.update(digest)
        for one in id_bytes(self._private_ids or []):
            found.update(sha256(one).digest())
        return found.digest()


def takes_sparse(estimator: Any) -> bool:
    """Return whether a learner may take sparse rows."""
    declared = declared_input(estimator)
    return declared is None or bool(declared.sparse)


def check_declared_input(estimator: Any, X: Any) -> None:
    """Raise where a learner declares that it does not take such rows.

    It would fail on whole chunks or batches, and all teachers would vote the default.
    """
    declared = declared_input(estimator)
    if declared is None or declared.string:
        return
    if hasattr(X, "iloc") and declared.categorical:
        X = X.iloc[:, [kind.name != "category" for kind in X.dtypes]]
    if X.shape[1]:
        checked_values(
            X, accept_sparse=True, finite=not declared.allow_nan, encode=WITHIN
        )


def checked_queries(labeler: Any, table: Any) -> int:
    """Return the number of public rows, whose columns and types are checked."""
    n_rows, _ = checked_shape(
        labeler,
        table,
        fitting=False,
        least_rows=0,
        accept_sparse=takes_sparse(labeler.estimator),
    )
    check_declared_input(labeler.estimator, table)
    return n_rows


def checked_rows(labeler: Any, X: Any, y: Any, ids: Any) -> TrainingRows:
    """Return rows of checked shapes and types; values are read for classes only."""
    table = as_rows(X)
    n_rows, _ = checked_shape(
        labeler,
        table,
        fitting=True,
        least_rows=least_rows(labeler),
        accept_sparse=takes_sparse(labeler.estimator),
    )
    y = checked_targets(y, n_rows, labels=not is_regressor(labeler.estimator))
    ids = checked_ids(ids, n_rows, labeler.neighbors)
    return TrainingRows(table, y, ids, public_classes(labeler, y))


def teacher_seeds(planned: LabelerPlan, key: bytes) -> list[int]:
    """Return a seed for each teacher, independent of the rows."""
    return random_seeds(planned.n_teachers, keyed_generator(key, "seeds"))


def train_on(
    labeler: Any, rows: TrainingRows, planned: LabelerPlan, start: FitStart
) -> Any:
    """Return trained teachers. No row changes which teacher another row reaches."""
    key = start._private_key
    # [ensemble:chunks] by the key and the row only
    chunks = chunk_members(
        rows._private_X,
        rows._private_y,
        planned.n_teachers,
        key=sha256(b"chunks" + key).digest(),
        neighbors=planned.budget.neighbors,
        ids=rows._private_ids,
    )
    return train_teachers(
        labeler.estimator,
        rows._private_X,
        rows._private_y,
        chunks,
        voting_of(labeler, rows.classes),
        seeds=teacher_seeds(planned, key),
        n_jobs=labeler.n_jobs,
        folder=start.folder,
        verbose=labeler.verbose,
    )
