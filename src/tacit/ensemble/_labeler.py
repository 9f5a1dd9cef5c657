"""Private labels for public rows by the votes of teachers (PATE), for any learner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import InputTags, Tags

from tacit._estimators import ExplicitSeed, all_or_nothing, exclusive_step
from tacit._random import RandomSource, is_seeded, secret_key
from tacit._release import Release, charged_run
from tacit._validate import at_least
from tacit.ensemble._answers import (
    FitStart,
    LabelerState,
    Labels,
    answer_queries,
    collect_labels,
    initial_state,
)
from tacit.ensemble._labeler_plan import (
    LabelerPlan,
    check_parameters,
    declared_input,
    least_rows,
    new_folder,
    plan_labeler,
    public_classes,
    voting_of,
)
from tacit.ensemble._rows import (
    TrainingRows,
    as_rows,
    checked_queries,
    checked_rows,
    one_row,
    train_on,
)
from tacit.ensemble._teachers import TeacherFolder
from tacit.mechanisms._votes._base import VoteAnswer
from tacit.privacy import Ledger, Neighbors

__all__ = ["PrivateLabeler"]

# Attributes needed to answer queries, which no copy has
_NOT_COPIED = ("_private_labeler_state", "_holder")
NOT_FITTED = "This PrivateLabeler is not fitted yet; call fit first."


class PrivateLabeler(ExplicitSeed, BaseEstimator):
    """Differentially private labels for public rows, by votes of teachers (PATE).

    Parameters
    ----------
    estimator
        Any scikit-learn classifier or regressor; it is cloned.
    n_teachers
        Number of teachers, each trained on disjoint rows; at most the number of rows
        planned for. ``"auto"`` chooses it from public facts.
    epsilon
        Privacy budget of all answers together.
    delta
        Probability with which the bound may fail; None for one over the squared number
        of rows, which is public when neighbors replace a row.
    mechanism
        ``"gnmax"``, ``"confident_gnmax"``, ``"stable"`` or ``"published"`` for
        classes, ``"mean"`` or ``"median"`` for numbers; ``"auto"`` is ``"gnmax"`` for
        classifiers and ``"mean"`` for regressors.
    classes
        Public labels of a classifier; None takes them from ``y``, which reveals them.
    y_range
        Lowest and highest target of a regressor, set without the data.
    n_queries
        Number of queries to plan for. Mechanisms with noise on every answer end after
        them.
    max_refusals
        Queries that may stay without an answer, for mechanisms that withhold some; one
        more ends the labeler. None for a rule from public facts.
    max_answers
        Queries that get an answer, for ``"confident_gnmax"``; None for such a rule.
    agreement
        Fraction of the teachers expected to vote alike; public, and used for planning
        only.
    private
        ``"rows"``; or ``"labels"``, which protects the labels only and treats the
        features of all rows as public.
    neighbors
        ``"replace_one"``, where the number of rows is public, or
        ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows to plan for; None for the number itself
        where it is public, and else for the number that delta suggests.
    n_jobs
        Number of processes for training and voting, as in scikit-learn.
    teacher_folder
        Empty or new folder to store the teachers in, rather than in memory. It is
        secret.
    noise
        ``"grid"`` or ``"float"``.
    random_state
        A `tacit.Seed` fixes the noise, for tests only. Otherwise noise comes from the
        operating system.
    verbose
        Whether to show progress bars, which count public numbers.

    Attributes
    ----------
    classes_
        Public labels, of a classifier.
    labels_
        All answers so far, as `Labels`.
    n_queried_
        Number of queries so far.
    n_teachers_
        Number of teachers.
    privacy_
        Guarantee, charge and assumptions, as a `tacit.privacy.PrivacyReport`.
    remaining_
        Remaining queries, a function of released answers. With ``max_refusals=5`` there
        are six withheld answers at first, the last of which ends the labeler.

    Notes
    -----
    **Guarantee.** All answers together, to queries that may depend on earlier answers,
    are (epsilon, delta)-private: a row reaches one teacher, which has one vote in each
    query (Papernot et al. 2017 [1]_; Bassily, Thakkar and Thakurta 2018 [2]_), and the
    mechanism covers any change of one vote in all queries. One charge is made before a
    teacher is trained. The learner may be any function of its rows and its seed; where
    it fails, its vote is a public default. Queries are public. See the page on labelers
    among the guarantees.

    Noise is keyed by a secret, by the rows, and by all queries and votes so far: the
    same queries in the same order get the same noise, one by one or in a batch. Copies
    and pickles contain the released answers and cannot answer further queries; a
    labeler serves one thread of one process. `DurableLabeler` keeps a labeler that
    survives its process.

    References
    ----------
    .. [1] N. Papernot, M. Abadi, U. Erlingsson, I. Goodfellow, K. Talwar,
       "Semi-supervised knowledge transfer for deep learning from private training
       data", ICLR 2017.
    .. [2] R. Bassily, O. Thakkar, A. Thakurta, "Model-agnostic private learning",
       NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tacit import Seed
    >>> from tacit.ensemble import PrivateLabeler
    >>> X, y = make_blobs(3100, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> labeler = PrivateLabeler(
    ...     DecisionTreeClassifier(max_depth=2), 100, epsilon=2.0, delta=1e-6,
    ...     classes=[0, 1], n_queries=100, random_state=Seed(0),
    ... ).fit(X[100:], y[100:])
    >>> labels = labeler.label(X[:100])
    >>> bool((labels.values == y[:100]).mean() > 0.9), labeler.remaining_.queries
    (True, 0)
    """

    def __init__(
        self,
        estimator: Any,
        n_teachers: int | str = "auto",
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        mechanism: str = "auto",
        classes: Sequence[Any] | NDArray[Any] | None = None,
        y_range: tuple[float, float] | None = None,
        n_queries: int = 1000,
        max_refusals: int | None = None,
        max_answers: int | None = None,
        agreement: float = 0.8,
        private: str = "rows",
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        n_jobs: int | None = None,
        teacher_folder: str | os.PathLike[str] | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        # long: one line for each parameter
        self.estimator = estimator
        self.n_teachers = n_teachers
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.classes = classes
        self.y_range = y_range
        self.n_queries = n_queries
        self.max_refusals = max_refusals
        self.max_answers = max_answers
        self.agreement = agreement
        self.private = private
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.n_jobs = n_jobs
        self.teacher_folder = teacher_folder
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    def plan(self, n_rows: int) -> LabelerPlan:
        """Return what `fit` will do and spend on so many rows; reads no row.

        Parameters
        ----------
        n_rows
            Number of rows, which is public or a guess.
        """
        at_least(least_rows(self), n_rows=n_rows)
        check_parameters(self)
        return plan_labeler(self, int(n_rows), public_classes(self))

    def fit(
        self, X: Any, y: Any, *, ids: Any = None, ledger: Ledger | None = None
    ) -> Self:
        """Charge for all answers, and train the teachers.

        Features are checked by the learner only: a teacher that fails after the charge
        votes a public default. Invalid labels and targets that are not finite are
        rejected before the charge.

        Parameters
        ----------
        X
            Features: an array, a sparse matrix, a data frame, or a list of numbers.
        y
            Labels, all among the classes, or targets.
        ids
            The person each row belongs to, for ``neighbors="add_or_remove_one"`` only:
            rows with the same id reach the same teacher, and are protected together.
        ledger
            Ledger to charge; None creates one for this fit.
        """
        return self._fit(X, y, ids, ledger)

    def label(self, X: Any) -> Labels:
        """Label public rows, in their order.

        Rows that come after the last query are not queried. They have no label, and
        neither have rows without a private answer: both are NaN or None in ``values``,
        and true in ``missing``, of the `Labels` that are returned.

        Parameters
        ----------
        X
            Features of public rows.
        """
        return self._query(as_rows(X))

    def answer(self, x: Any) -> Any:
        """Label one public row. `label` takes hardly longer for many rows.

        Returns a label or number, or `tacit.mechanisms.NO_ANSWER`.

        Parameters
        ----------
        x
            Features of one row, as a vector or as a table of one row.
        """
        return self._query(one_row(x))[0]

    @property
    def labels_(self) -> Labels:
        """All answers so far, in the order of the queries."""
        if not hasattr(self, "_answers"):
            raise NotFittedError(NOT_FITTED)
        return self._collected(self._answers, len(self._answers))

    def _fit(
        self,
        X: Any,
        y: Any,
        ids: Any,
        ledger: Ledger | None,
        *,
        start: FitStart | None = None,
        holder: object = None,
    ) -> Self:
        """Charge, train and publish; a durable labeler has its own ``start``."""
        # long: check and run, before and after the charge, share what was found
        with self._exclusive_step(holder):
            check_parameters(self)
            if start is None:
                folder = new_folder(self.teacher_folder)
                start = FitStart(self._charge, secret_key(self.random_state), folder)
            rows = checked_rows(self, X, y, ids)
            planned = plan_labeler(self, len(rows), rows.classes)
            start.reject(planned, rows)

            def check() -> tuple[TrainingRows, bytes]:
                ready = rows.learnable(self)
                digest = ready.digest(planned, self.estimator, start._private_key)
                if start.folder is not None:
                    TeacherFolder(start.folder).make()  # rejected here if it cannot
                start.begin()
                return ready, digest

            def run(
                checked: tuple[TrainingRows, bytes],
            ) -> tuple[LabelerState, TrainingRows]:
                ready, digest = checked
                teachers = train_on(self, ready, planned, start)
                state = initial_state(planned, start._private_key, digest, teachers)
                return state, ready

            release = Release(
                planned.event,
                planned.budget,
                start.label,
                (*planned.assumptions, *rows.assumptions),
                seeded=is_seeded(self.random_state),
            )
            (state, ready), self.privacy_ = charged_run(
                release, ledger, run, check=check, entry=start.entry
            )
            start.keep(state, ready)
            self._begin(state, rows.classes)
        return self

    @property
    def _charge(self) -> str:
        """Label of the charge of a fit."""
        only = " (labels only)" if self.private == "labels" else ""
        return type(self).__name__ + only

    def _begin(self, state: LabelerState, classes: NDArray[Any] | None) -> None:
        """Publish a labeler before its first query."""
        self.__dict__.pop("classes_", None)
        if classes is not None:
            self.classes_ = classes
        self._choices = voting_of(self, None).default if classes is None else classes
        self._n_votes = state.planned.n_votes
        self._begun_with = {n: getattr(self, n) for n in self._get_param_names()}
        self._answers: list[VoteAnswer] = []
        self.n_teachers_ = state.planned.n_teachers
        self._show(state, [])

    def _query(
        self,
        table: Any,
        *,
        holder: object = None,
        keep: Callable[[LabelerState, list[VoteAnswer]], None] | None = None,
    ) -> Labels:
        """Answer queries; answers are saved before they are returned."""
        with self._exclusive_step(holder):
            before = self._ready()
            n_rows = checked_queries(self, table)
            if n_rows and before.remaining.ended:
                raise ValueError(
                    f"{type(self).__name__} has answered all queries that were "
                    "charged; fit a new one for more, which is charged again."
                )
            after, answers = answer_queries(before, table)
            if keep is not None:
                keep(after, answers)
            self._show(after, answers)
            return self._collected(answers, n_rows)

    def _collected(self, answers: list[VoteAnswer], n_rows: int) -> Labels:
        return collect_labels(answers, self._choices, n_rows, self._n_votes)

    def _show(self, state: LabelerState, answers: list[VoteAnswer]) -> None:
        self._private_labeler_state = state
        self.n_queried_ = state.n_queried
        self.remaining_ = state.remaining
        # another list, as copies may hold the one before
        self._answers = [*self._answers, *answers]

    def _ready(self) -> LabelerState:
        """Return the state of the labeler, or raise where it cannot answer."""
        state: LabelerState | None = vars(self).get("_private_labeler_state")
        if state is None:
            if hasattr(self, "n_queried_"):
                raise ValueError(
                    "This copy of a labeler contains the answers so far and cannot "
                    "give more; use the original, or keep labelers with DurableLabeler."
                )
            raise NotFittedError(NOT_FITTED)
        if state.process != os.getpid():
            raise ValueError(
                "This labeler belongs to the process that fitted it, and answers only "
                "there; keep labelers that change processes with DurableLabeler."
            )
        for name, value in self._begun_with.items():
            now = getattr(self, name)
            if now is not value and repr(now) != repr(value):
                raise ValueError(
                    f"{name} was changed after the fit; fit again, which is charged "
                    "again."
                )
        return state

    @contextmanager
    def _exclusive_step(self, holder: object = None) -> Iterator[None]:
        """Admit one caller at a time, and restore the state where it fails."""
        # queries read what rows made without a new charge
        quiet = np.errstate(all="ignore")
        with exclusive_step(self), all_or_nothing(self), quiet:
            if vars(self).get("_holder") is not holder:
                raise ValueError(
                    "This labeler is used by a DurableLabeler; query that one, or "
                    "close it and start with a clone."
                )
            yield

    def __getstate__(self) -> dict[str, Any]:
        """Leave the teachers and the private state out of copies and pickles."""
        state = super().__getstate__()
        return {key: part for key, part in state.items() if key not in _NOT_COPIED}

    def __sklearn_tags__(self) -> Tags:
        """Accept the same rows as the learner."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        declared = declared_input(self.estimator)
        if declared is None:
            declared = InputTags(sparse=True, categorical=True, string=True)
            declared.allow_nan = True
        tags.input_tags = declared
        return tags
