"""Least squares in the units of the rows, attacked through what it releases."""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording
from tacit.convex import Squared
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AdaptiveMoments, Problem
from tacit.solvers._least_squares.adaptive_plan import COUNT_WEIGHT

SHARED_CASES = Cases(audits="AdaptiveMoments")

SOLVER = AdaptiveMoments()
CONSTANT = 0.25


def pair_of(neighbors):
    """Return two rows of a large target, and one with the opposite or without."""
    X, y = np.ones((2, 1)), np.array([1.0, 1.0])
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return (X, y), (X[1:], y[1:])
    return (X, y), (np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]))


def lower_bound(budget, n_runs, seed, noise=1.0):
    """Return the bound on epsilon with this part of the planned noise.

    All of the budget but a trace is on the sums, whose noise an attacker who sees all
    releases knows how to look through best.
    """
    bounds = RowBounds()
    problem = Problem(
        Squared(), bounds.with_intercept(CONSTANT), 2, 2, constant=CONSTANT
    )
    plan = SOLVER.plan(problem, budget)
    plan = replace(plan, multiplier=noise * plan.multiplier, center_fraction=0.999)
    counted = COUNT_WEIGHT * (budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE)
    worst = np.array([1.0, plan.target_weight, counted])

    def seen(rows, seed):
        with recording() as tape:
            SOLVER.run(plan, rows, as_generator(seed))
        return np.array([worst @ tape.releases[0].output])

    return bound_of_runs(
        seen,
        [bounded_rows(X, y, bounds, CONSTANT) for X, y in pair_of(budget.neighbors)],
        n_runs,
        budget.delta,
        seed,
    )


def check(budget, n_runs, seed):
    planned = lower_bound(budget, n_runs, seed)
    control = lower_bound(budget, n_runs, seed, noise=0.5)
    assert_refutes_the_control("AdaptiveMoments", budget.epsilon, planned, control)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_survives_and_half_the_noise_is_caught(neighbors, seed):
    check(Budget(4.0, 1e-3, neighbors), 500, seed)
