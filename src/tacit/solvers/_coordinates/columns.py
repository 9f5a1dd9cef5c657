"""Private rows stored by feature, for solvers that update one weight at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.convex import Huber, HuberizedHinge, Logistic, Loss, Squared
from tacit.convex.losses import has_residuals
from tacit.exceptions import PlanError

__all__ = ["Columns", "Updates", "check_loss", "weight_after", "weights_after"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Margins of weights within this many over the largest entry of a row never overflow
LARGEST_MARGIN = 1e60
LARGEST_WEIGHT = 1e150
# Beyond this a sum is all but a count of signs, and products must stay finite
MOST_PER_UNIT = 1e100


@dataclass(frozen=True, eq=False)
class Updates:
    """Public numbers by which derivatives become sums, and sums become updates.

    A derivative of one counts ``per_unit`` integers on each feature, ``units / C_j``,
    of which a row adds ``limit`` at most, ``units``; ``back`` is what an integer of
    each sum stands for. ``step`` is for a gradient in sum units, and penalties and ends
    of the weights are as `coordinate_parts` returns them.
    """

    per_unit: Floats
    back: Floats
    limit: float
    step: Floats
    l1: Floats
    l2: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(
        cls,
        clips: Floats,
        units: int,
        step: Floats,
        parts: tuple[Floats, Floats, Floats, Floats],
        x_norm: float,
    ) -> Updates:
        """Return the numbers for parts of a row clipped at ``clips``, ``C_j``.

        ``parts`` are ``l1, l2, low, high`` and ``x_norm`` bounds the entries of a row:
        weights are kept where no margin can overflow.
        """
        clips, step = (np.array(a, dtype=np.float64) for a in (clips, step))
        l1, l2, low, high = (np.array(a, dtype=np.float64) for a in parts)
        most = min(LARGEST_MARGIN / x_norm, LARGEST_WEIGHT)
        return cls(
            per_unit=np.minimum(units / clips, MOST_PER_UNIT),
            back=clips / units,
            limit=float(units),
            step=step,
            l1=l1,
            l2=l2,
            low=np.maximum(low, -most),
            high=np.minimum(high, most),
        )

    def table(self, w: Floats, order: Integers) -> tuple[Floats, Integers]:
        """Return a line for each weight that a pass visits, and the line of each visit.

        A line is the weight and the numbers of its update, in the order of the kernels.
        """
        visited, seats = np.arange(len(w)), order
        if len(order) < len(w):  # a short pass does not look at every weight
            visited, seats = np.unique(order, return_inverse=True)
        table = np.empty((len(visited), 8))
        columns = (np.asarray(w, dtype=np.float64), self.per_unit, self.back)
        for position, values in enumerate((*columns, *self.proximal)):
            table[:, position] = values[visited]
        return table, seats

    @cached_property
    def lines(self) -> Floats:
        """What a proximal step takes, a line for each weight."""
        return np.column_stack(self.proximal)

    @property
    def proximal(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return what a proximal step takes."""
        return self.step, self.l1, self.l2, self.low, self.high


def check_loss(loss: Loss, solver: str) -> None:
    """Reject a loss that the kernels do not know."""
    if not isinstance(loss, (Squared, Huber, Logistic, HuberizedHinge)):
        raise PlanError(
            f"{solver} is for Squared(), Huber(), Logistic() and HuberizedHinge(), got "
            f"{loss!r}; use one of these."
        )


def _kind(loss: Loss) -> tuple[int, float]:
    """Return the kernel's name of a loss, and its one parameter."""
    from tacit.solvers._coordinates import kernels  # noqa: PLC0415

    check_loss(loss, "Coordinate descent")
    if isinstance(loss, Huber):
        return kernels.HUBER, loss.threshold
    if isinstance(loss, Logistic):
        return kernels.LOGISTIC, loss._knee
    if isinstance(loss, HuberizedHinge):
        return kernels.HINGE, loss.h
    return kernels.SQUARED, 0.0


