"""Votes by name: the mechanism that fits a budget, from public facts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, sqrt

from tacit._validate import at_least, at_most, one_of, plain
from tacit.exceptions import PlanError
from tacit.mechanisms.grid import check_noise
from tacit.mechanisms.selection import check_choice_size
from tacit.mechanisms.votes._base import ClassVotes, VoteMechanism
from tacit.mechanisms.votes._counting import distance_of_lead
from tacit.mechanisms.votes._noisy import ConfidentVotes, NoisyVotes
from tacit.mechanisms.votes._numbers import VoteMean, VoteMedian, ordered_range
from tacit.mechanisms.votes._published import PublishedVotes
from tacit.mechanisms.votes._stable import StableVotes
from tacit.mechanisms.votes._stable_plan import stable_votes
from tacit.privacy import BoundedRange, Budget, GaussianNoise, Repeated, calibrate

__all__ = [
    "CLASS_VOTES",
    "NUMBER_VOTES",
    "VOTES",
    "VoteKind",
    "VoteTerms",
    "vote_mechanism",
]

# Teachers, questions and the like, and epsilon: far beyond what anyone has or wants,
# and no sum or product of them leaves the floats
MOST, MOST_EPSILON = 10**9, 1e6
# Deviations of the noise of a test by which the weakest winner that passes it lacks
# votes, and those of the noise of an answer that its lead is to be
TEST_STDS = 1.0
ANSWER_STDS = 2.33

# Refusals that are tried where none are given: a tenth more each time, so that plans
# for many numbers of teachers share them
REFUSALS = sorted({round(1.1**k) for k in range(146)})


@dataclass(frozen=True)
class VoteTerms:
    """Public facts that a mechanism for votes is planned from.

    Parameters
    ----------
    n_teachers
        Number of teachers, each of which has one vote.
    n_queries
        Questions.
    n_classes
        Number of classes, for votes between classes.
    y_range
        Least and largest number, for votes that are numbers.
    max_refusals
        Refusals that let stable votes go on. None for as many as let a winner with
        ``agreement`` be told with probability 0.99, and no more than questions.
    max_answers
        Answers of confident votes. None for half of the questions.
    agreement
        Share of the teachers that is hoped to vote for the winner; a guess from public
        facts, which costs accuracy alone where it is wrong.
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
        """Corrected distance of a winner with the agreement hoped for."""
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
        What all questions together may spend.
    terms
        Public facts.
    """
    one_of(VOTES, mechanism=name)
    at_most(MOST_EPSILON, epsilon=budget.epsilon)
    kind = VOTES[name]
    if kind.of_classes and terms.n_classes is None:
        raise PlanError(f"Votes by {name!r} are between classes; name the classes.")
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

    The limit of the test is the number of votes hoped for. A winner that lacks one
    deviation of the noise of a test passes now and then, and has lost twice that of
    its lead; what is left of it must be some deviations of the noise of an answer. The
    sum of both is least for a share of the tests in closed form.
    """
    multiplier = calibrate(GaussianNoise, budget)
    answers = terms.max_answers
    if answers is None:
        answers = ceil(terms.n_queries / 2)
    answers = min(answers, terms.n_queries)
    test = 2 * TEST_STDS * sqrt(terms.n_queries)
    answer = ANSWER_STDS * sqrt(2) * sqrt(2 * answers)
    share = 1 / (1 + (answer / test) ** (2 / 3))
    least = terms.agreement * terms.n_teachers
    return ConfidentVotes(
        multiplier,
        _classes(terms),
        terms.n_queries,
        answers,
        least,
        share,
        terms.noise,
    )


def _stable(budget: Budget, terms: VoteTerms) -> StableVotes:
    refusals = terms.max_refusals
    if refusals is None:
        refusals = _most_refusals(budget, terms)
    return stable_votes(budget, _classes(terms), refusals, terms.noise)


def _most_refusals(budget: Budget, terms: VoteTerms) -> int:
    """Return the most refusals with which the agreement hoped for is told."""

    def told(refusals: int) -> bool:
        votes = stable_votes(budget, 2, refusals, terms.noise)
        return votes.distance_needed() <= terms.distance

    numbers = [n for n in REFUSALS if n <= terms.n_queries]
    return [0, *numbers][bisect_left(numbers, True, key=lambda n: not told(n))]


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
    # [votes:published-refused]
    if not votes.curve(budget.neighbors).fits(budget):
        raise PlanError(
            f"The printed noise of votes by 'published' does not keep epsilon="
            f"{budget.epsilon:g} at delta={budget.delta:g} with {refusals} refusals, "
            "as its distance moves by two; use 'stable', or a smaller epsilon."
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
    check_choice_size(epsilon, budget, "ask fewer questions")
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
