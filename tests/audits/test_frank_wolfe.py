"""Frank-Wolfe attacked where a row lifts one vertex and pushes down all others.

The changed row is 1 in the first feature and -1 in the rest, so that on the simplex one
score rises by all that is declared while the others fall by as much. A hinge is as
steep as declared at small margins. The event judged is fixed beforehand: how often the
first vertex is chosen.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.audits.verdict import assert_refutes_the_control, event_bound
from tests.cases import Cases

from tacit._random import as_generator
from tacit.convex import HuberizedHinge, Simplex
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.solvers.frank_wolfe import FrankWolfe

SHARED_CASES = Cases(audits="FrankWolfe")

BOUNDS = RowBounds(0.1, norm="linf")


def sides(budget, layout):
    replaced = budget.neighbors is Neighbors.REPLACE_ONE
    # without the row all vertices are alike: more of them leave more room to rise
    X = np.full((1, 8 if replaced else 32), -0.1)
    X[0, 0] = 0.1
    if replaced:
        data = (X, np.array([1.0])), (X, np.array([-1.0]))
    else:
        # the row that both sides have is zero, where the loss is blind
        X = np.vstack([X, np.zeros_like(X)])
        data = (X, np.ones(2)), (X[1:], np.ones(1))
    return [bounded_rows(layout(features), y, BOUNDS) for features, y in data]


def lower_bound(solver, budget, layout, n_runs, seed, noise=1.0):
    """Return the lower bound on epsilon with this part of the planned noise."""
    both = sides(budget, layout)
    shape = 2, both[0].n_features
    problem = Problem(HuberizedHinge(), BOUNDS, *shape, regularizer=Simplex())
    plan = solver.plan(problem, budget)
    plan = replace(plan, step_epsilon=plan.step_epsilon / noise)
    rng = as_generator(seed)
    first, second = (
        # most steps chose the first vertex
        sum(solver.run(plan, rows, rng).coefficients[0, 0] > 0.5 for _ in range(n_runs))
        for rows in both
    )
    return event_bound(first, second, n_runs, budget.delta)


def check(solver, budget, layout, n_runs, seed, broken=0.5):
    planned = lower_bound(solver, budget, layout, n_runs, seed)
    control = lower_bound(solver, budget, layout, n_runs, seed, noise=broken)
    assert_refutes_the_control("FrankWolfe", budget.epsilon, planned, control, broken)


@pytest.mark.statistical
def test_half_the_noise_is_caught_quickly(seed):
    check(FrankWolfe(1), Budget(2.0), sparse.csr_array, 2000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n_steps", "broken"), [(1, 0.5), (3, 0.25)])
def test_pure_claim_survives(n_steps, broken, layout, seed):
    check(FrankWolfe(n_steps), Budget(2.0), layout, 3000, seed, broken)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_with_a_delta_survives(seed):
    # composition by Renyi curves is not tight here, hence a quarter of the noise
    budget = Budget(1.5, 1e-2)
    check(FrankWolfe(5), budget, sparse.csr_array, 3000, seed, broken=0.25)


@pytest.mark.slow
@pytest.mark.statistical
def test_noisy_max_survives(seed):
    check(FrankWolfe(1, "laplace"), Budget(2.0), np.asarray, 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_under_adding_a_row_survives(seed):
    budget = Budget(2.0, 0.0, Neighbors.ADD_OR_REMOVE_ONE)
    check(FrankWolfe(1), budget, np.asarray, 3000, seed)
