"""What every mechanism that answers a question by votes has in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.grid import noise_assumptions
from tacit.mechanisms.threshold import NoAnswer
from tacit.mechanisms.votes._vote_distribution import (
    Distributions,
    Told,
    VoteDistribution,
)
from tacit.privacy import Event

__all__ = ["AskedState", "ClassVotes", "Remaining", "VoteAnswer", "VoteMechanism"]

# What a plan takes as told is told but for this probability
FAILURE = 0.01


@dataclass(frozen=True)
class VoteAnswer:
    """What is released of one question.

    Parameters
    ----------
    value
        Place of a class, a number, or `tacit.mechanisms.NoAnswer`.
    votes
        Where they are released too: the noisy numbers of votes, one for each class; or
        the one noisy number that was cut to the range, as it was before.
    """

    value: int | float | NoAnswer
    votes: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Remaining:
    """How much may still be asked; None where there is no limit of that kind.

    Parameters
    ----------
    queries
        Questions.
    answers
        Questions that get an answer.
    refusals
        Questions that get none. The last of them is the one that ends it, so that it is
        one more than the refusals that let it go on: six with ``max_refusals=5``.
    """

    queries: int | None = None
    answers: int | None = None
    refusals: int | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is answered."""
        return 0 in (self.queries, self.answers, self.refusals)


@kept
@dataclass(frozen=True)
class AskedState:
    """How many questions were asked; public."""

    n_asked: int


class VoteMechanism(Drawable):
    """Votes of teachers in, one private answer for each question out.

    A question is one step. Neighbors change the vote of one teacher, in any way and in
    all questions. A state is private but for what `remaining` says, which depends on
    released answers alone. ``tells_votes`` says whether an answer comes with noisy
    votes.
    """

    noise: str

    tells_votes: ClassVar[bool] = False

    @property
    @abstractmethod
    def event(self) -> Event:
        """Cost of all questions together, charged before the first."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Public facts in words, for a report."""
        return noise_assumptions(self.noise)

    @abstractmethod
    def init(self, rng: Generator) -> Any:
        """Return the state before the first question."""

    @abstractmethod
    def step(
        self, state: Any, votes: NDArray[Any], rng: Generator
    ) -> tuple[Any, VoteAnswer]:
        """Answer one question, which may depend on all earlier answers.

        ``votes`` has one entry a teacher: the place of a class, or a number.
        """

    @abstractmethod
    def remaining(self, state: Any) -> Remaining:
        """Return how much may still be asked."""

    def refuse_after_end(self, state: Any) -> None:
        """Refuse a question that was not paid for."""
        if self.remaining(state).ended:
            raise ValueError(
                f"{type(self).__name__} has answered all that it was planned for; plan "
                "a new one with a new charge."
            )


class ClassVotes(VoteMechanism):
    """Votes between classes, with what is known of their answers before any data."""

    n_classes: int

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the noise on a number of votes, or on a distance."""

    @property
    def threshold(self) -> float | None:
        """What must be passed for an answer, after noise; None for nothing."""
        return None

    def told(self, laws: Distributions) -> Told:
        """Return what to expect of a question whose law is drawn by its share."""
        each = [(share, *self._released(law)) for share, law in laws]
        answered = sum(share * told for share, told, _ in each)
        right = sum(share * told for share, _, told in each)
        return Told(min(1.0, answered), min(answered, right))

    def fraction_answered(self, laws: Distributions, n_queries: int) -> float:
        """Return the expected share of questions that are answered before the end."""
        return self.told(laws).answered

    @abstractmethod
    def lead_needed(self, failure: float = FAILURE) -> int:
        """Return the votes ahead with which a label is told but for this."""

    @abstractmethod
    def _released(self, law: VoteDistribution) -> tuple[float, float]:
        """Return the probabilities of an answer and of the right one."""
