"""A plan for teachers: their number, the noise, and what to expect of answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tacit._validate import PlainNumbers
from tacit.ensemble._agreement import Group
from tacit.privacy import Budget

__all__ = ["TeacherPlan"]


@dataclass(frozen=True)
class TeacherPlan(PlainNumbers):
    """Teachers by one mechanism, and what to expect of their answers.

    Parameters
    ----------
    mechanism
        Its name.
    budget
        What all questions together spend.
    n_rows
        Rows of all teachers.
    n_teachers
        Number of teachers.
    n_queries
        Questions that are planned for.
    agreement
        Shares of the questions, each with the probability that a teacher gives the
        label which is most likely there. None for numbers.
    max_queries
        Questions after which the mechanism ends in any case; None where they have no
        limit until the refusals are used up.
    max_refusals
        Refusals that let it go on, where they are limited.
    max_answers
        Answers after which it ends, where they are limited.
    threshold
        Distance that must seem to be passed (``"stable"`` and ``"published"``), or
        votes that the winner must seem to have (``"confident_gnmax"``).
    noise_scale
        Scale of the noise that is added to a distance or to a number of votes. None
        for numbers, whose ``error`` says what noise does.
    least_lead
        Votes ahead of the second label with which the first is told in 99 of 100
        cases.
    fraction_answered
        Expected share of the questions that are answered.
    label_accuracy
        Expected share of the answers that are the label which is most likely for a
        teacher.
    error
        Expected root mean square difference of an answer from the mean or median of
        the teachers, for numbers.

    Notes
    -----
    **Bound.** These are expectations in a model, in which votes on a question are
    independent of each other and the labels that are not the most likely one are
    equally likely. Privacy does not rest on them.
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
        """Rows that a teacher learns from, on average."""
        return self.n_rows / self.n_teachers

    @property
    def fraction_right(self) -> float | None:
        """Expected share of all questions that get the label most teachers give."""
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
            f"questions    {self._questions()}",
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

    def _questions(self) -> str:
        if self.max_refusals is not None:
            limit = "no limit" if self.max_queries is None else f"{self.max_queries:,}"
            return f"{limit}; refusal {self.max_refusals + 1:,} is the last"
        if self.max_answers is not None:
            return f"{self.max_queries:,}, of which {self.max_answers:,} are answered"
        return f"{self.max_queries:,}"

    def _passed(self) -> str:
        if self.threshold is None:
            return ""
        what = "votes" if self.mechanism == "confident_gnmax" else "distance"
        return f"; {what} to pass {self.threshold:,.4g}"
