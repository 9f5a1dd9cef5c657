"""Online estimators: logistic regression and least squares on a stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from tacit._estimators import Saved, public_range
from tacit.convex import L2Ball, Logistic, OneVsRest, Softmax, Squared
from tacit.convex.losses import has_residuals
from tacit.solvers import Problem
from tacit.solvers._rules import capped_where_noisy
from tacit.streaming._linear import (
    StreamClassifierMixin,
    StreamLinearModel,
    StreamRegressorMixin,
)
from tacit.streaming._terms import PlannedStream, StreamMethod, StreamTerms, is_method
from tacit.streaming.online._gradient_sums import GradientSums
from tacit.streaming.online._iterates import (
    ImplicitGradient,
    Leader,
    ProjectedGradient,
)
from tacit.streaming.online._perturbed import PerturbedIterates
from tacit.streaming.online._quadratic_leader import QuadraticLeader

__all__ = [
    "METHODS",
    "OnlineLinearRegression",
    "OnlineLogisticRegression",
    "chosen_method",
]

METHODS: dict[str, StreamMethod] = {
    "gradient_sums": GradientSums(),
    "quadratic_leader": QuadraticLeader(),
    # averages of what is released have far less noise and cost no privacy
    "implicit": PerturbedIterates(ImplicitGradient(), average=True),
    "gradient": PerturbedIterates(ProjectedGradient(), average=True),
    "leader": PerturbedIterates(Leader(), average=True),
}
# Steps a weight below which gradients cannot get far enough
FEW_STEPS = 10
# Weights a class beyond which moments are too many to keep
MANY_WEIGHTS = 200


def chosen_method(
    method: object, noise: str, problem: Problem, terms: StreamTerms
) -> StreamMethod:
    """Return a method object as it is, or the one of a name, with this noise."""
    if method == "auto":
        method = _automatic(problem, terms)
    if isinstance(method, str) and method in METHODS:
        named = METHODS[method]
        return replace(named, noise=noise)  # type: ignore[type-var]
    if not is_method(method):
        names = ", ".join(map(repr, ("auto", *METHODS)))
        raise ValueError(
            f"method must be one of {names}, or a method such as GradientSums(), got "
            f"{method!r}."
        )
    return method


def _automatic(problem: Problem, terms: StreamTerms) -> str:
    """Return what does best on synthetic streams of these sizes.

    Moments make the most of few steps, as they are solved for anew at each; gradients
    of the loss itself are better where there are many.
    """
    few = terms.horizon < FEW_STEPS * problem.n_features
    if problem.n_features > MANY_WEIGHTS:
        return "gradient_sums"
    return "quadratic_leader" if few or has_residuals(problem.loss) else "gradient_sums"


class OnlineLogisticRegression(StreamClassifierMixin, StreamLinearModel):
    """Logistic regression that learns step by step and does not tell on its rows.

    Each call of ``partial_fit`` is a step: it takes new rows and releases a model. All
    steps of the horizon are paid for at the first one. Two classes give one set of
    weights, more give a joint softmax.

    Parameters
    ----------
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail, above zero. None for one over the
        squared number of rows that are expected, at most 1e-6, where neighbors replace
        a row.
    horizon
        Steps that are paid for; more are refused.
    rows_per_step
        Rows that a step usually takes, a guess that accuracy alone depends on.
    rows_per_person
        Most rows that one person has in the stream. The noise is in proportion.
    classes
        Public labels. None takes them from the first ``partial_fit``, or in ``fit``
        from ``y``, which makes the set of labels an assumption of the guarantee.
    x_norm
        Bound on the norm of a row. Longer rows are shortened to it, in learning and
        at prediction alike. It must not be read off the data.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    method
        ``"gradient_sums"`` for `GradientSums`; ``"quadratic_leader"`` for
        `QuadraticLeader`, which minimizes a quadratic above the logistic loss;
        ``"implicit"``, ``"gradient"`` or ``"leader"`` for averaged `PerturbedIterates`
        of these learners, the first with one set of weights a class against the rest;
        or one of these as an object, which brings its own noise, implicit steps for two
        classes alone. ``"auto"`` is ``"quadratic_leader"`` where there are fewer than
        ten steps a weight of a class and no more than 200 such weights, the intercept
        among them, and ``"gradient_sums"`` otherwise.
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
        Weights of the last step, for rows shortened to ``x_norm``.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    loss_ : Logistic, Softmax or OneVsRest
        Loss that is minimized; its slope is capped where that saves noise.
    n_steps_ : int
        Steps that were released.
    privacy_ : PrivacyReport
        Promise, spend and assumptions.

    Notes
    -----
    **Guarantee.** The models of all steps together are (epsilon, delta)-private for the
    stated neighbors, also where rows are chosen after earlier models were seen, by the
    theorem of the method; the rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.mechanisms import as_generator
    >>> from tacit.streaming import OnlineLogisticRegression
    >>> rng = as_generator(0)  # makes up rows
    >>> model = OnlineLogisticRegression(
    ...     1.0, 1e-6, horizon=200, rows_per_step=100, classes=("no", "yes")
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

    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        horizon=1000,
        rows_per_step=1,
        rows_per_person=1,
        classes=None,
        x_norm=1.0,
        fit_intercept=True,
        method="auto",
        neighbors="replace_one",
        noise="grid",
        random_state=None,
    ):
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

    def _planned(self, n_features):
        terms = self._terms()
        budget = self._budget(terms)
        problem = self._problem(self._loss(), terms, n_features)
        problem = replace(problem, loss=capped_where_noisy(problem, budget))
        method = chosen_method(self.method, self.noise, problem, terms)
        return PlannedStream(
            budget,
            terms,
            method.plan(problem, budget, terms),
            (*self._row_assumptions(), *self._class_assumptions()),
        )

    def _loss(self):
        n_classes = len(self._classes())
        if n_classes == 2:
            return Logistic()
        # implicit steps solve for one margin at a time
        if isinstance(self.method, str) and self.method == "implicit":
            return OneVsRest(Logistic(), n_classes)
        return Softmax(n_classes)

    def _publish(self, weights):
        super()._publish(weights)
        if not hasattr(self, "loss_") or self._n_steps == 1:
            self.loss_ = self._private_stream.planned.learner.problem.loss

    def predict_proba(self, X):
        """Return the probability of each class for each row.

        Parameters
        ----------
        X
            Features, shortened to ``x_norm``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack(
                [self.loss_.probability(-scores), self.loss_.probability(scores)]
            )
        if isinstance(self.loss_, OneVsRest):
            return self.loss_.probability(scores)
        return special.softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X
            Features, shortened to ``x_norm``.
        """
        return np.log(self.predict_proba(X))


