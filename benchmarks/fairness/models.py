"""Models without noise, and private ones drawn around them.

Three recipes for the same promise, (epsilon, 1/n^2):

* ``printed``: the published experiment. The loss has a ridge of one over n^2 where the
  noise is calibrated for one, so its models are **not private as claimed**; noise by
  the classical formula, distance by the published lemma.
* ``corrected``: `LogisticRegression` with output perturbation and the ridge that the
  publication names, one on the mean loss; noise by the exact calibration, distance by
  the exact quantile. Where noise matters, the library also caps the slope of the loss
  at one half, which halves the noise.
* ``library``: the same with the ridge that the library chooses from public facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log, sqrt
from typing import Any

import numpy as np
from benchmarks.fairness.data import Array, Problem
from benchmarks.fairness.printed import printed_distance
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from tacit import Seed
from tacit._random import as_generator
from tacit.convex import Objective, minimize
from tacit.data import bounded_rows
from tacit.fairness._models import weight_distance
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import Gaussian
from tacit.privacy import Budget, GaussianNoise, calibrate
from tacit.solvers import OutputPerturbation

RECIPES = ("printed", "corrected", "library")
STRONG_CONVEXITY = 1.0
FAILURE = 0.01
N_MODELS = 100


@dataclass(frozen=True, eq=False)
class Reference:
    """A model without noise, and what is added to it for a budget.

    Parameters
    ----------
    weights
        The model.
    mechanism
        What draws the noise.
    scale
        Standard deviation of the noise on a weight.
    within
        What the noise moves the weights by, but for a chance that it is called with.
    """

    weights: Array
    mechanism: Gaussian
    scale: float
    within: Callable[[float], float]

    @property
    def distance(self) -> float:
        """What the noise moves the weights by, but for `FAILURE`."""
        return self.within(FAILURE)

    def draws(self, seed: int, n_models: int = N_MODELS) -> Array:
        """Return the weights of private models, one a row."""
        rng = as_generator(seed)
        return np.array([self.mechanism(self.weights, rng) for _ in range(n_models)])


@dataclass(frozen=True, eq=False)
class Fits:
    """Models of one problem; each is fitted once, whatever the noise."""

    problem: Problem
    _known: dict[Any, Array] = field(default_factory=dict)

    def reference(self, recipe: str, n: int, epsilon: float) -> Reference:
        """Return the model of the first ``n`` rows and the noise of a budget."""
        if recipe == "printed":
            return self._printed(n, epsilon)
        ridge = n * STRONG_CONVEXITY if recipe == "corrected" else None
        return self.private(n, epsilon, ridge)

    def plain(self, n: int, C: float) -> Array:
        """Return weights of scikit-learn, whose ridge is one over ``C``."""
        key = n, C
        if key not in self._known:
            X, y = self.problem.X[:n], self.problem.y[:n]
            model = PlainLogisticRegression(
                C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-8
            )
            self._known[key] = model.fit(X, y).coef_[0]
        return self._known[key]

    def _printed(self, n: int, epsilon: float) -> Reference:
        weights = self.plain(n, n / STRONG_CONVEXITY)
        scale = classical_scale(self.problem.x_norm, n, epsilon)

        def lemma(failure: float) -> float:
            return printed_distance(scale, len(weights), failure=failure)

        return Reference(weights, Gaussian(scale, 1.0, "float"), scale, lemma)

    def private(self, n: int, epsilon: float, ridge: float | None) -> Reference:
        """Return the model of the library; None for the ridge that it chooses."""
        model = estimator(self.problem, epsilon, ridge)
        planned = model.plan(n, self.problem.n_weights)
        plan, within = planned.plan, weight_distance(model, planned)
        return Reference(self._minimum(n, plan), plan.mechanism, plan.scale(), within)

    def _minimum(self, n: int, plan: Any) -> Array:
        """Return the minimum of a plan before its noise."""
        problem = plan.problem
        key = n, problem.loss, plan.ridge
        if key not in self._known:
            signs = np.where(self.problem.y[:n] > 0, 1.0, -1.0)
            found = minimize(
                Objective(problem.loss, plan.ridge),
                bounded_rows(self.problem.X[:n], signs, problem.bounds),
                tolerance=plan.gradient_tolerance,
                x_norm=problem.bounds.x_norm,
                y_range=problem.bounds.y_range,
            )
            self._known[key] = found.W[:, 0]
        return self._known[key]


def estimator(
    problem: Problem, epsilon: float, ridge: float | None, seed: int | None = None
) -> LogisticRegression:
    """Return the private estimator of the two honest recipes."""
    return LogisticRegression(
        epsilon,
        x_norm=problem.x_norm,
        fit_intercept=False,
        classes=(0, 1),
        solver=OutputPerturbation(ridge=ridge),
        random_state=None if seed is None else Seed(seed),
    )


def classical_scale(x_norm: float, n: int, epsilon: float) -> float:
    """Return the noise that the published experiment adds, for delta 1/n^2."""
    sensitivity = 2 * x_norm / (STRONG_CONVEXITY * n)
    return sensitivity * sqrt(2 * log(1.25 * n**2)) / epsilon


def exact_scale(x_norm: float, n: int, epsilon: float) -> float:
    """Return the least noise for the same sensitivity and promise."""
    sensitivity = 2 * x_norm / (STRONG_CONVEXITY * n)
    return sensitivity * calibrate(GaussianNoise, Budget(epsilon, 1 / n**2))
