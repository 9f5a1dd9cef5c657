"""Frank-Wolfe on sparse rows: a step visits only what it changes.

Margins are kept divided by a public scale that falls with every step, so that rows
without the chosen feature need no visit. Each row is due again at the step, known
beforehand, at which the falling scale has moved its margin too far from the one that
its derivative was computed at. Gradient entries are sums of integers, so taking a
row's old term out and putting the new one in leaves no round-off behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.convex import Loss
from tacit.solvers._gradients.descent import entries_clipped

__all__ = ["SparseGradient"]

Floats = NDArray[np.float64]
Links = NDArray[np.int32]

NONE = -1
# Sums of terms are kept in two parts, of this many low bits and of the rest, as those
# of many rows do not fit in 64 bits
LOW_BITS = 22
LOW = 2**LOW_BITS - 1


class SparseGradient:
    """The gradient of summed losses along a path of vertices.

    Rows are CSR with every entry stored once, within their bounds, and derivatives are
    clipped at ``derivative``. Gradient entries are multiples of ``quantum``. ``scales``
    are the factors that the weights of the first step have after each step, and
    ``staleness`` says how far a margin may be from the one that its row's derivative
    was computed at.
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        *,
        loss: Loss,
        derivative: float,
        quantum: float,
        scales: Floats,
        staleness: float,
    ) -> None:
        n, p = X.shape
        k = loss.n_outputs
        self._private_rows = (X.indptr, X.indices, X.data)
        columns = X.tocsc()
        self._private_columns = (columns.indptr, columns.indices, columns.data)
        self._private_y = y
        self.loss, self.derivative, self.quantum = loss, derivative, quantum
        self.scales, self.staleness = scales, staleness
        # margins over the scale, margins at which derivatives were computed,
        # derivatives
        self._scaled = np.zeros((n, k))
        self._seen = np.zeros((n, k))
        self._derivatives = self._derivative(np.arange(n), self._seen)
        # rows due at a step, as a chain through rows, and back
        self._head = np.full(len(scales) + 1, NONE, dtype=np.int32)
        self._next = np.full(n, NONE, dtype=np.int32)
        self._previous = np.full(n, NONE, dtype=np.int32)
        self._due = np.full(n, NONE, dtype=np.int32)
        self._rows = np.empty(n, dtype=np.int32)
        # the high and the low part of each entry, in quanta
        self.cells = np.zeros((p * k, 2), dtype=np.int64)
        self._marked = np.zeros(p * k, dtype=np.bool_)
        self._changed = np.empty(p * k, dtype=np.int32)
        add_terms(*self._private_rows, self._derivatives, 1 / quantum, self.cells)

    def entries(self, which: Any = slice(None)) -> Floats:
        """Return entries of the gradient, of all by default."""
        # [frank-wolfe:parts] both parts are exact as floats, and their sum is rounded
        high, low = self.cells[which].T
        return np.asarray((high * 2.0**LOW_BITS + low) * self.quantum)

    def move(self, step: int, entry: int, amount: float) -> Links:
        """Add ``amount`` to a weight after the shrink; return what entries changed."""
        # long: two compiled loops with one argument a line
        feature, output = divmod(entry, self.loss.n_outputs)
        scale = self.scales[step]
        count = visit(
            *self._private_columns,
            feature,
            output,
            amount / scale,
            step,
            self.scales,
            self.staleness,
            self._scaled,
            self._seen,
            self._head,
            self._next,
            self._previous,
            self._due,
            self._rows,
        )
        rows = self._rows[:count]
        margins = scale * self._scaled[rows]
        derivatives = self._derivative(rows, margins)
        n_changed = replace_terms(
            *self._private_rows,
            rows,
            margins,
            derivatives,
            1 / self.quantum,
            step,
            self.scales,
            self.staleness,
            self._scaled,
            self._seen,
            self._derivatives,
            self._head,
            self._next,
            self._previous,
            self._due,
            self.cells,
            self._marked,
            self._changed,
        )
        return self._changed[:n_changed]

    def _derivative(self, rows: NDArray[Any], margins: Floats) -> Floats:
        derivatives = self.loss.derivative(self._private_y[rows], margins)
        return entries_clipped(derivatives, self.derivative)


@njit(cache=True)
def term(x: float, derivative: float, per_unit: float) -> np.int64:
    """Return a row's part of a gradient entry, as an integer of quanta."""
    # [frank-wolfe:quantum] a function of the row and its derivative, whatever the
    # history
    return np.int64(np.rint(x * derivative * per_unit))