# Methods that noise on weights needs a bounded slope for, hence weights in a ball, and
# what these can make of the longest row, in units of the largest target
IN_A_BALL, RADIUS = ("implicit", "gradient", "leader"), 3.0


class OnlineLinearRegression(StreamRegressorMixin, StreamLinearModel):
    """Least squares that learn step by step and do not tell on their rows.

    Each call of ``partial_fit`` is a step: it takes new rows and releases a model. All
    steps of the horizon are paid for at the first one. Targets are centered and scaled
    by their public range inside, and weights come back in the units of the targets.

    Parameters
    ----------
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail, above zero. None for one over the
        squared number of rows that are expected, at most 1e-6, where neighbors replace
        a row.
    horizon
        Steps that are paid for; more are refused.
    rows_per_step
        Rows that a step usually takes, a guess that accuracy alone depends on.
    rows_per_person
        Most rows that one person has in the stream. The noise is in proportion.
    y_range
        Lowest and highest target, public and required. Targets beyond are cut to it.
    x_norm
        Bound on the norm of a row. Longer rows are shortened to it, in learning and
        at prediction alike. It must not be read off the data.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    method
        ``"quadratic_leader"`` for `QuadraticLeader`, ``"gradient_sums"`` for
        `GradientSums`; ``"implicit"``, ``"gradient"`` or ``"leader"`` for
        averaged `PerturbedIterates` of these learners, with weights in a ball in which
        the longest row predicts at most three times the largest target; or the first
        two as an object, which brings its own noise. ``"auto"`` is
        ``"quadratic_leader"`` up to 200 weights, the intercept among them, and
        ``"gradient_sums"`` beyond.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the last step in units of the targets, for rows shortened to
        ``x_norm``.
    intercept_ : float
        Intercept.
    n_steps_ : int
        Steps that were released.
    privacy_ : PrivacyReport
        Promise, spend and assumptions.

    Notes
    -----
    **Guarantee.** The models of all steps together are (epsilon, delta)-private for the
    stated neighbors, also where rows are chosen after earlier models were seen, by the
    theorem of the method; the rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.mechanisms import as_generator
    >>> from tacit.streaming import OnlineLinearRegression
    >>> rng = as_generator(0)  # makes up rows
    >>> model = OnlineLinearRegression(
    ...     1.0, 1e-6, horizon=200, rows_per_step=100, y_range=(-1.0, 1.0)
    ... )
    >>> for _ in range(200):
    ...     X = rng.uniform(-0.5, 0.5, (100, 3))
    ...     _ = model.partial_fit(X, X @ [1.0, -0.5, 0.0])
    >>> model.n_steps_, bool(model.score(X, X @ [1.0, -0.5, 0.0]) > 0.5)
    (200, True)
    """

    stream_name = ("online", "number")
    saved = Saved("learned", ("steps",), ("coef", "intercept"))

    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        horizon=1000,
        rows_per_step=1,
        rows_per_person=1,
        y_range=None,
        x_norm=1.0,
        fit_intercept=True,
        method="auto",
        neighbors="replace_one",
        noise="grid",
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.rows_per_step = rows_per_step
        self.rows_per_person = rows_per_person
        self.y_range = y_range
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.method = method
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def _planned(self, n_features):
        terms = self._terms()
        budget = self._budget(terms)
        low, high = public_range(self.y_range)
        problem = self._problem(Squared(), terms, n_features)
        if isinstance(self.method, str) and self.method in IN_A_BALL:
            ball = L2Ball(RADIUS / problem.bounds.x_norm)
            problem = replace(problem, regularizer=ball)
        method = chosen_method(self.method, self.noise, problem, terms)
        return PlannedStream(
            budget,
            terms,
            method.plan(problem, budget, terms),
            (*self._row_assumptions(), f"targets are cut to [{low:g}, {high:g}]"),
        )
