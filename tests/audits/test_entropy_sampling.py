"""Samples from the simplex, attacked where one row decides the distribution."""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases

from tacit._random import as_generator
from tacit.convex import HuberizedHinge, Simplex
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget
from tacit.solvers._base import Problem
from tacit.solvers.entropy_sampling import EntropySampling

SHARED_CASES = Cases(audits="EntropySampling")

# a loss that is straight where it matters, and nearly so little curved that the bound
# is the log-odds of this very pair
LOSS = HuberizedHinge(0.5)
WEIGHT = 50.0


def lower_bound(budget, n_runs, seed, samples=1, method="gaussian"):
    """Return the bound on epsilon with so many times the planned samples."""
    solver = EntropySampling(weight=WEIGHT)
    bounds = RowBounds(1.0, "linf")
    plan = solver.plan(Problem(LOSS, bounds, 1, 2, regularizer=Simplex()), budget)
    plan = replace(plan, n_samples=samples * plan.n_samples)
    x, y = np.array([[1.0, -1.0]]), np.array([1.0])
    return bound_of_runs(
        lambda rows, seed: solver.run(plan, rows, as_generator(seed)).coefficients[:1],
        [bounded_rows(X, y, bounds) for X in (x, -x)],
        n_runs,
        budget.delta,
        seed,
        method,
    )


def check(budget, n_runs, seed, samples=4, method="gaussian"):
    planned = lower_bound(budget, n_runs, seed, method=method)
    control = lower_bound(budget, n_runs, seed, samples, method)
    more = f"{samples} times the samples"
    assert_refutes_the_control(
        "EntropySampling", budget.epsilon, planned, control, more
    )


@pytest.mark.statistical
def test_too_many_samples_are_caught_quickly(seed):
    # nine times the samples are what a third of the noise is elsewhere
    check(Budget(10.0, 1e-5), 500, seed, samples=9)


@pytest.mark.slow
@pytest.mark.statistical
def test_four_times_the_samples_are_caught(seed):
    # what half the noise is elsewhere
    check(Budget(10.0, 1e-5), 2000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_survives_without_assuming_a_trade_off(seed):
    check(Budget(1.5, 3e-2), 3000, seed, samples=9, method="clopper-pearson")


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_without_delta_survives(seed):
    # a symmetric pair has half the log-ratio of the worst: more samples are needed
    check(Budget(1.0), 2500, seed, samples=150, method="clopper-pearson")
