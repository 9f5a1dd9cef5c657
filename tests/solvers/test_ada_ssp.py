"""Least squares from noisy moments."""

from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize
from tests.refusal import raises_one_line
from tests.solvers.running import (
    assert_reported,
    assert_seed_decides,
    assert_tight,
    coefficients,
    fit,
)
from tests.strategies import adversarial_pairs, budgets, each_relation, neighboring_data

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    Simplex,
    Squared,
)
from tacit.convex.regularizers import makes_zeros
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers._least_squares.quadratic import JointMoments, joint_sensitivity
from tacit.solvers.ada_ssp import AdaSSP, solve

each_kind = pytest.mark.parametrize(
    "adaptive", [False, True], ids=["fixed", "adaptive"]
)


def problem_of(n=40, p=2, x_norm=1.0, y_max=1.0, **more):
    bounds = RowBounds(x_norm, y_range=(-y_max, y_max))
    return Problem(Squared(), bounds, n, p, **more)


def sample(seed, n=40, p=2, noise=0.3):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p)) / np.sqrt(p)
    w = rng.normal(size=p)
    return X, np.clip(X @ w * 0.3 + 0.3 * noise * rng.normal(size=n), -1, 1)


@each_relation
@each_kind
def test_planned_event_fits_and_wastes_nothing(adaptive, neighbors):
    budget = Budget(1.0, 1e-5, neighbors)
    plan = AdaSSP(adaptive=adaptive).plan(problem_of(), budget)
    less = replace(plan, multiplier=0.99 * plan.multiplier)
    assert_tight(plan, budget, less)
    assert is_dataclass(plan)
    assert plan == AdaSSP(adaptive=adaptive).plan(problem_of(), budget)
    assert not any(isinstance(value, Budget) for value in vars(plan).values())


@each_relation
@each_kind
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(adaptive, neighbors, data):
    budget = data.draw(budgets(neighbors))
    n = data.draw(st.integers(1, 10**6))
    plan = AdaSSP(adaptive=adaptive).plan(problem_of(n), budget)
    assert plan.event.curve(neighbors).fits(budget)


