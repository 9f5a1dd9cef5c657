"""A small problem for least squares on selected columns, and selectors for it."""

from dataclasses import dataclass

import numpy as np

from tacit._random import as_generator
from tacit.feature_selection import BlockVoteSelector
from tacit.feature_selection._base import PrivateSelector
from tacit.linear_model import SparseLinearRegression
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import ApproxDP

N, P = 2000, 12
Y_RANGE = (-3.0, 5.0)
COMMON = {"n_features_to_select": 2, "feature_bounds": 1.0, "y_range": Y_RANGE}
# always answers, and is planned in no time
VOTES = BlockVoteSelector(n_features_to_select=3, method="features", n_blocks=5)


def data(n=N, p=P, seed=0):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    weights = np.zeros(p)
    weights[[2, 7]] = 1.5, -1.0
    return X, X @ weights + 1.0 + 0.2 * rng.normal(size=n)


def model(epsilon=1.0, delta=1e-6, **parameters):
    return SparseLinearRegression(epsilon, delta, **{**COMMON, **parameters})


@dataclass(frozen=True)
class FixedPlan:
    """What a selection of columns that were fixed beforehand would spend."""

    event: ApproxDP
    assumptions: tuple = ()


class Fixed(PrivateSelector):
    """A selector whose answer is a parameter."""

    def __init__(
        self,
        answer=NO_ANSWER,
        epsilon=1.0,
        delta=None,
        *,
        n_features_to_select=None,
        feature_bounds=None,
        y_range=None,
        neighbors="replace_one",
        expected_rows=None,
        fallback=None,
        noise="grid",
        random_state=None,
    ):
        self.answer = answer
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.fallback = fallback
        self.noise = noise
        self.random_state = random_state

    def plan_selection(self, budget, n_rows, n_features):
        return FixedPlan(ApproxDP(budget.epsilon, budget.delta))

    def select(self, plan, X, y, rng):
        assert np.abs(X).max() <= 1
        assert np.abs(y).max() <= 1
        X[:] = 7.0  # the rows are the selector's to write over
        return self.answer