class Columns:
    """The rows of a problem, an array or a CSR matrix, feature by feature.

    The state of a row is its residual ``z - y`` for losses of the residual. For losses
    of labels -1 and 1 it is the signed margin ``y z``, and columns are stored times the
    label. The derivative is then a function of the state only.

    Notes
    -----
    **Bound.** A row's part of a coordinate sum is an integer between ``-limit`` and
    ``limit`` that depends on the row and the weights only, bit for bit. Sums are
    exact, modulo 2^64. Removing a row moves a sum by at most ``limit`` and replacing
    one by at most ``2 * limit``.
    """

    def __init__(self, X: Any, y: NDArray[Any], loss: Loss) -> None:
        from tacit.solvers._coordinates import kernels  # noqa: PLC0415

        self._kind = _kind(loss)
        signs = np.asarray(y, dtype=np.float64)
        residual = has_residuals(loss)
        self._private_start = -signs if residual else np.zeros(len(signs))
        self.is_sparse = bool(sparse.issparse(X))
        self.n_rows, self.n_features = X.shape
        # looked up once: one sum takes no longer than the lookup
        self._sum_of: Any = kernels.sum_sparse if self.is_sparse else kernels.sum_dense
        if self.is_sparse:
            columns = sparse.csc_array(X, dtype=np.float64, copy=True)
            # an entry stored in two pieces would be clipped piece by piece
            columns.sum_duplicates()
            if not residual:
                columns.data *= signs[columns.indices]
            self._private_A: Any = columns
            self._private_columns: tuple[Any, ...] = _arrays(columns)
        else:
            A = np.array(np.asarray(X).T, dtype=np.float64, order="C")
            if not residual:
                A *= signs
            self._private_A = A
            self._private_columns = (A,)

    def state(self, w: Floats) -> Floats:
        """Return the states of all rows at these weights."""
        from tacit.solvers._coordinates import greedy_kernels as kernels  # noqa: PLC0415

        t = self._private_start.copy()
        add: Any = kernels.state_sparse if self.is_sparse else kernels.state_dense
        add(*self._private_columns, np.asarray(w, dtype=np.float64), t)
        return t

    def update_all(
        self,
        w: Floats,
        t: Floats,
        order: Integers,
        updates: Updates,
        *,
        noise: Integers | None = None,
        released: Integers | None = None,
    ) -> tuple[Integers, Integers]:
        """Update along ``order``, and move the states ``t`` in place.

        Give ``noise`` to release each sum with it, or ``released`` to follow what was
        released before. Returns what was released and the private sums; ``w`` stays.
        """
        from tacit.solvers._coordinates import kernels  # noqa: PLC0415

        given = released if noise is None else noise
        if given is None or (noise is not None and released is not None):
            raise ValueError("Give exactly one of noise and released.")
        order = np.asarray(order, dtype=np.int64)
        table, seats = updates.table(w, order)
        out, sums = np.empty((2, len(order)), dtype=np.int64)
        kernel: Any = kernels.pass_sparse if self.is_sparse else kernels.pass_dense
        kernel(
            *self._private_columns,
            table,
            t,
            order,
            seats,
            np.asarray(given, dtype=np.int64),
            noise is None,
            out,
            sums,
            updates.limit,
            *self._kind,
        )
        return out, sums

    def derivatives(self, t: Floats) -> Floats:
        """Return the derivatives of all rows."""
        from tacit.solvers._coordinates import greedy_kernels as kernels  # noqa: PLC0415

        out = np.empty_like(t)
        kernels.derivatives_of(t, *self._kind, out)
        return out

    def sums(
        self, t: Floats, updates: Updates, derivatives: Floats | None = None
    ) -> Integers:
        """Return all coordinate sums, at given derivatives if there are any."""
        from tacit.solvers._coordinates import greedy_kernels as kernels  # noqa: PLC0415

        derivatives = self.derivatives(t) if derivatives is None else derivatives
        out = np.empty(self.n_features, dtype=np.int64)
        add: Any = kernels.sums_sparse if self.is_sparse else kernels.sums_dense
        add(*self._private_columns, derivatives, updates.per_unit, updates.limit, out)
        return out

    def sum_of(self, j: int, t: Floats, updates: Updates) -> Integers:
        """Return one coordinate sum, as an array of one: what a pass would find."""
        one = self._sum_of
        scale, limit = updates.per_unit[j], updates.limit
        return np.array([one(*self._private_columns, j, t, scale, limit, *self._kind)])

    def square_sums(self, x_norm: float, units: int) -> Integers:
        """Return sums of ``(x_ij / x_norm)^2 * units``, in integers."""
        from tacit.solvers._coordinates import greedy_kernels as kernels  # noqa: PLC0415

        A = self._private_A
        columns = np.split(A.data, A.indptr[1:-1]) if self.is_sparse else A
        found = [kernels.squares(c, 1.0 / x_norm, float(units)) for c in columns]
        return np.array(found, dtype=np.int64)

    def shift(self, j: int, delta: float, t: Floats) -> None:
        """Move the states as weight ``j`` grows by ``delta``, and nothing else."""
        from tacit.solvers._coordinates import kernels  # noqa: PLC0415

        move: Any = kernels.shift_sparse if self.is_sparse else kernels.shift_dense
        move(*self._private_columns, j, delta, t)

    def by_row(self, order: Integers) -> tuple[Any, Any, Floats]:
        """Return a copy of sparse rows, the features of each in this order."""
        rows = self._private_A[:, order].tocsr()
        return rows.indptr, order[rows.indices].astype(np.uint32), rows.data


def weight_after(
    w: float, j: int, released: int, updates: Updates, slower: float = 1.0
) -> float:
    """Return weight ``j`` after one update, by a step over ``slower``."""
    from tacit.solvers._coordinates import kernels  # noqa: PLC0415

    step, l1, l2, low, high = updates.lines[j].tolist()
    change = float(updates.back[j]) * released
    return float(kernels.moved_weight(w, change, step / slower, l1, l2, low, high))


def _arrays(X: Any) -> tuple[Any, Any, Floats]:
    """Return the arrays of a matrix; unsigned indices are faster to look up."""
    unsigned = np.uint32 if X.indices.dtype == np.int32 else np.uint64
    return X.indptr, X.indices.view(unsigned), X.data


def weights_after(
    w: Floats,
    order: Integers,
    released: Integers,
    updates: Updates,
    average: bool = False,
) -> Floats:
    """Return the weights that a pass along ``order`` ends at, from what it released.

    With ``average`` it is the mean of the weights after each update instead.
    """
    from tacit.solvers._coordinates import kernels  # noqa: PLC0415

    new = np.array(w, dtype=np.float64)
    order, released = (np.asarray(a, dtype=np.int64) for a in (order, released))
    kernels.follow_weights(
        new, order, released, updates.back, *updates.proximal, average
    )
    return new
