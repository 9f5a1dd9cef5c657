"""Neighbors drawn by hypothesis: rows of every size and place, which shrink well."""

from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from tacit._random import as_generator
from tacit.privacy import Neighbors

__all__ = [
    "ADD",
    "REPLACE",
    "NeighborPair",
    "Row",
    "numbers",
    "pairs_of",
    "sampled_rows",
]

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
LARGEST = float(np.finfo(np.float64).max)
# nothing, at the bound, inside, next to nothing, far outside: the simplest come first
SPECIAL = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-9, 1e9, -1e9]
EXTREME = [5e-324, -5e-324, 1e-300, 1e300, -1e300, LARGEST, -LARGEST]


@dataclass(frozen=True)
class Row:
    """One row: its features, and its target or the number of its class."""

    x: tuple[float, ...]
    y: float

    def __repr__(self) -> str:
        x = ", ".join(f"{value:.4g}" for value in self.x)
        return f"({x}; y={self.y:.4g})"


@dataclass(frozen=True)
class NeighborPair:
    """Two data sets that differ in one row.

    Parameters
    ----------
    kinds
        The rows of the first data set, which take turns up to ``n_rows``.
    positions
        Where the rows of one person stand.
    row
        What they are in the first data set.
    other
        What they are in the second; None where they are taken away.
    n_steps
        Steps in which rows come, the same number in each; 0 for all at once.
    """

    kinds: tuple[Row, ...]
    n_rows: int
    positions: tuple[int, ...]
    row: Row
    other: Row | None
    is_sparse: bool = False
    classes: bool = False
    n_steps: int = 0

    @property
    def first(self) -> tuple[Any, ...]:
        """Rows and targets of the first data set, or of each step."""
        return self._side(self.row)

    @property
    def second(self) -> tuple[Any, ...]:
        """Rows and targets of the second data set, or of each step."""
        return self._side(self.other)

    def _side(self, here: Row | None) -> tuple[Any, ...]:
        rows: list[Row | None] = list(islice(cycle(self.kinds), self.n_rows))
        for position in self.positions:
            rows[position] = here
        if not self.n_steps:
            return self._table([row for row in rows if row is not None])
        size = self.n_rows // self.n_steps
        steps = (rows[i : i + size] for i in range(0, self.n_rows, size))
        return tuple(
            self._table([row for row in step if row is not None]) for step in steps
        )

    def _table(self, rows: list[Row]) -> tuple[Any, Any]:
        X = np.array([row.x for row in rows], dtype=np.float64)
        X = X.reshape(len(rows), len(self.row.x))
        y = np.array([row.y for row in rows], dtype=int if self.classes else float)
        return (sparse.csr_array(X) if self.is_sparse else X), y

    def __str__(self) -> str:
        change = "is taken away" if self.other is None else f"becomes {self.other}"
        kinds = ", ".join(map(str, self.kinds)) if len(self.kinds) < 9 else "the fixed"
        layout = ", sparse" if self.is_sparse else ""
        steps = f" in {self.n_steps} steps" if self.n_steps else ""
        positions = ", ".join(map(str, self.positions))
        return (
            f"of {self.n_rows} rows like {kinds}{layout}{steps}, number {positions}, "
            f"{self.row}, {change}"
        )


def sampled_rows(n_rows: int, n_features: int, seed: int = 0) -> tuple[Row, ...]:
    """Return rows that a line through two columns fits, for what answers on no other.

    Their targets are the difference of the first two columns, with noise.
    """
    rng = as_generator(seed)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, n_features)) / np.sqrt(n_features)
    y = X[:, 0] - X[:, 1] + 0.05 * rng.normal(size=n_rows)
    rows = zip(X.tolist(), y.tolist(), strict=True)
    return tuple(Row(tuple(x), target) for x, target in rows)


def numbers(unit: float = 1.0) -> st.SearchStrategy[float]:
    """Return numbers at, inside and far outside of a bound."""
    anything = st.floats(-LARGEST, LARGEST, allow_nan=False)
    # in one list, so that what shrinks gets from the last of it to the first
    drawn = st.sampled_from(SPECIAL + EXTREME) | st.floats(-1.0, 1.0) | anything
    return drawn.map(lambda v: float(np.clip(v * unit, -LARGEST, LARGEST)))


@st.composite
def _rows(draw: Any, n_features: int, targets: Any, unit: float) -> Row:
    """Return a row with one entry, or with many."""
    if draw(st.booleans()):
        x = draw(st.tuples(*[numbers(unit)] * n_features))
    else:
        entries = [0.0] * n_features
        entries[draw(st.integers(0, n_features - 1))] = draw(numbers(unit))
        x = tuple(entries)
    return Row(x, draw(targets))


@st.composite
def pairs_of(
    draw: Any,
    neighbors: Neighbors,
    *,
    n_rows: int = 5,
    n_features: int = 2,
    unit: float = 1.0,
    y_range: tuple[float, float] = (-1.0, 1.0),
    n_classes: int = 0,
    sparse_too: bool = False,
    last: bool = False,
    n_steps: int = 0,
    rows_per_person: int = 1,
    kinds: tuple[Row, ...] = (),
) -> NeighborPair:
    """Return neighbors of few kinds of rows.

    Parameters
    ----------
    unit
        Bound on a row, which some rows keep and others do not.
    y_range
        Range of the targets, which some rows keep and others do not.
    n_classes
        Number of classes; 0 for targets that are numbers.
    last
        Whether a row that is taken away is the last: for solvers that draw a place for
        each row in turn, so that all others keep theirs.
    kinds
        Rows of the first data set; drawn where there are none.
    """
    low, high = y_range
    half = (high - low) / 2
    inside = numbers().map(
        lambda v: float(np.clip(low + half + half * v, -LARGEST, LARGEST))
    )
    targets = st.integers(0, n_classes - 1) if n_classes else inside
    row_of = _rows(n_features, targets, unit)
    kinds = kinds or tuple(draw(st.lists(row_of, min_size=1, max_size=3)))
    row, other = draw(row_of), None
    position = draw(st.sampled_from([0, n_rows - 1, n_rows // 2]))
    # the rows of one person may come next to each other or in other steps
    apart = draw(st.integers(1, 3)) if rows_per_person > 1 else 1
    positions = [(position + i * apart) % n_rows for i in range(rows_per_person)]
    if neighbors is REPLACE:
        # the worst row is often the same one turned round, or with another target
        turned = Row(tuple(-v for v in row.x), row.y)
        relabeled = targets.map(lambda y: Row(row.x, y))
        other = draw(row_of | st.just(turned) | relabeled)
    elif last:
        positions = [n_rows - 1]
    layout = draw(st.booleans()) if sparse_too else False
    return NeighborPair(
        kinds, n_rows, tuple(positions), row, other, layout, n_classes > 0, n_steps
    )
