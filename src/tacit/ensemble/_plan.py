"""How many teachers, and what to expect of them, before there is any data."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np

from tacit._validate import at_least, at_most, one_of, positive
from tacit.ensemble._agreement import Agreement, Group, agreement_groups
from tacit.ensemble._teacher_plan import TeacherPlan
from tacit.exceptions import PlanError
from tacit.mechanisms.votes import (
    CLASS_VOTES,
    FAILURE,
    NUMBER_VOTES,
    VOTES,
    SparseVotes,
    VoteDistribution,
    VoteTerms,
    vote_mechanism,
)
from tacit.privacy import Budget, Neighbors

__all__ = [
    "auto_mechanism",
    "auto_teachers",
    "compare_mechanisms",
    "expected_of",
    "plan_teachers",
    "refuse_more_teachers",
]

# Deviation of teachers' numbers, as a part of their range, unless another is given
SPREAD = 0.05
# Numbers of teachers that are compared in the end grow by this factor
STEP = 1.1
# The fewest teachers that come within this of the best are chosen
CLOSE = 0.99
# By the rule for n_teachers="auto": rows that a teacher has at least, of labels and of
# numbers, and the error of numbers, as a part of their range
AUTO_ROWS, AUTO_NUMBER_ROWS = 10, 5
AUTO_ERROR = 0.03
# What a plan is made for at most, and the most teachers that are compared: more take
# long to plan for, and much longer to train
MOST_ROWS, MOST_QUERIES, MOST_TEACHERS = 10**12, 10**7, 10**6
# Only there to compare with, so that no comparison has it unless it is named
NAMED_ALONE = ("published",)


def plan_teachers(
    n_rows: int,
    n_queries: int,
    epsilon: float,
    delta: float,
    *,
    agreement: Agreement = 0.8,
    n_classes: int = 2,
    y_range: tuple[float, float] | None = None,
    spread: float = SPREAD,
    mechanism: str = "auto",
    n_teachers: int | None = None,
    max_refusals: int | None = None,
    max_answers: int | None = None,
    neighbors: str = "replace_one",
) -> TeacherPlan:
    """Say how many teachers to train and what to expect of them, without data.

    Parameters
    ----------
    n_rows
        Rows of all teachers, or a public guess.
    n_queries
        Questions to plan for.
    epsilon
        What all questions together may spend.
    delta
        Its probability of failure.
    agreement
        Probability that a teacher gives the label which is most likely for a
        question: a number; pairs of a share of the questions and the agreement on
        them, since refusals come from questions that are hard; or a function of the
        rows of a teacher that returns either.
    n_classes
        Number of labels. Votes for the others are taken as spread evenly; 2 is the
        worst case, where all of them are for one.
    y_range
        Least and largest number, for teachers that predict numbers.
    spread
        Deviation of the teachers' numbers for one question, as a part of the range;
        the error of a median depends on it.
    mechanism
        Name of a mechanism; ``"auto"`` for noisy votes, ``"gnmax"``, or for the mean
        of numbers.
    n_teachers
        Number of teachers. None for the fewest whose answers are right almost as
        often as any number's, within one percent; for numbers, that of
        ``n_teachers="auto"``. No more than rows.
    max_refusals
        As in `tacit.mechanisms.VoteTerms`.
    max_answers
        As in `tacit.mechanisms.VoteTerms`.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.

    Notes
    -----
    **Bound.** Expectations in the model of `TeacherPlan`: votes are binomial, noise has
    the law of the mechanism itself, and refusals that share a threshold share its
    noise. Where there are several thresholds, runs between refusals are taken to have
    their mean length.
    """
    at_least(1, n_rows=n_rows, n_queries=n_queries)
    at_most(MOST_ROWS, n_rows=n_rows)
    at_most(MOST_QUERIES, n_queries=n_queries)
    at_least(2, n_classes=n_classes)
    positive(spread=spread)
    numbers = y_range is not None
    one_of(("auto", *(NUMBER_VOTES if numbers else CLASS_VOTES)), mechanism=mechanism)
    if n_teachers is not None:
        at_least(1, n_teachers=n_teachers)
        refuse_more_teachers(n_teachers, n_rows)
    setting = _Setting(
        n_rows,
        Budget(epsilon, delta, Neighbors.of(neighbors)),
        n_queries,
        agreement,
        n_classes,
        y_range,
        spread,
        max_refusals,
        max_answers,
    )
    return setting.planned(auto_mechanism(mechanism, numbers=numbers), n_teachers)


def compare_mechanisms(
    n_rows: int,
    n_queries: int,
    epsilon: float,
    delta: float,
    *,
    mechanisms: Sequence[str] | None = None,
    **facts: Any,
) -> list[TeacherPlan]:
    """Return a plan for each mechanism that can be planned, without data.

    Parameters
    ----------
    n_rows, n_queries, epsilon, delta
        As for `plan_teachers`.
    mechanisms
        Names of mechanisms; None for all that fit, but for ``"published"``, which is
        there to compare with.
    **facts
        As for `plan_teachers`, but for ``mechanism``.

    Notes
    -----
    **Bound.** That of `plan_teachers`.
    """
    if mechanisms is None:
        numbers = facts.get("y_range") is not None
        names = NUMBER_VOTES if numbers else CLASS_VOTES
        mechanisms = [name for name in names if name not in NAMED_ALONE]
    found = []
    for name in mechanisms:
        try:
            plan = plan_teachers(
                n_rows, n_queries, epsilon, delta, mechanism=name, **facts
            )
        except PlanError as error:
            rejected = error
        else:
            found.append(plan)
    if not found:
        raise rejected
    return found


def refuse_more_teachers(
    n_teachers: int, n_rows: int, instead: str = "take fewer teachers"
) -> None:
    """Refuse more teachers than rows that are planned for, which are public."""
    if n_teachers > n_rows:
        raise PlanError(
            f"n_teachers must be at most the {n_rows} rows that are planned for, got "
            f"{n_teachers}; {instead}."
        )


def auto_mechanism(name: str, *, numbers: bool) -> str:
    """Return the name of a mechanism, also where it is ``"auto"``."""
    if name != "auto":
        return name
    return "mean" if numbers else "gnmax"


@dataclass(frozen=True)
class _Setting:
    """Public facts, for any mechanism and number of teachers."""

    n_rows: int
    budget: Budget
    n_queries: int
    agreement: Agreement
    n_classes: int
    y_range: tuple[float, float] | None
    spread: float
    max_refusals: int | None
    max_answers: int | None

    def planned(self, name: str, n_teachers: int | None) -> TeacherPlan:
        """Return the plan, for the best number of teachers if none is given."""
        if n_teachers is not None:
            return self._plan(name, n_teachers)
        if self.y_range is not None:
            facts = {"n_queries": self.n_queries, "y_range": self.y_range}
            return self._plan(
                name, auto_teachers(self.n_rows, self.budget, name, **facts)
            )
        # doublings first, then numbers between the last two that matter
        found = self._plans(name, _numbers(1, min(self.n_rows, MOST_TEACHERS), 2.0))
        n_teachers = _fewest(found).n_teachers
        found |= self._plans(name, _numbers(max(1, n_teachers // 2), n_teachers, STEP))
        return _fewest(found)

    def _plans(self, name: str, numbers: list[int]) -> dict[int, TeacherPlan]:
        """Return plans by number of teachers, where there are any."""
        found: dict[int, TeacherPlan] = {}
        for n_teachers in numbers:
            try:
                found[n_teachers] = self._plan(name, n_teachers)
            except PlanError as error:
                rejected = error
        if not found:
            raise rejected
        return found

    def _plan(self, name: str, n_teachers: int) -> TeacherPlan:
        groups = None
        facts: dict[str, Any] = {"y_range": self.y_range}
        if self.y_range is None:
            rows = self.n_rows / n_teachers
            groups = agreement_groups(self.agreement, rows, self.n_classes)
            facts = {
                "n_classes": self.n_classes,
                "max_refusals": self.max_refusals,
                "max_answers": self.max_answers,
                # that of the questions which are to be answered
                "agreement": max(value for share, value in groups if share > 0),
            }
        terms = VoteTerms(n_teachers, self.n_queries, **facts)
        votes = vote_mechanism(name, self.budget, terms)
        return expected_of(
            votes,
            groups,
            self.spread,
            mechanism=name,
            budget=self.budget,
            n_rows=self.n_rows,
            n_teachers=n_teachers,
            n_queries=self.n_queries,
        )


def expected_of(
    votes: Any, groups: tuple[Group, ...] | None, spread: float = SPREAD, **facts: Any
) -> TeacherPlan:
    """Return the plan of a mechanism whose noise is set, with what to expect of it.

    ``groups`` are None for numbers, ``facts`` what a plan says of its setting.
    """
    n_teachers, n_queries = facts["n_teachers"], facts["n_queries"]
    if groups is None:
        return TeacherPlan(
            **facts,
            agreement=None,
            max_queries=n_queries,
            max_refusals=None,
            max_answers=None,
            threshold=None,
            noise_scale=None,
            least_lead=None,
            fraction_answered=1.0,
            label_accuracy=None,
            error=votes.error(n_teachers, spread * (votes.high - votes.low)),
        )
    n_classes = max(2, votes.n_classes)
    laws = tuple(
        (share, VoteDistribution(n_teachers, value, n_classes))
        for share, value in groups
    )
    return TeacherPlan(
        **facts,
        agreement=groups,
        # limits that a mechanism lacks are none
        max_queries=getattr(votes, "n_queries", None),
        max_refusals=getattr(votes, "max_refusals", None),
        max_answers=getattr(votes, "max_answers", None),
        threshold=votes.threshold,
        noise_scale=votes.scale,
        least_lead=votes.lead_needed(),
        fraction_answered=votes.fraction_answered(laws, n_queries),
        label_accuracy=votes.told(laws).accuracy,
        error=None,
    )


def _fewest(plans: dict[int, TeacherPlan]) -> TeacherPlan:
    """Return the plan with the fewest teachers that comes close to the best."""
    right = {n: plans[n].fraction_right or 0.0 for n in sorted(plans)}
    best = max(right.values())
    return plans[next(n for n in right if right[n] >= CLOSE * best)]


def _numbers(low: int, high: int, factor: float) -> list[int]:
    """Return numbers from one to the other that grow by about a factor."""
    steps = ceil(log(high / low) / log(factor)) + 1
    return sorted({int(n) for n in np.rint(np.geomspace(low, high, steps))})


def auto_teachers(n_rows: int, budget: Budget, mechanism: str, **facts: Any) -> int:
    """Return the number of teachers for ``n_teachers="auto"``, from public facts.

    Parameters
    ----------
    n_rows
        Rows of all teachers, or a public guess.
    budget
        What all questions together may spend.
    mechanism
        Its name.
    **facts
        Those of `tacit.mechanisms.VoteTerms`, but for the number of teachers.

    Notes
    -----
    **Bound.** A rule of thumb, on which no privacy rests: the fewest teachers whose
    answers are hardly touched by noise. On a question with the agreement hoped for, 99
    of 100 answers are right (of all questions, for stable votes, which answer rightly
    or not at all); or the noise on a number is 3 percent of its range. Where that
    leaves a teacher fewer than 10 rows, 5 for numbers, or where refusals are not
    limited and more teachers allow for more of them, as many teachers as have so many.
    """
    at_least(1, n_rows=n_rows)
    rows = AUTO_NUMBER_ROWS if mechanism in NUMBER_VOTES else AUTO_ROWS
    most = max(1, min(n_rows // rows, MOST_TEACHERS))
    sparse = issubclass(VOTES[mechanism].mechanism, SparseVotes)
    if sparse and facts.get("max_refusals") is None:
        return most

    def enough(n_teachers: int) -> bool:
        terms = VoteTerms(n_teachers, **facts)
        votes = vote_mechanism(mechanism, budget, terms)
        if terms.y_range is not None:
            width = terms.y_range[1] - terms.y_range[0]
            return votes.error(n_teachers, width / 20) <= AUTO_ERROR * width
        law = VoteDistribution(
            n_teachers, terms.agreement, max(2, terms.n_classes or 2)
        )
        one = votes.told(((1.0, law),))
        return (one.right if sparse else one.accuracy) >= 1 - FAILURE

    return 1 + bisect_left(range(1, most), True, key=enough)
