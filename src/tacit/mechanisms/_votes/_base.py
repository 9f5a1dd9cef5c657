"""Base classes of mechanisms that answer queries by votes, and exact counts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit.mechanisms._base import Drawable
from tacit.mechanisms._votes._probabilities import (
    Distributions,
    Outcome,
    VoteDistribution,
)
from tacit.mechanisms.noise import noise_assumptions
from tacit.mechanisms.threshold import NoAnswer
from tacit.privacy import Event

__all__ = [
    "ClassVotes",
    "QueryState",
    "Remaining",
    "VoteAnswer",
    "VoteMechanism",
    "counts_of",
    "distance_of_lead",
    "lead_of",
    "one_vote_each",
    "published_distance",
]

# Plans count on answers that are released except with this probability
FAILURE = 0.01


@dataclass(frozen=True)
class VoteAnswer:
    """The released answer to one query.

    Parameters
    ----------
    value
        Index of a class, a number, or `tacit.mechanisms.NoAnswer`.
    votes
        The noisy votes, where they are released too: one number for each class, or the
        one noisy number before it was clipped to the range.
    """

    value: int | float | NoAnswer
    votes: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Remaining:
    """Remainder of a plan; None where there is no limit of that kind.

    Parameters
    ----------
    queries
        Queries.
    answers
        Queries with an answer.
    refusals
        Queries without an answer. The last of them ends the stream, so the number
        begins at one more than ``max_refusals``.
    """

    queries: int | None = None
    answers: int | None = None
    refusals: int | None = None

    @property
    def ended(self) -> bool:
        """Whether no further query is answered."""
        return 0 in (self.queries, self.answers, self.refusals)


@kept
@dataclass(frozen=True)
class QueryState:
    """Number of queries so far; public."""

    n_asked: int


class VoteMechanism(Drawable):
    """Votes of teachers in, one private answer for each query out.

    A query is one step. Neighbors change the vote of one teacher, in any way and in all
    queries. A state is private except for what `remaining` returns, which depends on
    released answers only. ``releases_votes`` states whether an answer comes with noisy
    votes.
    """

    noise: str

    releases_votes: ClassVar[bool] = False

    @property
    @abstractmethod
    def event(self) -> Event:
        """Event of all queries together, charged before the first."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Public facts that the guarantee assumes, as strings for a report."""
        return noise_assumptions(self.noise)

    @abstractmethod
    def init(self, rng: Generator) -> Any:
        """Return the state before the first query."""

    @abstractmethod
    def step(
        self, state: Any, votes: NDArray[Any], rng: Generator
    ) -> tuple[Any, VoteAnswer]:
        """Answer one query, which may depend on all earlier answers.

        ``votes`` has one entry for each teacher: the index of a class, or a number.
        """

    @abstractmethod
    def remaining(self, state: Any) -> Remaining:
        """Return what is left of the plan."""

    def check_not_ended(self, state: Any) -> None:
        """Reject a query beyond those that were charged."""
        if self.remaining(state).ended:
            raise ValueError(
                f"{type(self).__name__} has answered all queries of its plan; plan a "
                "new one with a new charge."
            )


class ClassVotes(VoteMechanism):
    """Votes between classes, with predictions of their answers before any data."""

    n_classes: int

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the noise on a number of votes, or on a distance."""

    @property
    def threshold(self) -> float | None:
        """Noisy value that an answer must exceed; None without a threshold."""
        return None

    def outcome(self, distributions: Distributions) -> Outcome:
        """Return the expected outcome of a query, over a mixture of distributions."""
        each = [(weight, *self._released(votes)) for weight, votes in distributions]
        answered = sum(weight * released for weight, released, _ in each)
        right = sum(weight * correct for weight, _, correct in each)
        return Outcome(min(1.0, answered), min(answered, right))

    def fraction_answered(self, distributions: Distributions, n_queries: int) -> float:
        """Return the expected fraction of queries that are answered before the end."""
        return self.outcome(distributions).answered

    @abstractmethod
    def lead_needed(self, failure: float = FAILURE) -> int:
        """Return the lead with which a label is released except with ``failure``."""

    @abstractmethod
    def _released(self, distribution: VoteDistribution) -> tuple[float, float]:
        """Return the probabilities of an answer and of the right one."""


def one_vote_each(votes: NDArray[Any]) -> NDArray[Any]:
    """Return the votes as an array with one entry for each teacher."""
    array = np.asarray(votes)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "biuf":
        raise ValueError(
            "votes must be an array of numbers, one for each teacher, got shape "
            f"{array.shape} and dtype {array.dtype}."
        )
    return array


def counts_of(votes: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    """Return the votes for each class; an index out of range counts as the nearest."""
    array = one_vote_each(votes)
    if array.dtype.kind == "f":
        raise ValueError(
            f"votes must be integers, the indices of classes, got dtype {array.dtype}."
        )
    positions = np.clip(array, 0, n_classes - 1).astype(np.int64)
    return np.bincount(positions, minlength=n_classes).astype(np.int64)


def lead_of(counts: NDArray[np.int64]) -> int:
    """Return the votes by which the first class is ahead of the second."""
    if len(counts) == 1:
        return int(counts[0])
    second, first = np.partition(counts, -2)[-2:].tolist()
    return int(first - second)


def distance_of_lead(lead: int) -> int:
    """Return a distance to another winner that one vote moves by at most one.

    Notes
    -----
    **Bound.** One vote moves the lead of the winner by at most two, and where it can
    change the winner the lead is at most two, so that the distance is zero.
    """
    # [votes:distance]
    return max(0, (lead + 1) // 2 - 1)


def published_distance(lead: int) -> int:
    """Return the lead less one, which one vote moves by two."""
    return max(0, lead - 1)
