"""Private coordinate descent: its accounts, its pass, and what neighbors can see."""

from dataclasses import replace
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.refusal import raises_one_line
from tests.solvers.running import assert_seed_decides, assert_tight, coefficients
from tests.strategies import budgets, each_relation

from tacit._random import as_generator
from tacit._release import recording
from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Free,
    GroupL1,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    Objective,
    Softmax,
    Squared,
    minimize,
)
from tacit.convex.regularizers import CoordinatePenalty
from tacit.data import RowBounds, bounded_rows
from tacit.data.rows import ArrayRows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Composed, GaussianNoise, Ledger, Neighbors, Repeated
from tacit.privacy.event_data import describe, restore
from tacit.solvers import CoordinateDescent, Problem
from tacit.solvers._coordinates.columns import Columns
from tacit.solvers._coordinates.rules import MOST_PASSES, coordinate_rule
from tacit.solvers.coordinate_descent import CoordinatePasses

BOUNDS = RowBounds(norm="linf")
BUDGET = Budget(1.0, 1e-5)
LOSSES = [Squared(), Huber(0.5), Logistic(), Logistic(cap=0.5), HuberizedHinge()]
PENALTIES = [Free(), L1(2.0), ElasticNet(2.0, 5.0), Box(-0.3, 0.4)]

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
each_order = pytest.mark.parametrize("order", ["permuted", "uniform", "cyclic"])

layouts = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])


THREE = CoordinatePenalty((1.0,) * 3, (0.0,) * 3, (-inf,) * 3, (inf,) * 3)


def problem_of(loss, n_rows=200, n_features=4, penalty=PENALTIES[0], **facts):
    bounds = facts.pop("bounds", BOUNDS)
    return Problem(loss, bounds, n_rows, n_features, regularizer=penalty, **facts)


def sample(loss, seed, n=200, p=4):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(n, p)) * (rng.random((n, p)) < 0.7)
    X *= np.linspace(1.0, 0.2, p)
    signal = X @ np.linspace(1.5, -1.0, p) + 0.2 * rng.normal(size=n)
    if isinstance(loss, Squared | Huber):
        return X, np.clip(signal, -1, 1)
    return X, np.where(signal > 0, 1.0, -1.0)


def rows_of(loss, seed, layout=np.asarray, **shape):
    X, y = sample(loss, seed, **shape)
    return bounded_rows(layout(X), y, BOUNDS)


def less_noise(plan, part):
    """Return the plan with this part of its noise, and nothing else changed."""
    squares = plan.squares
    if squares.private:
        squares = squares.with_noise(part * squares.multiplier)
    return replace(plan, squares=squares, multiplier=part * plan.multiplier)


@each_loss
@each_relation
@pytest.mark.parametrize("smoothness", ["private", "public"])
def test_planned_event_fits_and_wastes_nothing(loss, neighbors, smoothness):
    budget = Budget(1.0, 1e-5, neighbors)
    solver = CoordinateDescent(smoothness=smoothness)
    plan = solver.plan(problem_of(loss), budget)
    assert_tight(plan, budget, less_noise(plan, 0.99))
    assert plan == solver.plan(problem_of(loss), budget)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(data):
    neighbors = data.draw(st.sampled_from(Neighbors))
    budget = data.draw(budgets(neighbors))
    problem = problem_of(
        data.draw(st.sampled_from(LOSSES)),
        n_rows=data.draw(st.integers(1, 10**6)),
        n_features=data.draw(st.integers(1, 300)),
        penalty=data.draw(st.sampled_from(PENALTIES)),
        bounds=RowBounds(data.draw(st.floats(1e-3, 1e3)), norm="linf"),
    )
    plan = CoordinateDescent().plan(problem, budget)
    spent = plan.event.curve(neighbors).epsilon(budget.delta)
    assert spent <= budget.epsilon * (1 + 1e-9)
    assert plan.sensitivity == neighbors.rows_changed
    assert 0 < plan.step <= 1


