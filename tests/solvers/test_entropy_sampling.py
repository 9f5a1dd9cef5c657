"""Samples from the minimizer of an entropy-regularized risk."""

from dataclasses import is_dataclass, replace
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import logsumexp
from tests.refusal import raises_one_line
from tests.solvers.running import assert_reported, assert_tight, coefficients
from tests.strategies import budgets

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import (
    Huber,
    HuberizedHinge,
    L1Ball,
    Logistic,
    Simplex,
    Softmax,
    Squared,
)
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers._minimizers import entropy_minimum as _entropy_minimum
from tacit.solvers._minimizers.entropy_minimum import entropy_minimum
from tacit.solvers._published import paper_samples
from tacit.solvers.entropy_sampling import (
    EntropySampling,
    derivative,
    entry_bound,
    gradient_entry_roundoff,
    log_ratio,
    mirror_steps,
    smoothness,
    stationarity_tolerance,
    weight_rule,
)

LOSSES = [Squared(), Huber(0.7), Logistic(), Logistic(cap=0.5), HuberizedHinge()]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_delta = pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "approximate"])


def problem_of(loss, n=2000, p=10, x_norm=1.0):
    return Problem(loss, RowBounds(x_norm, "linf"), n, p, regularizer=Simplex())


def sample(loss, seed, n=2000, p=10):
    rng = as_generator(seed)
    X = np.where(rng.normal(size=(n, p)) > 0, 1.0, -1.0)
    z = X[:, :2].mean(axis=1) if p > 1 else X[:, 0]
    y = z + 0.1 * rng.normal(size=n)
    if isinstance(loss, Squared | Huber):
        return X, np.clip(y, -1, 1)
    return X, np.where(y > 0, 1.0, -1.0)


def minimizer(loss, X, y, weight, tolerance=1e-9, problem=None):
    """Return exact log-weights, to a tolerance far below what is tested."""
    problem = problem_of(loss, *X.shape) if problem is None else problem
    return entropy_minimum(
        loss,
        bounded_rows(X, y, problem.bounds),
        weight=weight,
        tolerance=tolerance * weight,
        smoothness=smoothness(problem),
        n_steps=200_000,
    )


@each_loss
@each_delta
def test_planned_event_fits_and_one_more_sample_does_not(loss, delta):
    budget, problem = Budget(1.0, delta), problem_of(loss, 20_000, 100)
    plan = EntropySampling().plan(problem, budget)
    more = replace(plan, n_samples=plan.n_samples + 1)
    assert_tight(plan, budget, more)
    assert is_dataclass(plan)
    assert plan == EntropySampling().plan(problem, budget)
    assert not any(isinstance(value, Budget) for value in vars(plan).values())


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(data):
    budget = data.draw(budgets(Neighbors.REPLACE_ONE))
    problem = problem_of(
        data.draw(st.sampled_from(LOSSES)),
        data.draw(st.integers(1, 10**6)),
        data.draw(st.integers(1, 10**5)),
        data.draw(st.floats(1e-3, 1e3)),
    )
    plan = EntropySampling().plan(problem, budget)
    assert plan.n_samples >= 1
    assert plan.event.curve(budget.neighbors).fits(budget)


