"""The steps of greedy coordinate descent: choices and updates, and what they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.mechanisms import Exponential
from tacit.mechanisms.weighted import WeightedSampler
from tacit.solvers._columns import Columns, weight_after
from tacit.solvers._kept_sums import KeptSums

if TYPE_CHECKING:
    from tacit.solvers._greedy_plan import GreedyCoordinateDescentPlan

__all__ = ["Visit", "Walk"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Visit(NamedTuple):
    """What one update released.

    Parameters
    ----------
    coordinate
        Which weight was moved.
    gradient
        Its partial derivative with noise, of the sum over rows, slopes cut.
    std
        Standard deviation of that noise.
    """

    coordinate: int
    gradient: float
    std: float


class Walk:
    """Weights that are released, and the private state that follows them.

    Parameters
    ----------
    plan
        What to do.
    columns
        Private rows.
    squares
        Mean squares of columns, from now on public.
    rng
        Where noise comes from.
    """

    def __init__(
        self,
        plan: GreedyCoordinateDescentPlan,
        columns: Columns,
        squares: Array,
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
            # what is beyond is cut, which moves no score further
            4.0 * most_rows * self.updater.units,
            self._scores(self.candidates),
        )

    def _all_sums(self) -> Integers:
        return self._private_columns.sums(self._private_states, self._narrow)

    def _scores(self, at: Integers) -> Array:
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
