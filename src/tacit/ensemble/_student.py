"""PATE student: an ordinary model trained on privately labelled public rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import all_or_nothing, checked_shape
from tacit._random import public_generator
from tacit._validate import at_least, one_of
from tacit.data.rows import row_indexer
from tacit.ensemble._answers import Labels
from tacit.ensemble._durable import DurableLabeler
from tacit.ensemble._labeler import PrivateLabeler
from tacit.ensemble._labeler_plan import (
    check_parameters,
    has_public_row_count,
    least_rows,
)
from tacit.ensemble._rows import as_rows, checked_queries
from tacit.ensemble._shares import VoteClassifier
from tacit.ensemble._smoothing import SmoothedVotes
from tacit.ensemble._student_checks import (
    check_pool_values,
    check_student,
    dry_run,
    not_taken,
)
from tacit.mechanisms.subsets import permutation
from tacit.privacy import Ledger

__all__ = ["PrivateStudent"]

LEAST_POOL = 2

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Values = NDArray[Any]


class PrivateStudent(BaseEstimator):
    """PATE student: an ordinary model trained on privately labelled public rows.

    Parameters
    ----------
    labeler
        A `PrivateLabeler`, which is cloned; or, for `fit_pool`, one that was fitted, or
        a `DurableLabeler`.
    student
        Any classifier or regressor of scikit-learn, or a pipeline; it is cloned. None
        for `SmoothedVotes`, which averages the noise over similar public rows.
    targets
        Targets of the student. ``"labels"``: the answers. ``"votes"``: the noisy
        fraction of the votes for each class, of all answered rows, which a regressor of
        several targets averages over similar rows; or noisy means before clipping to
        the range, whose noise has mean zero. ``"auto"``: votes where the labeler
        releases them and the student is a regressor or None, else labels.
    unanswered
        Public rows without an answer: ``"drop"``, or ``"self_train"``, by which a
        classifier adds its own confident guesses.

    Attributes
    ----------
    classes_
        Public labels, of a classifier.
    labeler_
        The fitted labeler, which answers further queries while any remain.
    labels_
        Answers, as `Labels`; they are kept even if the fit of the student fails.
    privacy_
        Guarantee, charge and assumptions of the labeler. The student costs no budget.
    questions_
        Indices of the public rows that ``labels_`` is of.
    student_
        The fitted student, an ordinary estimator that can be published.

    Notes
    -----
    **Guarantee.** That of the labeler: the student is a function of public rows and of
    released answers, so that it and everything derived from it is post-processing
    (Dwork and Roth 2014 [1]_, Proposition 2.1; Papernot et al. 2017 [2]_). This holds
    for the votes as targets, for self-training, and for any choice of a student by the
    answers.

    Where no query is answered, the student is the constant public default: the first
    class, or the middle of the range. Where all answers are one label, it is that
    label. Neither is an error, as the charge was made.

    With ``private="labels"`` of the labeler features are public, and `fit` needs no
    other rows: it queries a random sample of ``X`` itself.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy",
       2014.
    .. [2] N. Papernot, M. Abadi, U. Erlingsson, I. Goodfellow, K. Talwar,
       "Semi-supervised knowledge transfer for deep learning from private training
       data", ICLR 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tacit import Seed
    >>> from tacit.ensemble import PrivateLabeler, PrivateStudent
    >>> X, y = make_blobs(3300, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> labeler = PrivateLabeler(
    ...     DecisionTreeClassifier(max_depth=2), 100, epsilon=1.0, delta=1e-6,
    ...     classes=[0, 1], n_queries=200, random_state=Seed(0),
    ... )
    >>> student = PrivateStudent(labeler).fit(X[300:], y[300:], X_public=X[100:300])
    >>> bool(student.score(X[:100], y[:100]) > 0.9)
    True
    """

    def __init__(
        self,
        labeler: PrivateLabeler | DurableLabeler,
        student: Any = None,
        *,
        targets: str = "auto",
        unanswered: str = "drop",
    ) -> None:
        self.labeler = labeler
        self.student = student
        self.targets = targets
        self.unanswered = unanswered

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        ids: Any = None,
        ledger: Ledger | None = None,
    ) -> Self:
        """Charge, train teachers, label the public rows, and fit the student.

        Parameters
        ----------
        X, y, ids, ledger
            As for `PrivateLabeler.fit`.
        X_public
            Public rows with the columns of ``X``, queried in their order while queries
            remain. None where the labeler has ``private="labels"``: then a random
            sample of ``X`` is queried. Where both are given, only these rows are
            queried.
        """
        with all_or_nothing(self):
            if not isinstance(self.labeler, PrivateLabeler):
                raise TypeError(
                    "labeler must be a PrivateLabeler for fit, got "
                    f"{type(self.labeler).__name__}; fit another one yourself, and "
                    "call fit_pool."
                )
            self._check_parameters()
            labeler = clone(self.labeler)
            # a copy of a generator would repeat its stream in the next fit
            labeler.random_state = self.labeler.random_state
            table = as_rows(X)
            probe = clone(labeler)
            checked_shape(
                probe,
                table,
                fitting=True,
                least_rows=least_rows(labeler),
                accept_sparse=True,
            )
            pool, positions = self._pool(labeler, table, X_public)
            self._check_pool(probe, pool)
            # self-training also uses rows that are not queried
            everywhere = self.unanswered == "self_train"
            self._dry_run(probe, pool if everywhere else row_indexer(pool)[positions])
            labeler.fit(table, y, ids=ids, ledger=ledger)
            self._take(labeler)
        # what was charged is kept from here on, whatever fails
        self._keep(labeler.label(row_indexer(pool)[positions]), positions)
        return self._learn(pool, labeler.n_teachers_)

    def fit_pool(self, X_public: Any, labels: Labels | None = None) -> Self:
        """Fit the student with a labeler that is fitted already.

        Parameters
        ----------
        X_public
            Public rows with the columns of the labeler.
        labels
            Labels that the labeler gave these rows before; None queries it now.
        """
        with all_or_nothing(self):
            self._check_parameters()
            labeler, pool = self._inner(), as_rows(X_public)
            check_is_fitted(labeler, "n_queried_")
            self._check_pool(labeler, pool)
            if labels is None:
                self._dry_run(labeler, pool)
                labels = self.labeler.label(pool)
            elif not isinstance(labels, Labels) or len(labels) != pool.shape[0]:
                raise ValueError(
                    "labels must be Labels, one for each row of X_public; give what "
                    "label returned."
                )
            self._take(labeler)
        self._keep(labels, np.arange(pool.shape[0]))
        return self._learn(pool, labeler.n_teachers_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the student.

        Parameters
        ----------
        X
            Any rows.
        """
        check_is_fitted(self, "student_")
        return np.asarray(self.student_.predict(X))

    # scikit-learn has no types
    @available_if(lambda self: hasattr(self.student_, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class by the student.

        Parameters
        ----------
        X
            Any rows.
        """
        found = self.student_.predict_proba(X)
        # the student may not have seen all classes
        all_classes = np.zeros((len(found), len(self.classes_)))
        positions = np.searchsorted(self.classes_, self.student_.classes_)
        all_classes[:, positions] = found
        return all_classes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R squared of a regressor.

        It reads ``y``: the score of private rows is not private.

        Parameters
        ----------
        X
            Public rows.
        y
            Labels or targets.
        sample_weight
            How much each row counts.
        """
        measure = r2_score if is_regressor(self) else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def _inner(self) -> PrivateLabeler:
        given = self.labeler
        return given.labeler if isinstance(given, DurableLabeler) else given

    def _check_parameters(self) -> None:
        """Check parameters against each other, before the charge."""
        one_of(("auto", "labels", "votes"), targets=self.targets)
        one_of(("drop", "self_train"), unanswered=self.unanswered)
        if not isinstance(self._inner(), PrivateLabeler):
            raise TypeError(
                "labeler must be a PrivateLabeler or a DurableLabeler, got "
                f"{type(self.labeler).__name__}."
            )
        check_parameters(self._inner())
        check_student(self.student, self._inner(), self.targets, self.unanswered)

    def _pool(
        self, labeler: PrivateLabeler, table: Any, X_public: Any
    ) -> tuple[Any, Indices]:
        """Return the public rows, and the indices of those to query in their order."""
        if X_public is not None:
            pool = as_rows(X_public)
            return pool, np.arange(pool.shape[0])
        if labeler.private != "labels" or not has_public_row_count(labeler):
            raise ValueError(
                "X_public must be given: the public rows to label; only a labeler with "
                "private='labels' needs none, as features are public there."
            )
        at_least(1, n_queries=labeler.n_queries)
        # [student:sample] a function of the number of rows, which is public here, and
        # of another stream than the key of the labeler, as the sample is public
        rng = public_generator(labeler.random_state, "sample of questions")
        return table, permutation(table.shape[0], rng)[: labeler.n_queries]

    def _check_pool(self, fitted: PrivateLabeler, pool: Any) -> None:
        """Check the public rows for the labeler and the student."""
        if len(pool.shape) != 2 or pool.shape[0] < LEAST_POOL:
            raise ValueError(
                f"X_public must be a table of at least {LEAST_POOL} rows, got shape "
                f"{pool.shape}."
            )
        if pool.shape[1] != fitted.n_features_in_:
            raise ValueError(
                f"X_public must have the {fitted.n_features_in_} columns of X, got "
                f"{pool.shape[1]}."
            )
        try:
            checked_queries(fitted, pool)
        except (TypeError, ValueError) as error:
            raise not_taken(error, "labeler's estimator") from None
        check_pool_values(self.student, pool)

    def _dry_run(self, labeler: PrivateLabeler, queries: Any) -> None:
        """Check that a student can learn from public rows, with synthetic answers."""
        if self.student is None:
            return
        probe = PrivateStudent(labeler, self.student, targets=self.targets)

        def learn(rows: Any, labels: Labels, classes: Any) -> PrivateStudent:
            probe.classes_ = classes
            probe._keep(labels, np.arange(len(labels)))
            return probe._learn(rows, 1)

        dry_run(learn, labeler, queries)

    def _take(self, labeler: PrivateLabeler) -> None:
        """Discard an earlier fit, and take over a labeler that was charged."""
        earlier = ("classes_", "feature_names_in_", "labels_", "questions_", "student_")
        for name in earlier:
            self.__dict__.pop(name, None)
        for name in ("classes_", "n_features_in_", "feature_names_in_", "privacy_"):
            if hasattr(labeler, name):
                setattr(self, name, getattr(labeler, name))
        self.labeler_ = labeler

    def _keep(self, labels: Labels, positions: Indices) -> None:
        """Keep released labels, before the student can fail on them."""
        self.labels_, self.questions_ = labels, positions

    def _learn(self, pool: Any, n_teachers: int) -> Self:
        """Fit the student to released labels: post-processing from here on."""
        labels = self.labels_.at_rows(self.questions_, pool.shape[0])
        if not labels.answered.any():
            self.student_ = self._constant(labels.default, pool)
        elif is_regressor(self):
            self.student_ = self._by_numbers(pool, labels)
        elif self.student is None or is_regressor(self.student):
            self.student_ = self._by_votes(pool, labels, n_teachers)
        else:
            self.student_ = self._by_labels(pool, labels)
        return self

    def _by_numbers(self, pool: Any, labels: Labels) -> Any:
        """Return a regressor of the answers, unclipped where those are released."""
        goals = labels.filled()
        if labels.votes is not None and self.targets != "labels":
            # rows without an answer have weight zero, and still need a number
            goals = np.nan_to_num(labels.votes[:, 0])
        if self.student is None:
            return _smoothed(SmoothedVotes(), pool, goals, labels.answered)
        return self._fitted(clone(self.student), pool, goals, labels.answered)

    def _by_votes(self, pool: Any, labels: Labels, n_teachers: int) -> Any:
        """Return a classifier by vote fractions, which are 0 and 1 for labels."""
        if labels.votes is None or self.targets == "labels":
            fractions = (labels.values[:, None] == self.classes_).astype(np.float64)
        else:
            fractions = np.nan_to_num(labels.votes) / n_teachers
        if self.student is None:
            smooth = VoteClassifier(SmoothedVotes(), self.classes_)
            return _smoothed(smooth, pool, fractions, labels.answered)
        student = VoteClassifier(self.student, self.classes_)
        return self._fitted(student, pool, fractions, labels.answered)

    def _by_labels(self, pool: Any, labels: Labels) -> Any:
        """Return a classifier of the labels, which is constant where all are one."""
        student, answered = clone(self.student), labels.answered
        values = labels.filled()
        known = np.unique(values[answered])
        if len(known) < 2:
            return self._constant(known[0], pool)
        if self.unanswered == "self_train" and not answered.all():
            answered, values = self._guessed(student, pool, answered, values)
        return self._fitted(student, pool, values, answered)

    def _fitted(self, student: Any, pool: Any, goals: Values, answered: Mask) -> Any:
        return student.fit(row_indexer(pool)[answered], goals[answered])

    def _guessed(
        self, student: Any, pool: Any, answered: Mask, values: Values
    ) -> tuple[Mask, Values]:
        """Return which labels are known after self-training, and all labels."""
        codes = np.full(pool.shape[0], -1)
        codes[answered] = np.searchsorted(self.classes_, values[answered])
        taught = SelfTrainingClassifier(clone(student)).fit(pool, codes)
        codes = taught.transduction_
        return codes >= 0, self.classes_[np.maximum(codes, 0)]

    def _constant(self, value: Any, pool: Any) -> DummyClassifier | DummyRegressor:
        """Return a model with constant predictions."""
        if is_regressor(self):
            rows = row_indexer(pool)[np.zeros(1, dtype=np.intp)]
            return DummyRegressor(strategy="constant", constant=value).fit(
                rows, [value]
            )
        # one row per class, so that it knows all of them
        rows = row_indexer(pool)[np.zeros(len(self.classes_), dtype=np.intp)]
        return DummyClassifier(strategy="constant", constant=value).fit(
            rows, self.classes_
        )

    def __getstate__(self) -> dict[str, Any]:
        """Copy the labeler without its folder; labelers leave out their teachers."""
        return {**super().__getstate__(), "labeler": self._inner()}

    def __sklearn_tags__(self) -> Tags:
        """Declare a classifier or a regressor, as the labeler's learner is."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        learner = getattr(self._inner(), "estimator", None)
        if learner is not None and is_regressor(learner):
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def _smoothed(student: Any, pool: Any, goals: Values, answered: Mask) -> Any:
    """Fit a student to all public rows, as those without an answer shape its map."""
    return student.fit(pool, goals, sample_weight=answered.astype(np.float64))