@pytest.mark.parametrize(
    ("problem", "delta", "cure"),
    [
        (Problem(Logistic(), RowBounds(), 40, 2), 1e-5, "AMP or NoisyGD"),
        (problem_of(), 0.0, "OutputPerturbation with a set, or SampleAndAggregate"),
    ],
    ids=["loss", "pure"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(problem, delta, cure):
    with raises_one_line(PlanError, match=cure):
        AdaSSP().plan(problem, Budget(1.0, delta))


@each_relation
def test_rows_with_bounded_entries_move_moments_as_far_as_declared(neighbors):
    p, x_max = 5, 3.0
    problem = Problem(Squared(), RowBounds(x_max, "linf"), 40, p)
    plan = AdaSSP().plan(problem, Budget(1.0, 1e-5, neighbors))
    moments = JointMoments(plan.row_norm, problem.largest_target, p)
    corners = x_max * np.where(as_generator(0).normal(size=(200, p)) > 0, 1.0, -1.0)
    rows = [moments(x[None], np.array([y]))[0] for x in corners for y in (-1.0, 1.0)]
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        furthest = max(np.linalg.norm(row) for row in rows)
    else:
        furthest = max(np.linalg.norm(rows[0] - row) for row in rows)
    assert 0.9 * plan.sensitivity < furthest <= plan.sensitivity


@pytest.mark.parametrize(
    "regularizer",
    [L1(2.0), ElasticNet(1.0, 3.0), L1Ball(0.4), Box(0.0, 0.3), Simplex()],
    ids=repr,
)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_tends_to_the_minimum_with_any_penalty_or_set(norm, regularizer, seed):
    X, y = sample(seed, n=300, p=4)
    bounds = RowBounds(3.0, norm, (-1.0, 1.0))
    problem = Problem(Squared(), bounds, 300, 4, 1.5, regularizer)
    found = fit(AdaSSP(), problem, Budget(1e12, 1e-5), X, y, seed)
    W, step = np.zeros((4, 1)), 1 / (np.linalg.norm(X, 2) ** 2 + 1.5)
    for _ in range(5000):
        gradient = X.T @ (X @ W - y[:, None]) + 1.5 * W
        W = problem.regularizer.prox(W - step * gradient, step)
    np.testing.assert_allclose(found, W, atol=1e-4)
    if makes_zeros(regularizer):
        assert ((found == 0) == (W == 0)).all()


@pytest.mark.parametrize("ridge", [-1.0, float("inf")])
def test_a_senseless_ridge_is_refused(ridge):
    with pytest.raises(ValueError, match="ridge"):
        AdaSSP(ridge=ridge)


@each_kind
def test_same_seed_same_bits_and_another_seed_other_bits(adaptive, seed):
    solver, problem = AdaSSP(adaptive=adaptive), problem_of()
    plan = solver.plan(problem, Budget(1.0, 1e-5))
    rows = bounded_rows(*sample(seed), problem.bounds)
    assert_seed_decides(solver, plan, rows, seed)


@each_kind
def test_sparse_rows_give_what_dense_rows_give(adaptive, seed):
    X, y = sample(seed)
    X[X < 0] = 0.0
    dense, thin = (
        fit(AdaSSP(adaptive=adaptive), problem_of(), Budget(1.0, 1e-5), Z, y, seed)
        for Z in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin, dense, rtol=1e-9, atol=1e-9)


@each_relation
@each_kind
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_tends_to_the_ridge_solution(adaptive, neighbors, ridge, seed):
    X, y = sample(seed, n=300, p=5)
    y = 7.0 * y
    problem = problem_of(300, 5, x_norm=0.8, y_max=7.0, ridge=ridge)
    Z = problem.bounds.clip(X)
    exact = np.linalg.solve(Z.T @ Z + ridge * np.eye(5), Z.T @ y)
    gaps = []
    for epsilon in (10.0, 1e4, 1e12):
        budget = Budget(epsilon, 1e-5, neighbors)
        W = fit(AdaSSP(adaptive=adaptive), problem, budget, X, y, seed)
        gaps.append(np.max(np.abs(W[:, 0] - exact)))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 1e-6


def test_in_a_ball_it_tends_to_the_best_member(seed):
    X, y = sample(seed, n=300, p=4)
    problem = problem_of(300, 4, regularizer=L2Ball(0.1))
    W = fit(AdaSSP(), problem, Budget(1e12, 1e-5), X, y, seed)[:, 0]
    Z = problem.bounds.clip(X)
    best = scipy_minimize(
        lambda w: 0.5 * np.sum((Z @ w - y) ** 2),
        np.zeros(4),
        jac=lambda w: Z.T @ (Z @ w - y),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: 0.01 - w @ w},
        options={"ftol": 1e-15, "maxiter": 500},
    ).x
    assert np.linalg.norm(W) <= 0.1 * (1 + 1e-12)
    np.testing.assert_allclose(W, best, rtol=0, atol=1e-5)


def test_negative_eigenvalues_and_flat_directions_count_as_nothing():
    S = np.diag([2.0, -1.0, 0.0])
    w = solve(S, np.array([1.0, 1.0, 1.0]), 0.0, np.inf)
    np.testing.assert_allclose(w, [0.5, 0.0, 0.0])
    w = solve(S, np.array([1.0, 1.0, 1.0]), 2.0, np.inf)
    np.testing.assert_allclose(w, [0.25, 0.5, 0.5])
    short = solve(S, np.array([1.0, 1.0, 1.0]), 2.0, 0.1)
    assert np.linalg.norm(short) == pytest.approx(0.1, rel=1e-12)


def moments(x, y):
    u = y / np.sqrt(2) * x
    corner = np.zeros((1, 1))
    return np.block([[np.outer(x, x), u[:, None]], [u[None, :], corner]])


def test_joint_sensitivity_is_kept_and_attained(seed):
    rng = as_generator(seed)
    bound, largest = joint_sensitivity(Neighbors.REPLACE_ONE), 0.0
    for _ in range(3000):
        x, z = (v / max(1.0, np.linalg.norm(v)) for v in rng.normal(size=(2, 3)))
        a, b = rng.uniform(-1, 1, size=2)
        for first, second in ((a, b), (1.0, -1.0)):
            moved = np.linalg.norm(moments(x, first) - moments(z, second))
            largest = max(largest, moved)
    assert largest <= bound
    sixty = np.array([0.5, np.sqrt(0.75)])
    attained = np.linalg.norm(moments(np.eye(2)[0], 1.0) - moments(sixty, -1.0))
    assert attained == pytest.approx(bound, rel=1e-12)
    # two separate releases would pay for each part's own worst row
    assert bound < np.sqrt(2 + 2**2)
    assert np.linalg.norm(moments(sixty, 1.0)) == pytest.approx(
        joint_sensitivity(Neighbors.ADD_OR_REMOVE_ONE)
    )


def replayed(plan, pair, judge=assert_replays):
    sides = [(bounded_rows(*data, plan.problem.bounds),) for data in pair]
    return judge(lambda rows: coefficients(AdaSSP(), plan, rows, 0), *sides)


@each_relation
@each_kind
@pytest.mark.parametrize("y_max", [1.0, 0.25])
def test_neighbors_stay_within_the_declared_sensitivity(adaptive, neighbors, y_max):
    # where y_max is 1/4 the targets of the pairs lie outside their bounds
    plan = AdaSSP(adaptive=adaptive).plan(
        problem_of(5, y_max=y_max), Budget(1.0, 1e-3, neighbors)
    )
    for pair in adversarial_pairs(Huber(), neighbors):
        report = replayed(plan, (pair.first, pair.second))
        assert len(report.entries) == (2 if adaptive else 1)


@each_relation
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(neighbors, data):
    plan = AdaSSP(adaptive=True).plan(problem_of(6), Budget(2.0, 1e-3, neighbors))
    pair = data.draw(neighboring_data(Huber(), neighbors))
    assert replayed(plan, (pair.first, pair.second)).ok


@each_relation
@pytest.mark.parametrize("which", ["sensitivity", "eigenvalue_sensitivity"])
def test_half_the_sensitivity_is_reported(neighbors, which):
    plan = AdaSSP(adaptive=True).plan(problem_of(4), Budget(5.0, 1e-3, neighbors))
    # the first row lifts the least eigenvalue of the others by one, or they by its
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    y = np.array([1.0, 0.0, 0.0, 0.0])
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        pair = ((X, y), (X[1:], y[1:]))
    else:
        other, flipped = X.copy(), y.copy()
        other[0], flipped[0] = [0.5, np.sqrt(0.75)], -1.0
        if which == "eigenvalue_sensitivity":
            other[0] = [0.0, 1.0]
        pair = ((X, y), (other, flipped))
    assert replayed(plan, pair, replay).ok
    broken = replace(plan, **{which: getattr(plan, which) / 2})
    assert_reported(replayed(broken, pair, replay))


def test_round_off_is_a_small_part_of_the_sensitivity():
    for n in (40, 10**8):
        plan = AdaSSP().plan(problem_of(n, 50), Budget(1.0, 1e-6))
        exact = joint_sensitivity(Neighbors.REPLACE_ONE)
        assert exact < plan.sensitivity < exact * 1.0001


@pytest.mark.statistical
def test_the_default_beats_the_adaptive_ridge_where_features_are_many(seed):
    X, y = sample(seed, n=5000, p=50)
    problem = problem_of(5000, 50)
    errors = []
    for solver in (AdaSSP(), AdaSSP(adaptive=True)):
        fits = [
            fit(solver, problem, Budget(1.0, 1e-6), X, y, seed + i) for i in range(8)
        ]
        Z = problem.bounds.clip(X)
        errors.append(np.mean([np.mean((Z @ W[:, 0] - y) ** 2) for W in fits]))
    assert errors[0] < errors[1] < np.mean(y**2)


def test_a_ridge_that_is_given_leaves_nothing_to_adapt_to():
    plan = AdaSSP(ridge=1.0, adaptive=True).plan(problem_of(), Budget(1.0, 1e-5))
    assert plan == AdaSSP(ridge=1.0).plan(problem_of(), Budget(1.0, 1e-5))
