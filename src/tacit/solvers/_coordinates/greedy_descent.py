"""The steps of greedy coordinate descent: choices, updates and coordinate sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.mechanisms import Exponential
from tacit.mechanisms.weighted import WeightedSampler
from tacit.solvers._coordinates.columns import Columns, Updates, weight_after

if TYPE_CHECKING:
    from tacit.solvers._coordinates.greedy_plan import GreedyCoordinateDescentPlan

__all__ = ["GreedyDescent", "KeptSums", "Visit"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Fraction of all rows beyond which a new sum of everything is quicker than exchanges
RECOMPUTE = 0.25


class KeptSums:
    """All coordinate sums of sparse rows, and which of them moves of weights changed.

    Moves change ``states`` in place, and sums at ``watched`` are looked at. The
    derivative that a row has in all sums may be as far as ``staleness`` from its true
    one.

    Notes
    -----
    **Bound.** A row has a derivative that follows from its own entries, its target and
    the moves only, whatever other rows there are, and its parts are those of
    `Columns.sums` at this derivative, bit for bit: neighbors move a sum as far as they
    do there. With a staleness of zero all derivatives are the true ones.
    """

    def __init__(
        self,
        columns: Columns,
        states: Floats,
        updates: Updates,
        watched: Integers,
        staleness: float = 0.0,
    ) -> None:
        from tacit.solvers._coordinates import greedy_kernels as kernels  # noqa: PLC0415

        self.updates, self.staleness = updates, float(staleness)
        self._kernels: Any = kernels
        self._private_columns = columns
        self._private_states = states
        self._private_derivatives = columns.derivatives(states)
        self._private_sums = columns.sums(states, updates, self._private_derivatives)
        # parts that are clipped at low derivatives last: most moves change none of them
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
        # rows to be renewed, and the derivatives that they have in the sums
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


class Visit(NamedTuple):
    """Released numbers of one update.

    Parameters
    ----------
    coordinate
        Which weight was moved.
    gradient
        Its partial derivative with noise, of the sum over rows, clipped derivatives.
    std
        Standard deviation of that noise.
    """

    coordinate: int
    gradient: float
    std: float


class GreedyDescent:
    """Weights that are released, and the private state that follows them.

    ``squares`` are mean squares of columns, from now on public.
    """

    def __init__(
        self,
        plan: GreedyCoordinateDescentPlan,
        columns: Columns,
        squares: Floats,
        rng: Generator,
    ) -> None:
        self.plan, self.rng = plan, rng
        self.updater, self.std = plan.updater, plan.std
        self.updates = plan.updates(squares, plan.clip)
        self.scores = plan.scores(squares)
        self.candidates = plan.candidates
        p = plan.problem.n_features
        self.w, self.n_visits = np.zeros(p), np.zeros(p, dtype=np.int64)
        self.out_of = np.zeros(p, dtype=np.bool_)
        self.joined: list[int] = []
        self.path: list[Visit] = []
        self._narrow = plan.updates(squares, plan.selection_clip)
        self._private_columns = columns
        self._private_states = columns.state(self.w)
        self._sampler: WeightedSampler | None = None
        selector = plan.selector
        if columns.is_sparse and type(selector) is Exponential and plan.noise == "grid":
            self._start_sampler(selector)

    def _start_sampler(self, selector: Exponential) -> None:
        """Keep sums and scores from one choice to the next."""
        self._private_kept = KeptSums(
            self._private_columns,
            self._private_states,
            self._narrow,
            self.candidates,
            self.plan.staleness,
        )
        self._private_sums = self._private_kept._private_sums
        self._position = np.full(len(self.w), -1)
        self._position[self.candidates] = np.arange(len(self.candidates))
        self._moved: set[int] = set()
        most_rows = self.plan.problem.most_rows
        self._sampler = WeightedSampler(
            selector.epsilon,
            selector.sensitivity,
            # what is beyond is clipped, which moves no score further
            4.0 * most_rows * self.updater.units,
            self._scores(self.candidates),
        )

    def _all_sums(self) -> Integers:
        return self._private_columns.sums(self._private_states, self._narrow)

    def _scores(self, at: Integers) -> Floats:
        """Return the scores of coordinates ``at``; those that joined are out."""
        return self.scores(self._private_sums, self.w, at, self.out_of)

    def choose(self) -> int:
        """Return a coordinate, chosen privately."""
        if self._sampler is None:
            self._private_sums = self._all_sums()
            position = self.plan.selector(self._scores(self.candidates), self.rng)
        else:
            self._refresh(self._sampler)
            position = self._sampler(self.rng, lambda: self._scores(self.candidates))
        return int(self.candidates[position])

    def _refresh(self, sampler: WeightedSampler) -> None:
        """Bring sums and scores up to date, once for all updates since a choice."""
        # the score of a weight changes even where its sum does not
        moved = np.array(sorted(self._moved), dtype=np.int32)
        for positions in (self._private_kept.renew(), moved):
            if len(positions):
                sampler.update(positions, self._scores(self.candidates[positions]))
        self._moved.clear()

    def settle(self) -> None:
        """Bring the intercept, where there is one, to where choices start from."""
        for _ in range(self.plan.n_settling):
            self.n_visits[-1] = 0  # full steps: the way may be long
            self.join(len(self.w) - 1)
        if self._sampler is not None:
            self._refresh(self._sampler)

    def step(self, t: int) -> None:
        """Make choice number ``t``, and polish as much as is due by then."""
        self.join(self.choose())
        n_steps, n_polish = self.plan.n_steps, self.plan.n_polish
        for k in range(n_polish * t // n_steps, n_polish * (t + 1) // n_steps):
            self.visit(self.joined[k % len(self.joined)])

    def join(self, j: int) -> None:
        """Update a coordinate, and let it take part in polishing."""
        if j not in self.joined:
            self.joined.append(j)
        self.visit(j)

    def visit(self, j: int) -> None:
        """Release a partial derivative, and move the weight and all that follows."""
        columns, updates = self._private_columns, self.updates
        self.n_visits[j] += 1
        slower = 1
        if self.plan.n_polish > 0:
            slower = int(self.n_visits[j])
            # [greedy:joined] which they are was released
            self.out_of[j] = True
        total = columns.sum_of(j, self._private_states, updates)
        released = self.updater(total, self.rng)
        old = float(self.w[j])
        new = weight_after(old, j, int(released[0]), updates, slower)
        delta, self.w[j] = new - old, new
        if self._sampler is None:
            columns.shift(j, delta, self._private_states)
        else:
            self._private_kept.move(j, delta)
            if self._position[j] >= 0:
                self._moved.add(int(self._position[j]))
        back = float(updates.back[j])
        gradient, off = back * float(released[0]), back * self.std
        self.path.append(Visit(j, gradient, off))
