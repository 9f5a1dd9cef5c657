"""Stable votes: the exact winner, released where one vote could not change it."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from tacit._release import release
from tacit._state import kept
from tacit._validate import at_least, fraction, plain, positive
from tacit.exceptions import PlanError
from tacit.mechanisms import noise as draws
from tacit.mechanisms._votes._base import (
    FAILURE,
    ClassVotes,
    Remaining,
    VoteAnswer,
    counts_of,
    distance_of_lead,
    lead_of,
)
from tacit.mechanisms._votes._probabilities import (
    Distributions,
    VoteDistribution,
    difference_tail,
    laplace_tail,
    tail_point,
)
from tacit.mechanisms.noise import GRID, MAX_SCALE, check_noise
from tacit.mechanisms.threshold import NO_ANSWER
from tacit.privacy import ApproxDP, Event, Repeated

__all__ = ["SparseVotes", "StableState", "StableVotes"]

# Cells by which discrete noise and its difference may exceed continuous noise
SPARE_CELLS = 2
# Equally likely levels of the threshold's noise that a plan averages over
LEVELS = 64
# Least probability of a refusal that plans distinguish from zero
LEAST_RATE = 1e-300

Array = NDArray[np.float64]


@kept
@dataclass(frozen=True)
class StableState:
    """State of a stream of queries. Private: do not publish."""

    n_asked: int
    n_refused: int
    _private_threshold: int | float = field(repr=False)


class SparseVotes(ClassVotes):
    """Winners whose noisy distance to another winner exceeds a noisy threshold.

    A subclass defines the least scales of both kinds of noise, in votes, the threshold,
    and ``per_group``, the number of refusals that use the noise of one threshold.
    """

    max_refusals: int
    per_group: int = 1

    @abstractmethod
    def _least_scales(self) -> tuple[float, float]:
        """Return the least scales of noise on the threshold and on a distance."""

    @property
    @abstractmethod
    def threshold(self) -> float:
        """Threshold of the distance, before the noise on both."""

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How far one vote can move a distance."""

    @abstractmethod
    def distance(self, lead: int) -> int:
        """Return how far a winner with this lead is from losing."""

    @cached_property
    def threshold_scale(self) -> float:
        """Scale of the Laplace noise on the threshold, in votes."""
        return self._in_cells(self._least_scales()[0])

    @cached_property
    def query_scale(self) -> float:
        """Scale of the Laplace noise on a distance, in votes."""
        return self._in_cells(self._least_scales()[1])

    @property
    def scale(self) -> float:
        """Scale of the noise on a distance."""
        return self.query_scale

    def release_probability(self, distance: float) -> float:
        """Return how likely a winner at this distance is released; public.

        It is that of the first query of a threshold: earlier releases make it larger.
        """
        ahead = self._limit / self._cells - distance
        return difference_tail(ahead, self.query_scale, self.threshold_scale)

    def distance_needed(self, failure: float = FAILURE) -> int:
        """Return the least integer distance released except with this probability."""
        fraction(failure=failure, closed=False)
        beyond = tail_point(failure, self.query_scale, self.threshold_scale)
        at = ceil(self._limit / self._cells + beyond) + 1
        while at > 0 and self.release_probability(at - 1) >= 1 - failure:
            at -= 1
        return at

    def lead_needed(self, failure: float = FAILURE) -> int:
        """Return the lead with which a label is released except with ``failure``."""
        distance = self.distance_needed(failure)
        return bisect_left(range(4 * distance + 4), distance, key=self.distance)

    def refusals_by_level(self, distributions: Distributions) -> Array:
        """Return the probability of a refusal, for equally likely thresholds."""
        half = np.log((2 * np.arange(LEVELS // 2) + 1) / LEVELS)
        levels = np.concatenate([half, -half[::-1]])
        thresholds = self.threshold + levels * self.threshold_scale
        refused = np.zeros(LEVELS)
        for fraction_of_queries, votes in distributions:
            distances, positions = self._distances(votes)
            columns = votes.leads.shape[1]
            each = np.repeat(votes.probabilities / columns, columns)
            weights = np.bincount(positions.ravel(), each)
            above = (distances - thresholds[:, None]) / self.query_scale
            refused += fraction_of_queries * (laplace_tail(above) @ weights)
        return refused

    def fraction_answered(self, distributions: Distributions, n_queries: int) -> float:
        """Return the expected fraction of queries that are answered before the end.

        Given the noise of a threshold refusals are independent, and the expected number
        of queries is that of refusals over the probability of one: this is exact where
        all refusals use one threshold. With several, runs between refusals are taken to
        have their mean length.
        """
        # bounded away from zero, whose limit is the same
        rates = np.maximum(self.refusals_by_level(distributions), LEAST_RATE)
        if self.per_group < self.max_refusals + 1:
            rates = 1 / np.mean(1 / rates, keepdims=True)
        ends = min(self.max_refusals + 1, n_queries)
        # the mean of a binomial number truncated at the end
        refused = ends * bdtrc(ends - 1, n_queries, rates)
        if ends > 1:
            refused += n_queries * rates * bdtr(ends - 2, n_queries - 1, rates)
        return float(np.mean((1 - rates) / rates * refused)) / n_queries

    def _released(self, distribution: VoteDistribution) -> tuple[float, float]:
        distances, positions = self._distances(distribution)
        released = np.array([self.release_probability(d) for d in distances])[positions]
        return distribution.expected(released), distribution.expected(
            released * (distribution.leads > 0)
        )

    def _distances(
        self, distribution: VoteDistribution
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return the distances that occur, and the index of that of each lead."""
        leads, positions = np.unique(np.abs(distribution.leads), return_inverse=True)
        found = [self.distance(lead) for lead in leads.tolist()]
        return np.array(found, dtype=np.float64), positions.reshape(
            distribution.leads.shape
        )

    def init(self, rng: Generator) -> StableState:
        """Return the state before the first query."""
        return StableState(0, 0, self._drawn_threshold(rng))

    def step(
        self, state: StableState, votes: NDArray[Any], rng: Generator
    ) -> tuple[StableState, VoteAnswer]:
        """Answer one query, which may depend on all earlier answers."""
        self.check_not_ended(state)
        counts = counts_of(votes, self.n_classes)
        distance = self.distance(lead_of(counts))

        def draw() -> bool:
            noisy = distance * self._cells + self._noise(self.query_scale, rng)
            return bool(noisy > state._private_threshold)

        passed = release(
            type(self).__name__,
            value=np.array([distance], dtype=np.float64),
            sensitivity=float(self.sensitivity),
            norm="linf",
            draw=draw,
        )
        n_asked, limit = state.n_asked + 1, state._private_threshold
        if passed:
            # ties go to the smallest index
            answer = VoteAnswer(int(np.argmax(counts)))
            return StableState(n_asked, state.n_refused, limit), answer
        refused = state.n_refused + 1
        # [votes:groups] refusals of one group use the noise of one threshold
        if refused % self.per_group == 0:
            limit = self._drawn_threshold(rng)
        return StableState(n_asked, refused, limit), VoteAnswer(NO_ANSWER)

    def remaining(self, state: StableState) -> Remaining:
        """Return what is left of the plan."""
        return Remaining(refusals=self.max_refusals + 1 - state.n_refused)

    @cached_property
    def _cells(self) -> int:
        """Cells of a vote: a power of two, so that distances are integers in cells."""
        if self.noise == "float":
            return 1
        return cells_of_a_vote(max(self._least_scales()))

    def _in_cells(self, scale: float) -> float:
        """Return the scale as an integer of cells, not below it."""
        if self.noise == "float":
            return scale
        # one more, as the scale itself may have been rounded down
        return (ceil(Fraction(scale) * self._cells) + 1) / self._cells

    @cached_property
    def _limit(self) -> int | float:
        """Threshold without its noise, in cells."""
        if self.noise == "float":
            return self.threshold
        # [votes:cells]
        return ceil(Fraction(self.threshold) * self._cells) + SPARE_CELLS

    def _noise(self, scale: float, rng: Generator) -> int | float:
        if self.noise == "float":
            return scale * float(draws.float_laplace(1, rng)[0])
        # exact: a scale is an integer of cells
        cells = int(scale * self._cells)
        return int(draws.discrete_laplace(1, rng, scale=cells)[0])

    def _drawn_threshold(self, rng: Generator) -> int | float:
        return self._limit + self._noise(self.threshold_scale, rng)


def cells_of_a_vote(scale: float) -> int:
    """Return the most cells a vote for which the sampler accepts this scale."""
    cells = GRID
    while ceil(Fraction(scale) * cells) >= MAX_SCALE:
        cells //= 2
        if cells < 2**8:
            raise PlanError(
                f"Noise of scale {scale:.3g} votes is too large for the grid; raise "
                "epsilon or allow fewer refusals."
            )
    return cells


@dataclass(frozen=True)
class StableVotes(SparseVotes):
    """The exact winner of a vote, released where no neighbor could change it.

    Parameters
    ----------
    threshold_epsilon
        Privacy of the noise of one threshold.
    query_epsilon
        Privacy of one refusal.
    delta
        Probability, over all queries, of releasing a winner that a neighbor does not
        have.
    n_classes
        Number of classes.
    max_refusals
        Queries that may stay unanswered; one more ends the stream. The number of
        answers has no limit.
    per_group
        Refusals that use the noise of one threshold.
    noise
        ``"grid"`` for exact draws, ``"float"`` for ordinary floating point, which is
        for research.

    Notes
    -----
    **Guarantee.** A group of ``per_group`` refusals, with all answers between them, is
    pure with ``threshold_epsilon + per_group * query_epsilon`` (Lyu, Su and Li 2017,
    Algorithm 7) but for its part of ``delta``: the distance, half of the lead rounded
    up less one, moves by at most one between neighbors and is zero where they have
    different winners (Smith and Thakurta 2013, Section 3). Queries may depend on
    earlier answers and their number has no limit. After Bassily, Thakkar and Thakurta
    (2018) and Thakkar (2019, Chapter 5), with the distance corrected.
    """

    threshold_epsilon: float
    query_epsilon: float
    delta: float
    n_classes: int
    max_refusals: int
    per_group: int = 1
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(
            threshold_epsilon=self.threshold_epsilon, query_epsilon=self.query_epsilon
        )
        fraction(delta=self.delta, closed=False)
        at_least(1, n_classes=self.n_classes, per_group=self.per_group)
        at_least(0, max_refusals=self.max_refusals)
        check_noise(self.noise)
        _ = self._cells

    @property
    def n_groups(self) -> int:
        """Number of thresholds."""
        return -(-(self.max_refusals + 1) // self.per_group)

    @property
    def event(self) -> Event:
        # [votes:group]
        pure = self.threshold_epsilon + self.per_group * self.query_epsilon
        return Repeated(ApproxDP(pure, self.delta / self.n_groups), self.n_groups)

    @property
    def sensitivity(self) -> int:
        return 1

    def _least_scales(self) -> tuple[float, float]:
        # [votes:scales]
        return 1 / self.threshold_epsilon, 2 / self.query_epsilon

    @cached_property
    def threshold(self) -> float:
        # [votes:threshold] as many first critical queries as refusals at most
        each = self.delta / (self.n_groups * self.per_group)
        return tail_point(each, self.query_scale, self.threshold_scale)

    def distance(self, lead: int) -> int:
        """Return the distance of a winner with this lead to another winner."""
        return distance_of_lead(lead)
