"""Numbers that teachers vote for: their mean and their median."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit._tape import release
from tacit._validate import at_least, plain, positive
from tacit.mechanisms.grid import check_noise, noise_assumptions
from tacit.mechanisms.noise import GRID
from tacit.mechanisms.ranks import PARTS, rank_scores, rank_sensitivity
from tacit.mechanisms.selection import Exponential
from tacit.mechanisms.votes._base import Remaining, VoteAnswer, VoteMechanism
from tacit.mechanisms.votes._counting import one_vote_each, refuse_after_end
from tacit.mechanisms.whole import WholeGaussian
from tacit.privacy import BoundedRange, Event, GaussianNoise, Neighbors, Repeated

__all__ = ["NumberState", "VoteMean", "VoteMedian"]

Array = NDArray[np.float64]


@kept
@dataclass(frozen=True)
class NumberState:
    """How many questions were asked; public."""

    n_asked: int


class _NumberVotes(VoteMechanism):
    """What both mechanisms for numbers share."""

    low: float
    high: float
    n_queries: int
    noise: str

    def _check(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if not isinstance(value, float | int) or not isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}.")
        if not isfinite(self.high - self.low) or not self.low < self.high:
            raise ValueError(
                f"low must be below high, got {self.low!r} and {self.high!r}."
            )
        at_least(1, n_queries=self.n_queries)
        check_noise(self.noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    def init(self, rng: Generator) -> NumberState:
        """Return the state before the first question."""
        return NumberState(0)

    def step(
        self, state: NumberState, votes: NDArray[Any], rng: Generator
    ) -> tuple[NumberState, VoteAnswer]:
        """Answer one question, which may depend on all earlier answers."""
        ended = self.remaining(state).ended
        refuse_after_end(ended, type(self).__name__, f"{self.n_queries} questions")
        shares = self._shares(one_vote_each(votes))
        place = min(1.0, max(0.0, self._answer(shares, rng)))
        value = min(self.high, self.low + (self.high - self.low) * place)
        return NumberState(state.n_asked + 1), VoteAnswer(value)

    def remaining(self, state: NumberState) -> Remaining:
        """Return how much may still be asked."""
        return Remaining(queries=self.n_queries - state.n_asked)

    def _shares(self, votes: NDArray[Any]) -> Array:
        """Return votes as parts of the range; what is no number is its middle."""
        numbers = votes.astype(np.float64)
        middle = self.low + (self.high - self.low) / 2
        numbers = np.where(np.isnan(numbers), middle, numbers)
        inside = np.clip(numbers, self.low, self.high)
        return np.clip((inside - self.low) / (self.high - self.low), 0.0, 1.0)

    @abstractmethod
    def _answer(self, shares: Array, rng: Generator) -> float:
        """Return the answer as a part of the range."""


@dataclass(frozen=True)
class VoteMean(_NumberVotes):
    """The mean of the numbers that teachers vote for, with Gaussian noise.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity, of all questions together.
    low
        Least number, public.
    high
        Largest number, public; votes beyond are cut.
    n_queries
        Questions that are answered; all are charged at the start.
    noise
        ``"grid"`` for exact draws, ``"float"`` for ordinary floating point, which is
        for research.

    Notes
    -----
    **Guarantee.** One Gaussian mechanism of this multiplier for all questions: each
    vote is a whole number from zero to `tacit.mechanisms.WholeGaussian.units`, so one
    that changes moves a sum by at most so many, and all sums together by the root of
    the number of questions times that. Sums are exact. The number of teachers, by
    which they are divided, is public.
    """

    multiplier: float
    low: float
    high: float
    n_queries: int
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier)
        self._check()
        _ = self._gaussian

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @property
    def _gaussian(self) -> WholeGaussian:
        # [votes:mean] of all questions together
        return WholeGaussian(self.multiplier, sqrt(self.n_queries), self.noise)

    def scale(self, n_teachers: int) -> float:
        """Return the deviation of the noise on a mean, before it is cut."""
        spread = GRID / self._gaussian.units
        return spread * (self.high - self.low) / n_teachers

    def _answer(self, shares: Array, rng: Generator) -> float:
        gaussian = self._gaussian
        units = gaussian.units
        parts = np.rint(shares * units).astype(np.int64)
        total = np.array([parts.sum()], dtype=np.int64)
        noisy = release(
            "VoteMean",
            value=total,
            sensitivity=float(units),
            norm="l2",
            draw=lambda: total + gaussian.draws(1, rng),
        )
        return float(noisy[0]) / (units * len(shares))


@dataclass(frozen=True)
class VoteMedian(_NumberVotes):
    """The median of the numbers that teachers vote for, drawn from a public grid.

    Parameters
    ----------
    epsilon
        Of the choice of one answer.
    low
        Least number, public.
    high
        Largest number, public; votes beyond are cut.
    n_queries
        Questions that are answered; all are charged at the start.
    n_values
        Numbers in the grid from ``low`` to ``high``.
    noise
        As in `VoteMean`.

    Notes
    -----
    **Guarantee.** Each answer is an exponential mechanism with ``epsilon``, hence of
    bounded range (Dong, Durfee and Rogers 2020, Lemma 3.2), and answers compose as
    such. A value of the grid scores minus the votes that keep it from being a median;
    the number of votes is public, and one that changes moves each score by at most
    one. Votes are rounded to the grid one by one, which changes one vote into one.
    """

    epsilon: float
    low: float
    high: float
    n_queries: int
    n_values: int = 1000
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        at_least(2, n_values=self.n_values)
        self._check()
        _ = self._choice

    @property
    def event(self) -> Event:
        return Repeated(BoundedRange(self.epsilon), self.n_queries)

    @property
    def _choice(self) -> Exponential:
        # [votes:median] a changed vote is a row replaced
        sensitivity = rank_sensitivity(PARTS // 2, Neighbors.REPLACE_ONE)
        return Exponential(self.epsilon, sensitivity, self.noise)

    def law(self, votes: NDArray[Any]) -> tuple[Array, Array]:
        """Return all answers and their probabilities, for votes that are public."""
        scores = self._scores(self._shares(one_vote_each(votes)))
        odds = np.exp(self._choice._exponents(scores) / GRID)
        return np.linspace(self.low, self.high, self.n_values), odds / odds.sum()

    def _answer(self, shares: Array, rng: Generator) -> float:
        return self._choice(self._scores(shares), rng) / (self.n_values - 1)

    def _scores(self, shares: Array) -> Array:
        places = np.rint(shares * (self.n_values - 1)).astype(np.int64)
        counts = np.bincount(places, minlength=self.n_values).astype(np.int64)
        return rank_scores(counts, PARTS // 2)
