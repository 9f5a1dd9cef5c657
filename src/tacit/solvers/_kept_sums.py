"""Coordinate sums of sparse rows, kept from one choice to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.solvers._columns import Columns, Updates

__all__ = ["KeptSums"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Share of all rows beyond which a new sum of everything is quicker than exchanges
RECOMPUTE = 0.25


class KeptSums:
    """All coordinate sums, and which of them the moves of weights have changed.

    Parameters
    ----------
    columns
        Private rows, which are sparse.
    states
        States of all rows, which moves change in place.
    updates
        Public numbers by which slopes become sums.
    watched
        Coordinates whose sums are looked at.
    staleness
        How far the slope that a row has in all sums may be from its true one.

    Notes
    -----
    **Bound.** A row has a slope that follows from its own entries, its target and the
    moves alone, whatever other rows there are, and its parts are those of
    `Columns.sums` at this slope, bit for bit: neighbors move a sum as far as they do
    there. With a staleness of zero all slopes are the true ones.
    """

    def __init__(
        self,
        columns: Columns,
        states: Floats,
        updates: Updates,
        watched: Integers,
        staleness: float = 0.0,
    ) -> None:
        from tacit.solvers import _greedy_kernels as kernels  # noqa: PLC0415

        self.updates, self.staleness = updates, float(staleness)
        self._kernels: Any = kernels
        self._private_columns = columns
        self._private_states = states
        self._private_derivatives = columns.derivatives(states)
        self._private_sums = columns.sums(states, updates, self._private_derivatives)
        # parts that are cut at low slopes last: most moves change none of them
        rows = columns.by_row(np.argsort(updates.per_unit, kind="stable"))
        self._private_rows = rows
        n = columns.n_rows
        self._private_rest, self._private_full = np.empty(len(rows[2])), np.empty(n)
        kernels.clip_derivatives(
            *rows,
            updates.per_unit,
            updates.limit,
            self._private_rest,
            self._private_full,
        )
        self._watched = watched.astype(np.int32)
        self._private_seen = self._private_sums.copy()
        self._private_changed = np.empty(len(watched), dtype=np.int32)
        # rows to be renewed, and the slopes that they have in the sums
        self._private_listed = np.zeros(n, dtype=np.bool_)
        self._private_old_rows = np.empty(n, dtype=np.int32)
        self._private_old_derivatives = np.empty(n)
        self._private_count = 0

    def move(self, j: int, delta: float) -> None:
        """Move the states as weight ``j`` grows by ``delta``; sums follow later."""
        columns = self._private_columns
        self._private_count = self._kernels.stale_rows(
            *columns._private_columns,
            j,
            delta,
            self._private_states,
            self._private_derivatives,
            self._private_full,
            self.staleness,
            *columns._kind,
            self._private_listed,
            self._private_old_rows,
            self._private_old_derivatives,
            self._private_count,
        )

    def renew(self) -> NDArray[np.int32]:
        """Bring the sums up to date; return where in ``watched`` that changed them."""
        columns, updates = self._private_columns, self.updates
        count = self._private_count
        if count == 0:
            return self._private_changed[:0]
        sums, derivatives = self._private_sums, self._private_derivatives
        rows = self._private_old_rows[:count]
        if count > RECOMPUTE * columns.n_rows:
            sums[:] = columns.sums(self._private_states, updates, derivatives)
        else:
            self._kernels.exchange(
                *self._private_rows,
                self._private_rest,
                rows,
                self._private_old_derivatives,
                derivatives,
                sums,
                updates.per_unit,
                updates.limit,
            )
        self._private_listed[rows] = False
        self._private_count = 0
        n_changed = self._kernels.changed_sums(
            sums, self._private_seen, self._watched, self._private_changed
        )
        return self._private_changed[:n_changed]