@njit(cache=True)
def add_terms(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: Floats,
    derivatives: Floats,
    per_unit: float,
    cells: NDArray[np.int64],
) -> None:
    """Add the terms of all rows."""
    n, k = derivatives.shape
    for i in range(n):
        for a in range(indptr[i], indptr[i + 1]):
            for c in range(k):
                entry, new = (
                    indices[a] * k + c,
                    term(data[a], derivatives[i, c], per_unit),
                )
                cells[entry, 0] += new >> LOW_BITS
                cells[entry, 1] += new & LOW


@njit(cache=True)
def _unlink(i: int, head: Links, after: Links, before: Links, due: Links) -> None:
    if due[i] == NONE:
        return
    if before[i] == NONE:
        head[due[i]] = after[i]
    else:
        after[before[i]] = after[i]
    if after[i] != NONE:
        before[after[i]] = before[i]
    due[i] = NONE


@njit(cache=True)
def _schedule(
    i: int,
    step: int,
    scales: Floats,
    staleness: float,
    scaled: Floats,
    seen: Floats,
    head: Links,
    after: Links,
    before: Links,
    due: Links,
) -> None:
    """Put a row in the chain of the first later step that moves it too far."""
    leave = 0.0  # the scale below which some margin is too far off
    for c in range(scaled.shape[1]):
        z = scaled[i, c]
        if z > 0:
            leave = max(leave, (seen[i, c] - staleness) / z)
        elif z < 0:
            leave = max(leave, (seen[i, c] + staleness) / z)
    if leave <= scales[-1]:
        return
    low, high = step + 1, len(scales) - 1
    while low < high:
        middle = (low + high) // 2
        if scales[middle] < leave:
            high = middle
        else:
            low = middle + 1
    if low >= len(scales):
        return
    due[i] = low
    before[i] = NONE
    after[i] = head[low]
    if head[low] != NONE:
        before[head[low]] = i
    head[low] = i


@njit(cache=True)
def visit(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: Floats,
    feature: int,
    output: int,
    amount: float,
    step: int,
    scales: Floats,
    staleness: float,
    scaled: Floats,
    seen: Floats,
    head: Links,
    after: Links,
    before: Links,
    due: Links,
    out: Links,
) -> int:
    """Move the margins of rows with the feature; list rows with stale derivatives."""
    # long: one compiled loop over the rows of a column
    count = 0
    for a in range(indptr[feature], indptr[feature + 1]):
        i = indices[a]
        scaled[i, output] += amount * data[a]
        _unlink(i, head, after, before, due)
        old = False
        for c in range(scaled.shape[1]):
            old |= abs(scales[step] * scaled[i, c] - seen[i, c]) > staleness
        if old:
            out[count] = i
            count += 1
        else:
            _schedule(
                i, step, scales, staleness, scaled, seen, head, after, before, due
            )
    i = head[step]
    while i != NONE:
        out[count] = i
        count += 1
        due[i] = NONE
        i = after[i]
    head[step] = NONE
    return count


@njit(cache=True)
def replace_terms(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: Floats,
    rows: Links,
    margins: Floats,
    new: Floats,
    per_unit: float,
    step: int,
    scales: Floats,
    staleness: float,
    scaled: Floats,
    seen: Floats,
    derivatives: Floats,
    head: Links,
    after: Links,
    before: Links,
    due: Links,
    cells: NDArray[np.int64],
    marked: NDArray[np.bool_],
    changed: Links,
) -> int:
    """Take out the terms of some rows and put in those of their new derivatives."""
    # long: one compiled loop over rows
    count, k = 0, new.shape[1]
    for r in range(len(rows)):
        i = rows[r]
        for a in range(indptr[i], indptr[i + 1]):
            for c in range(k):
                entry = indices[a] * k + c
                put = term(data[a], new[r, c], per_unit)
                out = term(data[a], derivatives[i, c], per_unit)
                # part by part, so that each is the sum over the rows as they are now
                cells[entry, 0] += (put >> LOW_BITS) - (out >> LOW_BITS)
                cells[entry, 1] += (put & LOW) - (out & LOW)
                if not marked[entry]:
                    marked[entry] = True
                    changed[count] = entry
                    count += 1
        for c in range(k):
            derivatives[i, c] = new[r, c]
            seen[i, c] = margins[r, c]
        _schedule(i, step, scales, staleness, scaled, seen, head, after, before, due)
    for a in range(count):
        marked[changed[a]] = False
    return count