def test_what_is_charged_is_every_release_that_is_made(seed):
    solver = CoordinateDescent(3, smoothness="private", n_restarts=3)
    plan = solver.plan(problem_of(Logistic()), BUDGET)
    assert plan.n_updates == 12
    assert plan.event == Composed(
        (
            GaussianNoise(plan.squares.multiplier),
            Repeated(GaussianNoise(plan.multiplier), 12),
        )
    )
    with recording() as tape:
        solver.run(plan, rows_of(Logistic(), seed), as_generator(seed))
    assert [(r.label, r.shape) for r in tape.releases] == [
        ("DiscreteGaussian", (4,)),
        ("CoordinateSums", (12,)),
    ]
    ledger = Ledger(BUDGET)
    ledger.charge(plan.event, "fit")
    assert ledger.report().spent == pytest.approx(1.0, rel=2e-4)


def test_noise_has_the_values_computed_by_hand():
    # 1000 rows, 100 updates, derivatives within 1: noise of the mean, one row replaced
    problem, budget = problem_of(Logistic(), 1000, 10), Budget(1.0, 1e-6)
    unit = 2 / 1000
    tight = CoordinateDescent(10, smoothness="public").plan(problem, budget)
    assert tight.multiplier * unit == pytest.approx(0.08449358, rel=2e-4)
    paper = CoordinateDescent(10, smoothness="public", accounting="paper")
    published = paper.plan(problem, budget).multiplier * unit
    assert published == pytest.approx(0.12875796, rel=1e-7)
    # the conversion from Renyi curves that the papers compute with
    rho = (sqrt(log(1e6) + 1) - sqrt(log(1e6))) ** 2
    renyi = sqrt(2 * 100 / rho) / 1000
    assert renyi == pytest.approx(0.10699960, rel=1e-7)
    assert tight.multiplier * unit < renyi < published
    # what that noise is worth by exact accounting
    event = Repeated(GaussianNoise(renyi / unit), 100)
    assert 0.7 < event.curve(Neighbors.REPLACE_ONE).epsilon(1e-6) < 0.9


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_passes", "epsilon", "expected"),
    [
        (45312, 8, 50, 1.0, 0.004956),
        (20640, 8, 50, 1.0, 0.01037),
        (20640, 8, 2, 1.0, 0.002074),
        (1000, 1000, 2, 10.0, 0.0484),
        (1000, 10, 1, 1.0, 0.02672),
    ],
)
def test_noise_of_published_settings(n_rows, n_features, n_passes, epsilon, expected):
    problem = problem_of(Logistic(), n_rows, n_features)
    plan = CoordinateDescent(n_passes, smoothness="public").plan(
        problem, Budget(epsilon, n_rows**-2.0)
    )
    assert plan.multiplier * 2 / n_rows == pytest.approx(expected, rel=1e-3)


@each_relation
@pytest.mark.parametrize("smoothness", ["auto", "private"])
def test_published_noise_keeps_one_and_not_a_hundred(neighbors, smoothness):
    paper = CoordinateDescent(5, smoothness=smoothness, accounting="paper")
    plan = paper.plan(problem_of(Logistic()), Budget(1.0, 1e-6, neighbors))
    assert plan.event.curve(neighbors).epsilon(1e-6) < 0.8
    assert plan.squares.private == (smoothness == "private")
    with pytest.raises(PlanError, match="accounting='tight'"):
        paper.plan(problem_of(Logistic()), Budget(100.0, 1e-6, neighbors))


