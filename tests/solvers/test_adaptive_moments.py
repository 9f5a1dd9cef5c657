"""Least squares from moments of rows moved by earlier releases."""

from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.refusal import raises_one_line
from tests.solvers.running import assert_seed_decides, assert_tight, coefficients
from tests.strategies import adversarial_pairs, budgets, each_relation, neighboring_data

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import assert_replays, replay
from tacit.convex import Huber, L2Ball, Logistic, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.linear_model import LinearRegression, Ridge
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AdaptiveMoments, Problem
from tacit.solvers._least_squares.adaptive_views import (
    StandardizedRows,
    View,
    ViewSpreads,
    ViewSums,
    believed,
    standardized,
)

BUDGET = Budget(1.0, 1e-5)

with_or_without = pytest.mark.parametrize("constant", [0.25, None])


def problem_of(n=40, p=2, x_norm=1.0, y_max=1.0, constant=0.25, **more):
    """Return a problem of p features, and a constant one where there is a constant."""
    bounds = RowBounds(x_norm, y_range=(-y_max, y_max))
    if constant is not None:
        bounds = bounds.with_intercept(constant)
    columns = p + (constant is not None)
    return Problem(Squared(), bounds, n, columns, constant=constant, **more)


def rows_of(problem, X, y, x_norm=1.0):
    return bounded_rows(X, y, RowBounds(x_norm), problem.constant)


def sample(seed, n=400, p=3, spread=0.05, middle=0.4, noise=0.3):
    """Return features that fill little of their range, far from its middle."""
    rng = as_generator(seed)
    Z = rng.normal(size=(n, p))
    y = Z @ np.linspace(1, 2, p) / p + noise * rng.normal(size=n)
    return middle / np.sqrt(p) + spread * Z, np.clip(0.3 + spread * y, -1, 1)


def releases(plan):
    """Return the Gaussian mechanisms of a plan, one for each release."""
    *units, descent = plan.event.events
    moments, steps = descent.events
    return [*units, moments, *[steps.event] * steps.count]


@each_relation
@with_or_without
def test_planned_event_fits_and_wastes_nothing(neighbors, constant):
    budget = Budget(1.0, 1e-5, neighbors)
    solver, problem = AdaptiveMoments(), problem_of(constant=constant)
    plan = solver.plan(problem, budget)
    spent = [1 / part.multiplier**2 for part in releases(plan)]
    assert sum(spent) == pytest.approx(1 / plan.multiplier**2)
    less = replace(plan, multiplier=0.9 * plan.multiplier)
    assert_tight(plan, budget, less)
    assert is_dataclass(plan)
    assert plan == solver.plan(problem, budget)
    assert not any(isinstance(value, Budget) for value in vars(plan).values())


@each_relation
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(neighbors, data):
    budget = data.draw(budgets(neighbors))
    n, p = data.draw(st.integers(1, 10**6)), data.draw(st.integers(1, 50))
    plan = AdaptiveMoments().plan(problem_of(n, p), budget)
    assert plan.event.curve(neighbors).fits(budget)