@pytest.mark.parametrize(
    ("problem", "budget", "cure"),
    [
        (
            Problem(Squared(), RowBounds(norm="linf"), 40, 2),
            Budget(1.0),
            r"Simplex\(\).*FrankWolfe",
        ),
        (
            Problem(Squared(), RowBounds(norm="linf"), 40, 2, regularizer=L1Ball()),
            Budget(1.0),
            "FrankWolfe",
        ),
        (
            Problem(Squared(), RowBounds(), 40, 2, regularizer=Simplex()),
            Budget(1.0),
            "norm='linf'",
        ),
        (problem_of(Softmax(3)), Budget(1.0), r"Logistic\(\)"),
        (
            replace(problem_of(Squared()), ridge=1.0),
            Budget(1.0),
            "weight=, or use FrankWolfe",
        ),
        (
            problem_of(Squared()),
            Budget(1.0, 0.0, Neighbors.ADD_OR_REMOVE_ONE),
            "replace_one.*FrankWolfe",
        ),
    ],
    ids=["free", "ball", "l2", "softmax", "ridge", "relation"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(problem, budget, cure):
    with raises_one_line(PlanError, match=cure):
        EntropySampling().plan(problem, budget)


@each_delta
def test_no_sample_at_all_is_refused_with_a_cure(delta):
    with pytest.raises(PlanError, match=r"cannot draw one sample.*FrankWolfe"):
        EntropySampling(weight=0.1).plan(problem_of(Squared()), Budget(1.0, delta))
    # the published numbers allow no sample before many millions of rows
    with pytest.raises(PlanError, match=r"cannot draw one sample.*tight"):
        EntropySampling(accounting="paper").plan(
            problem_of(Squared(), 1000, 1000), Budget(1.0, 1e-6)
        )


def test_so_small_a_weight_that_the_steps_never_end_is_refused():
    with pytest.raises(PlanError, match="raise weight"):
        EntropySampling(weight=1e-3).plan(problem_of(Squared()), Budget(1e9))


def test_parameters_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="accounting"):
        EntropySampling(accounting="loose")
    with pytest.raises(ValueError, match="weight"):
        EntropySampling(weight=0.0)


def test_more_rows_than_planned_are_refused(seed):
    X, y = sample(Squared(), seed, n=50)
    plan = EntropySampling().plan(problem_of(Squared(), 49), Budget(1.0, 1e-5))
    assert plan.assumptions == ("there are at most 49 rows",)
    with pytest.raises(ValueError, match="planned for 49 rows"):
        EntropySampling().run(
            plan, bounded_rows(X, y, plan.problem.bounds), as_generator(seed)
        )


@each_loss
@each_delta
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_same_seed_same_bits_on_the_simplex(loss, delta, noise, seed):
    X, y = sample(loss, seed)
    solver = EntropySampling(noise=noise)
    plan = solver.plan(problem_of(loss), Budget(5.0, delta))
    rows = bounded_rows(X, y, plan.problem.bounds)
    first, again = (coefficients(solver, plan, rows, seed) for _ in range(2))
    assert first.shape == (10, 1)
    assert Simplex().contains(first)
    np.testing.assert_array_equal(first, again)
    others = [coefficients(solver, plan, rows, seed + i) for i in range(1, 20)]
    assert any(np.any(other != first) for other in others)


def test_sparse_rows_give_what_dense_rows_give(seed):
    X, y = sample(Squared(), seed)
    X[X < 0] = 0.0
    plan = EntropySampling().plan(problem_of(Squared()), Budget(5.0, 1e-5))
    dense, thin = (
        coefficients(
            EntropySampling(), plan, bounded_rows(Z, y, plan.problem.bounds), seed
        )
        for Z in (X, sparse.csr_array(X))
    )
    np.testing.assert_array_equal(thin, dense)


@each_loss
def test_tends_to_the_minimizer(loss, seed):
    X, y = sample(loss, seed)
    exact = np.exp(minimizer(loss, X, y, 50.0))
    gaps = []
    for epsilon in (5.0, 1e2, 1e7):
        solver = EntropySampling(weight=50.0)
        plan = solver.plan(problem_of(loss), Budget(epsilon, 1e-5))
        rows = bounded_rows(X, y, plan.problem.bounds)
        W = coefficients(solver, plan, rows, seed)
        gaps.append(np.abs(W[:, 0] - exact).sum())
    assert gaps[0] > gaps[1] > gaps[2]
    assert (
        gaps[2] < 10 / 2**10
    )  # a few standard deviations of the largest number of samples


@pytest.mark.statistical
def test_the_mean_is_the_minimizer_and_few_samples_cost_little(seed):
    X, y = sample(Squared(), seed)
    theta = np.exp(minimizer(Squared(), X, y, 50.0))
    plan = EntropySampling(weight=50.0).plan(problem_of(Squared()), Budget(8.0, 1e-5))
    rows = bounded_rows(X, y, plan.problem.bounds)
    draws = np.array(
        [
            coefficients(EntropySampling(), plan, rows, seed + i)[:, 0]
            for i in range(300)
        ]
    )
    std = np.sqrt(theta * (1 - theta) / (plan.n_samples * 300))
    # the tolerance of the minimizer is far below the standard deviation
    assert np.all(np.abs(draws.mean(axis=0) - theta) <= 6 * std + 1e-4)
    risks = np.mean([np.mean((X @ w - y) ** 2) / 2 for w in draws])
    excess = risks - np.mean((X @ theta - y) ** 2) / 2
    assert excess <= 1 / (2 * plan.n_samples)


def residual(loss, X, y, phi, weight):
    theta = np.exp(phi - logsumexp(phi))
    r = weight * phi + X.T @ loss.derivative(y, (X @ theta)[:, None])[:, 0]
    return (r.max() - r.min()) / 2


def assert_certified(loss, n, p, weight, seed, room):
    """Assert that the minimizer has a residual within its tolerance and ``room``."""
    X, y = sample(loss, seed, n=n, p=p)
    problem = problem_of(loss, n, p)
    tolerance = stationarity_tolerance(problem)
    phi = entropy_minimum(
        loss,
        bounded_rows(X, y, problem.bounds),
        weight=weight,
        tolerance=tolerance,
        smoothness=smoothness(problem),
        n_steps=mirror_steps(problem, weight, tolerance),
    )
    assert residual(loss, X, y, phi, weight) <= tolerance + room(problem)


@each_loss
@pytest.mark.parametrize("p", [1, 2, 10, 200])
@pytest.mark.parametrize("weight", [1.0, 10.0, 1e4])
def test_the_minimizer_is_certified(loss, p, weight, seed):
    assert_certified(loss, 300, p, weight, seed, gradient_entry_roundoff)


@each_loss
@pytest.mark.parametrize("weight", [20.0, 1e3])
def test_planned_mirror_steps_suffice_without_newton(loss, weight, seed, monkeypatch):
    monkeypatch.setattr(_entropy_minimum, "NEWTON_STEPS", 0)
    room = lambda problem: 1e-6 * stationarity_tolerance(problem)  # noqa: E731
    assert_certified(loss, 200, 6, weight, seed, room)


def pairs(loss, seed, n, p):
    """Neighbors whose changed row is as different as the bounds allow."""
    rng = as_generator(seed)
    wide = isinstance(loss, Squared | Huber)
    crowds = {
        "random signs": np.where(rng.normal(size=(n, p)) > 0, 1.0, -1.0),
        "one feature alone": np.tile(np.r_[1.0, -np.ones(p - 1)], (n, 1)),
        "zero": np.zeros((n, p)),
        "halves": np.tile(np.where(np.arange(p) % 2, 1.0, -1.0), (n, 1)),
    }
    changes = [
        np.r_[1.0, -np.ones(p - 1)],
        np.ones(p),
        np.where(np.arange(p) % 2, 1, -1),
    ]
    for X in crowds.values():
        y = rng.choice([-1.0, 1.0], size=n) * (rng.uniform(size=n) if wide else 1.0)
        for change in changes:
            first, second = X.copy(), X.copy()
            first[0], second[0] = change, -change
            y_first, y_second = y.copy(), y.copy()
            y_first[0], y_second[0] = -1.0, -1.0
            yield (first, y_first), (second, y_second)
            y_second = y.copy()
            y_second[0] = 1.0
            yield (first, y_first), (first, y_second)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Logistic(cap=0.5)], ids=repr)
