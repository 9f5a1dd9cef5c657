"""An average over blocks, attacked by an estimate that depends on one row."""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.convex import Squared
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers.sample_and_aggregate import SampleAndAggregate

SHARED_CASES = Cases(audits="SampleAndAggregate")


def shout(X, y):
    """Return one end of the ball where the marked row is, and the other elsewhere."""
    return np.array([[1e9 if np.any(y > 0.9) else -1e9]])


def sides(neighbors):
    X, y = np.zeros((6, 1)), np.zeros(6)
    marked = np.r_[1.0, y[1:]]
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return (X, marked), (X[1:], y[1:])
    return (X, marked), (X, y)


def lower_bound(budget, n_runs, seed, law, noise=1.0, method="gaussian"):
    """Return the bound on epsilon with this part of the planned noise."""
    # rows never leave a block empty: with one block the whole claim is at stake
    solver = SampleAndAggregate(shout, n_blocks=1, radius=1.0, law=law)
    plan = solver.plan(Problem(Squared(), RowBounds(), 6, 1), budget)
    plan = replace(plan, multiplier=noise * plan.multiplier)
    return bound_of_runs(
        lambda rows, seed: solver.run(plan, rows, as_generator(seed)).coefficients,
        [bounded_rows(X, y, RowBounds()) for X, y in sides(budget.neighbors)],
        n_runs,
        budget.delta,
        seed,
        method,
    )


def check(budget, n_runs, seed, law="gaussian", method="gaussian"):
    planned = lower_bound(budget, n_runs, seed, law, method=method)
    control = lower_bound(budget, n_runs, seed, law, noise=0.5, method=method)
    name = f"SampleAndAggregate, {law}"
    assert_refutes_the_control(name, budget.epsilon, planned, control)


@pytest.mark.statistical
def test_half_the_noise_is_caught_quickly(seed):
    check(Budget(10.0, 1e-5, Neighbors.ADD_OR_REMOVE_ONE), 800, seed)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_survives_and_half_the_noise_is_caught(neighbors, seed):
    check(Budget(3.0, 1e-3, neighbors), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_of_the_pure_law_survives(seed):
    check(Budget(1.0, 1e-9), 4000, seed, "gamma", "clopper-pearson")
