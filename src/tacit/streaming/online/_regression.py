"""Least squares on a stream, by the methods of online learning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit._estimators import Saved
from tacit._random import RandomSource
from tacit.convex import L2Ball, Squared
from tacit.privacy import Neighbors
from tacit.streaming._linear import StreamMethod, StreamRegressor
from tacit.streaming._model import PlannedStream, StreamModel
from tacit.streaming.online._iterates import LEARNERS
from tacit.streaming.online._logistic import chosen_method

__all__ = ["OnlineLinearRegression"]

# Noise on weights requires a bounded gradient, hence weights in a ball: predictions for
# the longest row within this many times the largest target
RADIUS = 3.0
LEARNER_NAMES = tuple(kind.name for kind in LEARNERS)


class OnlineLinearRegression(StreamRegressor, StreamModel):
    """Differentially private least squares on a stream.

    Each call of ``partial_fit`` is a step: it takes new rows and releases a model. The
    first step charges the whole horizon. Targets are centered and scaled by their
    public range internally, and weights are returned in the units of the targets.

    Parameters
    ----------
    epsilon, delta, horizon, rows_per_step, rows_per_person
        As in `OnlineLogisticRegression`.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped.
    x_norm, fit_intercept
        As in `OnlineLogisticRegression`.
    method
        As in `OnlineLogisticRegression`, but for two: ``"implicit"``, ``"gradient"``
        and ``"leader"`` have weights in a ball in which the longest row predicts at
        most three times the largest target; ``"auto"`` is ``"quadratic_leader"`` up to
        200 weights, including the intercept, and ``"gradient_sums"`` beyond. Objects
        are `GradientSums` or `QuadraticLeader`.
    neighbors, noise, random_state
        As in `OnlineLogisticRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the last step in units of the targets, for rows clipped to
        ``x_norm``.
    intercept_ : float
        Intercept.
    n_steps_ : int
        Number of steps that were released.
    privacy_ : PrivacyReport
        Guarantee, spent budget and assumptions.

    Notes
    -----
    **Guarantee.** As in `OnlineLogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.mechanisms import as_generator
    >>> from tacit.streaming import OnlineLinearRegression
    >>> rng = as_generator(0)  # for synthetic rows
    >>> model = OnlineLinearRegression(
    ...     1.0, 1e-6, horizon=200, rows_per_step=100, y_range=(-1.0, 1.0), x_norm=1.0
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
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        horizon: int = 1000,
        rows_per_step: int = 1,
        rows_per_person: int = 1,
        y_range: Any = None,
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
        self.y_range = y_range
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.method = method
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def _planned(self, n_features: int) -> PlannedStream:
        terms = self._terms()
        budget = self._budget(terms)
        reader = self._reader()
        problem = reader.problem(Squared(), terms.n_rows, n_features)
        if isinstance(self.method, str) and self.method in LEARNER_NAMES:
            ball = L2Ball(RADIUS / problem.bounds.x_norm)
            problem = replace(problem, regularizer=ball)
        method = chosen_method(self.method, self.noise, problem, terms)
        learner = method.plan(problem, budget, terms)
        return PlannedStream(budget, terms, learner, reader, reader.assumptions)
