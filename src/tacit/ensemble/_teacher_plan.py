"""Plan for teachers: their number, the noise, and the expected accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

from tacit._validate import PlainNumbers
from tacit.mechanisms._votes._probabilities import VoteDistribution
from tacit.privacy import Budget

__all__ = ["Agreement", "Group", "TeacherPlan", "agreement_groups", "expected_plan"]

Group = tuple[float, float]
Agreement = float | Sequence[Group] | Callable[[float], float | Sequence[Group]]


def agreement_groups(
    agreement: Agreement, rows: float, n_classes: int
) -> tuple[Group, ...]:
    """Return fractions of the queries, each with the agreement of teachers on them.

    Values of a function are raised to the agreement of random guesses, one in
    ``n_classes``, since a learner with few rows guesses. A number below that is
    rejected.
    """
    least = 1 / n_classes
    if callable(agreement):
        return tuple(
            (part, min(1.0, max(least, value)))
            for part, value in _pairs(agreement(rows))
        )
    groups = _pairs(agreement)
    if not all(least <= value <= 1 for _, value in groups):
        raise ValueError(
            f"agreement must be from {least:.3g}, one in n_classes, to 1, got "
            f"{agreement!r}."
        )
    return groups


def _pairs(agreement: float | Sequence[Group]) -> tuple[Group, ...]:
    """Return groups whose fractions add up to one."""
    groups: tuple[Group, ...] = ()
    if isinstance(agreement, Real | float):
        if not isinstance(agreement, bool):
            groups = ((1.0, float(agreement)),)
    else:
        with suppress(TypeError, ValueError):
            groups = tuple((float(part), float(value)) for part, value in agreement)
    total = sum(part for part, _ in groups)
    least = min((part for part, _ in groups), default=-1.0)
    # written so that NaN is rejected
    if not (least >= 0 and abs(total - 1) <= 1e-6):
        raise ValueError(
            "agreement must be a number, pairs (fraction of the queries, agreement) "
            "whose fractions add up to 1, or a function of the rows of a teacher that "
            f"returns these, got {agreement!r}."
        )
    return groups


# wide: one field for each fact that a plan reports
@dataclass(frozen=True)
class TeacherPlan(PlainNumbers):
    """Number of teachers, noise, and expected answers, for one mechanism.

    Parameters
    ----------
    mechanism
        Its name.
    budget
        Budget of all queries together.
    n_rows
        Number of rows of all teachers.
    n_teachers
        Number of teachers.
    n_queries
        Number of queries planned for.
    agreement
        Fractions of the queries, each with the probability that a teacher gives the
        most likely label there. None for numbers.
    max_queries
        Queries after which the mechanism ends in any case; None where only withheld
        answers are limited.
    max_refusals
        Withheld answers after which the mechanism continues, where they are limited.
    max_answers
        Answers after which the mechanism ends, where they are limited.
    threshold
        Threshold of the noisy distance (``"stable"`` and ``"published"``), or of the
        noisy votes of the winner (``"confident_gnmax"``).
    noise_scale
        Scale of the noise on a distance or on a vote count. None for numbers, which
        have an ``error``.
    least_lead
        Lead in votes with which the first label is released in 99 of 100 cases.
    fraction_answered
        Expected fraction of the queries that are answered.
    label_accuracy
        Expected fraction of the answers that are the most likely label of a teacher.
    error
        Expected root mean squared difference of an answer from the mean or median of
        the teachers, for numbers.

    """

    mechanism: str
    budget: Budget
    n_rows: int
    n_teachers: int
    n_queries: int
    agreement: tuple[Group, ...] | None
    max_queries: int | None
    max_refusals: int | None
    max_answers: int | None
    threshold: float | None
    noise_scale: float | None
    least_lead: int | None
    fraction_answered: float
    label_accuracy: float | None
    error: float | None

    @property
    def rows_per_teacher(self) -> float:
        """Average number of rows per teacher."""
        return self.n_rows / self.n_teachers

    @property
    def fraction_right(self) -> float | None:
        """Expected fraction of all queries that get the label most teachers give."""
        if self.label_accuracy is None:
            return None
        return self.fraction_answered * self.label_accuracy

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            **asdict(self),
            "budget": self.budget.to_dict(),
            "rows_per_teacher": self.rows_per_teacher,
            "fraction_right": self.fraction_right,
        }

    def __str__(self) -> str:
        budget = self.budget
        lines = [
            f"mechanism    {self.mechanism}: epsilon {budget.epsilon:g}, delta "
            f"{budget.delta:.3g}, neighbors {budget.neighbors.value}",
            f"teachers     {self.n_teachers:,}, each with {self.rows_per_teacher:,.0f} "
            "rows",
            f"queries      {self._query_limits()}",
        ]
        if self.noise_scale is not None:
            lines.append(f"noise        scale {self.noise_scale:,.4g}{self._passed()}")
        if self.least_lead is not None:
            short = self.least_lead > self.n_teachers
            beyond = ", more than there are teachers" if short else ""
            lines.append(f"lead needed  {self.least_lead:,} votes{beyond}")
        if self.error is not None:
            lines.append(f"expected     error {self.error:.4g} by noise")
        else:
            lines.append(
                f"expected     {self.fraction_answered:.1%} answered, of which "
                f"{self.label_accuracy:.1%} as most teachers would"
            )
        return "\n".join(lines)

    def _query_limits(self) -> str:
        if self.max_refusals is not None:
            limit = "no limit" if self.max_queries is None else f"{self.max_queries:,}"
            return f"{limit}; ends when {self.max_refusals + 1:,} have no answer"
        if self.max_answers is not None:
            return f"{self.max_queries:,}, of which {self.max_answers:,} are answered"
        return f"{self.max_queries:,}"

    def _passed(self) -> str:
        if self.threshold is None:
            return ""
        what = "votes" if self.mechanism == "confident_gnmax" else "distance"
        return f"; {what} to pass {self.threshold:,.4g}"


# Standard deviation of teachers' numbers, as a fraction of their range, by default
SPREAD = 0.05


def expected_plan(
    votes: Any, groups: tuple[Group, ...] | None, spread: float = SPREAD, **facts: Any
) -> TeacherPlan:
    """Return the plan of a calibrated mechanism, with its expected answers.

    ``groups`` is None for numbers; ``facts`` are the other fields of the plan.
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
    distributions = tuple(
        (part, VoteDistribution(n_teachers, value, n_classes)) for part, value in groups
    )
    return TeacherPlan(
        **facts,
        agreement=groups,
        # mechanisms lack some of the limits
        max_queries=getattr(votes, "n_queries", None),
        max_refusals=getattr(votes, "max_refusals", None),
        max_answers=getattr(votes, "max_answers", None),
        threshold=votes.threshold,
        noise_scale=votes.scale,
        least_lead=votes.lead_needed(),
        fraction_answered=votes.fraction_answered(distributions, n_queries),
        label_accuracy=votes.outcome(distributions).accuracy,
        error=None,
    )
