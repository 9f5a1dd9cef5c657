"""Votes of disjoint blocks of rows, whose winner is released if it is stable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from tacit._validate import PlainNumbers, at_least, if_given, one_of, plain
from tacit.mechanisms import Exponential, NoAnswer, StableRelease
from tacit.mechanisms._votes._base import distance_of_lead
from tacit.mechanisms.noise import noise_assumptions
from tacit.mechanisms.selection import check_choice_size
from tacit.mechanisms.subsets import block_members
from tacit.mechanisms.threshold import RULES
from tacit.privacy import BoundedRange, Budget, Event, Neighbors, Repeated, calibrate
from tacit.stability._base import check_function, require_some_delta
from tacit.stability._rows import seeds_for, votes_of

__all__ = [
    "BlockVote",
    "BlockVotePlan",
    "FeatureVote",
    "FeatureVotePlan",
    "blocks_needed",
    "epsilon_of_choice",
    "release_probability",
    "votes_needed",
    "winner_and_distance",
]


def release_probability(
    epsilon: float, delta: float, distance: float, *, rule: str = "optimal"
) -> float:
    """Return the probability that a value at this distance is released."""
    return StableRelease(epsilon, delta, rule).release_probability(distance)


def blocks_needed(
    epsilon: float,
    delta: float,
    *,
    agreement: float = 0.75,
    failure: float = 1e-3,
    rule: str = "optimal",
) -> int:
    """Return the number of blocks with at most this probability of no answer.

    Parameters
    ----------
    epsilon
        Privacy budget.
    delta
        Probability with which the bound may fail.
    agreement
        Fraction of the blocks that vote for the winner, above one half; all others are
        assumed to vote for one other value.
    failure
        Probability of no answer.
    rule
        ``"optimal"`` or ``"laplace"``.

    Notes
    -----
    **Bound.** From that number on, ``floor(agreement * blocks)`` votes for the winner
    put it at a distance that `tacit.mechanisms.StableRelease` releases with
    probability ``1 - failure``.
    """
    if not 0.5 < agreement <= 1:
        raise ValueError(
            f"agreement must be a number with 0.5 < agreement <= 1, got {agreement!r}."
        )
    distance = StableRelease(epsilon, delta, rule).distance_needed(failure)

    def enough(blocks: int) -> bool:
        # rounding: the lead must suffice for the next three numbers too
        return 2 * floor(agreement * blocks) - blocks >= 2 * distance + 1

    blocks = max(1, floor((2 * distance + 1) / (2 * agreement - 1)))
    while not all(enough(blocks + more) for more in range(4)):
        blocks += 1
    return blocks


def winner_and_distance(
    votes: Sequence[Hashable], *, changed: int = 1
) -> tuple[Any, int]:
    """Return the value with most votes and how many rows to change before it loses.

    Parameters
    ----------
    votes
        One plain value for each set of rows: a number, a string, None or a tuple of
        these. Values with the same ``repr`` are the same.
    changed
        Votes that one row can change.

    Notes
    -----
    **Bound.** The distances of neighbors differ by at most one, and are zero where
    their winners differ: one row changes the lead of the winner by at most
    ``2 changed``. A tie goes to the value whose ``repr`` sorts first. For ``changed=1``
    the distance is ``(lead - 1) // 2`` and otherwise ``lead // (2 changed) - 1``, at
    least zero.
    """
    at_least(1, changed=changed)
    if len(votes) == 0:
        return None, 0
    # [vote:order] 1, 1.0 and True are equal to Python, yet they are distinguished
    counts = Counter(repr(vote) for vote in votes)
    values = {repr(vote): vote for vote in votes}
    ranked = sorted(counts, key=lambda shown: (-counts[shown], shown))
    second = counts[ranked[1]] if len(ranked) > 1 else 0
    lead = counts[ranked[0]] - second
    # [vote:distance]
    if changed == 1:
        return values[ranked[0]], distance_of_lead(lead)
    return values[ranked[0]], max(0, lead // (2 * changed) - 1)


@dataclass(frozen=True)
class BlockVotePlan(PlainNumbers):
    """Number of blocks and the release, fixed without data."""

    n_blocks: int
    equal_blocks: bool
    stable: StableRelease

    @property
    def event(self) -> Event:
        return self.stable.event

    @property
    def most_probable(self) -> float:
        """Probability of an answer where all blocks agree; no data has more."""
        return self.stable.release_probability((self.n_blocks - 1) // 2)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the function keeps no state between blocks",
            f"{self.n_blocks} blocks vote; if all agree, the answer is given with "
            f"probability {self.most_probable:.3g}",
        )


@dataclass(frozen=True)
class BlockVote:
    """Value that most disjoint blocks of rows agree on: sample and aggregate.

    Parameters
    ----------
    function
        Maps the features and targets of a block to a plain value: a number, a string,
        or a tuple of these. A failure, and any other value, counts as a vote for None.
        If it has an argument ``random_state``, it gets a seed for each block.
    n_blocks
        Number of blocks; None for `blocks_needed` with an agreement of three quarters,
        and no more than the planned rows.
    rule
        ``"optimal"`` or ``"laplace"``, as for `tacit.mechanisms.StableRelease`.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private under both relations, for every function
    that keeps no state between blocks: neighbors differ in one block, hence in one
    vote, and the winner is released by its distance to losing [1]_, [2]_. Blocks have
    equal sizes where the number of rows is public; otherwise each row draws its block
    independently.

    References
    ----------
    .. [1] A. Smith, A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013, Section 3.
    .. [2] K. Nissim, S. Raskhodnikova, A. Smith, "Smooth sensitivity and sampling in
       private data analysis", STOC 2007, Section 4.
    """

    function: Callable[..., Any]
    n_blocks: int | None = None
    rule: str = "optimal"

    # the type of each set of rows depends on its own rows only
    takes_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain(self)
        check_function("function", self.function, seeded=True)
        one_of(RULES, rule=self.rule)
        if_given(at_least, 1, n_blocks=self.n_blocks)

    def plan(self, budget: Budget, n_rows: int) -> BlockVotePlan:
        """Choose the number of blocks, from public facts."""
        require_some_delta("BlockVote", budget)
        at_least(1, n_rows=n_rows)
        n_blocks = self.n_blocks
        if n_blocks is None:
            needed = blocks_needed(budget.epsilon, budget.delta, rule=self.rule)
            n_blocks = min(needed, n_rows)
        return BlockVotePlan(
            n_blocks,
            budget.neighbors is Neighbors.REPLACE_ONE,
            StableRelease(budget.epsilon, budget.delta, self.rule),
        )

    def run(
        self, plan: BlockVotePlan, X: Any, y: Any, rng: Generator
    ) -> Any | NoAnswer:
        """Return the value of most blocks, or `NoAnswer`."""
        votes = _block_votes(self.function, plan, X, y, rng)
        return plan.stable(*winner_and_distance(votes), rng)


# The number of blocks is planned so that a column which leads another by this fraction
# of them is chosen first, except with this probability
LEAD = 0.75
HIDDEN = 0.05


@dataclass(frozen=True)
class FeatureVotePlan(PlainNumbers):
    """Number of blocks and privacy of a choice, fixed without data."""

    n_blocks: int
    equal_blocks: bool
    choice: Exponential
    n_select: int

    @property
    def event(self) -> Event:
        return Repeated(BoundedRange(self.choice.epsilon), self.n_select)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the selector keeps no state between blocks",
            f"{self.n_blocks} blocks vote",
            *noise_assumptions(self.choice.noise),
        )


@dataclass(frozen=True)
class FeatureVote(PlainNumbers):
    """Columns with most votes of blocks, chosen by the exponential mechanism.

    ``function`` maps the features and targets of a block to positions of columns, of
    which ``n_select`` are chosen. ``n_blocks`` is None to plan it.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private under both relations, and pure where delta
    is zero: neighbors differ in one block, which has one vote for each column, so that
    every count of votes changes by at most one (Kifer, Smith and Thakurta 2012).
    Columns are chosen one after another, each by an exponential mechanism on the counts
    (Durfee and Rogers 2019, Section 4).
    """

    function: Callable[..., Any]
    n_select: int
    n_blocks: int | None
    noise: str = "grid"

    def plan(self, budget: Budget, n_rows: int, n_features: int) -> FeatureVotePlan:
        """Choose the number of blocks, from public facts."""
        count = self.n_select
        epsilon = epsilon_of_choice(budget, count)
        check_choice_size(epsilon, budget, "select fewer columns")
        n_blocks = self.n_blocks
        if n_blocks is None:
            needed = votes_needed(epsilon, count, n_features)
            n_blocks = min(needed, max(1, n_rows))
        return FeatureVotePlan(
            n_blocks,
            budget.neighbors is Neighbors.REPLACE_ONE,
            # [features:count] a block has one vote a column
            Exponential(epsilon, 1.0, self.noise),
            count,
        )

    def run(
        self, plan: FeatureVotePlan, X: Any, y: Any, rng: Generator
    ) -> tuple[int, ...]:
        """Return the indices of the chosen columns, in order."""
        counts = np.zeros(X.shape[1])
        for vote in _block_votes(self.function, plan, X, y, rng):
            if vote is not None:
                counts[list(vote)] += 1.0
        left, chosen = np.arange(X.shape[1]), []
        for _ in range(plan.n_select):
            # [features:choice]
            index = plan.choice(counts[left], rng)
            chosen.append(int(left[index]))
            left = np.delete(left, index)
        return tuple(sorted(chosen))


def _block_votes(
    function: Callable[..., Any],
    plan: BlockVotePlan | FeatureVotePlan,
    X: Any,
    y: Any,
    rng: Generator,
) -> list[Any]:
    """Return the vote of each block of a random division of the rows."""
    seeds = seeds_for(function, plan.n_blocks, rng)
    blocks = block_members(X.shape[0], plan.n_blocks, plan.equal_blocks, rng)
    return votes_of(function, X, y, blocks, seeds)


def epsilon_of_choice(budget: Budget, n_select: int) -> float:
    """Return the epsilon of each of ``n_select`` choices."""
    return 1 / calibrate(
        lambda spread: Repeated(BoundedRange(1 / spread), n_select), budget
    )


def votes_needed(epsilon: float, n_select: int, n_features: int) -> int:
    """Return the number of blocks at which noise rarely changes a clear vote.

    Notes
    -----
    **Bound.** A choice with weights ``exp(epsilon count / 2)`` selects a column that
    lags by ``g`` votes with probability at most ``n_features exp(-epsilon g / 2)``.
    """
    lag = 2 * log(max(2, n_features) * n_select / HIDDEN) / epsilon
    return ceil(lag / LEAD)
