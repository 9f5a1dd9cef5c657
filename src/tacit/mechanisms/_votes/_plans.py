"""Plans of votes by name: the mechanism that fits a budget, from public facts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, at_most, one_of, plain
from tacit.exceptions import PlanError
from tacit.mechanisms._votes._base import (
    FAILURE,
    ClassVotes,
    VoteMechanism,
    distance_of_lead,
)
from tacit.mechanisms._votes._noisy import ConfidentVotes, NoisyVotes
from tacit.mechanisms._votes._numbers import VoteMean, VoteMedian, ordered_range
from tacit.mechanisms._votes._probabilities import tail_points
from tacit.mechanisms._votes._published import PublishedVotes
from tacit.mechanisms._votes._stable import StableVotes
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.selection import check_choice_size
from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Budget,
    GaussianNoise,
    Repeated,
    calibrate,
)

__all__ = [
    "CLASS_VOTES",
    "NUMBER_VOTES",
    "VOTES",
    "VoteKind",
    "VoteTerms",
    "stable_votes",
    "vote_mechanism",
]

Array = NDArray[np.float64]

# Fractions of delta for releases where neighbors differ, the rest for composition
DELTA_FRACTIONS = (0.1, 0.3, 0.5)
# A little below the budget, so that sums of rounded numbers stay within it
KEPT_BACK = 1e-12
# Relative tolerance of the search for the largest epsilon of a group
CLOSE = 1e-4
# Fractions of the epsilon of a group for the noise of its threshold
SPLITS: Array = np.geomspace(1e-3, 0.8, 240)


@dataclass(frozen=True)
class _Grouping:
    """How refusals share thresholds, and the privacy of each group."""

    per_group: int
    n_groups: int
    epsilon: float
    delta: float


def stable_votes(
    budget: Budget, n_classes: int, max_refusals: int, noise: str = "grid"
) -> StableVotes:
    """Return the stable votes that fit a budget and need the least distance.

    Notes
    -----
    **Guarantee.** The event of the mechanism was evaluated and fits. Candidates are
    all refusals in one group, each in its own, and sizes between, each composed as pure
    mechanisms, when all of delta is left for the threshold, and by its Renyi curve,
    with parts of delta for either; and for each the epsilon of a group is divided
    between threshold and refusals.
    """
    split = _best_split(budget, max_refusals)
    threshold_epsilon, query_epsilon, delta, per_group = split
    return StableVotes(
        threshold_epsilon,
        query_epsilon,
        delta,
        n_classes,
        max_refusals,
        per_group,
        noise,
    )


@lru_cache(maxsize=256)
def _best_split(budget: Budget, max_refusals: int) -> tuple[float, float, float, int]:
    """Return epsilons of threshold and refusal, delta and the size of a group."""
    best: tuple[float, tuple[float, float, float, int]] | None = None
    for group in _groupings(budget, max_refusals + 1):
        threshold = SPLITS * group.epsilon
        query = (group.epsilon - threshold) / group.per_group
        scales = 2 / query, 1 / threshold
        each = group.delta / (group.n_groups * group.per_group)
        # [votes:split]
        needed = tail_points(log(each), *scales) + tail_points(log(FAILURE), *scales)
        position = int(np.argmin(needed))
        if best is None or needed[position] < best[0]:
            split = float(threshold[position]), float(query[position])
            best = float(needed[position]), (*split, group.delta, group.per_group)
    assert best is not None  # one group is always a candidate
    return best[1]


def _groupings(budget: Budget, refusals: int) -> list[_Grouping]:
    """Return candidates that fit the budget."""
    found = []
    for per_group in _sizes(refusals):
        n_groups = -(-refusals // per_group)
        pure = budget.epsilon * (1 - KEPT_BACK) / n_groups
        delta = budget.delta * (1 - KEPT_BACK)
        found.append(_Grouping(per_group, n_groups, pure, delta))
        if n_groups == 1:
            continue
        for part in DELTA_FRACTIONS:
            epsilon = _composed(budget, n_groups, part * delta, pure)
            if epsilon > pure:
                found.append(_Grouping(per_group, n_groups, epsilon, part * delta))
    return found


def _sizes(refusals: int) -> list[int]:
    """Return candidate sizes of groups, from one refusal in each to all in one."""
    counts = {1, 2, 3, refusals}
    counts |= {ceil(refusals / round(n)) for n in np.geomspace(1, refusals, 8)}
    return sorted(size for size in counts if size <= refusals)


def _composed(budget: Budget, n_groups: int, delta: float, pure: float) -> float:
    """Return an epsilon of each group that fits with this delta, from ``pure`` on."""

    def fits(epsilon: float) -> bool:
        event = Repeated(ApproxDP(epsilon, delta / n_groups), n_groups)
        return event.curve(budget.neighbors).fits(budget)

    low, high = pure, 2 * pure
    while fits(high):
        low, high = high, 2 * high
    while high > low * (1 + CLOSE):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


# Upper limits of teachers, queries and the like, and of epsilon: beyond any practical
# value, and no sum or product of them overflows
MOST, MOST_EPSILON = 10**9, 1e6
# The weakest winner that passes a test lacks this many standard deviations of the
# test's noise, and its lead should be this many of the noise of an answer
TEST_STDS = 1.0
ANSWER_STDS = 2.33

# Refusals that are tried where none are given: a tenth more each time, so that plans
# for several numbers of teachers have the same ones
REFUSALS = sorted({round(1.1**k) for k in range(146)})


@dataclass(frozen=True)
class VoteTerms:
    """Public facts that a mechanism for votes is planned from.

    Parameters
    ----------
    n_teachers
        Number of teachers, each of which has one vote.
    n_queries
        Queries.
    n_classes
        Number of classes, for votes between classes.
    y_range
        Least and largest number, for votes that are numbers.
    max_refusals
        Queries that stable votes may leave unanswered before one more ends the stream.
        None for the most with which a winner with ``agreement`` is released with
        probability 0.99, and at most one for each query.
    max_answers
        Answers of confident votes. None for half of the queries.
    agreement
        Expected fraction of the teachers that vote for the winner; a guess from public
        facts. A wrong guess costs accuracy, not privacy.
    noise
        ``"grid"`` or ``"float"``.
    """

    n_teachers: int
    n_queries: int
    n_classes: int | None = None
    y_range: tuple[float, float] | None = None
    max_refusals: int | None = None
    max_answers: int | None = None
    agreement: float = 0.8
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_teachers=self.n_teachers, n_queries=self.n_queries)
        if self.n_classes is not None:
            at_least(1, n_classes=self.n_classes)
        if self.max_refusals is not None:
            at_least(0, max_refusals=self.max_refusals)
        if self.max_answers is not None:
            at_least(1, max_answers=self.max_answers)
        at_most(
            MOST,
            n_teachers=self.n_teachers,
            n_queries=self.n_queries,
            n_classes=self.n_classes,
            max_refusals=self.max_refusals,
            max_answers=self.max_answers,
        )
        number = isinstance(self.agreement, float | int)
        if not number or self.agreement is True or not 0 < self.agreement <= 1:
            raise ValueError(
                f"agreement must be a number with 0 < agreement <= 1, got "
                f"{self.agreement!r}."
            )
        if self.y_range is not None:
            object.__setattr__(self, "y_range", ordered_range(self.y_range))
        check_noise(self.noise)

    @property
    def distance(self) -> int:
        """Corrected distance of a winner with the expected agreement."""
        return distance_of_lead(floor((2 * self.agreement - 1) * self.n_teachers))


@dataclass(frozen=True)
class VoteKind:
    """A mechanism for votes, and how it is planned.

    Parameters
    ----------
    mechanism
        Its class.
    plan
        Returns the one that fits a budget, from public facts.
    """

    mechanism: type[VoteMechanism]
    plan: Callable[[Budget, VoteTerms], VoteMechanism]

    @property
    def of_classes(self) -> bool:
        """Whether votes are between classes; else they are numbers."""
        return issubclass(self.mechanism, ClassVotes)


def vote_mechanism(name: str, budget: Budget, terms: VoteTerms) -> VoteMechanism:
    """Return the mechanism of this name that fits the budget, without data.

    Parameters
    ----------
    name
        One of `VOTES`.
    budget
        Budget of all queries together.
    terms
        Public facts.
    """
    one_of(VOTES, mechanism=name)
    at_most(MOST_EPSILON, epsilon=budget.epsilon)
    kind = VOTES[name]
    if kind.of_classes and terms.n_classes is None:
        raise PlanError(f"Votes by {name!r} are between classes; give n_classes.")
    if not kind.of_classes and terms.y_range is None:
        raise PlanError(f"Votes by {name!r} are numbers; give y_range, their range.")
    if name != "median" and budget.delta == 0:
        raise PlanError(f"Votes by {name!r} need delta > 0; give a delta.")
    return kind.plan(budget, terms)


def _noisy(budget: Budget, terms: VoteTerms) -> NoisyVotes:
    multiplier = calibrate(GaussianNoise, budget)
    return NoisyVotes(multiplier, _classes(terms), terms.n_queries, terms.noise)


def _confident(budget: Budget, terms: VoteTerms) -> ConfidentVotes:
    """Plan so that the weakest winner that passes needs the least lead.

    The threshold of the test is the expected number of votes. A winner that lacks
    ``TEST_STDS`` standard deviations of the test's noise passes now and then, and its
    lead is smaller by twice that; the rest of the lead must be ``ANSWER_STDS`` standard
    deviations of the noise of an answer. The fraction of the budget for tests that
    minimizes the sum of both has a closed form.
    """
    multiplier = calibrate(GaussianNoise, budget)
    answers = terms.max_answers
    if answers is None:
        answers = ceil(terms.n_queries / 2)
    answers = min(answers, terms.n_queries)
    test = 2 * TEST_STDS * sqrt(terms.n_queries)
    answer = ANSWER_STDS * sqrt(2) * sqrt(2 * answers)
    test_fraction = 1 / (1 + (answer / test) ** (2 / 3))
    least = terms.agreement * terms.n_teachers
    return ConfidentVotes(
        multiplier,
        _classes(terms),
        terms.n_queries,
        answers,
        least,
        test_fraction,
        terms.noise,
    )


def _stable(budget: Budget, terms: VoteTerms) -> StableVotes:
    refusals = terms.max_refusals
    if refusals is None:
        refusals = _most_refusals(budget, terms)
    return stable_votes(budget, _classes(terms), refusals, terms.noise)


def _most_refusals(budget: Budget, terms: VoteTerms) -> int:
    """Return the most refusals with which a winner with the agreement is released."""

    def released(refusals: int) -> bool:
        votes = stable_votes(budget, 2, refusals, terms.noise)
        return votes.distance_needed() <= terms.distance

    numbers = [n for n in REFUSALS if n <= terms.n_queries]
    return [0, *numbers][bisect_left(numbers, True, key=lambda n: not released(n))]


def _published(budget: Budget, terms: VoteTerms) -> PublishedVotes:
    refusals = terms.max_refusals
    if refusals is None:
        refusals = max(1, _most_refusals(budget, terms))
    if refusals == 0:
        raise PlanError(
            "max_refusals must be at least 1 for votes by 'published', whose printed "
            "noise is zero without refusals."
        )
    votes = PublishedVotes(
        budget.epsilon,
        budget.delta,
        _classes(terms),
        terms.n_queries,
        refusals,
        terms.noise,
    )
    # [votes:published-rejected]
    if not votes.curve(budget.neighbors).fits(budget):
        raise PlanError(
            f"The published noise of votes by 'published' exceeds epsilon="
            f"{budget.epsilon:g} at delta={budget.delta:g} with {refusals} refusals, "
            "as one vote moves its distance by two; use 'stable' or a smaller epsilon."
        )
    return votes


def _mean(budget: Budget, terms: VoteTerms) -> VoteMean:
    low, high = _range(terms)
    multiplier = calibrate(GaussianNoise, budget)
    return VoteMean(multiplier, low, high, terms.n_queries, terms.noise)


def _median(budget: Budget, terms: VoteTerms) -> VoteMedian:
    low, high = _range(terms)
    epsilon = 1 / calibrate(
        lambda noise: Repeated(BoundedRange(1 / noise), terms.n_queries), budget
    )
    check_choice_size(epsilon, budget, "make fewer queries")
    return VoteMedian(epsilon, low, high, terms.n_queries, noise=terms.noise)


def _classes(terms: VoteTerms) -> int:
    assert terms.n_classes is not None  # as `vote_mechanism` has checked
    return terms.n_classes


def _range(terms: VoteTerms) -> tuple[float, float]:
    assert terms.y_range is not None  # as `vote_mechanism` has checked
    return terms.y_range


VOTES = {
    "gnmax": VoteKind(NoisyVotes, _noisy),
    "confident_gnmax": VoteKind(ConfidentVotes, _confident),
    "stable": VoteKind(StableVotes, _stable),
    "published": VoteKind(PublishedVotes, _published),
    "mean": VoteKind(VoteMean, _mean),
    "median": VoteKind(VoteMedian, _median),
}
CLASS_VOTES = tuple(name for name, kind in VOTES.items() if kind.of_classes)
NUMBER_VOTES = tuple(name for name, kind in VOTES.items() if not kind.of_classes)
