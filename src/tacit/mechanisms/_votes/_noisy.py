"""Noisy vote counts, for every query or for those with a clear winner."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import bdtrc, ndtr, ndtri

from tacit._release import release
from tacit._state import kept
from tacit._validate import at_least, fraction, nonnegative, plain, positive
from tacit.mechanisms._votes._base import (
    FAILURE,
    ClassVotes,
    QueryState,
    Remaining,
    VoteAnswer,
    counts_of,
)
from tacit.mechanisms._votes._probabilities import Distributions, VoteDistribution
from tacit.mechanisms.integer_noise import DiscreteGaussian
from tacit.mechanisms.noise import GRID, check_noise
from tacit.mechanisms.threshold import NO_ANSWER
from tacit.privacy import Event, GaussianNoise

__all__ = ["ConfidentState", "ConfidentVotes", "NoisyVotes"]

Integers = NDArray[np.int64]

# More than the round-off of a root and a quotient
ROUNDED_UP = 1 + 1e-15


@dataclass(frozen=True)
class NoisyVotes(ClassVotes):
    """GNMax: noisy vote counts of all classes, and the class with the largest.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity, of all queries together.
    n_classes
        Number of classes.
    n_queries
        Number of queries; all are charged at the start.
    noise
        ``"grid"`` for exact draws, ``"float"`` for ordinary floating point, which is
        for research.

    Notes
    -----
    **Guarantee.** One Gaussian mechanism of this multiplier for all queries: a vote
    that changes moves two counts by one, so all histograms together move by at most
    ``sqrt(2 n_queries)`` in L2 (Papernot et al. 2018, Section 4.1). Queries may
    depend on earlier answers. The winner is a function of the noisy counts, so that
    they cost nothing further. Counts are integers and so is the noise: nothing is
    rounded.
    """

    multiplier: float
    n_classes: int
    n_queries: int
    noise: str = "grid"

    releases_votes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier)
        at_least(1, n_classes=self.n_classes, n_queries=self.n_queries)
        check_noise(self.noise)
        _ = self._gaussian

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @property
    def _gaussian(self) -> DiscreteGaussian:
        # [votes:histogram] of all queries together
        return DiscreteGaussian(self.multiplier, sqrt(2 * self.n_queries), self.noise)

    @property
    def scale(self) -> float:
        """Standard standard deviation of the noise on one number of votes."""
        return GRID / self._gaussian.units

    def init(self, rng: Generator) -> QueryState:
        """Return the state before the first query."""
        return QueryState(0)

    def step(
        self, state: QueryState, votes: NDArray[Any], rng: Generator
    ) -> tuple[QueryState, VoteAnswer]:
        """Answer one query, which may depend on all earlier answers."""
        self.check_not_ended(state)
        counts = counts_of(votes, self.n_classes)
        answer = _histogram("NoisyVotes", self._gaussian, counts, rng)
        return QueryState(state.n_asked + 1), answer

    def remaining(self, state: QueryState) -> Remaining:
        """Return what is left of the plan."""
        return Remaining(queries=self.n_queries - state.n_asked)

    def lead_needed(self, failure: float = FAILURE) -> int:
        """Return the votes ahead with which a label is released but for this."""
        return _lead_over_noise(self.scale, failure)

    def _released(self, distribution: VoteDistribution) -> tuple[float, float]:
        return 1.0, distribution.expected(distribution.right(self.scale))


@kept
@dataclass(frozen=True)
class ConfidentState:
    """Number of queries so far and answered; public."""

    n_asked: int
    n_answered: int


@dataclass(frozen=True)
class ConfidentVotes(ClassVotes):
    """Confident GNMax: noisy votes, only where the winner's count passes a noisy test.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity, of all tests and answers together.
    n_classes
        Number of classes.
    n_queries
        Number of queries; all are charged at the start.
    max_answers
        Answers after which the stream ends; all are charged at the start.
    least_votes
        Public number of votes that the noisy count of the winner must reach.
    test_share
        Part of the squared inverse multiplier that goes to the tests.
    noise
        As in `NoisyVotes`.

    Notes
    -----
    **Guarantee.** One Gaussian mechanism of this multiplier: each test moves by at most
    one and each histogram by at most the root of two, and the squares of these over
    those of the scales add up to at most ``multiplier**-2`` whatever passes (Papernot
    et al. 2018, Algorithm 1). How many answers there are is decided by released
    tests, which the sum allows for: it bounds every run, hence the composition with
    random privacy parameters is Gaussian too (Smith and Thakurta 2022).
    """

    multiplier: float
    n_classes: int
    n_queries: int
    max_answers: int
    least_votes: float
    test_share: float = 0.5
    noise: str = "grid"

    releases_votes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier)
        at_least(1, n_classes=self.n_classes, n_queries=self.n_queries)
        at_least(1, max_answers=self.max_answers)
        nonnegative(least_votes=self.least_votes)
        fraction(test_share=self.test_share, closed=False)
        check_noise(self.noise)
        _ = self._test, self._answer

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @property
    def _test(self) -> DiscreteGaussian:
        # [votes:confident] parts of the squared inverse multiplier
        spread = self.multiplier / sqrt(self.test_share) * ROUNDED_UP
        return DiscreteGaussian(spread, sqrt(self.n_queries), self.noise)

    @property
    def _answer(self) -> DiscreteGaussian:
        spread = self.multiplier / sqrt(1 - self.test_share) * ROUNDED_UP
        return DiscreteGaussian(spread, sqrt(2 * self.max_answers), self.noise)

    @property
    def test_scale(self) -> float:
        """Standard deviation of the noise on the count that is tested."""
        return GRID / self._test.units

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on one count of an answer."""
        return GRID / self._answer.units

    @property
    def threshold(self) -> float:
        """Noisy count that the winner must reach."""
        return self.least_votes

    def init(self, rng: Generator) -> ConfidentState:
        """Return the state before the first query."""
        return ConfidentState(0, 0)

    def step(
        self, state: ConfidentState, votes: NDArray[Any], rng: Generator
    ) -> tuple[ConfidentState, VoteAnswer]:
        """Answer one query, which may depend on all earlier answers."""
        self.check_not_ended(state)
        counts = counts_of(votes, self.n_classes)
        test = self._test
        most = np.array([counts.max() * test.units], dtype=np.int64)
        limit = ceil(Fraction(self.least_votes) * test.units)
        passed = release(
            "ConfidentVotes.test",
            value=most,
            sensitivity=float(test.units),
            norm="l2",
            draw=lambda: bool((most + test.draws(1, rng))[0] >= limit),
        )
        n_asked = state.n_asked + 1
        if not passed:
            return ConfidentState(n_asked, state.n_answered), VoteAnswer(NO_ANSWER)
        answer = _histogram("ConfidentVotes", self._answer, counts, rng)
        return ConfidentState(n_asked, state.n_answered + 1), answer

    def remaining(self, state: ConfidentState) -> Remaining:
        """Return what is left of the plan."""
        return Remaining(
            queries=self.n_queries - state.n_asked,
            answers=self.max_answers - state.n_answered,
        )

    def fraction_answered(self, distributions: Distributions, n_queries: int) -> float:
        """Return the expected fraction of queries that are answered before the end."""
        passed = self.outcome(distributions).answered
        return float(bdtrc(np.arange(self.max_answers), n_queries, passed).sum()) / (
            n_queries
        )

    def lead_needed(self, failure: float = FAILURE) -> int:
        """Return the lead with which a label that passes the test is released."""
        return _lead_over_noise(self.scale, failure)

    def _released(self, distribution: VoteDistribution) -> tuple[float, float]:
        ahead = (distribution.tops - self.least_votes) / self.test_scale
        passed = ndtr(ahead).mean(axis=1)
        return distribution.expected(passed), distribution.expected(
            passed * distribution.right(self.scale)
        )


def _histogram(
    label: str, gaussian: DiscreteGaussian, counts: Integers, rng: Generator
) -> VoteAnswer:
    """Release counts with integer noise, and the index of the largest."""
    value = counts * gaussian.units
    noisy = release(
        label,
        value=value,
        sensitivity=sqrt(2.0) * gaussian.units,
        norm="l2",
        draw=lambda: value + gaussian.draws(len(value), rng),
    )
    return VoteAnswer(int(np.argmax(noisy)), noisy / gaussian.units)


def _lead_over_noise(scale: float, failure: float) -> int:
    """Return a lead that the noise on two counts reverses with this probability."""
    return ceil(-float(ndtri(failure)) * sqrt(2) * scale)