@pytest.mark.parametrize(
    ("problem", "delta", "cure"),
    [
        (Problem(Logistic(), RowBounds(), 40, 2), 1e-5, "AMP or NoisyGD"),
        (Problem(Squared(), RowBounds(norm="linf"), 40, 2), 1e-5, "norm='l2'"),
        (problem_of(regularizer=L2Ball()), 1e-5, "AdaSSP for a ball"),
        (problem_of(), 0.0, "OutputPerturbation with a set"),
        (problem_of(p=2001), 1e-5, "NoisyGD"),
    ],
    ids=["loss", "linf", "set", "pure", "wide"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(problem, delta, cure):
    with raises_one_line(PlanError, match=cure):
        AdaptiveMoments().plan(problem, Budget(1.0, delta))


def test_the_rule_takes_fewer_steps_and_clips_less_where_there_is_less_noise():
    noisy, usual, quiet = (
        AdaptiveMoments().plan(problem_of(n, 20), BUDGET) for n in (10**2, 10**4, 10**8)
    )
    assert noisy.center_fraction > usual.center_fraction > quiet.center_fraction
    assert noisy.descent.damping > usual.descent.damping > quiet.descent.damping
    steps = [plan.descent.n_steps for plan in (noisy, usual, quiet)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > steps[2]
    assert noisy.descent.clip <= usual.descent.clip < quiet.descent.clip


@with_or_without
def test_same_seed_same_bits_and_another_seed_other_bits(constant, seed):
    problem, (X, y) = problem_of(400, 3, constant=constant), sample(seed)
    solver = AdaptiveMoments()
    plan, rows = solver.plan(problem, BUDGET), rows_of(problem, X, y)
    assert_seed_decides(solver, plan, rows, seed)


def test_sparse_rows_give_what_dense_rows_give(seed):
    problem, (X, y) = problem_of(400, 3), sample(seed)
    X[X < 0.2] = 0.0
    solver = AdaptiveMoments()
    plan = solver.plan(problem, BUDGET)
    dense, thin = (
        coefficients(solver, plan, rows_of(problem, Z, y), seed)
        for Z in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin, dense, rtol=1e-9, atol=1e-12)


@each_relation
@with_or_without
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_tends_to_the_ridge_solution(neighbors, constant, ridge, seed):
    X, y = sample(seed, n=2000, spread=0.1)
    if constant is None:
        X, y = X - X.mean(axis=0), y - y.mean()
    problem = problem_of(2000, 3, constant=constant, ridge=ridge)
    Z = X if constant is None else np.c_[X, np.full(len(X), constant)]
    exact = np.linalg.solve(Z.T @ Z + ridge * np.eye(Z.shape[1]), Z.T @ y)
    solver, gaps = AdaptiveMoments(), []
    for epsilon in (1.0, 1e2, 1e8):
        plan = solver.plan(problem, Budget(epsilon, 1e-5, neighbors))
        W = coefficients(solver, plan, rows_of(problem, X, y), seed)
        gaps.append(np.sqrt(np.mean((Z @ (W[:, 0] - exact)) ** 2)) / y.std())
    assert gaps[0] > gaps[2]
    assert gaps[2] <= 0.01


@pytest.mark.statistical
def test_features_and_targets_that_fill_little_of_their_range_cost_little(seed):
    X, y = sample(seed, n=4000, spread=0.02, noise=0.5)
    scores = {}
    for solver in ("auto", "ada_ssp", "noisy_gd", "preconditioned_gd"):
        model = LinearRegression(
            1.0, 1e-6, y_range=(-1, 1), solver=solver, random_state=seed, x_norm=1.0
        )
        scores[solver] = model.fit(X, y).score(X, y)
    best = (
        LinearRegression(1e13, 1e-6, y_range=(-1, 1), x_norm=1.0).fit(X, y).score(X, y)
    )
    assert scores.pop("auto") > best - 0.05
    assert max(scores.values()) < best - 0.2


@pytest.mark.statistical
@pytest.mark.parametrize("p", [2, 30, 300])
def test_where_noise_is_all_predictions_are_about_the_mean(p, seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(1000, p)) / np.sqrt(p)
    y = np.clip(0.5 + 0.2 * rng.normal(size=1000), -1, 1)
    found = [
        LinearRegression(
            0.3, 1e-6, y_range=(-1, 1), random_state=seed + i, x_norm=1.0
        ).fit(X, y)
        for i in range(8)
    ]
    assert np.mean([model.score(X, y) for model in found]) > -0.25


@pytest.mark.statistical
def test_few_columns_of_many_are_found(seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(2000, 500))
    y = X[:, 3] + X[:, 40] - X[:, 200] + 0.3 * rng.normal(size=2000)
    model = LinearRegression(
        5.0, 1e-6, x_norm=np.sqrt(500), y_range=(-5, 5), random_state=seed
    ).fit(X, y)
    assert model.score(X, y) > 0.55
    largest = np.argsort(-np.abs(model.coef_))[:3]
    assert sorted(largest.tolist()) == [3, 40, 200]


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_wrong_guess_of_the_rows_costs_little(factor, seed):
    X, y = sample(seed, n=3000)
    scores = [
        LinearRegression(
            2.0,
            1e-6,
            y_range=(-1, 1),
            neighbors="add_or_remove_one",
            expected_rows=int(guess * 3000),
            random_state=seed,
            x_norm=1.0,
        )
        .fit(X, y)
        .score(X, y)
        for guess in (1.0, factor)
    ]
    assert abs(scores[0] - scores[1]) < 0.1


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("shape", [(2, 1), (30, 5), (30, 60)])
def test_odd_tables_are_fitted(epsilon, shape, seed):
    n, p = shape
    X = as_generator(seed).integers(0, 2, size=shape).astype(float)
    X[:, 0] = 1.0  # the same in every row
    y = np.full(n, 3.0)
    for model in (LinearRegression, Ridge):
        for intercept in (True, False):
            fitted = model(
                epsilon,
                1e-6,
                x_norm=np.sqrt(p),
                y_range=(0, 10),
                fit_intercept=intercept,
                random_state=seed,
            ).fit(X, y)
            assert np.isfinite(fitted.coef_).all()
            assert np.isfinite(fitted.intercept_)
            assert ((fitted.predict(X) >= 0) & (fitted.predict(X) <= 10)).all()


def test_no_rows_at_all_are_fitted_too():
    model = LinearRegression(
        1.0,
        1e-6,
        y_range=(0, 10),
        neighbors="add_or_remove_one",
        random_state=0,
        x_norm=1.0,
    )
    assert np.isfinite(model.fit(np.empty((0, 3)), np.empty(0)).coef_).all()


def replayed(plan, pair, judge=assert_replays):
    solver = AdaptiveMoments()
    sides = [(rows_of(plan.problem, *data),) for data in pair]
    return judge(lambda rows: coefficients(solver, plan, rows, 0), *sides)


@each_relation
@with_or_without
@pytest.mark.parametrize("epsilon", [1.0, 1e3])
def test_neighbors_stay_within_the_declared_sensitivities(neighbors, constant, epsilon):
    plan = AdaptiveMoments().plan(
        problem_of(5, constant=constant), Budget(epsilon, 1e-3, neighbors)
    )
    for pair in adversarial_pairs(Huber(), neighbors):
        report = replayed(plan, (pair.first, pair.second))
        assert len(report.entries) == len(releases(plan))


@each_relation
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivities(neighbors, data):
    plan = AdaptiveMoments().plan(problem_of(6), Budget(9.0, 1e-3, neighbors))
    pair = data.draw(neighboring_data(Huber(), neighbors))
    assert replayed(plan, (pair.first, pair.second)).ok


def far_pair(
    neighbors, row=(1.0, 0.0), other_row=(-1.0, 0.0), other_target=-1.0, spread=1e-3
):
    """Return tables with one row far from all others, and another or none instead."""
    rng = as_generator(0)
    X, y = spread * rng.normal(size=(300, 2)), 1e-3 * rng.normal(size=300)
    X[0], y[0] = row, 1.0
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return (X, y), (X[1:], y[1:])
    other, changed = X.copy(), y.copy()
    other[0], changed[0] = other_row, other_target
    return (X, y), (other, changed)


# what moves each release most: an opposite row, one at a right angle, the mean, an
# opposite target of a row that is not clipped, as a clipped row shrinks its target
WORST = {
    "sum_sensitivity": {},
    "spread_sensitivity": {"other_row": (0.0, 1.0)},
    "target_sensitivity": {"other_target": 0.0},
    "descent.moment_sensitivity": {"other_row": (0.0, 0.0)},
    "descent.sensitivity": {
        "row": (0.25, 0.0),
        "other_row": (0.25, 0.0),
        "spread": 0.1,
    },
}


@each_relation
@pytest.mark.parametrize("which", WORST)
def test_half_of_any_sensitivity_is_reported(which, neighbors):
    plan = AdaptiveMoments().plan(problem_of(300), Budget(20.0, 1e-3, neighbors))
    pair = far_pair(neighbors, **WORST[which])
    assert replayed(plan, pair, replay).ok
    found = replayed(halved(plan, which), pair, replay).violations
    assert any("over the declared sensitivity" in sentence for sentence in found)


def halved(plan, which):
    """Return the plan with half of a sensitivity, its own or of its descent."""
    of_descent, dot, name = which.partition(".")
    if not dot:
        return replace(plan, **{which: getattr(plan, which) / 2})
    return replace(plan, **{of_descent: halved(plan.descent, name)})


def test_a_row_that_is_not_shortened_after_the_move_is_reported(monkeypatch):
    plan = AdaptiveMoments().plan(problem_of(300), Budget(1e4, 1e-3))
    pair = far_pair(Neighbors.REPLACE_ONE)
    assert replayed(plan, pair, replay).ok
    rows = View.rows

    def long_rows(view, part, targets):
        moved, seen, factors = rows(view, part, targets)
        return moved / factors[:, None], seen, factors

    monkeypatch.setattr(View, "rows", long_rows)
    assert not replayed(plan, pair, replay).ok


def test_rows_in_a_view_are_within_bounds_wherever_they_stand(seed):
    rng = as_generator(seed)
    X, y = 1e3 * rng.normal(size=(300, 7)), 1e3 * rng.normal(size=300)
    view = View(rng.normal(size=6), rng.normal(size=6), 0.5, 0.01)
    whole = view.rows(X, y)
    assert (np.linalg.norm(whole[0], axis=1) <= 1).all()
    assert (np.abs(whole[1]) <= 1).all()
    assert (whole[2] <= 1).all()
    # a row alone is the same row, to the last digit
    for start in (0, 1, 17):
        for alone, among in zip(view.rows(X[start:], y[start:]), whole, strict=True):
            np.testing.assert_array_equal(alone, among[start:])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_clipped_row_takes_its_constant_and_its_target_along(form, seed):
    rng = as_generator(seed)
    X, y = rng.normal(size=(3000, 4)), rng.normal(size=3000)
    rows = bounded_rows(form(X), y, RowBounds(100.0, y_range=(-9, 9)), 0.5)
    view = View(np.full(4, 0.1), np.full(4, 0.6), 0.2, 2.0)
    seen = standardized(rows, view, 3.0, 0.25)
    total = seen.sum(lambda Z, t: (Z.T @ Z, Z.T @ t))
    Z = 0.6 * (X - 0.1)
    factors = 1 / np.maximum(np.linalg.norm(Z, axis=1), 1.0)
    assert (factors < 1).any()
    Z = factors[:, None] * np.c_[Z, np.full(3000, 0.25)]
    t = factors * 3.0 * np.clip((y - 0.2) / 2, -1, 1)
    np.testing.assert_allclose(total[0], Z.T @ Z, atol=1e-8)
    np.testing.assert_allclose(total[1], Z.T @ t, atol=1e-8)
    assert (seen.n_rows, seen.n_features) == (3000, 5)
    # dense rows in memory are moved once
    assert isinstance(seen, StandardizedRows) == (form is sparse.csr_array)


def test_sums_of_a_view_are_those_of_its_rows(seed):
    rng = as_generator(seed)
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    view = View(np.full(3, 0.1), np.full(3, 0.5), 0.2, 2.0)
    rows, targets, _ = view.rows(X, y)
    sums = ViewSums(view, 2.0, 0.5)(X, y)[0]
    expected = [*rows.sum(axis=0), 2 * targets.sum(), 1500.0]
    np.testing.assert_allclose(sums, expected, atol=1e-9)
    spreads, spread = ViewSpreads(view, 0.5)(X, y)
    np.testing.assert_allclose(spreads[:-1], np.abs(rows).sum(axis=0))
    assert spreads[-1] == pytest.approx(0.5 * np.linalg.norm(rows, axis=1).sum())
    assert spread[0] == pytest.approx(np.abs(targets).sum())


def test_numbers_like_noise_are_believed_little_and_others_a_lot(seed):
    rng = as_generator(seed)
    noise = 0.1 * rng.normal(size=200)
    little = believed(noise, 0.01, 200.0, doubt=0.3)
    assert np.linalg.norm(little) < 0.2 * np.linalg.norm(noise)
    signal = rng.normal(size=200)
    kept = believed(signal + noise, 0.01, 200.0, doubt=0.3)
    assert np.linalg.norm(kept - signal) < 1.1 * np.linalg.norm(noise)
    assert not believed(signal, 0.01, 0.0, doubt=0.3).any()


def test_round_off_is_a_small_part_of_each_sensitivity():
    for n in (40, 10**8):
        plan = AdaptiveMoments().plan(problem_of(n, 50), Budget(1.0, 1e-6))
        assert 1.0 < plan.target_sensitivity < 1.0001
        assert np.sqrt(2) < plan.descent.moment_sensitivity < 1.07 * np.sqrt(2)


def test_releases_are_made_in_the_order_of_the_event():
    problem = problem_of(6)
    plan = AdaptiveMoments().plan(problem, BUDGET)
    with recording() as tape:
        rows = rows_of(problem, np.zeros((6, 2)), np.zeros(6))
        AdaptiveMoments().run(plan, rows, as_generator(0))
    assert len(tape.releases) == len(releases(plan))
