"""Blocks of rows vote, and a vote that no row can turn is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.random import Generator

from tacit._validate import PlainNumbers, at_least, one_of, plain
from tacit.mechanisms import NoAnswer, StableRelease
from tacit.mechanisms.subsets import block_members
from tacit.mechanisms.threshold import RULES
from tacit.mechanisms.votes import distance_of_lead
from tacit.privacy import Budget, Event, Neighbors
from tacit.stability._base import check_function, require_some_delta
from tacit.stability._isolated_call import seeds_for, votes_of
from tacit.stability._planning import blocks_needed

__all__ = [
    "BlockVote",
    "BlockVotePlan",
    "winner_and_distance",
]


def winner_and_distance(
    votes: Sequence[Hashable], *, changed: int = 1
) -> tuple[Any, int]:
    """Return the value with most votes and how many rows to change before it loses.

    Parameters
    ----------
    votes
        One plain value for each set of rows: a number, a text, None or a tuple of
        these. Those that print the same are the same.
    changed
        Votes that one row can change.

    Notes
    -----
    **Bound.** Between neighbors the distance moves by at most one, and it is zero
    wherever a neighbor has another winner: one row moves the lead of the winner by at
    most ``2 changed``. Among values with as many votes, the one that prints first in
    the order of texts wins, whatever the rows are. For ``changed=1`` the distance is
    ``(lead - 1) // 2`` and else ``lead // (2 changed) - 1``, never below zero.
    """
    at_least(1, changed=changed)
    if len(votes) == 0:
        return None, 0
    # [vote:order] 1, 1.0 and True are equal to Python, yet they are told apart
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
            "the function keeps nothing from block to block",
            f"{self.n_blocks} blocks vote; if all agree, the answer is given with "
            f"probability {self.most_probable:.3g}",
        )


@dataclass(frozen=True)
class BlockVote:
    """Ask a question to disjoint blocks of rows, and tell the answer if they agree.

    Parameters
    ----------
    function
        Maps the features and targets of a block to a plain value: a number, a text, or
        a tuple of these. It may fail; that, and whatever is no plain value, counts as a
        vote for None. One with an argument ``random_state`` gets a seed for each block.
    n_blocks
        Number of blocks; None for as many as let three quarters of them carry the vote
        (`blocks_needed`), and no more than the rows planned for.
    rule
        ``"optimal"`` or ``"laplace"``, as for `tacit.mechanisms.StableRelease`.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private under both relations, for every function
    that keeps nothing from one block to the next: neighbors differ in one block, hence
    in one vote, and the winner is released through its distance to losing [1]_, [2]_.
    Blocks have equal sizes where the number of rows is public; otherwise each row has
    its block by a draw of its own.

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

    # each set of rows is read by itself
    takes_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain(self)
        check_function("function", self.function, seeded=True)
        one_of(RULES, rule=self.rule)
        if self.n_blocks is not None:
            at_least(1, n_blocks=self.n_blocks)

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
        """Return what most blocks say, or `NoAnswer`."""
        seeds = seeds_for(self.function, plan.n_blocks, rng)
        blocks = block_members(X.shape[0], plan.n_blocks, plan.equal_blocks, rng)
        votes = votes_of(self.function, X, y, blocks, seeds)
        return plan.stable(*winner_and_distance(votes), rng)
