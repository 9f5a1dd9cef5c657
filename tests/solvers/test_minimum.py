"""A minimum that is found whatever the rows are: failing would tell of them."""

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from tests.solvers.running import coefficients

from tacit._random import as_generator
from tacit.convex import (
    L1,
    ElasticNet,
    Free,
    GroupL1,
    Huber,
    HuberizedHinge,
    L2Ball,
    Logistic,
    Objective,
    Simplex,
    composite,
    large_scale,
    minimize,
)
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers import (
    AMP,
    NoisyGD,
    ObjectivePerturbation,
    OutputPerturbation,
    PreconditionedGD,
    Problem,
)
from tacit.solvers._base import LARGEST_MARGIN

BUDGET = Budget(1.0, 1e-6)


@pytest.mark.parametrize(
    "penalty", [Free(), L1(1e-6), ElasticNet(1e-6, 1e-9), GroupL1(1e-6)], ids=repr
)
def test_weights_that_one_row_makes_enormous_are_kept_in_a_public_ball(penalty):
    n, p = 2000, 20
    bounds = RowBounds(1.0, "l2", (-1e6, 1e6))
    problem = Problem(Huber(1.0), bounds, n, p, regularizer=penalty)
    solver = OutputPerturbation(ridge=1e-5, noise="float")
    plan = solver.plan(problem, BUDGET)
    assert plan.reach == LARGEST_MARGIN
    X, y = np.zeros((n, p)), np.zeros(n)
    low_noise = coefficients(solver, plan, bounded_rows(X, y, problem.bounds), 0)
    X[0, 0], y[0] = 1.0, 1e6
    loud = coefficients(solver, plan, bounded_rows(X, y, problem.bounds), 0)
    # the same noise, so what differs is the minimum itself
    assert np.linalg.norm(loud - low_noise) <= plan.reach * (1 + 1e-6)
    assert np.linalg.norm(loud - low_noise) > 0.99 * plan.reach


def test_the_ball_changes_nothing_for_weights_inside(seed):
    rng = as_generator(seed)
    X, y = rng.normal(size=(100, 3)), np.where(rng.random(100) < 0.5, 1.0, -1.0)
    rows = bounded_rows(X, y, RowBounds())
    facts = {"tolerance": 1e-9, "x_norm": 1.0, "y_range": (-1.0, 1.0)}
    unconstrained = minimize(Objective(Logistic(), 1.0), rows, **facts).W
    ball = minimize(
        Objective(Logistic(), 1.0), rows, regularizer=L2Ball(200.0), **facts
    ).W
    np.testing.assert_allclose(ball, unconstrained, rtol=0, atol=3e-9)


@pytest.mark.parametrize(("x_norm", "n_rows"), [(1e3, 1000), (1.0, 1)])
def test_a_heavy_ridge_on_the_simplex_is_certified(x_norm, n_rows, seed):
    problem = Problem(Logistic(), RowBounds(x_norm), n_rows, 2, 0.0, Simplex())
    plan = AMP().plan(problem, Budget(0.01, 1e-6))
    X = x_norm * as_generator(seed).normal(size=(n_rows, 2))
    rows = bounded_rows(X, np.sign(X[:, 0]), problem.bounds)
    W = coefficients(AMP(), plan, rows, seed)
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
    assert np.isfinite(coefficients(solver, plan, empty, 0)).all()


@pytest.mark.parametrize("dense_size", [100, 2])
@pytest.mark.parametrize("regularizer", [Free(), L1(2.0)], ids=repr)
def test_steps_that_run_out_raise_nothing(regularizer, dense_size, monkeypatch):
    # after the charge an error would depend on the rows
    module = import_module("tacit.convex.minimizer")
    monkeypatch.setattr(module, "DENSE_SIZE", dense_size)
    monkeypatch.setattr(module, "_lbfgs", lambda objective, rows, W, tolerance: W)
    for where, name in [
        (module, "NEWTON_STEPS"),
        (composite, "NEWTON_STEPS"),
        (large_scale, "BURSTS"),
    ]:
        monkeypatch.setattr(where, name, 1)
    problem = Problem(HuberizedHinge(1e-4), RowBounds(), 60, 6, regularizer=regularizer)
    X = as_generator(0).normal(size=(60, 6))
    rows = bounded_rows(X, np.sign(X[:, 0] + X[::-1, 1]), problem.bounds)
    for solver in (AMP(), OutputPerturbation()):
        plan = solver.plan(problem, Budget(2e4, 1e-6))
        with pytest.raises(RuntimeError, match="could not be certified"):
            minimize(
                Objective(problem.loss, 1e-3),
                rows,
                tolerance=plan.gradient_tolerance,
                x_norm=1.0,
                y_range=(-1.0, 1.0),
                regularizer=regularizer,
            )
        assert np.isfinite(coefficients(solver, plan, rows, 0)).all()


def test_sharp_bends_are_minimized(seed):
    rng = as_generator(seed)
    problem = Problem(HuberizedHinge(1e-4), RowBounds(), 300, 5)
    plan = AMP().plan(problem, Budget(2e4, 1e-6))
    X = 0.4 * rng.normal(size=(300, 5))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    rows = bounded_rows(X, y, problem.bounds)
    facts = {"tolerance": plan.gradient_tolerance, "x_norm": 1.0, "y_range": (-1, 1)}
    objective = Objective(problem.loss, plan.tilted.ridge)
    assert minimize(objective, rows, **facts).gradient_norm <= plan.gradient_tolerance


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_rows", [100, 10**6])
def test_ridge_and_final_noise_vanish_with_the_budget(n_rows, delta):
    problem = Problem(Huber(0.3), RowBounds(y_range=(-1.0, 1.0)), n_rows, 5)
    plans = [AMP().plan(problem, Budget(10.0**k, delta)) for k in (2, 5, 8)]
    for less, more in pairwise(plans):
        assert more.output_scale() < 0.5 * less.output_scale()
        assert more.tilted.ridge < 0.5 * less.tilted.ridge


@pytest.mark.parametrize("kind", [AMP, ObjectivePerturbation, OutputPerturbation])
def test_bends_at_which_newton_steps_can_stall_are_rejected(kind):
    problem = Problem(HuberizedHinge(3.4e-6), RowBounds(), 19, 101)
    with pytest.raises(PlanError, match="bends too sharply"):
        kind().plan(problem, Budget(86.0, 1e-6))