@pytest.mark.parametrize("kappa", [0.1, 3.0, 100.0])
def test_log_ratios_stay_within_the_bounds(loss, kappa, seed):
    problem = problem_of(loss, 60, 4)
    weight = smoothness(problem) / kappa
    moved = 2 * derivative(problem)
    largest = 0.0
    for first, second in pairs(loss, seed, 60, 4):
        phi, other = (minimizer(loss, *data, weight) for data in (first, second))
        r = phi - other
        pure = log_ratio(problem, weight, 0.0, bounded_range=False)
        ranged = log_ratio(problem, weight, 0.0, bounded_range=True)
        assert np.max(np.abs(r)) <= pure + 1e-6
        assert np.ptp(r) <= ranged + 1e-6
        assert np.abs(np.exp(phi) - np.exp(other)).sum() <= moved / weight + 1e-6
        # the published bound is never below
        assert pure <= moved / 2 / weight * (4 + 2 * kappa)
        largest = max(largest, np.ptp(r) / ranged)
    assert largest > 0.05  # the pairs are not idle


def test_bounds_are_nearly_attained_by_a_steep_row():
    # at a margin far on the wrong side the hinge is straight: the row alone decides
    loss = HuberizedHinge(1e-3)
    weight, x = 50.0, np.array([[1.0, -1.0]])
    problem = problem_of(loss, 1, 2)
    sides = [minimizer(loss, sign * x, np.array([1.0]), weight) for sign in (1, -1)]
    r = sides[0] - sides[1]
    flat = 2 * derivative(problem) / weight * 2  # where kappa is nothing
    assert np.ptp(r) == pytest.approx(flat, rel=1e-6)
    assert np.abs(np.exp(sides[0]) - np.exp(sides[1])).sum() == pytest.approx(
        2 * derivative(problem) / weight, rel=1e-3
    )


