"""Logistic regression on a stream, and the choice of a method for streams."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from tacit._class_margins import (
    class_margins,
    class_probabilities,
    likeliest_labels,
)
from tacit._discovery import classes_by
from tacit._estimators import Saved, labels_found
from tacit._random import RandomSource
from tacit.convex import Logistic, Loss, OneVsRest, Softmax
from tacit.convex.foreign import given_loss
from tacit.convex.losses import has_residuals
from tacit.data import RowBounds
from tacit.data.bounds import checked_classes
from tacit.data.declared import given_norm
from tacit.privacy import Ledger, Neighbors
from tacit.solvers import Problem
from tacit.solvers._gradients.descent import capped_where_noisy
from tacit.streaming._linear import (
    StreamMethod,
    checked_table,
    is_method,
    linear_scores,
)
from tacit.streaming._model import PlannedStream, StreamModel, StreamTerms
from tacit.streaming._reader import ClassLabels, LinearReader, constant_feature
from tacit.streaming.online._gradient_sums import GradientSums
from tacit.streaming.online._iterates import LEARNERS, ImplicitGradient
from tacit.streaming.online._perturbed import PerturbedIterates
from tacit.streaming.online._quadratic_leader import QuadraticLeader

__all__ = [
    "OnlineLogisticRegression",
    "chosen_method",
    "methods",
]

Array = NDArray[np.float64]

# Steps per weight below which gradients cannot get far enough
FEW_STEPS = 10
# Weights per class beyond which moments take too much memory
MANY_WEIGHTS = 200


class OnlineLogisticRegression(ClassifierMixin, StreamModel):
    """Differentially private logistic regression on a stream.

    Each call of ``partial_fit`` is a step: it takes new rows and releases a model. The
    first step charges the whole horizon. Two classes give one set of weights, more give
    a joint softmax.

    Parameters
    ----------
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail, above zero. None for one over the
        squared number of expected rows, at most 1e-6, where neighbors replace a row.
    horizon
        Number of steps that are charged; further ones are rejected.
    rows_per_step
        Typical number of rows in a step, a guess that only affects accuracy.
    rows_per_person
        Maximum number of rows of one person in the stream. The noise is proportional
        to it.
    classes
        Public labels. None takes them from the first ``partial_fit``, or in ``fit``
        from ``y``, which makes the set of labels an assumption of the guarantee.
    x_norm
        Bound on the L2 norm of a row. Longer rows are clipped to it, in learning and
        in prediction. Required, and chosen without looking at the data.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    method
        ``"gradient_sums"`` for `GradientSums`; ``"quadratic_leader"`` for
        `QuadraticLeader`, which minimizes a quadratic above the logistic loss;
        ``"implicit"``, ``"gradient"`` or ``"leader"`` for averaged `PerturbedIterates`
        of these learners, the first with one set of weights per class against the rest;
        or a method object, which has its own noise (implicit steps are for two classes
        only). ``"auto"`` is ``"quadratic_leader"`` where there are fewer than ten steps
        per weight of a class and no more than 200 such weights, including the
        intercept, and ``"gradient_sums"`` otherwise.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights of the last step, for rows clipped to ``x_norm``.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    loss_ : Logistic, Softmax or OneVsRest
        Loss that is minimized; its derivative is capped where that saves noise.
    n_steps_ : int
        Number of steps that were released.
    privacy_ : PrivacyReport
        Guarantee, spent budget and assumptions.

    Notes
    -----
    **Guarantee.** The models of all steps together are (epsilon, delta)-private for the
    stated neighbors, also if rows are chosen after earlier models were seen, by the
    theorem of the method; the rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.mechanisms import as_generator
    >>> from tacit.streaming import OnlineLogisticRegression
    >>> rng = as_generator(0)  # for synthetic rows
    >>> model = OnlineLogisticRegression(
    ...     1.0, 1e-6, horizon=200, rows_per_step=100, classes=("no", "yes"), x_norm=1.0
    ... )
    >>> for _ in range(200):
    ...     X = rng.uniform(-0.5, 0.5, (100, 3))
    ...     y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    ...     _ = model.partial_fit(X, y)
    >>> model.n_steps_, bool(model.score(X, y) > 0.8)
    (200, True)
    """

    stream_name = ("online", "category")
    saved = Saved("learned", ("steps", "classes", "loss"), ("coef", "intercept"))

    loss_: Any
    _n_steps: int

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        horizon: int = 1000,
        rows_per_step: int = 1,
        rows_per_person: int = 1,
        classes: Any = None,
        x_norm: float | None = None,
        fit_intercept: bool = True,
        method: str | StreamMethod = "auto",
        neighbors: str | Neighbors = "replace_one",
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.rows_per_step = rows_per_step
        self.rows_per_person = rows_per_person
        self.classes = classes
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.method = method
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, ledger: Ledger | None = None
    ) -> Self:
        """Take the rows of one step and release a model.

        The first step charges the whole horizon. Rows with a missing or infinite
        value, or with a label that is not among the classes, count as absent: an error
        would leak information about them.

        Parameters
        ----------
        X
            Features, one row for each row of the step.
        y
            Labels.
        classes
            Public labels, if the estimator was not given them; at the first step, as
            in scikit-learn.
        ledger
            Ledger to charge at the first step; None creates one for this stream. Later
            steps take the same or None.
        """
        with self._exclusive_step():
            if classes is not None:
                self._remember_classes(classes)
            self._show(self._next(X, y, ledger, type(self).__name__))
        return self

    def _planned(self, n_features: int) -> PlannedStream:
        terms = self._terms()
        budget = self._budget(terms)
        reader = self._reader()
        problem = reader.problem(self._loss(), terms.n_rows, n_features)
        problem = replace(problem, loss=capped_where_noisy(problem, budget))
        method = chosen_method(self.method, self.noise, problem, terms)
        learner = method.plan(problem, budget, terms)
        return PlannedStream(budget, terms, learner, reader, reader.assumptions)

    def _loss(self) -> Loss:
        n_classes = len(self._public_classes())
        if n_classes == 2:
            return Logistic()
        # implicit steps solve for one margin at a time
        if isinstance(self.method, str) and self.method == ImplicitGradient.name:
            return OneVsRest(Logistic(), n_classes)
        return Softmax(n_classes)

    def _remember_classes(self, classes: Any) -> None:
        """Store labels given with the first step; reject others than are known."""
        given = checked_classes(classes)
        if self.classes is None and not hasattr(self, "_n_steps"):
            self._given_classes = given
        if not np.array_equal(self._public_classes(), given):
            raise ValueError(
                "classes must be those of the estimator and of the first step."
            )

    def _public_classes(self) -> NDArray[Any]:
        """Return the sorted public labels."""
        classes = self.classes
        if classes is None:
            classes = vars(self).get("_given_classes")
        if classes is None:
            raise ValueError(
                "classes must be given: the labels that can occur, set without the "
                "data."
            )
        return checked_classes(classes)

    def _reader(self) -> LinearReader:
        classes = self._public_classes()
        x_norm = given_norm(self.x_norm)
        return LinearReader(
            RowBounds(x_norm, classes=tuple(classes.tolist())),
            constant_feature(x_norm, self.fit_intercept),
            ClassLabels(classes, seen=self.classes is None),
        )

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        labels = checked_table(self, X, y)
        self.__dict__.pop("_given_classes", None)
        if self.classes is None:
            self._given_classes = labels_found(labels)
        return labels

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        reader: Any = planned.reader
        learner: Any = planned.learner
        if "classes_" not in vars(self) or self._n_steps == 1:
            self.classes_ = self._public_classes()
        if not hasattr(self, "loss_") or self._n_steps == 1:
            self.loss_ = given_loss(learner.problem.loss)
        weights, self.intercept_ = reader.split(weights)
        self.coef_ = weights.T.copy()

    def decision_function(self, X: Any) -> Array:
        """Return the margins of each row: one for two classes, else one per class.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        return class_margins(linear_scores(self, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label of each row.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        return likeliest_labels(self.decision_function(X), self.classes_)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        return class_probabilities(self.decision_function(X), self.loss_)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X
            Features, clipped to ``x_norm``.
        """
        return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        """Return tags which say that a small budget on few rows predicts little."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags


def chosen_method(
    method: object, noise: str, problem: Problem, terms: StreamTerms
) -> StreamMethod:
    """Return a method object as it is, or the one of a name, with this noise."""
    if method == "auto":
        return _automatic(problem, terms)(noise=noise)
    if isinstance(method, str) and method in methods():
        named: StreamMethod = replace(methods()[method], noise=noise)
        return named
    if not is_method(method):
        names = ", ".join(map(repr, ("auto", *methods())))
        raise ValueError(
            f"method must be one of {names}, or a method such as GradientSums(), got "
            f"{method!r}."
        )
    return method


@cache
def methods() -> dict[str, Any]:
    """Return the methods by the names that classes of this package declare."""
    kinds = classes_by("name", "tacit.streaming.online").items()
    return {
        # averages of released iterates have far less noise and cost no budget
        name: PerturbedIterates(kind(), average=True) if kind in LEARNERS else kind()
        for name, kind in kinds
    }


def _automatic(
    problem: Problem, terms: StreamTerms
) -> type[GradientSums] | type[QuadraticLeader]:
    """Return the best method on synthetic streams of these sizes.

    Moments make the most of a small number of steps, as they are solved again at each;
    gradients of the loss itself are better where there are many.
    """
    if problem.n_features > MANY_WEIGHTS:
        return GradientSums
    few = terms.horizon < FEW_STEPS * problem.n_features
    moments = few or has_residuals(problem.loss)
    return QuadraticLeader if moments else GradientSums