@pytest.mark.parametrize(
    ("problem", "budget", "cure"),
    [
        (problem_of(Softmax(3)), BUDGET, "FrankWolfe"),
        (problem_of(Logistic(), bounds=RowBounds()), BUDGET, "bound_norm='linf'"),
        (problem_of(Logistic(), penalty=GroupL1(1.0)), BUDGET, r"ElasticNet\(\)"),
        (problem_of(Logistic(), penalty=L1Ball(1.0)), BUDGET, r"ElasticNet\(\)"),
        (problem_of(Logistic(), penalty=L2Ball(1.0)), BUDGET, r"ElasticNet\(\)"),
        (problem_of(Logistic(), penalty=THREE), BUDGET, "one entry for each"),
        (problem_of(Logistic(), 2**26 + 1), BUDGET, "NoisyGD"),
        (problem_of(Logistic()), Budget(1.0, 0.0), "or use GreedyCoordinateDescent"),
        (problem_of(Logistic(), n_features=10**6 + 1), BUDGET, "fewer passes"),
        (problem_of(Logistic()), Budget(1e-9, 1e-300), "raise epsilon"),
    ],
    ids=[
        "outputs",
        "l2",
        "group",
        "ball",
        "sphere",
        "three weights",
        "rows",
        "pure",
        "updates",
        "noise",
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(problem, budget, cure):
    with raises_one_line(PlanError, match=cure):
        CoordinateDescent().plan(problem, budget)


class Rough(Logistic):
    """A loss that claims no bound on its curvature."""

    def max_curvature(self):
        return inf


def test_a_loss_that_is_not_smooth_is_refused_with_a_cure():
    with pytest.raises(PlanError, match=r"smooth loss.*HuberizedHinge\(\)"):
        CoordinateDescent().plan(problem_of(Rough()), BUDGET)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_passes": 0}, "n_passes"),
        ({"n_passes": 1.5}, "n_passes"),
        ({"n_passes": 5, "n_restarts": 2}, "multiple of n_restarts"),
        ({"n_restarts": 0}, "n_restarts"),
        ({"step": 0.0}, "step must be"),
        ({"step": inf}, "step must be"),
        ({"step": 1e101}, "step must be from 1e-100 to 1e100"),
        ({"clip": 1e-300}, "clip must be from 1e-100 to 1e100"),
        ({"clip": -1.0}, "clip must be"),
        ({"clip": float("nan")}, "clip must be"),
        ({"average": "yes"}, "average must be"),
        ({"order": "greedy"}, "order must be"),
        ({"accounting": "loose"}, "accounting must be"),
        ({"noise": "none"}, "noise must be"),
        ({"smoothness": "known"}, "smoothness must be"),
        ({"smoothness": 1.0}, "smoothness must be"),
        ({"smoothness": [1.0, 0.0]}, "smoothness must hold positive"),
        ({"smoothness": [1.0, "x"]}, "smoothness must hold positive"),
        ({"smoothness_share": 0.0}, "smoothness_share"),
        ({"smoothness_share": 1.0}, "smoothness_share"),
    ],
)
def test_bad_parameters_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        CoordinateDescent(**arguments)


def naive(plan, X, y, squares, order, noise):
    """Return what is released and the weights, by the papers' loops in plain Python."""
    loss, problem = plan.problem.loss, plan.problem
    l1, l2 = np.zeros(X.shape[1]), np.full(X.shape[1], problem.ridge)
    low, high = -inf, inf
    match problem.regularizer:
        case L1(weight):
            l1 += weight
        case ElasticNet(weight, square):
            l1, l2 = l1 + weight, l2 + square
        case Box(low, high):
            pass
    units = plan.mechanism.units
    w, released = np.zeros(X.shape[1]), []
    per_restart = len(order) // plan.n_restarts
    for start in range(0, len(order), per_restart):
        total = np.zeros_like(w)
        for k in range(start, start + per_restart):
            j = order[k]
            clip = plan.clip * sqrt(squares[j])
            derivatives = loss.derivative(y, X @ w[:, None])[:, 0]
            parts = np.clip(derivatives * X[:, j] / clip, -1, 1)
            released.append(np.rint(parts * units).sum() + noise[k])
            step = plan.step / (loss.max_curvature() * problem.n_rows * squares[j])
            moved = w[j] - step * released[-1] * clip / units
            moved = np.sign(moved) * max(abs(moved) - step * l1[j], 0)
            w[j] = min(max(moved / (1 + step * l2[j]), low), high)
            total += w
        if plan.average:
            w = total / per_restart
    return np.array(released), w


