"""Number of teachers and their expected answers, before there is any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np

from tacit._validate import at_least, at_most, one_of, positive
from tacit.ensemble._labeler_plan import (
    MOST_TEACHERS,
    auto_mechanism,
    auto_teachers,
    check_teacher_count,
)
from tacit.ensemble._teacher_plan import (
    SPREAD,
    Agreement,
    TeacherPlan,
    agreement_groups,
    expected_plan,
)
from tacit.exceptions import PlanError
from tacit.mechanisms._votes._plans import (
    CLASS_VOTES,
    NUMBER_VOTES,
    VoteTerms,
    vote_mechanism,
)
from tacit.privacy import Budget, Neighbors

__all__ = ["compare_mechanisms", "plan_teachers"]

# Limits of a plan: more take long to plan for
MOST_ROWS, MOST_QUERIES = 10**12, 10**7
# Growth factor of the numbers of teachers that are compared last
STEP = 1.1
# Fraction of the best accuracy with which fewer teachers are chosen
CLOSE = 0.99
# For comparison, and only where it is named
ONLY_IF_NAMED = ("published",)


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
    """Plan the number of teachers and their noise from public facts.

    Parameters
    ----------
    n_rows
        Number of rows of all teachers, or a public guess.
    n_queries
        Number of queries to plan for.
    epsilon
        Privacy budget of all queries together.
    delta
        Probability with which the bound may fail.
    agreement
        Probability that a teacher gives the most likely label of a query: a number;
        pairs of a fraction of the queries and the agreement on them, since hard queries
        are those without an answer; or a function of the rows of a teacher that returns
        either.
    n_classes
        Number of labels. Votes for the others are modelled as spread evenly; 2 is the
        worst case, where all of them are for one.
    y_range
        Lowest and highest number, for teachers that predict numbers.
    spread
        Standard deviation of the teachers' numbers for one query, as a fraction of the
        range; the error of a median depends on it.
    mechanism
        Name of a mechanism; ``"auto"`` for noisy votes, ``"gnmax"``, or for the mean
        of numbers.
    n_teachers
        Number of teachers, at most the rows. None for the fewest whose answers are
        right almost as often as with any number, within one percent; for numbers, that
        of ``n_teachers="auto"``.
    max_refusals
        As for `PrivateLabeler`.
    max_answers
        As for `PrivateLabeler`.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.

    Notes
    -----
    **Bound.** These are expectations in a model. Votes on a query are independent, and
    all labels but the most likely one are equally likely. Noise has the distribution of
    the mechanism, and queries that share a threshold share its noise. Where there are
    several thresholds, the model takes the mean number of answers between withheld
    ones. Privacy does not rest on the model.
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
        check_teacher_count(n_teachers, n_rows)
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
        Names of mechanisms; None for all that fit, except ``"published"``, which serves
        comparison.
    **facts
        As for `plan_teachers`, except ``mechanism``.

    Notes
    -----
    **Bound.** That of `plan_teachers`.
    """
    if mechanisms is None:
        numbers = facts.get("y_range") is not None
        names = NUMBER_VOTES if numbers else CLASS_VOTES
        mechanisms = [name for name in names if name not in ONLY_IF_NAMED]
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


@dataclass(frozen=True)
class _Setting:
    """Public facts for any mechanism and number of teachers."""

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
        """Return the plan, with the best number of teachers unless one is given."""
        if n_teachers is not None:
            return self._plan(name, n_teachers)
        if self.y_range is not None:
            facts = {"n_queries": self.n_queries, "y_range": self.y_range}
            return self._plan(
                name, auto_teachers(self.n_rows, self.budget, name, **facts)
            )
        # doublings first, then numbers near the best of them
        found = self._plans(name, _numbers(1, min(self.n_rows, MOST_TEACHERS), 2.0))
        n_teachers = _fewest(found).n_teachers
        found |= self._plans(name, _numbers(max(1, n_teachers // 2), n_teachers, STEP))
        return _fewest(found)

    def _plans(self, name: str, numbers: list[int]) -> dict[int, TeacherPlan]:
        """Return plans by number of teachers, where a plan exists."""
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
                # that of the queries which are to be answered
                "agreement": max(value for part, value in groups if part > 0),
            }
        terms = VoteTerms(n_teachers, self.n_queries, **facts)
        votes = vote_mechanism(name, self.budget, terms)
        return expected_plan(
            votes,
            groups,
            self.spread,
            mechanism=name,
            budget=self.budget,
            n_rows=self.n_rows,
            n_teachers=n_teachers,
            n_queries=self.n_queries,
        )


def _fewest(plans: dict[int, TeacherPlan]) -> TeacherPlan:
    """Return the plan with the fewest teachers that comes close to the best."""
    right = {n: plans[n].fraction_right or 0.0 for n in sorted(plans)}
    best = max(right.values())
    return plans[next(n for n in right if right[n] >= CLOSE * best)]


def _numbers(low: int, high: int, factor: float) -> list[int]:
    """Return integers from ``low`` to ``high`` that grow by about a factor."""
    steps = ceil(log(high / low) / log(factor)) + 1
    return sorted({int(n) for n in np.rint(np.geomspace(low, high, steps))})
