"""Coordinate descent attacked where one row moves every sum as far as declared.

The changed row is at the bound in all columns, and a capped loss with short steps keeps
its derivative at the clip: all releases together are then a Gaussian mechanism of all
that is declared. The score is the sum of the weights.
"""

import numpy as np
import pytest
from scipy import sparse
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.audits.verdict import check as check_parts
from tests.cases import Cases
from tests.solvers.test_coordinate_descent import less_noise

from tacit._random import as_generator
from tacit.audit import worst_case_pair
from tacit.convex import Logistic
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import CoordinateDescent, Problem
from tacit.solvers._coordinates.columns import Columns

SHARED_CASES = Cases(audits="CoordinateDescent")

BOUNDS = RowBounds(norm="linf")
REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE

WALK = CoordinateDescent(4, step=1e-3, clip=0.5, smoothness="public")
SQUARES = CoordinateDescent(
    2, step=1e-3, clip=0.5, smoothness="private", smoothness_share=0.9
)


def epsilon(solver, budget, n_runs, seed, layout=np.asarray, noise=1.0, **settings):
    """Return the lower bound on epsilon with this part of the planned noise."""
    pair = worst_case_pair("logistic", 2, 1, neighbors=budget.neighbors)
    problem = Problem(Logistic(cap=0.5), BOUNDS, 2, 1)
    plan = less_noise(solver.plan(problem, budget), noise)
    sides = [bounded_rows(layout(X), y, BOUNDS) for X, y in pair]
    return bound_of_runs(
        lambda rows, seed: solver.run(plan, rows, as_generator(seed)).coefficients,
        sides,
        n_runs,
        budget.delta,
        seed,
        **settings,
    )


def check(solver, budget, n_runs, seed, broken=0.5, **settings):
    planned = epsilon(solver, budget, n_runs, seed, **settings)
    control = epsilon(solver, budget, n_runs, seed, noise=broken, **settings)
    assert_refutes_the_control(
        "CoordinateDescent", budget.epsilon, planned, control, broken
    )


@pytest.mark.statistical
def test_half_the_noise_is_caught_quickly(seed):
    # so large a claim shows in the fewest runs
    check(WALK, Budget(10.0, 1e-5, ADD), 600, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_claim_survives_and_half_the_noise_is_caught(neighbors, layout, seed):
    check(WALK, Budget(3.0, 1e-3, neighbors), 3000, seed, layout=layout)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_survives_without_assuming_a_trade_off(seed):
    budget = Budget(1.5, 3e-2, ADD)
    check(WALK, budget, 12_000, seed, method="clopper-pearson")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
def test_claim_of_restarts_survives(average, seed):
    solver = CoordinateDescent(
        4,
        step=1e-3,
        clip=0.5,
        smoothness="public",
        n_restarts=2,
        average=average,
        order="uniform",
    )
    # an average forgets part of what was released, so less noise shows
    check(solver, Budget(3.0, 1e-3, ADD), 3000, seed, broken=0.25)


@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_private_squares_survive_and_a_third_of_the_noise_is_caught(neighbors, seed):
    # the released squares themselves, of a row at the bound or away
    budget = Budget(10.0, 1e-5, neighbors)
    problem = Problem(Logistic(cap=0.5), BOUNDS, 2, 1)
    full, none = np.array([[1.0], [0.0]]), np.zeros((2, 1))
    second = none if neighbors is REPLACE else none[1:]
    sides = [bounded_rows(X, np.ones(len(X)), BOUNDS) for X in (full, second)]

    def lower_bound(noise):
        plan = less_noise(SQUARES.plan(problem, budget), noise)

        def release(rows, seed):
            columns = Columns(*rows.arrays(), problem.loss)
            mechanism = plan.squares.mechanism
            sums = columns.square_sums(1.0, mechanism.units)
            return mechanism(sums, as_generator(seed)) / mechanism.units

        return bound_of_runs(release, sides, 600, budget.delta, seed)

    check_parts("CoordinateDescent, squares", 10.0, lower_bound, broken=1 / 3)