def replayed(plan, pair, judge=assert_replays):
    sides = [(bounded_rows(*data, plan.problem.bounds),) for data in pair]
    solver = EntropySampling()
    return judge(lambda rows: coefficients(solver, plan, rows, 0), *sides)


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@each_delta
def test_neighbors_stay_within_the_declared_sensitivity(loss, delta, seed):
    problem = problem_of(loss, 30, 4)
    plan = EntropySampling().plan(problem, Budget(3.0, delta))
    for pair in pairs(loss, seed, 30, 4):
        assert len(replayed(plan, pair).entries) == 1


def test_half_the_sensitivity_is_reported(monkeypatch):
    loss = HuberizedHinge(1e-3)
    problem = problem_of(loss, 1, 2)
    plan = EntropySampling(weight=5e4).plan(problem, Budget(3.0, 1e-3))
    assert plan.bounded_range
    x, y = np.array([[1.0, -1.0]]), np.array([1.0])
    assert replayed(plan, ((x, y), (-x, y)), replay).ok
    honest = plan.sensitivity
    monkeypatch.setattr(type(plan), "sensitivity", honest / 2)
    assert_reported(replayed(plan, ((x, y), (-x, y)), replay))


def exact_delta(n_samples, log_odds, epsilon):
    """Return delta of counting draws of two candidates whose log-odds are so far."""
    p, q = 1 / (1 + exp(-log_odds / 2)), 1 / (1 + exp(log_odds / 2))
    k = np.arange(n_samples + 1)
    a, b = stats.binom.pmf(k, n_samples, p), stats.binom.pmf(k, n_samples, q)
    return float(np.maximum(a - exp(epsilon) * b, 0).sum())


def test_published_number_of_samples_lacks_the_size_of_the_rows():
    epsilon, delta, weight = 1.0, 1e-3, 1000.0

    def printed(curvature):
        # as published: nothing in it but the weight, once the loss is a line
        return int(
            (epsilon * weight / log(1 / delta)) ** 2 / (32 + 16 * curvature) ** 2
        )

    count = printed(0.0)
    assert count >= 10
    for x_norm, kept in ((1.0, True), (100.0, False)):
        # a linear loss of derivative one, whose minimizer is known: log-odds 4 x /
        # weight
        delta_found = exact_delta(count, 4 * x_norm / weight, epsilon)
        assert (delta_found <= delta) is kept
    # repaired, the same number falls with the square of the rows' size
    wide, narrow = (
        paper_samples(
            Budget(epsilon, delta), 1e4, entry_bound(rows), smoothness(rows) / 1e4
        )
        for rows in (problem_of(Huber(1e-9), 10, 2, x_norm) for x_norm in (10.0, 1.0))
    )
    ratio = narrow / wide
    assert ratio > 99


@each_delta
def test_paper_accounting_is_kept_by_the_honest_event(delta):
    budget = Budget(2.0, delta)
    problem = problem_of(Logistic(), 10**9, 100)
    paper = EntropySampling(accounting="paper").plan(problem, budget)
    assert paper.event.curve(budget.neighbors).fits(budget)
    tight = EntropySampling(weight=paper.weight).plan(problem, budget)
    assert tight.n_samples > 3 * paper.n_samples


def test_weights_fall_and_samples_grow_with_rows_and_epsilon():
    def planned(n, epsilon):
        return EntropySampling().plan(
            problem_of(Squared(), n, 1000), Budget(epsilon, 1e-6)
        )

    by_rows = [planned(n, 1.0) for n in (10**4, 10**5, 10**6)]
    by_epsilon = [planned(10**5, e) for e in (0.3, 1.0, 3.0)]
    for plans in (by_rows, by_epsilon):
        counts = [plan.n_samples for plan in plans]
        assert counts == sorted(counts)
    fractions = [plan.weight / plan.problem.n_rows for plan in by_rows]
    assert fractions == sorted(fractions, reverse=True)
    tolerance = stationarity_tolerance(by_rows[0].problem)
    rule = weight_rule(by_rows[0].problem, Budget(1.0, 1e-6), tolerance)
    assert by_rows[0].weight == rule
