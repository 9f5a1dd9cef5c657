"""What mechanisms for votes do with questions of a known law, before any data."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import singledispatch
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, next_fast_len
from scipy.special import ndtr, ndtri
from scipy.stats import binom, laplace

from tacit.ensemble._vote_law import VoteLaw
from tacit.mechanisms.votes import (
    ConfidentVotes,
    NoisyVotes,
    VoteMean,
    VoteMechanism,
    VoteMedian,
)
from tacit.mechanisms.votes._stable import SparseVotes

__all__ = [
    "Question",
    "lead_needed",
    "number_error",
    "question",
    "refusals_by_level",
    "share_answered",
]

Array = NDArray[np.float64]
Laws = tuple[tuple[float, VoteLaw], ...]

# levels of the noise of a threshold, and times at which its law is computed
LEVELS = 64
CURVE_POINTS = 600
# by which times beyond the last question are made to matter less
WRAPPED = 1e-8


@dataclass(frozen=True)
class Question:
    """What happens to one question.

    Parameters
    ----------
    answered
        Probability of an answer.
    right
        Probability that it is answered with the label most teachers are expected to
        give.
    """

    answered: float
    right: float

    @property
    def accuracy(self) -> float:
        """Probability that an answer is right; zero if there is none."""
        return self.right / self.answered if self.answered > 0 else 0.0


def question(mechanism: VoteMechanism, laws: Laws) -> Question:
    """Return what to expect of a question whose law is drawn by the shares given."""
    each = [(share, *_told(mechanism, law)) for share, law in laws]
    answered = sum(share * told for share, told, _ in each)
    right = sum(share * told for share, _, told in each)
    return Question(min(1.0, answered), min(answered, right))


@singledispatch
def _told(mechanism: Any, law: VoteLaw) -> tuple[float, float]:
    """Return the probabilities of an answer and of the right one."""
    raise TypeError(f"{mechanism!r} has no votes between classes.")


@_told.register
def _(mechanism: NoisyVotes, law: VoteLaw) -> tuple[float, float]:
    return 1.0, law.expected(law.right(mechanism.scale))


@_told.register
def _(mechanism: ConfidentVotes, law: VoteLaw) -> tuple[float, float]:
    ahead = (law.tops - mechanism.least_votes) / mechanism.test_scale
    passed = ndtr(ahead).mean(axis=1)
    right = passed * law.right(mechanism.scale)
    return law.expected(passed), law.expected(right)


@_told.register
def _(mechanism: SparseVotes, law: VoteLaw) -> tuple[float, float]:
    distances, places = _distances(mechanism, law)
    told = np.array([mechanism.release_probability(d) for d in distances])[places]
    return law.expected(told), law.expected(told * (law.leads > 0))


def _distances(mechanism: SparseVotes, law: VoteLaw) -> tuple[Array, NDArray[np.intp]]:
    """Return the distances that occur, and which of them each lead has."""
    leads, places = np.unique(np.abs(law.leads), return_inverse=True)
    found = [mechanism.distance(np.array([lead, 0])) for lead in leads]
    return np.array(found, dtype=np.float64), places.reshape(law.leads.shape)


def share_answered(mechanism: VoteMechanism, laws: Laws, n_queries: int) -> float:
    """Return the expected share of questions that are answered before the end."""
    if isinstance(mechanism, SparseVotes):
        return _share_before_refusals(mechanism, laws, n_queries)
    answered = question(mechanism, laws).answered
    if isinstance(mechanism, ConfidentVotes):
        least = np.arange(mechanism.max_answers)
        mean = float(binom.sf(least, n_queries, answered).sum())
        return mean / n_queries
    return answered


def _share_before_refusals(mechanism: SparseVotes, laws: Laws, n_queries: int) -> float:
    """Return the expected share before the last refusal.

    Refusals that share a threshold share its noise, given which they are independent.
    The answers of a threshold follow from when its refusals are used up, and when it
    is drawn is a sum of the times that those before it lasted.
    """
    refused = refusals_by_level(mechanism, laws)
    full, rest = divmod(mechanism.max_refusals + 1, mechanism.per_threshold)
    lasts, answers = _of_a_threshold(refused, mechanism.per_threshold, n_queries)
    starts, end = _starts(lasts, full, n_queries)
    total = float(starts @ answers[::-1])
    if rest:
        _, answers = _of_a_threshold(refused, rest, n_queries)
        total += float(end @ answers[::-1])
    return total / n_queries


def _of_a_threshold(
    refused: Array, refusals: int, n_queries: int
) -> tuple[Array, Array]:
    """Return the law of how long a threshold lasts, and its answers by questions left.

    Both are for zero to ``n_queries`` questions.
    """
    steps = np.geomspace(1, n_queries, CURVE_POINTS)
    some = np.unique(np.concatenate([[0], np.rint(steps)]))
    here = binom.cdf(refusals - 1, some[:, None], refused)
    times = np.arange(n_queries + 1)
    left = np.stack([np.interp(times, some, column) for column in here.T])
    lasts = -np.diff(left.mean(axis=0), prepend=1.0)
    # given the noise, as many questions are answered as are asked, but for a share
    asked = np.cumsum(left, axis=1) - left
    return lasts, (1 - refused) @ asked / len(refused)


def _starts(lasts: Array, n_full: int, n_queries: int) -> tuple[Array, Array]:
    """Return how likely a threshold is drawn at each time, and the end of them all."""
    size = next_fast_len(2 * n_queries + 2)
    # times beyond the last question come back to the front, made small by this factor
    small = WRAPPED ** (np.arange(n_queries + 1) / size)
    law = fft(lasts * small, size)
    power = law**n_full
    starts = ifft((1 - power) / (1 - law)).real[: n_queries + 1] / small
    return starts, ifft(power).real[: n_queries + 1] / small


def refusals_by_level(mechanism: SparseVotes, laws: Laws) -> Array:
    """Return how likely a question is refused, for equally likely thresholds."""
    levels = laplace.ppf((np.arange(LEVELS) + 0.5) / LEVELS)
    thresholds = mechanism.threshold + levels * mechanism.threshold_scale
    refused = np.zeros(LEVELS)
    for share, law in laws:
        distances, places = _distances(mechanism, law)
        columns = law.leads.shape[1]
        weights = np.bincount(
            places.ravel(), np.repeat(law.probabilities / columns, columns)
        )
        above = distances - thresholds[:, None]
        refused += share * (laplace.sf(above / mechanism.query_scale) @ weights)
    return refused


def lead_needed(mechanism: VoteMechanism, failure: float) -> int:
    """Return the votes ahead with which a label is told but for this probability.

    For confident votes it is counted from where the test is passed.
    """
    if isinstance(mechanism, SparseVotes):
        distance = mechanism.distance_needed(failure)
        return bisect_left(
            range(4 * distance + 4),
            distance,
            key=lambda lead: mechanism.distance(np.array([lead, 0])),
        )
    assert isinstance(mechanism, NoisyVotes | ConfidentVotes)
    # two labels: the difference of their noise
    return int(np.ceil(-ndtri(failure) * sqrt(2) * mechanism.scale))


def number_error(mechanism: VoteMechanism, n_teachers: int, spread: float) -> float:
    """Return the root mean square error of an answer, against votes without noise.

    For a median votes are normal with deviation ``spread`` around the middle of the
    range.
    """
    if isinstance(mechanism, VoteMean):
        return mechanism.scale(n_teachers)
    assert isinstance(mechanism, VoteMedian)
    middle = (mechanism.low + mechanism.high) / 2
    votes = middle + spread * ndtri((np.arange(n_teachers) + 0.5) / n_teachers)
    values, chances = mechanism.law(votes)
    return float(np.sqrt(chances @ (values - middle) ** 2))
