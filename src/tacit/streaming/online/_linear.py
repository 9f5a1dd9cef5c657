"""Private least squares on a stream."""

from __future__ import annotations

from dataclasses import replace

from tacit._estimators import public_range
from tacit.convex import L2Ball, Squared
from tacit.streaming._linear import StreamLinearModel, StreamRegressorMixin
from tacit.streaming._terms import PlannedStream
from tacit.streaming.online._auto import chosen_method

__all__ = ["OnlineLinearRegression"]

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
