"""The simplest estimator on a stream: noisy sums of rows, kept from step to step."""

from dataclasses import dataclass

import numpy as np

from tacit._state import kept
from tacit.privacy import GaussianNoise, calibrate
from tacit.streaming._linear import StreamRegressor
from tacit.streaming._model import PlannedStream, StreamModel


@kept
@dataclass(frozen=True)
class TinyState:
    """An exact sum, and the model released last."""

    _private_sum: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class TinyLearner:
    """Sums of rows times targets, with fresh noise at each step."""

    n_features: int
    multiplier: float

    @property
    def event(self):
        return GaussianNoise(self.multiplier)

    assumptions = ("rows are tiny",)

    def init(self):
        return TinyState(np.zeros(self.n_features), np.zeros((self.n_features, 1)))

    def step(self, state, X, y, rng):
        total = state._private_sum + X.T @ y
        noisy = total + self.multiplier * rng.standard_normal(len(total))
        return TinyState(total, noisy[:, None])

    def weights(self, state):
        return state.weights


class Tiny(StreamRegressor, StreamModel):
    """A regression for tests."""

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        *,
        horizon=20,
        rows_per_step=1,
        rows_per_person=1,
        y_range=(0.0, 1.0),
        x_norm=1.0,
        fit_intercept=True,
        neighbors="replace_one",
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
        self.neighbors = neighbors
        self.random_state = random_state

    def _planned(self, n_features):
        terms = self._terms()
        budget = self._budget(terms)
        multiplier = calibrate(GaussianNoise, budget)
        width = n_features + bool(self.fit_intercept)
        learner = TinyLearner(width, multiplier)
        return PlannedStream(budget, terms, learner, self._reader(), ("tiny",))