@each_loss
@each_penalty
@each_order
@pytest.mark.parametrize(("n_restarts", "average"), [(1, False), (3, True)])
def test_walk_is_that_of_the_papers(loss, penalty, order, n_restarts, average, seed):
    solver = CoordinateDescent(
        6, n_restarts=n_restarts, average=average, order=order, smoothness="private"
    )
    problem = problem_of(loss, penalty=penalty, ridge=3.0)
    plan = solver.plan(problem, Budget(5.0, 1e-5))
    X, y = sample(loss, seed)
    squares = (X**2).mean(axis=0)
    steps = plan.coordinates(as_generator(seed))
    noise = plan.mechanism.draws(len(steps), as_generator(seed))
    passes = CoordinatePasses(plan, Columns(X, y, loss), steps, plan.updates(squares))
    released = passes.draw(as_generator(seed))
    expected, weights = naive(plan, X, y, squares, steps, noise)
    # a part may be rounded the other way where it is close to a half
    np.testing.assert_allclose(released, expected, rtol=0, atol=200)
    np.testing.assert_allclose(passes.weights(released), weights, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(passes.sums(released), released - noise)


@each_order
def test_orders_visit_what_they_say(order, seed):
    plan = CoordinateDescent(50, order=order).plan(problem_of(Logistic()), BUDGET)
    steps = plan.coordinates(as_generator(seed))
    assert steps.dtype == np.int64
    assert len(steps) == plan.n_updates == 200
    counts = np.bincount(steps, minlength=4)
    assert (counts > 20).all()
    whole = np.array_equal(
        np.sort(steps.reshape(50, 4)), np.tile(np.arange(4), (50, 1))
    )
    assert whole == (order != "uniform")
    assert np.array_equal(steps, np.tile(np.arange(4), 50)) == (order == "cyclic")


def exact_minimum(loss, rows, ridge):
    found = minimize(
        Objective(loss, ridge=ridge), rows, tolerance=1e-6, x_norm=2.0, y_range=(-1, 1)
    )
    return found.W


@each_loss
@layouts
def test_a_huge_budget_leads_to_the_minimum_without_privacy(loss, layout, seed):
    rows = rows_of(loss, seed, layout, n=2000)
    exact = exact_minimum(loss, rows, 5.0)
    gaps = []
    for n_passes in (1, 5, 400):
        solver = CoordinateDescent(n_passes, step=0.5, clip=5.0)
        problem = problem_of(loss, 2000, ridge=5.0)
        plan = solver.plan(problem, Budget(1e9, 1e-5))
        W = coefficients(solver, plan, rows, seed)
        gaps.append(np.max(np.abs(W - exact)))
    assert gaps[0] > gaps[1] > gaps[2]
    # noise of one part in sixteen of a clip is the least that integers have
    assert gaps[2] <= 0.02


def test_a_penalty_makes_zeros(seed):
    X, y = sample(Squared(), seed, n=4000, p=6)
    y = np.clip(X[:, 0] - X[:, 1], -1, 1)
    solver = CoordinateDescent(20, step=1.0, clip=1.0)
    problem = problem_of(Squared(), 4000, 6, L1(60.0))
    plan = solver.plan(problem, Budget(20.0, 1e-6))
    W = coefficients(solver, plan, bounded_rows(X, y, BOUNDS), seed)
    assert np.flatnonzero(W).tolist() == [0, 1]


@each_loss
@pytest.mark.parametrize("average", [False, True])
def test_predictions_do_not_depend_on_the_scale_of_a_column(loss, average, seed):
    X, y = sample(loss, seed)
    X /= 4
    roots = np.sqrt((X**2).mean(axis=0))
    found = []
    for factor in (1.0, 2.0):  # a power of two, so that nothing is rounded
        scales = np.array([1.0, factor, 1.0, 1.0])
        solver = CoordinateDescent(5, smoothness=roots * scales, average=average)
        plan = solver.plan(problem_of(loss), BUDGET)
        rows = bounded_rows(X * scales, y, BOUNDS)
        found.append(coefficients(solver, plan, rows, seed)[:, 0] * scales)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@each_loss
@layouts
def test_same_seed_same_bits_and_another_seed_other_bits(loss, layout, seed):
    solver = CoordinateDescent(4, smoothness="private")
    plan = solver.plan(problem_of(loss), BUDGET)
    rows = rows_of(loss, seed, layout)
    assert_seed_decides(solver, plan, rows, seed)


@each_loss
@pytest.mark.parametrize("smoothness", ["private", "public"])
def test_sparse_rows_give_what_dense_rows_give(loss, smoothness, seed):
    solver = CoordinateDescent(8, smoothness=smoothness, n_restarts=2)
    plan = solver.plan(problem_of(loss, ridge=1.0), BUDGET)
    dense, thin = (
        coefficients(solver, plan, rows_of(loss, seed, layout), seed)
        for layout in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(thin, dense, rtol=0, atol=1e-6)


@each_loss
@layouts
@pytest.mark.parametrize("n", [0, 1])
def test_no_rows_or_one_row_are_rows(loss, layout, n, seed):
    X, y = np.full((n, 4), 0.5), np.ones(n)
    for settings_ in ({}, {"step": 1e6, "clip": 1e-9}, {"n_passes": 300, "step": 50.0}):
        for budget in (Budget(0.01, 1e-9), Budget(1e12, 1e-5)):
            solver = CoordinateDescent(smoothness="private", **settings_)
            plan = solver.plan(problem_of(loss, n_rows=1), budget)
            rows = ArrayRows(layout(X), y)
            W = coefficients(solver, plan, rows, seed)
            assert np.isfinite(W).all()


@each_loss
def test_steps_that_overshoot_end_in_numbers(loss, seed):
    solver = CoordinateDescent(
        2000, step=1e9, clip=1e9, smoothness=[1e-90, 1e-20, 1.0, 1e90]
    )
    plan = solver.plan(problem_of(loss), Budget(1e12, 1e-5))
    W = coefficients(solver, plan, rows_of(loss, seed), seed)
    assert np.isfinite(W).all()


@each_loss
def test_rule_gives_more_passes_and_cuts_less_the_less_noise_there_is(loss):
    rules = [
        coordinate_rule(problem_of(loss, 5000), Budget(epsilon, 1e-6))
        for epsilon in (0.01, 0.1, 1.0, 10.0, 1e3)
    ]
    durations = [rule.n_passes * rule.step for rule in rules]
    clips = [rule.clip for rule in rules]
    assert durations == sorted(durations)
    assert clips == sorted(clips)
    assert durations[0] < durations[-1] == MOST_PASSES
    assert all(0 < rule.step <= 1 for rule in rules)
    bound = loss.max_derivative(inf, (-1.0, 1.0))
    assert clips[-1] == pytest.approx(4 * min(bound, typical_derivative(loss)))


def typical_derivative(loss):
    """Return the derivative at zero weights, for a label or a largest target."""
    return abs(loss.derivative(np.ones(1), np.zeros((1, 1)))[0, 0])


@pytest.mark.parametrize("n_features", [3, 3000, 400_000, 10**6])
def test_rule_makes_no_more_updates_than_can_be_reported(n_features):
    problem = problem_of(Logistic(), 10**7, n_features)
    plan = CoordinateDescent().plan(problem, Budget(1e3, 1e-9))
    assert plan.n_updates <= 10**6
    assert restore(describe(plan.event)) == plan.event


def test_rule_does_not_depend_on_the_units_of_targets():
    plans = []
    for unit in (1.0, 16.0):
        bounds = RowBounds(norm="linf", y_range=(-unit, unit))
        problem = problem_of(Squared(), bounds=bounds)
        plans.append(CoordinateDescent().plan(problem, BUDGET))
    assert plans[0].n_passes == plans[1].n_passes
    assert plans[0].step == plans[1].step
    assert plans[1].clip == pytest.approx(16 * plans[0].clip)


def test_narrow_numbers_do_not_narrow_the_plan():
    narrow = {"step": np.float32(0.5), "clip": np.float16(0.25)}
    counts = {"n_passes": np.int8(6), "n_restarts": np.uint8(2)}
    problem = problem_of(Logistic())
    plan = CoordinateDescent(**narrow, **counts).plan(problem, BUDGET)
    plain = CoordinateDescent(6, 0.5, 0.25, n_restarts=2).plan(problem, BUDGET)
    assert plan == plain
    assert {type(plan.step), type(plan.clip)} == {float}
    assert type(plan.n_passes) is int


def test_float_noise_is_said_and_grid_noise_is_not():
    for noise in ("grid", "float"):
        plan = CoordinateDescent(noise=noise).plan(problem_of(Logistic()), BUDGET)
        assert (len(plan.assumptions) == 1) == (noise == "grid")
        assert plan.mechanism.noise == plan.squares.noise == noise


def test_rows_on_disk_are_refused_in_words():
    class Elsewhere:
        pass

    plan = CoordinateDescent(2).plan(problem_of(Logistic()), BUDGET)
    with pytest.raises(ValueError, match="CoordinateDescent needs rows in memory"):
        CoordinateDescent().run(plan, Elsewhere(), as_generator(0))
