"""Least squares in a box or a ball by a random linear term."""

from dataclasses import replace
from functools import cache
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.optimize import lsq_linear
from tests.refusal import raises_one_line
from tests.solvers.densities import worst_line_loss, worst_line_ratio
from tests.solvers.running import assert_tight, coefficients
from tests.stat import assert_detects, assert_follows
from tests.strategies import adversarial_pairs, budgets, each_relation, neighboring_data

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import assert_replays, replay
from tacit.convex import Box, Huber, L1Ball, L2Ball, Logistic, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AdaptiveRidge, Problem, QuadraticPerturbation
from tacit.solvers._least_squares.quadratic import (
    gradient_sensitivity,
    least_squares_sums,
)
from tacit.solvers._least_squares.risk import GUESS, RowGuess, expected_excess

SETS = [Box(-0.4, 0.6), L2Ball(0.7)]
KINDS = [QuadraticPerturbation, AdaptiveRidge]
REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE

each_kind = pytest.mark.parametrize("kind", KINDS)
each_set = pytest.mark.parametrize("within", SETS, ids=repr)


def problem_of(n=40, p=2, x_norm=1.0, y_max=1.0, **more):
    bounds = RowBounds(x_norm, y_range=(-y_max, y_max))
    return Problem(Squared(), bounds, n, p, **more)


def sample(seed, n=40, p=2):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p)) / np.sqrt(p)
    y = X @ rng.normal(size=p) * 0.3 + 0.1 * rng.normal(size=n)
    return X, np.clip(y, -1, 1)


def rows_of(problem, X, y):
    return bounded_rows(X, y, problem.bounds)


def with_noise(plan, part):
    """Return the plan with this part of all its noise."""
    tilted = replace(plan.tilted, multiplier=part * plan.tilted.multiplier)
    return replace(plan, tilted=tilted, output_multiplier=part * plan.output_multiplier)


@each_kind
@each_relation
@pytest.mark.parametrize(
    ("law", "delta"), [(None, 1e-5), ("gamma", 1e-5), ("laplace", 1e-5), (None, 0.0)]
)
def test_planned_event_fits_and_wastes_nothing(kind, neighbors, law, delta):
    budget = Budget(1.0, delta, neighbors)
    plan = kind(law=law).plan(problem_of(), budget)
    assert_tight(plan, budget, with_noise(plan, 0.98))


@each_kind
@each_relation
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(kind, neighbors, data):
    budget = data.draw(budgets(neighbors))
    n = data.draw(st.integers(1, 10**6))
    x_norm = data.draw(st.floats(1e-3, 1e3))
    plan = kind().plan(problem_of(n, x_norm=x_norm), budget)
    assert plan.event.curve(neighbors).fits(budget)


