"""Votes of random subsamples, of which each row is in few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers, at_least, one_of
from tacit.exceptions import PlanError
from tacit.mechanisms import NoAnswer, StableRelease
from tacit.mechanisms.subsets import RATE_CELLS, poisson_subset
from tacit.mechanisms.threshold import RULES
from tacit.privacy import Budget, Event
from tacit.stability._base import check_function, require_some_delta
from tacit.stability._rows import seeds_for, votes_of
from tacit.stability._votes import winner_and_distance

__all__ = ["SubsampleVote", "SubsampleVotePlan", "subsample_members"]

# Most calls of a function that a plan allows
MOST_SETS = 10**6
# Probability of no answer in a clear vote
FAILURE = 1e-3


@dataclass(frozen=True)
class SubsampleVotePlan(PlainNumbers):
    """Number of subsamples, rate and release, fixed without data.

    ``rate_cells`` is the probability with which a row is in a subsample, in cells of
    ``2**-53``.
    """

    n_sets: int
    rate_cells: int
    stable: StableRelease

    @property
    def rate(self) -> float:
        """Probability with which a row is in a subsample."""
        return self.rate_cells / RATE_CELLS

    @property
    def most_sets(self) -> int:
        """Subsamples that a row is in, at most."""
        # [subsample:most]
        return 2 * self.n_sets * self.rate_cells // RATE_CELLS

    @property
    def event(self) -> Event:
        return self.stable.event

    @property
    def most_probable(self) -> float:
        """Probability of an answer where all subsamples agree; no data has more."""
        lead = self.n_sets // (2 * self.most_sets)
        return self.stable.release_probability(lead - 1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the function keeps no state between subsamples",
            f"{self.n_sets} subsamples vote; if all agree, the answer is given with "
            f"probability {self.most_probable:.3g}",
        )


@dataclass(frozen=True)
class SubsampleVote:
    """Value that most random subsamples of the rows agree on.

    `BlockVote` makes fewer calls, on more rows each, and needs no more agreement.

    Parameters
    ----------
    function
        As for `BlockVote`.
    accounting
        ``"tight"`` for the largest subsamples with which a lead of a quarter of the
        votes is released, and as many of them as the proof needs; ``"paper"`` for the
        published numbers of both: millions of calls at usual budgets.
    rule
        ``"optimal"`` or ``"laplace"``, as for `tacit.mechanisms.StableRelease`.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private under both relations, for every function
    that keeps no state between subsamples (Smith and Thakurta 2013 [1]_,
    Algorithm 1 and Theorem 5). Subsamples of each row are drawn until it is in no more
    than ``floor(2 n_sets rate)``. Their number comes from the planned rows; the
    published one depends on the data.

    References
    ----------
    .. [1] A. Smith, A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013.
    """

    function: Callable[..., Any]
    accounting: str = "tight"
    rule: str = "optimal"

    # the type of each set of rows depends on its own rows only
    takes_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_function("function", self.function, seeded=True)
        one_of(("tight", "paper"), accounting=self.accounting)
        one_of(RULES, rule=self.rule)

    def plan(self, budget: Budget, n_rows: int) -> SubsampleVotePlan:
        """Choose size and number of the subsamples, from public facts."""
        require_some_delta("SubsampleVote", budget)
        at_least(1, n_rows=n_rows)
        epsilon, delta = budget.epsilon, budget.delta
        # logarithms of one over delta, and of the rows over delta
        surely = -log(delta)
        for_all = log(n_rows) + surely
        if self.accounting == "paper":
            rate = epsilon / (32 * surely)
            if rate >= 0.25:
                raise PlanError(
                    "accounting='paper' releases nothing at so large an epsilon, got "
                    f"{epsilon!r}; use accounting='tight'."
                )
            n_sets = ceil(for_all / rate**2)
        else:
            rate = tight_rate(epsilon, delta, self.rule)
            n_sets = ceil(max(3 * for_all / rate, 32 * surely))
        # each row is in one subsample on average, at least
        n_sets = max(n_sets, ceil(1 / rate))
        if n_sets > MOST_SETS:
            raise PlanError(
                f"SubsampleVote would call the function {n_sets} times; use BlockVote, "
                "or raise epsilon."
            )
        cells = int(rate * RATE_CELLS)
        stable = StableRelease(epsilon, delta, self.rule)
        return SubsampleVotePlan(n_sets, cells, stable)

    def run(
        self, plan: SubsampleVotePlan, X: Any, y: Any, rng: Generator
    ) -> Any | NoAnswer:
        """Return the value of most subsamples, or `NoAnswer`."""
        seeds = seeds_for(self.function, plan.n_sets, rng)
        sets = subsample_members(X.shape[0], plan, rng)
        votes = votes_of(self.function, X, y, sets, seeds)
        found = winner_and_distance(votes, changed=plan.most_sets)
        return plan.stable(*found, rng)


def tight_rate(epsilon: float, delta: float, rule: str = "optimal") -> float:
    """Return the largest sampling rate at which a clear vote is released.

    A vote is clear if the winner leads by a quarter of the votes.
    """
    distance = StableRelease(epsilon, delta, rule).distance_needed(FAILURE)
    return 1 / (16 * (distance + 1))


def subsample_members(
    n_rows: int, plan: SubsampleVotePlan, rng: Generator
) -> list[NDArray[np.intp]]:
    """Return the rows of each subsample, in rising order, drawn without the data."""
    chosen = [_sets_of_a_row(plan, rng) for _ in range(n_rows)]
    rows = np.repeat(np.arange(n_rows), [len(sets) for sets in chosen])
    sets = np.concatenate([*chosen, np.empty(0, dtype=np.intp)])
    order = np.argsort(sets, kind="stable")
    ends = np.searchsorted(sets[order], np.arange(plan.n_sets + 1))
    return [rows[order[ends[i] : ends[i + 1]]] for i in range(plan.n_sets)]


def _sets_of_a_row(plan: SubsampleVotePlan, rng: Generator) -> NDArray[np.intp]:
    """Return the subsamples of one row, drawn again while they are too many."""
    # [subsample:table] each row by itself, so that no other row sees a redraw
    while True:
        sets = poisson_subset(plan.n_sets, plan.rate_cells, rng)
        if len(sets) <= plan.most_sets:
            return sets
