"""Selected columns, then least squares: each stage attacked through the whole.

The first stage is a selector with one mechanism, so that how often a column is selected
reveals all that it may. The second is attacked by the weight that came out, whichever
column it belongs to.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs, event_bound
from tests.cases import Cases

from tacit._random import as_generator
from tacit.audit import (
    worst_case_pair,
)
from tacit.convex import Squared
from tacit.data import RowBounds, bounded_rows
from tacit.linear_model._two_stage import TwoStage
from tacit.mechanisms import Exponential
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AdaSSP, Problem

SHARED_CASES = Cases(audits="SparseLinearRegression")

BOUNDS = RowBounds(norm="linf")
REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE


@dataclass(frozen=True)
class SumsPlan:
    """How noisy one choice of a column is."""

    epsilon: float
    rows_changed: int
    assumptions: tuple[str, ...] = ()

    @property
    def mechanism(self):
        return Exponential(self.epsilon, self.rows_changed)

    @property
    def event(self):
        return self.mechanism.event


class LargestSum:
    """Select the column with the largest sum."""

    def plan_selection(self, budget, n_rows, n_features):
        return SumsPlan(budget.epsilon, budget.neighbors.rows_changed)

    def select(self, plan, X, y, rng):
        return (plan.mechanism(X.sum(axis=0), rng),)


def planned(stages, budget, n_columns, first=1.0, second=1.0):
    """Return the plan with these parts of the noise in its stages."""
    problem = Problem(Squared(), BOUNDS, 5, n_columns)
    plan = stages.plan(problem, budget)
    selection = replace(plan.selection, epsilon=plan.selection.epsilon / first)
    regression = plan.regression
    if second != 1.0:
        regression = replace(regression, multiplier=second * regression.multiplier)
    return replace(plan, selection=selection, regression=regression)


def selection_bound(budget, n_runs, seed, noise):
    """Return the bound on epsilon from how often the first column is selected."""
    stages = TwoStage(LargestSum(), "output_perturbation", 1, share=0.97)
    # without the row all columns are alike: more of them leave more room to rise
    n_columns = 8 if budget.neighbors is REPLACE else 64
    plan = planned(stages, budget, n_columns, first=noise)
    vote = np.full((1, n_columns), -1.0)
    vote[0, 0] = 1.0
    both = np.zeros((4, n_columns))
    other = both if budget.neighbors is ADD else np.vstack([-vote, both])
    rng = as_generator(seed)
    first, second = (
        sum(
            stages.run(plan, bounded_rows(X, np.zeros(len(X)), BOUNDS), rng).path
            == (0,)
            for _ in range(n_runs)
        )
        for X in (np.vstack([vote, both]), other)
    )
    return event_bound(first, second, n_runs, budget.delta)


def weight_bound(budget, n_runs, seed, noise):
    """Return the bound on epsilon from the weight of the selected column."""
    # so heavy a ridge shows the noisy product of features and targets as it is
    stages = TwoStage(LargestSum(), AdaSSP(ridge=1e4), 1, share=0.02)
    plan = planned(stages, budget, 2, second=noise)
    pair = worst_case_pair("squared", 5, 1, neighbors=budget.neighbors)
    return bound_of_runs(
        lambda rows, seed: stages.run(plan, rows, as_generator(seed)).coefficients.sum(
            keepdims=True
        ),
        [bounded_rows(np.hstack([X, X]), y, BOUNDS) for X, y in pair],
        n_runs,
        budget.delta,
        seed,
    )


def check(bound, budget, n_runs, seed, broken=0.5):
    honest = bound(budget, n_runs, seed, 1.0)
    control = bound(budget, n_runs, seed, broken)
    name = f"SparseLinearRegression, {bound.__name__}"
    assert_refutes_the_control(name, budget.epsilon, honest, control, broken)


@pytest.mark.statistical
def test_too_little_noise_in_the_selection_is_caught_quickly(seed):
    check(selection_bound, Budget(2.0), 500, seed, broken=0.25)


@pytest.mark.statistical
def test_half_the_noise_in_the_weights_is_caught_quickly(seed):
    check(weight_bound, Budget(10.0, 1e-5), 800, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_half_the_noise_in_the_selection_is_caught(neighbors, seed):
    check(selection_bound, Budget(3.0, 0.0, neighbors), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_half_the_noise_in_the_weights_is_caught(neighbors, seed):
    check(weight_bound, Budget(10.0, 1e-3, neighbors), 2000, seed)
