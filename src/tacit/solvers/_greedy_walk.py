"""The steps of greedy coordinate descent: choices and updates, and what they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.mechanisms import Exponential
from tacit.mechanisms.weighted import WeightedSampler
from tacit.solvers._columns import weight_after
from tacit.solvers._greedy_scores import TOP

if TYPE_CHECKING:
    from tacit.solvers.greedy_coordinate_descent import GreedyCoordinateDescentPlan

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
    deviation
        Standard deviation of that noise.
    """

    coordinate: int
    gradient: float
    deviation: float


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
        columns: Any,
        squares: Array,
        rng: Generator,
    ) -> None:
        self.plan, self.rng = plan, rng
        self.updater, self.deviation = plan.updater, plan.deviation
        self.updates = plan.updates(squares, plan.clip)
        self.scores = plan.scores(squares)
        self.candidates = plan.candidates
        p = plan.problem.n_features
        self.w, self.n_visits = np.zeros(p), np.zeros(p, dtype=np.int64)
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
        columns = self._private_columns
        self._private_slopes = columns.slopes(self._private_states)
        self._private_full = columns.full_slopes(self._narrow)
        self._private_sums = self._all_sums()
        self._private_stale: list[NDArray[np.int32]] = []
        self._place = np.full(len(self.w), -1, dtype=np.int32)
        self._place[self.candidates] = np.arange(len(self.candidates))
        most_rows = self.plan.problem.most_rows
        self._sampler = WeightedSampler(
            selector.epsilon,
            selector.sensitivity,
            # what is beyond is cut, which moves no score further
            4.0 * most_rows * self.updater.units,
            self._scores(self.candidates),
        )

    def _all_sums(self) -> Integers:
        sums: Integers = self._private_columns.sums(self._private_states, self._narrow)
        return sums

    def _scores(self, at: Integers) -> Array:
        """Return the scores of coordinates ``at``; those that joined are out."""
        scores = self.scores(self._private_sums, self.w, at)
        if self.plan.n_polish > 0:
            # [greedy:joined] which they are was released
            scores[self.n_visits[at] > 0] = -TOP * self.updater.units
        return scores

    def choose(self) -> int:
        """Return a coordinate, chosen privately."""
        if self._sampler is None:
            self._private_sums = self._all_sums()
            place = self.plan.selector(self._scores(self.candidates), self.rng)
        else:
            self._refresh(self._sampler)
            place = self._sampler(self.rng, lambda: self._scores(self.candidates))
        return int(self.candidates[place])

    def settle(self) -> None:
        """Bring the intercept, where there is one, to where choices start from."""
        for _ in range(self.plan.n_settling):
            self.n_visits[-1] = 0  # full steps: the way may be long
            self.join(len(self.w) - 1)

    def join(self, j: int) -> None:
        """Update a coordinate, and let it take part in polishing."""
        if j not in self.joined:
            self.joined.append(j)
        self.visit(j)

    def visit(self, j: int) -> None:
        """Release a partial derivative, and move the weight and all that follows."""
        columns, updates = self._private_columns, self.updates
        self.n_visits[j] += 1
        slower = int(self.n_visits[j]) if self.plan.n_polish > 0 else 1
        total = columns.sum_of(j, self._private_states, updates)
        released = self.updater(total, self.rng)
        new = weight_after(self.w[j], j, released[0], updates, slower)
        delta, self.w[j] = new - float(self.w[j]), new
        if self._sampler is None:
            columns.shift(j, delta, self._private_states)
        else:
            self._follow(j, delta)
        back = float(updates.back[j])
        gradient, off = back * float(released[0]), back * self.deviation
        self.path.append(Visit(j, gradient, off))

    def _follow(self, j: int, delta: float) -> None:
        """Bring the sums that a move changes up to date, and note which they are."""
        changed = self._private_columns.move(
            j,
            delta,
            self._private_states,
            self._private_slopes,
            self._private_full,
            self._private_sums,
            self._narrow,
        )
        # the score of the weight itself changes even where its sum does not
        self._private_stale += [self._place[changed], self._place[[j]]]

    def _refresh(self, sampler: WeightedSampler) -> None:
        """Bring the scores up to date, once for all updates since the last choice."""
        if self._private_stale:
            # a mask, as sorting out what is there twice takes longer than a gradient
            old = np.zeros(len(self.candidates) + 1, dtype=np.bool_)
            for places in self._private_stale:
                old[places] = True  # what is no candidate has the last place
            places = np.flatnonzero(old[:-1]).astype(np.int32)
            sampler.update(places, self._scores(self.candidates[places]))
            self._private_stale.clear()
