"""A minimum that is found whatever the rows are: failing would tell of them."""

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.convex import Huber, L2Ball, Logistic, Objective, Simplex, minimize
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AMP, NoisyGD, OutputPerturbation, PreconditionedGD, Problem

BUDGET = Budget(1.0, 1e-6)


def test_weights_that_one_row_makes_enormous_are_kept_in_a_public_ball():
    n, p = 2000, 20
    problem = Problem(Huber(1.0), RowBounds(1.0, "l2", (-1e6, 1e6)), n, p)
    solver = OutputPerturbation(ridge=1e-5, noise="float")
    plan = solver.plan(problem, BUDGET)
    X, y = np.zeros((n, p)), np.zeros(n)
    quiet = solver.run(plan, bounded_rows(X, y, problem.bounds), as_generator(0))
    X[0, 0], y[0] = 1.0, 1e6
    loud = solver.run(plan, bounded_rows(X, y, problem.bounds), as_generator(0))
    # the same noise, so what differs is the minimum itself
    assert np.linalg.norm(loud - quiet) <= plan.reach * (1 + 1e-6)
    assert np.linalg.norm(loud - quiet) > 0.99 * plan.reach


def test_the_ball_changes_nothing_for_weights_inside(seed):
    rng = as_generator(seed)
    X, y = rng.normal(size=(100, 3)), np.where(rng.random(100) < 0.5, 1.0, -1.0)
    rows = bounded_rows(X, y, RowBounds())
    facts = {"tolerance": 1e-9, "x_norm": 1.0, "y_range": (-1.0, 1.0)}
    free = minimize(Objective(Logistic(), 1.0), rows, **facts).W
    ball = minimize(
        Objective(Logistic(), 1.0), rows, regularizer=L2Ball(200.0), **facts
    ).W
    np.testing.assert_allclose(ball, free, rtol=0, atol=3e-9)


@pytest.mark.parametrize(("x_norm", "n_rows"), [(1e3, 1000), (1.0, 1)])
def test_a_heavy_ridge_on_the_simplex_is_certified(x_norm, n_rows, seed):
    problem = Problem(Logistic(), RowBounds(x_norm), n_rows, 2, 0.0, Simplex())
    plan = AMP().plan(problem, Budget(0.01, 1e-6))
    X = x_norm * as_generator(seed).normal(size=(n_rows, 2))
    rows = bounded_rows(X, np.sign(X[:, 0]), problem.bounds)
    W = AMP().run(plan, rows, as_generator(seed))
    assert Simplex().contains(W)


@pytest.mark.parametrize(
    "solver",
    [AMP(), OutputPerturbation(), NoisyGD(), PreconditionedGD()],
    ids=lambda solver: type(solver).__name__,
)
def test_no_rows_at_all_are_like_one_row_less(solver):
    bounds = RowBounds()
    problem = Problem(Logistic(), bounds, 10, 2)
    budget = Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)
    plan = solver.plan(problem, budget)
    empty = bounded_rows(np.zeros((0, 2)), np.zeros(0), bounds)
    assert np.isfinite(solver.run(plan, empty, as_generator(0))).all()
