"""One pass and an average: how far a row reaches, attained and never passed."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm
from tests.refusal import raises_one_line
from tests.solvers.running import (
    assert_reported,
    assert_tight,
    coefficients,
    exact_minimum,
    replayed,
    sample,
    straight_pair,
)
from tests.strategies import adversarial_pairs, each_relation, neighboring_data

from tacit._random import as_generator
from tacit.audit import replay
from tacit.convex import (
    L1,
    Box,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    OneVsRest,
    Simplex,
    Softmax,
    Squared,
)
from tacit.convex.implicit import implicit_step
from tacit.data import RowBounds, bounded_rows
from tacit.data.rows import ArrayRows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.solvers.online_to_batch import (
    AVERAGES,
    OnlineToBatch,
    OnlineToBatchPlan,
    averaged_iterates,
    averaging,
    dealt,
)

LOSSES = [Logistic(), Logistic(cap=0.5), HuberizedHinge(), Huber()]
BUDGET = Budget(1.0, 1e-5)
ADD = Neighbors.ADD_OR_REMOVE_ONE
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_average = pytest.mark.parametrize("average", AVERAGES)


def problem_of(loss, n_rows=40, n_features=2, **more):
    return Problem(loss, RowBounds(), n_rows, n_features, **more)


def average_of(plan, X, y, order=None):
    order = np.arange(len(y)) if order is None else order
    ends = np.arange(1, plan.problem.n_rows + 1) * len(y) // plan.problem.n_rows
    return averaged_iterates(plan, X, y, order, ends)


@each_loss
@each_average
@each_relation
def test_planned_event_fits_and_wastes_nothing(loss, average, neighbors):
    budget = Budget(1.0, 1e-5, neighbors)
    plan = OnlineToBatch(average).plan(problem_of(loss), budget)
    less = replace(plan, multiplier=0.99 * plan.multiplier)
    assert_tight(plan, budget, less)


@each_average
def test_weights_of_the_average_sum_to_one(average):
    for n in (2, 3, 100):
        weights = averaging(average, n)
        assert len(weights) == n
        assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(averaging("weighted", 3), np.array([1, 2, 3]) / 6)


@pytest.mark.parametrize("n", [1, 2, 50])
@each_average
def test_straight_losses_attain_the_sensitivity(average, n):
    solver = OnlineToBatch(average, strong_convexity=0.3)
    plan = solver.plan(problem_of(Huber(1.0), n), BUDGET)
    first, second = (average_of(plan, *data) for data in straight_pair(n, 0))
    apart = np.linalg.norm(first - second)
    T = n + 1
    harmonic = (1 / np.arange(2, T + 1)).sum()
    stated = {
        "weighted": 4 * (T - 1) / (0.3 * T * (T + 1)),
        "uniform": 2 * harmonic / (0.3 * T),
        "last": 2 / (0.3 * T),
    }[average]
    assert apart == pytest.approx(stated, rel=1e-9)
    assert apart <= plan.sensitivity <= stated * 1.0001


def test_rows_more_or_less_move_half_as_far():
    solver = OnlineToBatch(strong_convexity=0.3)
    replaced = solver.plan(problem_of(Logistic()), BUDGET)
    added = solver.plan(problem_of(Logistic()), Budget(1.0, 1e-5, ADD))
    assert replaced.sensitivity == pytest.approx(2 * added.sensitivity, rel=1e-5)


def test_the_printed_noise_lacks_the_strength_and_is_not_private():
    # epsilon_g = Psi = 0.01, L = 1, radius 1, T = 1e5 and a claim of (1, 1e-6)
    T, strength, epsilon, delta = 10**5, 0.01, 1.0, 1e-6
    printed = 2 * sqrt(2) * (1 + strength) * log(T) / (T * epsilon)
    printed *= sqrt(log(1 / delta) + epsilon)
    claimed = printed / sqrt(2 * (log(1 / delta) + epsilon)) * epsilon
    assert claimed == pytest.approx(2.3e-4, rel=0.02)
    plan = OnlineToBatch("uniform", strength).plan(
        problem_of(Huber(1.0), T - 1, 1, regularizer=L2Ball(1.0)), BUDGET
    )
    X, y = np.zeros((T - 1, 1)), np.zeros(T - 1)
    # where a step is as long as the radius, so that the ball clips nothing
    X[99], y[99] = 1.0, 1e6
    ends = [average_of(plan, X, sign * y) for sign in (1, -1)]
    apart = abs(float((ends[0] - ends[1])[0, 0]))
    assert apart == pytest.approx(0.0138, rel=0.02)
    mu = apart / printed
    spent = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert spent == pytest.approx(0.9999999, abs=1e-6)
    assert apart <= plan.sensitivity


@each_average
@pytest.mark.parametrize("loss", [*LOSSES, Squared()], ids=repr)
def test_without_noise_it_is_averaged_implicit_descent(loss, average, seed):
    more = {"regularizer": L2Ball(2.0)} if isinstance(loss, Squared) else {}
    solver = OnlineToBatch(average, strong_convexity=0.5)
    plan = solver.plan(problem_of(loss, **more), Budget(1e13, 1e-5))
    X, y = sample(loss, seed)
    rows = bounded_rows(X, y, RowBounds())
    X, y = rows.arrays()
    found = coefficients(solver, plan, rows, seed)
    order, _ = dealt(plan, 40, as_generator(seed))
    w, path = np.zeros(2), [np.zeros(2)]
    for t, i in enumerate(order, start=1):
        w = implicit_step(loss, w, X[i], y[i], 1 / (0.5 * t), 0.5)
        w = w * min(1.0, plan.row_pass.radius / np.linalg.norm(w))
        path.append(w)
    mean = averaging(average, 41) @ np.array(path)
    np.testing.assert_allclose(found[:, 0], mean, atol=1e-5)


def test_more_rows_come_nearer_to_the_best_weights(seed):
    loss, far = Logistic(), []
    for n in (100, 1000, 10_000):
        X, y = sample(loss, seed, n)
        rows = bounded_rows(X, y, RowBounds())
        plan = OnlineToBatch(strong_convexity=0.1).plan(problem_of(loss, n), BUDGET)
        best = exact_minimum(loss, rows, 0.1 * n, 1e-6 * n)
        orders = [dealt(plan, n, as_generator(seed + run)) for run in range(10)]
        each = [averaged_iterates(plan, *rows.arrays(), *order) for order in orders]
        far.append(np.mean([np.linalg.norm(W - best) for W in each]))
    assert far[0] > 2 * far[1] > 4 * far[2]


@each_relation
def test_any_number_of_rows_runs(neighbors, seed):
    budget = Budget(1.0, 1e-5, neighbors)
    plan = OnlineToBatch().plan(problem_of(Logistic(), 50), budget)
    for n in (0, 1, 7, 50, 333):
        X, y = sample(Logistic(), seed, n)
        rows = ArrayRows(RowBounds().clip(X), y)
        W = coefficients(OnlineToBatch(), plan, rows, seed)
        assert W.shape == (2, 1)
        assert np.isfinite(W).all()


@each_average
def test_sparse_rows_give_the_same(average, seed):
    X, y = sample(Logistic(), seed)
    X[np.abs(X) < 0.5] = 0.0
    solver = OnlineToBatch(average)
    plan = solver.plan(problem_of(Logistic()), BUDGET)
    found = [
        coefficients(
            OnlineToBatch(average), plan, bounded_rows(kind, y, RowBounds()), seed
        )
        for kind in (X, sparse.csr_array(X))
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_leaves_are_walked_in_blocks_alike(seed, monkeypatch):
    X, y = sample(Logistic(), seed)
    plan = OnlineToBatch().plan(problem_of(Logistic()), Budget(1.0, 1e-5, ADD))
    order, ends = dealt(plan, 40, as_generator(seed))
    whole = averaged_iterates(plan, X, y, order, ends)
    monkeypatch.setattr("tacit.solvers.online_to_batch.MOST_LEAVES", 7)
    np.testing.assert_allclose(
        averaged_iterates(plan, X, y, order, ends), whole, rtol=1e-12
    )


def test_a_row_more_leaves_all_others_in_their_leaves(seed):
    plan = OnlineToBatch().plan(problem_of(Logistic()), Budget(1.0, 1e-5, ADD))
    order, ends = dealt(plan, 41, as_generator(seed))
    leaf = np.searchsorted(ends, np.arange(41), side="right")
    # without the last row, the others keep their leaves and their order in them
    kept = order != 40
    fewer, fewer_ends = dealt(plan, 40, as_generator(seed))
    assert np.array_equal(fewer, order[kept])
    again = np.searchsorted(fewer_ends, np.arange(40), side="right")
    assert np.array_equal(again, leaf[kept])


@each_loss
@each_average
def test_neighbors_stay_within_the_declared_sensitivity(loss, average, seed):
    solver = OnlineToBatch(average, strong_convexity=0.2)
    plan = solver.plan(problem_of(loss, 5), BUDGET)
    for pair in adversarial_pairs(loss, Neighbors.REPLACE_ONE):
        assert len(replayed(solver, plan, pair, seed=seed).entries) == 1


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(data):
    loss = data.draw(st.sampled_from(LOSSES))
    regularizer = data.draw(
        st.sampled_from([L2Ball(0.5), L1Ball(0.4), Simplex(), Box(-0.2, 0.3)])
    )
    solver = OnlineToBatch(
        data.draw(st.sampled_from(AVERAGES)), data.draw(st.floats(0.01, 10))
    )
    n_rows = data.draw(st.integers(1, 9))
    problem = problem_of(loss, n_rows, regularizer=regularizer)
    plan = solver.plan(problem, BUDGET)
    replayed(solver, plan, data.draw(neighboring_data(loss, Neighbors.REPLACE_ONE)))


@each_average
def test_added_rows_stay_within_the_sensitivity_wherever_they_fall(average, seed):
    solver = OnlineToBatch(average, strong_convexity=0.2)
    for loss in LOSSES:
        plan = solver.plan(problem_of(loss, 5), Budget(1.0, 1e-5, ADD))
        X, y = sample(loss, seed, 9)
        X = RowBounds().clip(X)
        for run in range(20):
            order, ends = dealt(plan, 9, as_generator(run))
            position = int(np.flatnonzero(order == 8)[0])
            leaf = int(np.searchsorted(ends, position, side="right"))
            fewer = ends - (np.arange(5) >= leaf)
            whole = averaged_iterates(plan, X, y, order, ends)
            without = averaged_iterates(plan, X, y, np.delete(order, position), fewer)
            assert np.linalg.norm(whole - without) <= plan.sensitivity


def test_half_the_sensitivity_is_reported():
    solver = OnlineToBatch("last", strong_convexity=0.2)
    plan = solver.plan(problem_of(Huber(), 8), BUDGET)

    class Straight:
        first, second = straight_pair(8, 7)

    assert replayed(solver, plan, Straight, replay).ok
    halved = replace(plan, sensitivity=plan.sensitivity / 2)
    report = replayed(solver, halved, Straight, replay)
    assert_reported(report)


def test_without_delta_the_noise_is_pure(seed):
    budget = Budget(1.0)
    plan = OnlineToBatch().plan(problem_of(Logistic()), budget)
    assert plan.event.curve(budget.neighbors).pure <= budget.epsilon
    rows = bounded_rows(*sample(Logistic(), seed), RowBounds())
    assert np.isfinite(coefficients(OnlineToBatch(), plan, rows, seed)).all()


def test_several_classes_each_have_a_margin(seed):
    rng = as_generator(seed)
    X = rng.normal(size=(2000, 2)) / 3
    y = np.argmax(X @ np.array([[1, -1, 0.2], [0.1, 1, -1]]), axis=1)
    solver = OnlineToBatch()
    problem = problem_of(OneVsRest(Logistic(), 3), 2000)
    plan = solver.plan(problem, Budget(1e6, 1e-6))
    W = coefficients(solver, plan, bounded_rows(X, y, RowBounds()), seed)
    assert np.mean(np.argmax(X @ W, axis=1) == y) > 0.8


@pytest.mark.parametrize(
    ("facts", "cure"),
    [
        ({"loss": Squared()}, r"Huber\(\)"),
        ({"loss": Softmax(3)}, r"OneVsRest\(\)"),
        ({"bounds": RowBounds(norm="linf")}, "norm='l2'"),
        ({"regularizer": L1()}, "NoisySGD"),
    ],
    ids=["slope", "softmax", "linf", "penalty"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(facts, cure):
    public = {"loss": Logistic(), "bounds": RowBounds(), "n_rows": 40, "n_features": 2}
    with raises_one_line(PlanError, match=cure):
        OnlineToBatch().plan(Problem(**{**public, **facts}), BUDGET)


def test_bad_parameters_are_rejected():
    for wrong in ({"average": "mean"}, {"strong_convexity": 0.0}, {"noise": "none"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            OnlineToBatch(**wrong)


def test_plans_say_what_the_number_of_rows_matters_for():
    plan = OnlineToBatch().plan(problem_of(Logistic()), BUDGET)
    assert isinstance(plan, OnlineToBatchPlan)
    assert plan.assumptions[0] == (
        "planned for 40 rows; another number costs accuracy only"
    )


def test_more_rows_and_budget_ask_for_less_strength():
    def strength(n, epsilon):
        budget = Budget(epsilon, 1e-5)
        return OnlineToBatch().plan(problem_of(Logistic(), n), budget).strength

    assert strength(1000, 1.0) < strength(100, 1.0)
    assert strength(1000, 10.0) < strength(1000, 1.0)
    ridged = OnlineToBatch().plan(problem_of(Logistic(), ridge=1e6), BUDGET)
    assert ridged.strength == pytest.approx(1e6 / 40)
