"""Numbers that teachers vote for: their mean and their median."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit._release import release
from tacit._validate import at_least, plain, positive
from tacit.mechanisms._votes._base import (
    QueryState,
    Remaining,
    VoteAnswer,
    VoteMechanism,
    one_vote_each,
)
from tacit.mechanisms.integer_noise import DiscreteGaussian
from tacit.mechanisms.noise import GRID, check_noise
from tacit.mechanisms.selection import PARTS, Exponential, rank_scores, rank_sensitivity
from tacit.privacy import BoundedRange, Event, GaussianNoise, Neighbors, Repeated

__all__ = ["NumberVotes", "VoteMean", "VoteMedian", "ordered_range"]

Array = NDArray[np.float64]


def ordered_range(y_range: object) -> tuple[float, float]:
    """Return a public range as plain numbers, or reject it."""
    try:
        low, high = (float(end) for end in y_range)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low, high = nan, nan
    if not (low < high and isfinite(high - low)):
        raise ValueError(
            f"y_range must be two finite numbers with low < high, got {y_range!r}."
        )
    return low, high


class NumberVotes(VoteMechanism):
    """Votes for numbers in a public range, from ``low`` to ``high``."""

    low: float
    high: float
    n_queries: int

    def _check(self) -> None:
        ordered_range((self.low, self.high))
        at_least(1, n_queries=self.n_queries)
        check_noise(self.noise)

    def init(self, rng: Generator) -> QueryState:
        """Return the state before the first query."""
        return QueryState(0)

    def step(
        self, state: QueryState, votes: NDArray[Any], rng: Generator
    ) -> tuple[QueryState, VoteAnswer]:
        """Answer one query, which may depend on all earlier answers."""
        self.check_not_ended(state)
        position = self._answer(self._fractions(one_vote_each(votes)), rng)
        width = self.high - self.low
        value = min(self.high, self.low + width * min(1.0, max(0.0, position)))
        # clipping to the range is post-processing, and so is the number before
        before = None
        if self.releases_votes:
            before = np.array([self.low + width * position])
        return QueryState(state.n_asked + 1), VoteAnswer(value, before)

    def remaining(self, state: QueryState) -> Remaining:
        """Return what is left of the plan."""
        return Remaining(queries=self.n_queries - state.n_asked)

    @abstractmethod
    def error(self, n_teachers: int, spread: float) -> float:
        """Return the root mean square error of an answer, against votes without noise.

        ``spread`` is the standard deviation of the votes around the middle of the
        range.
        """

    def _fractions(self, votes: NDArray[Any]) -> Array:
        """Return votes as fractions of the range; NaN counts as its middle."""
        numbers = votes.astype(np.float64)
        middle = self.low + (self.high - self.low) / 2
        numbers = np.where(np.isnan(numbers), middle, numbers)
        inside = np.clip(numbers, self.low, self.high)
        return np.clip((inside - self.low) / (self.high - self.low), 0.0, 1.0)

    @abstractmethod
    def _answer(self, fractions: Array, rng: Generator) -> float:
        """Return the answer as a fraction of the range."""


@dataclass(frozen=True)
class VoteMean(NumberVotes):
    """The mean of the numbers that teachers vote for, with Gaussian noise.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity, of all queries together.
    low
        Least number, public.
    high
        Largest number, public; votes beyond are clipped.
    n_queries
        Number of queries; all are charged at the start.
    noise
        ``"grid"`` for exact draws, ``"float"`` for ordinary floating point, which is
        for research.

    Notes
    -----
    **Guarantee.** One Gaussian mechanism of this multiplier for all queries: each
    vote is an integer from zero to `tacit.mechanisms.DiscreteGaussian.units`, so one
    that changes moves a sum by at most so many, and all sums together by the root of
    the number of queries times that. Sums are exact. The number of teachers, by
    which they are divided, is public. An answer is clipped to the range; the noisy mean
    before that comes with it, as the noise on it has mean zero.
    """

    multiplier: float
    low: float
    high: float
    n_queries: int
    noise: str = "grid"

    releases_votes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier)
        self._check()
        _ = self._gaussian

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @property
    def _gaussian(self) -> DiscreteGaussian:
        # [votes:mean] of all queries together
        return DiscreteGaussian(self.multiplier, sqrt(self.n_queries), self.noise)

    def mean_scale(self, n_teachers: int) -> float:
        """Return the standard deviation of the noise on a mean, before clipping."""
        spread = GRID / self._gaussian.units
        return spread * (self.high - self.low) / n_teachers

    def error(self, n_teachers: int, spread: float) -> float:
        """Return the root mean square error of an answer, before clipping."""
        return self.mean_scale(n_teachers)

    def _answer(self, fractions: Array, rng: Generator) -> float:
        gaussian = self._gaussian
        units = gaussian.units
        parts = np.rint(fractions * units).astype(np.int64)
        total = np.array([parts.sum()], dtype=np.int64)
        noisy = release(
            "VoteMean",
            value=total,
            sensitivity=float(units),
            norm="l2",
            draw=lambda: total + gaussian.draws(1, rng),
        )
        return float(noisy[0]) / (units * len(fractions))


@dataclass(frozen=True)
class VoteMedian(NumberVotes):
    """The median of the numbers that teachers vote for, drawn from a public grid.

    Parameters
    ----------
    epsilon
        Of the choice of one answer.
    low
        Least number, public.
    high
        Largest number, public; votes beyond are clipped.
    n_queries
        Number of queries; all are charged at the start.
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

    def distribution(self, votes: NDArray[Any]) -> tuple[Array, Array]:
        """Return all answers and their probabilities, for public votes."""
        scores = self._scores(self._fractions(one_vote_each(votes)))
        weights = np.exp(self._choice._exponents(scores) / GRID)
        return np.linspace(self.low, self.high, self.n_values), weights / weights.sum()

    def error(self, n_teachers: int, spread: float) -> float:
        """Return the root mean square error of an answer, for normal votes."""
        middle = (self.low + self.high) / 2
        votes = middle + spread * ndtri((np.arange(n_teachers) + 0.5) / n_teachers)
        values, probabilities = self.distribution(votes)
        return float(np.sqrt(probabilities @ (values - middle) ** 2))

    def _answer(self, fractions: Array, rng: Generator) -> float:
        return self._choice(self._scores(fractions), rng) / (self.n_values - 1)

    def _scores(self, fractions: Array) -> Array:
        positions = np.rint(fractions * (self.n_values - 1)).astype(np.int64)
        counts = np.bincount(positions, minlength=self.n_values).astype(np.int64)
        return rank_scores(counts, PARTS // 2)
