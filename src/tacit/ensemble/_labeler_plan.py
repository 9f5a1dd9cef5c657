"""The plan of a labeler, from its parameters and public facts."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_regressor
from sklearn.utils import get_tags

from tacit._estimators import guaranteed_budget, labels_found, planning_rows
from tacit._resumable.files import folder_path
from tacit._validate import PlainNumbers, at_least, one_of, public_range
from tacit.data.bounds import checked_classes
from tacit.ensemble._teacher_plan import (
    Agreement,
    TeacherPlan,
    agreement_groups,
    expected_plan,
)
from tacit.ensemble._worker import ClassVoting, NumberVoting
from tacit.exceptions import PlanError
from tacit.mechanisms._votes._base import FAILURE, ClassVotes, VoteMechanism
from tacit.mechanisms._votes._numbers import NumberVotes
from tacit.mechanisms._votes._plans import (
    CLASS_VOTES,
    NUMBER_VOTES,
    VOTES,
    VoteTerms,
    vote_mechanism,
)
from tacit.mechanisms._votes._probabilities import VoteDistribution
from tacit.mechanisms._votes._stable import SparseVotes
from tacit.privacy import Budget, Event, Neighbors
from tacit.privacy.report import in_words

__all__ = [
    "LabelerPlan",
    "auto_mechanism",
    "auto_teachers",
    "check_learner",
    "check_parameters",
    "check_teacher_count",
    "declared_input",
    "has_public_row_count",
    "least_rows",
    "new_folder",
    "plan_labeler",
    "public_classes",
    "voting_of",
]

# These sentences are part of the plan whose repr keys the noise, so that other words
# would give other noise for a seed
LABELS_ONLY = "protects labels alone: the features of all rows are taken as public"
CLASSES_GIVEN = "the set of labels is public (taken from y; give classes=)"
FEWER = "take fewer teachers, or give the rows that you expect as expected_rows"
LEARNER = "the learner is a function of its rows and its seed, and keeps nothing"


@dataclass(frozen=True)
class LabelerPlan(PlainNumbers):
    """Plan of a labeler: teachers, noise and event, fixed before any row is read.

    Parameters
    ----------
    budget
        Guarantee of all answers together.
    n_teachers
        Number of teachers, each with disjoint rows.
    mechanism_name
        Name of the mechanism.
    mechanism
        Mechanism that answers a query from their votes, with its noise levels.
    n_rows
        Number of rows planned for: public, or a public guess.
    assumptions
        Assumptions of the guarantee, as sentences.
    """

    budget: Budget
    n_teachers: int
    mechanism_name: str
    mechanism: VoteMechanism
    n_rows: int
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """Event that the ledger is charged, once, before the teachers are trained."""
        return self.mechanism.event

    @property
    def rows_per_teacher(self) -> float:
        """Rows that a teacher has on average."""
        return self.n_rows / self.n_teachers

    @property
    def n_votes(self) -> int | None:
        """Number of noisy votes per answer, as in `Labels.votes`."""
        released = self.mechanism.releases_votes
        return getattr(self.mechanism, "n_classes", 1) if released else None

    def __str__(self) -> str:
        budget = self.budget
        lines = [
            f"mechanism    {self.mechanism_name}: epsilon {budget.epsilon:g}, delta "
            f"{budget.delta:.3g}, neighbors {budget.neighbors.value}",
            f"teachers     {self.n_teachers:,}, each with {self.rows_per_teacher:,.0f} "
            "rows",
            f"spent        {in_words(self.event)}",
        ]
        return "\n".join([*lines, *(f"assumes      {a}" for a in self.assumptions)])

    def expected(self, n_queries: int, agreement: Agreement = 0.8) -> TeacherPlan:
        """Return what to expect of the answers, as `plan_teachers` does.

        Parameters
        ----------
        n_queries
            Number of queries.
        agreement
            As for `plan_teachers`; numbers need none.
        """
        n_classes = getattr(self.mechanism, "n_classes", None)
        groups = None
        if n_classes is not None:
            groups = agreement_groups(
                agreement, self.rows_per_teacher, max(2, n_classes)
            )
        return expected_plan(
            self.mechanism,
            groups,
            mechanism=self.mechanism_name,
            budget=self.budget,
            n_rows=self.n_rows,
            n_teachers=self.n_teachers,
            n_queries=n_queries,
        )


def has_public_row_count(labeler: Any) -> bool:
    """Return whether the number of rows is public."""
    return Neighbors.of(labeler.neighbors) is Neighbors.REPLACE_ONE


def is_automatic(labeler: Any) -> bool:
    """Return whether the number of teachers is to be chosen."""
    return isinstance(labeler.n_teachers, str) and labeler.n_teachers == "auto"


def least_rows(labeler: Any) -> int:
    """Return the minimum number of rows, where their number is public."""
    return 2 if has_public_row_count(labeler) else 0


def declared_input(estimator: Any) -> Any:
    """Return the input tags of a learner of scikit-learn, or None.

    Other learners may declare too little, and composite ones often do.
    """
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return None  # no learner, which is rejected elsewhere
    parts = estimator.get_params(deep=True).values()
    own = type(estimator).__module__.startswith("sklearn.")
    made_of_parts = any(
        hasattr(part, "fit") or isinstance(part, list | tuple) for part in parts
    )
    if not own or made_of_parts:
        return None
    declared = get_tags(estimator).input_tags
    # boosting takes categorical columns, which its tags do not declare; others that are
    # called categorical take integers
    declared.categorical = (
        getattr(estimator, "categorical_features", None) == "from_dtype"
    )
    return declared


def check_parameters(labeler: Any) -> None:
    """Check parameters, also against each other; reads no rows."""
    check_learner("estimator", labeler.estimator)
    one_of(("rows", "labels"), private=labeler.private)
    if labeler.private == "labels" and not has_public_row_count(labeler):
        raise ValueError(
            "private='labels' must go with neighbors='replace_one': features and the "
            "number of rows are public there."
        )
    if not is_automatic(labeler):
        at_least(1, n_teachers=labeler.n_teachers)
    jobs = labeler.n_jobs
    if jobs is not None and (
        isinstance(jobs, bool) or not isinstance(jobs, Integral) or jobs == 0
    ):
        raise ValueError(f"n_jobs must be None or an integer but 0, got {jobs!r}.")
    if not isinstance(labeler.verbose, bool):
        at_least(0, verbose=labeler.verbose)
    _check_kinds(labeler)


def new_folder(folder: Any) -> Path | None:
    """Return the path of an empty folder for teachers, if one is given."""
    if folder is None:
        return None
    path = folder_path(folder, "teacher_folder")
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ValueError(
            "teacher_folder must be a new or an empty folder, so that no other "
            f"teachers are in it, got {str(folder)!r}."
        )
    return path


def check_learner(name: str, learner: Any) -> None:
    """Raise unless this is a classifier or regressor that can be cloned."""
    if isinstance(learner, type) or not all(
        callable(getattr(learner, method, None))
        for method in ("fit", "predict", "get_params")
    ):
        kind = learner if isinstance(learner, type) else type(learner)
        raise TypeError(
            f"{name} must be a classifier or regressor with fit and predict, such as "
            f"LogisticRegression(), got {kind.__name__}."
        )
    copy = clone(learner)  # may raise scikit-learn's own message
    for part in (copy, *copy.get_params(deep=True).values()):
        # learners of other libraries have no such list
        if isinstance(part, type) or not hasattr(part, "_parameter_constraints"):
            continue
        try:
            part._validate_params()
        except ValueError as error:
            raise ValueError(
                f"{name} has a parameter with which it cannot be trained: {error}"
            ) from None


def _check_kinds(labeler: Any) -> None:
    """Check that mechanism, classes and range fit the kind of learner."""
    numbers = is_regressor(labeler.estimator)
    kind, names = (
        ("a regressor", NUMBER_VOTES) if numbers else ("a classifier", CLASS_VOTES)
    )
    one_of(("auto", *CLASS_VOTES, *NUMBER_VOTES), mechanism=labeler.mechanism)
    if labeler.mechanism not in ("auto", *names):
        raise ValueError(
            f"mechanism must be one of {', '.join(map(repr, names))} or 'auto' where "
            f"estimator is {kind}, got {labeler.mechanism!r}."
        )
    if numbers and labeler.classes is not None:
        raise ValueError(
            "classes must be None where estimator is a regressor, whose answers are "
            "numbers; give y_range."
        )
    if not numbers and labeler.y_range is not None:
        raise ValueError(
            "y_range must be None where estimator is a classifier, whose answers are "
            "labels; give classes."
        )


def public_classes(labeler: Any, y: Any = None) -> Any:
    """Return the sorted labels, given or taken from ``y``; None for numbers."""
    if is_regressor(labeler.estimator):
        return None
    if labeler.classes is not None:
        return checked_classes(labeler.classes)
    if y is None:
        raise ValueError("classes must be given for a plan, which sees no labels.")
    return checked_classes(labels_found(y))


def voting_of(labeler: Any, classes: Any) -> Any:
    """Return how predictions become votes."""
    if classes is None:
        return NumberVoting(*public_range(labeler.y_range))
    return ClassVoting(classes)


def plan_labeler(labeler: Any, n_rows: int, classes: Any) -> LabelerPlan:
    """Choose the number of teachers and set the noise; reads no row."""
    numbers = classes is None
    budget = guaranteed_budget(
        labeler.epsilon, labeler.delta, labeler.neighbors, n_rows
    )
    rows = planning_rows(budget, n_rows, labeler.expected_rows)
    name = auto_mechanism(labeler.mechanism, numbers=numbers)
    facts = {
        "n_queries": labeler.n_queries,
        "n_classes": None if numbers else len(classes),
        "y_range": public_range(labeler.y_range) if numbers else None,
        "max_refusals": labeler.max_refusals,
        "max_answers": labeler.max_answers,
        "agreement": labeler.agreement,
        "noise": labeler.noise,
    }
    n_teachers = labeler.n_teachers
    if is_automatic(labeler):
        n_teachers = auto_teachers(rows, budget, name, **facts)
    n_teachers = int(n_teachers)
    check_teacher_count(n_teachers, rows, FEWER)
    mechanism = vote_mechanism(name, budget, VoteTerms(n_teachers, **facts))
    return LabelerPlan(
        budget,
        n_teachers,
        name,
        mechanism,
        rows,
        (
            *((LABELS_ONLY,) if labeler.private == "labels" else ()),
            LEARNER,
            f"{n_teachers:,} teachers vote by {name} on {_query_limits(mechanism)}",
            *mechanism.assumptions,
            *((CLASSES_GIVEN,) if not numbers and labeler.classes is None else ()),
        ),
    )


def _query_limits(mechanism: VoteMechanism) -> str:
    """Return how many queries a mechanism answers, as an assumption."""
    names = ("n_queries", "max_refusals", "max_answers")
    queries, withheld, answers = (getattr(mechanism, name, None) for name in names)
    limit = "any number of" if queries is None else f"up to {queries:,}"
    if withheld is not None:
        return f"{limit} questions, until refusal {withheld + 1:,}"
    if answers is not None:
        return f"{limit} questions, of which {answers:,} are answered"
    return f"{limit} questions"


# For n_teachers="auto": fewest rows per teacher, of classifiers and of regressors, and
# the error of numbers as a fraction of their range
AUTO_ROWS, AUTO_NUMBER_ROWS = 10, 5
AUTO_ERROR = 0.03
# Most teachers that are compared: more take long to plan for, and much longer to train
MOST_TEACHERS = 10**6


def check_teacher_count(
    n_teachers: int, n_rows: int, instead: str = "take fewer teachers"
) -> None:
    """Raise where there are more teachers than rows planned for, which are public."""
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


def auto_teachers(n_rows: int, budget: Budget, mechanism: str, **facts: Any) -> int:
    """Return the number of teachers for ``n_teachers="auto"``, from public facts.

    Parameters
    ----------
    n_rows
        Rows of all teachers, or a public guess.
    budget
        Budget of all queries together.
    mechanism
        Name of the mechanism.
    **facts
        Those of ``VoteTerms``, except the number of teachers.

    Notes
    -----
    **Bound.** A rule of thumb, which privacy does not rest on: the fewest teachers
    whose answers are hardly changed by noise. On a query with the expected agreement,
    99 of 100 answers are right (of all queries, for stable votes, which answer
    correctly or not at all); or the noise on a number is 3 percent of its range.
    Teachers get at least 10 rows, 5 for numbers; where the number of withheld answers
    is not limited, more teachers allow for more of them, and there are as many as that
    leaves.
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
        if isinstance(votes, NumberVotes):
            width = votes.high - votes.low
            return votes.error(n_teachers, width / 20) <= AUTO_ERROR * width
        assert isinstance(votes, ClassVotes)  # there are no other kinds
        distribution = VoteDistribution(
            n_teachers, terms.agreement, max(2, terms.n_classes or 2)
        )
        one = votes.outcome(((1.0, distribution),))
        return (one.right if sparse else one.accuracy) >= 1 - FAILURE

    return 1 + bisect_left(range(1, most), True, key=enough)