@each_kind
@pytest.mark.parametrize(
    ("problem", "choices", "cure"),
    [
        (Problem(Logistic(), RowBounds(), 40, 2), {}, "use AMP"),
        (Problem(Squared(), RowBounds(norm="linf"), 40, 2), {}, "norm='l2'"),
        (problem_of(regularizer=L1Ball()), {}, "AMP"),
        (problem_of(p=2001), {}, "at most 2000 features"),
        (problem_of(), {"ridge": 1e-3}, "raise ridge"),
        (problem_of(n=10**9), {"ridge": 1e-3}, "raise ridge"),
    ],
    ids=["loss", "linf", "set", "wide", "ridge", "lost ridge"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(kind, problem, choices, cure):
    with raises_one_line(PlanError, match=cure):
        kind(**choices).plan(problem, Budget(1.0, 1e-5))


def test_a_box_is_for_the_plain_ridge_alone():
    with pytest.raises(PlanError, match="QuadraticPerturbation or AMP"):
        AdaptiveRidge().plan(problem_of(regularizer=Box()), Budget(1.0, 1e-5))


@each_kind
def test_weights_get_a_ball_where_no_set_is_given_and_the_plan_says_so(kind):
    problem = problem_of(x_norm=0.5, y_max=3.0)
    plan = kind().plan(problem, Budget(1.0, 1e-5))
    assert plan.tilted.problem.regularizer == L2Ball(5.0 * 3.0 / 0.5)
    assert "weights are kept in L2Ball(radius=30.0)" in plan.assumptions[-1]
    given_set = kind().plan(
        replace(problem, regularizer=L2Ball(30.0)), Budget(1.0, 1e-5)
    )
    assert given_set.assumptions == plan.assumptions[:-1]


def printed_problem(p):
    """Return the setting of the source: rows of norm sqrt(p), targets up to p."""
    bounds = RowBounds(sqrt(p), y_range=(-p, p))
    return Problem(Squared(), bounds, 1000, p, regularizer=Box(-1.0, 1.0))


def test_published_constants_are_those_printed():
    solver = QuadraticPerturbation(accounting="paper")
    plan = solver.plan(printed_problem(10), Budget(1.0, 1e-6, ADD))
    assert plan.tilted.ridge == pytest.approx(20.0, rel=1e-12)
    assert plan.tilt_std == pytest.approx(693.0, abs=0.1)
    assert plan.tilt_std**2 == pytest.approx(10**3 * (32 * log(2e6) + 16), rel=1e-9)
    pure = QuadraticPerturbation(accounting="paper", law="laplace")
    scale = pure.plan(printed_problem(10), Budget(1.0, 0.0, ADD)).tilted
    assert scale.multiplier * scale.sensitivity == pytest.approx(4 * 10**1.5)
    with pytest.raises(PlanError, match="at least 20"):
        replace(solver, ridge=19.0).plan(printed_problem(10), Budget(1.0, 1e-6, ADD))
    tight = QuadraticPerturbation(ridge=20.0)
    ours = tight.plan(printed_problem(10), Budget(1.0, 1e-6, ADD))
    assert ours.tilt_std == pytest.approx(2 * 10**1.5 * 7.1, rel=2e-3)


@each_relation
def test_no_two_rows_move_the_gradient_further_than_stated(neighbors, seed):
    rng = as_generator(seed)
    for y_max, radius in ((1.0, 1.0), (0.3, 5.0), (2.0, 0.2)):
        problem = problem_of(p=3, x_norm=0.8, y_max=y_max, regularizer=L2Ball(radius))
        bound = gradient_sensitivity(problem, neighbors)
        x, z, w = rng.normal(size=(3, 4000, 3))
        x, z, w = (v / np.linalg.norm(v, axis=1)[:, None] for v in (x, z, w))
        short = np.where(rng.random(4000) < 0.3, rng.random(4000), 1.0)
        x, z, w = 0.8 * x, 0.8 * short[:, None] * z, radius * w
        pulls = []
        for first, second in ((1.0, -1.0), (1.0, 1.0)):
            pull = x * ((x * w).sum(1) - first * y_max)[:, None]
            if neighbors is REPLACE:
                pull = pull - z * ((z * w).sum(1) - second * y_max)[:, None]
            pulls.append(np.linalg.norm(pull, axis=1).max())
        assert 0.7 * bound < max(pulls) <= bound
    two_rows = problem.sensitivity(REPLACE)
    assert gradient_sensitivity(problem, REPLACE) < two_rows


def box_minimum(A, g, within):
    """Return the minimum in a box by an independent method."""
    factor = np.linalg.cholesky(A)
    found = lsq_linear(
        factor.T,
        np.linalg.solve(factor, g),
        bounds=(within.low, within.high),
        method="bvls",
        tol=1e-15,
    )
    return found.x


def ball_minimum(A, g, radius):
    """Return the minimum in a ball by projected gradients."""
    w, step = np.zeros(len(g)), 1 / np.linalg.norm(A, 2)
    for _ in range(5000):
        w = w - step * (A @ w - g)
        w = w / max(1.0, np.linalg.norm(w) / radius)
    return w


def minimum(A, g, within):
    if isinstance(within, Box):
        return box_minimum(A, g, within)
    return ball_minimum(A, g, within.radius)


@each_set
@each_relation
def test_tends_to_constrained_least_squares(within, neighbors, seed):
    # targets so large that the constraint is active
    X, y = sample(seed, n=300, p=4)
    problem = problem_of(300, 4, y_max=3.0, regularizer=within)
    rows = rows_of(problem, X, 3 * y)
    exact = minimum(*least_squares_sums(problem, rows), within)
    assert not np.allclose(exact, np.linalg.solve(*least_squares_sums(problem, rows)))
    gaps = []
    for epsilon in (1e2, 1e6):
        plan = QuadraticPerturbation().plan(problem, Budget(epsilon, 1e-5, neighbors))
        W = coefficients(QuadraticPerturbation(), plan, rows, seed)
        gaps.append(np.abs(W[:, 0] - exact).max())
    # where the number of rows is private, round-off of millions is covered
    assert gaps[1] < min(gaps[0], 1e-3)


@each_set
def test_the_minimum_satisfies_its_conditions(within, seed):
    problem = problem_of(200, 6, regularizer=within)
    rng = as_generator(seed)
    solver = QuadraticPerturbation(noise="float")
    plan = solver.plan(problem, Budget(1.0, 1e-5))
    worst = 0.0
    for run in range(40):
        X, y = sample(seed + run, n=200, p=6)
        rows = rows_of(problem, X, y)
        second, first = least_squares_sums(problem, rows)
        A = second + plan.tilted.ridge * np.eye(6)
        with recording() as tape:
            solver.run(plan, rows, rng)
        tilt, W = tape.releases[0].output[:, 0], tape.releases[1].output[:, 0]
        G = A @ W - first + tilt
        # where the gradient points out of the set, it may be anything
        if isinstance(within, Box):
            G = np.where(within.low == W, np.minimum(G, 0.0), G)
            G = np.where(within.high == W, np.maximum(G, 0.0), G)
        elif np.linalg.norm(W) > within.radius * (1 - 1e-12):
            pull = -(G @ W) / (W @ W)
            assert pull >= 0
            G = G + pull * W
        worst = max(worst, float(np.linalg.norm(G)) / np.linalg.norm(tilt))
        assert within.contains(W[:, None], 1e-12)
    assert worst < 1e-10


def test_wide_and_nearly_singular_boxes_are_solved(seed):
    rng = as_generator(seed)
    for p, scale in ((1, 1.0), (5, 1e-3), (60, 1e3), (150, 1.0)):
        problem = problem_of(
            500, p, y_max=1e4, regularizer=Box(-1.0, 0.5 * scale + 1e-3)
        )
        solver = QuadraticPerturbation(noise="float", ridge=0.5)
        plan = solver.plan(problem, Budget(20.0, 1e-5))
        # one direction carries nearly everything, others nothing at all
        X = 1e-4 * rng.normal(size=(500, p)) + rng.normal(size=(500, 1))
        X[:, p // 2 :] = 0.0
        y = rng.normal(size=500) * 1e4
        W = coefficients(solver, plan, rows_of(problem, X, y), seed)
        assert np.isfinite(W).all()


def test_trace_identity_and_exact_excess_formula(seed):
    X, y = sample(seed, n=150, p=4)
    problem = problem_of(150, 4, regularizer=L2Ball(50.0))
    solver = QuadraticPerturbation(ridge=6.0, noise="float")
    plan = solver.plan(problem, Budget(8.0, 1e-5))
    rows = rows_of(problem, X, y)
    second, first = least_squares_sums(problem, rows)
    spectrum, axes = np.linalg.eigh(second)
    best = np.linalg.solve(second, first)
    A = second + 6.0 * np.eye(4)
    ridged = np.linalg.solve(A, first)
    rng = as_generator(seed)
    W = np.array([solver.run(plan, rows, rng).coefficients[:, 0] for _ in range(3000)])
    off, away = W - best, W - ridged
    excess = 0.5 * np.einsum("ni,ij,nj->n", off, second, off)
    claimed = expected_excess(spectrum, axes.T @ best, spectrum + 6.0, plan.tilt_std)
    error = excess.std() / sqrt(len(W))
    assert abs(excess.mean() - claimed) < 4 * error
    # a control: noise one twelfth too large shows
    other = expected_excess(
        spectrum, axes.T @ best, spectrum + 6.0, plan.tilt_std * 13 / 12
    )
    assert abs(excess.mean() - other) > 4 * error
    # the trace identity of the tilted objective
    risen = 0.5 * np.einsum("ni,ij,nj->n", away, A, away)
    trace = plan.tilt_std**2 * np.trace(np.linalg.inv(A)) / 2
    assert abs(risen.mean() - trace) < 4 * risen.std() / sqrt(len(W))


@each_set
def test_a_constraint_never_adds_to_what_the_tilt_costs(within, seed):
    problem = problem_of(100, 3, regularizer=within)
    solver = QuadraticPerturbation(noise="float")
    plan = solver.plan(problem, Budget(2.0, 1e-5))
    X, y = sample(seed, n=100, p=3)
    rows = rows_of(problem, X, y)
    second, first = least_squares_sums(problem, rows)
    A = second + plan.tilted.ridge * np.eye(3)
    sharp = minimum(A, first, within)
    rng = as_generator(seed)
    ratios = []
    for _ in range(300):
        with recording() as tape:
            solver.run(plan, rows, rng)
        tilt, W = tape.releases[0].output[:, 0], tape.releases[1].output[:, 0]
        risen = 0.5 * (W @ A @ W - sharp @ A @ sharp) - first @ (W - sharp)
        ratios.append(risen / (tilt @ np.linalg.solve(A, tilt) / 2))
    assert min(ratios) + 1e-9 >= 0
    assert max(ratios) <= 1 + 1e-9
    assert max(ratios) > 0.1


def test_the_tilt_that_is_used_follows_its_law(seed):
    problem = problem_of(80, 3, regularizer=L2Ball(100.0))
    solver = QuadraticPerturbation(ridge=30.0, noise="float")
    plan = solver.plan(problem, Budget(5.0, 1e-5))
    rows = rows_of(problem, *sample(seed, n=80, p=3))
    second, first = least_squares_sums(problem, rows)
    A = second + 30.0 * np.eye(3)
    rng, tilts = as_generator(seed), []
    for _ in range(2000):
        with recording() as tape:
            solver.run(plan, rows, rng)
        tilts.append(first - A @ tape.releases[1].output[:, 0])
    drawn = np.ravel(tilts) / plan.tilt_std
    assert_follows(drawn, stats.norm.cdf)
    assert_detects(drawn / 1.2, stats.norm.cdf)


@each_relation
@pytest.mark.parametrize(("law", "delta"), [("gaussian", 1e-3), ("laplace", 0.0)])
def test_exact_densities_on_a_line_keep_the_claim(neighbors, law, delta):
    problem = problem_of(6, 1, regularizer=Box(-1.0, 1.0))
    solver = QuadraticPerturbation(ridge=1.0, law=law)
    tilted = solver.plan(problem, Budget(2.0, delta, neighbors)).tilted
    claimed = tilted.event.curve(neighbors)
    less = replace(tilted, multiplier=tilted.multiplier / 3)
    if law == "laplace":
        assert worst_line_loss(tilted, neighbors) <= claimed.pure * (1 + 1e-9)
        assert worst_line_loss(less, neighbors) > claimed.pure
        return
    epsilons = (0.5, 1.0, 2.0)
    assert worst_line_ratio(tilted, claimed, neighbors, epsilons) <= 1
    assert worst_line_ratio(less, claimed, neighbors, epsilons) > 1


def replayed(solver, plan, pair, judge=assert_replays, seed=0):
    bounds = plan.tilted.problem.bounds
    sides = [(bounded_rows(*data, bounds),) for data in (pair.first, pair.second)]
    return judge(lambda rows: coefficients(solver, plan, rows, seed), *sides)


@each_kind
@each_relation
@pytest.mark.parametrize("epsilon", [0.5, 1e3])
def test_neighbors_stay_within_the_declared_sensitivity(kind, neighbors, epsilon):
    for y_max in (1.0, 0.25):
        solver = kind()
        plan = solver.plan(problem_of(5, y_max=y_max), Budget(epsilon, 1e-3, neighbors))
        for pair in adversarial_pairs(Huber(), neighbors):
            assert len(replayed(solver, plan, pair).entries) == 3


@cache
def small_plan(kind, neighbors):
    return kind().plan(problem_of(6), Budget(2.0, 1e-3, neighbors))


@each_kind
@each_relation
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(kind, neighbors, data):
    plan = small_plan(kind, neighbors)
    replayed(kind(), plan, data.draw(neighboring_data(Huber(), neighbors)))


@each_kind
@each_relation
def test_half_the_sensitivity_is_reported(kind, neighbors):
    problem = problem_of(4, regularizer=L2Ball(0.1))
    plan = kind().plan(problem, Budget(50.0, 1e-3, neighbors))
    half = replace(plan.tilted, sensitivity=plan.tilted.sensitivity / 2)
    broken = replace(plan, tilted=half)
    found = []
    for pair in adversarial_pairs(Logistic(), neighbors):
        if pair.name in ("opposite labels", "zero row"):
            assert replayed(kind(), plan, pair, replay).ok
            found += replayed(kind(), broken, pair, replay).violations
    assert any("over the declared sensitivity" in sentence for sentence in found)


@each_kind
def test_same_seed_same_bits_and_sparse_rows_as_dense(kind, seed):
    problem = problem_of(60, 3)
    plan = kind().plan(problem, Budget(1.0, 1e-5))
    X, y = sample(seed, n=60, p=3)
    X[X < 0] = 0.0
    first, again, other, thin = (
        coefficients(kind(), plan, rows_of(problem, Z, y), s)
        for Z, s in ((X, 0), (X, 0), (X, 1), (sparse.csr_array(X), 0))
    )
    assert first.shape == (3, 1)
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)
    np.testing.assert_allclose(thin, first, rtol=0, atol=1e-6)


def test_the_planned_ridge_has_the_least_expected_risk():
    for n, p, epsilon in ((1000, 5, 1.0), (10**5, 40, 0.2)):
        problem, budget = problem_of(n, p), Budget(epsilon, 1e-6)
        plan = QuadraticPerturbation().plan(problem, budget)
        least = plan.expected_risk(GUESS)
        for factor in (0.2, 0.5, 2.0, 5.0):
            other = QuadraticPerturbation(ridge=factor * plan.tilted.ridge)
            risk = other.plan(problem, budget).expected_risk(GUESS)
            assert risk > 0.97 * least


def test_a_guess_without_sense_is_refused():
    with pytest.raises(ValueError, match="spread"):
        RowGuess(spread=0.0)
    with pytest.raises(ValueError, match="decay"):
        RowGuess(decay=-1.0)
