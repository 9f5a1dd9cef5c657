"""Least squares from noisy moments, attacked end to end."""

from dataclasses import replace

import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.audit import worst_case_pair
from tacit.convex import Squared
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget
from tacit.solvers._base import Problem
from tacit.solvers.ada_ssp import AdaSSP

SHARED_CASES = Cases(audits="AdaSSP")

# so heavy a ridge shows the noisy product of features and targets as it is
SOLVER = AdaSSP(ridge=1e4)


def lower_bound(budget, n_runs, seed, noise=1.0):
    """Return the bound on epsilon with this part of the planned noise."""
    pair = worst_case_pair("squared", 2, 1, neighbors=budget.neighbors)
    plan = SOLVER.plan(Problem(Squared(), RowBounds(), 2, 1), budget)
    plan = replace(plan, multiplier=noise * plan.multiplier)
    return bound_of_runs(
        lambda rows, seed: SOLVER.run(plan, rows, as_generator(seed)).coefficients,
        [bounded_rows(X, y, RowBounds()) for X, y in pair],
        n_runs,
        budget.delta,
        seed,
    )


def check(budget, n_runs, seed):
    planned = lower_bound(budget, n_runs, seed)
    control = lower_bound(budget, n_runs, seed, noise=0.5)
    assert_refutes_the_control("AdaSSP", budget.epsilon, planned, control)


@pytest.mark.statistical
def test_half_the_noise_is_caught_quickly(seed):
    check(Budget(10.0, 1e-5), 800, seed)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_survives_and_half_the_noise_is_caught(neighbors, seed):
    check(Budget(4.0, 1e-3, neighbors), 3000, seed)
