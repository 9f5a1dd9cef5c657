"""What every mechanism that answers a question by votes has in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.mechanisms._base import Drawable
from tacit.mechanisms.threshold import NoAnswer
from tacit.privacy import Event

__all__ = ["Remaining", "VoteAnswer", "VoteMechanism"]


@dataclass(frozen=True)
class VoteAnswer:
    """What is released of one question.

    Parameters
    ----------
    value
        Place of a class, a number, or `tacit.mechanisms.NoAnswer`.
    votes
        Noisy numbers of votes, one for each class, where they are released too.
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
        Questions that get none.
    """

    queries: int | None = None
    answers: int | None = None
    refusals: int | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is answered."""
        return 0 in (self.queries, self.answers, self.refusals)


class VoteMechanism(Drawable):
    """Votes of teachers in, one private answer for each question out.

    A question is one step. Neighbors change the vote of one teacher, in any way and in
    all questions. A state is private but for what `remaining` says, which depends on
    released answers alone.
    """

    @property
    @abstractmethod
    def event(self) -> Event:
        """Cost of all questions together, charged before the first."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """Public facts in words, for a report."""

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
