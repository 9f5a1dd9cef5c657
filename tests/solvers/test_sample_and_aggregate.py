"""Any estimator, averaged over random blocks."""

import logging
import warnings
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge
from tests.solvers.running import (
    assert_reported,
    assert_seed_decides,
    assert_tight,
    coefficients,
    fit,
)
from tests.stat import assert_detects, assert_follows
from tests.strategies import (
    adversarial_pairs,
    budgets,
    each_relation,
    neighboring_data,
    targets,
)

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import (
    L1,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    Softmax,
    Squared,
)
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.mechanisms.subsets import random_blocks
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers.sample_and_aggregate import (
    SampleAndAggregate,
    average_sensitivity,
    block_rule,
    norm_clipped,
)

LOSSES = [Squared(), Logistic(), Softmax(3), HuberizedHinge(), Huber()]

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_law = pytest.mark.parametrize("law", ["gaussian", "laplace", "gamma"])


def problem_of(loss, n=40, p=2, **more):
    return Problem(loss, RowBounds(), n, p, **more)


def sample(loss, seed, n=40, p=2):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p))
    codes = np.where(X[:, 0] > 0, 0, np.where(X[:, 1] > 0, 1, 2))
    return X, targets(Huber() if isinstance(loss, Squared) else loss, codes)


@each_loss
@each_law
@each_relation
def test_planned_event_fits_and_wastes_nothing(loss, law, neighbors):
    budget = Budget(1.0, 1e-5, neighbors)
    solver = SampleAndAggregate(law=law)
    plan = solver.plan(problem_of(loss), budget)
    less = replace(plan, multiplier=0.99 * plan.multiplier)
    assert_tight(plan, budget, less)
    assert is_dataclass(plan)
    assert plan == solver.plan(problem_of(loss), budget)
    assert not any(isinstance(value, Budget) for value in vars(plan).values())


@each_relation
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(neighbors, data):
    budget = data.draw(budgets(neighbors))
    n = data.draw(st.integers(1, 10**6))
    plan = SampleAndAggregate().plan(problem_of(Logistic(), n), budget)
    assert plan.event.curve(neighbors).fits(budget)
    assert 1 <= plan.n_blocks <= max(1, round(n ** (2 / 3)))


@each_relation
def test_a_budget_without_delta_is_kept(neighbors):
    budget = Budget(1.0, 0.0, neighbors)
    plan = SampleAndAggregate().plan(problem_of(Logistic()), budget)
    assert plan.law == "laplace"
    less = replace(plan, multiplier=0.99 * plan.multiplier)
    assert_tight(plan, budget, less)


@pytest.mark.parametrize(
    ("solver", "problem", "delta", "cure"),
    [
        (SampleAndAggregate(law="gaussian"), problem_of(Logistic()), 0.0, "'laplace'"),
        (SampleAndAggregate(law="gamma"), problem_of(Logistic()), 0.0, "'laplace'"),
        (SampleAndAggregate(), problem_of(Squared(), regularizer=L1()), 1e-5, "Free()"),
    ],
    ids=["gaussian", "gamma", "penalty"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(solver, problem, delta, cure):
    with pytest.raises(PlanError) as rejection:
        solver.plan(problem, Budget(1.0, delta))
    assert cure in str(rejection.value)
    assert "\n" not in str(rejection.value)


@pytest.mark.parametrize(
    "wrong", [{"n_blocks": 0}, {"radius": 0.0}, {"ridge": -1.0}, {"law": "cauchy"}]
)
def test_senseless_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SampleAndAggregate(**wrong)


@each_loss
@each_law
def test_same_seed_same_bits_and_another_seed_other_bits(loss, law, seed):
    solver, problem = SampleAndAggregate(law=law), problem_of(loss)
    plan = solver.plan(problem, Budget(1.0, 1e-5))
    rows = bounded_rows(*sample(loss, seed), problem.bounds)
    assert_seed_decides(solver, plan, rows, seed)


@each_loss
def test_sparse_rows_give_what_dense_rows_give(loss, seed):
    X, y = sample(loss, seed)
    X[X < 0] = 0.0
    dense, thin = (
        fit(SampleAndAggregate(), problem_of(loss), Budget(1.0, 1e-5), Z, y, seed)
        for Z in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin, dense, rtol=0, atol=1e-5)


def test_tends_to_the_average_of_the_block_estimates(seed):
    X, y = sample(Squared(), seed, n=200)

    def estimate(X, y):
        return Ridge(alpha=1.0, fit_intercept=False).fit(X, y).coef_[:, None]

    problem = problem_of(Squared(), 200)
    labels = random_blocks(200, 7, as_generator(seed))
    Z = problem.bounds.clip(X)
    exact = np.mean([estimate(Z[labels == b], y[labels == b]) for b in range(7)], 0)
    for solver in (
        SampleAndAggregate(estimate, 7, radius=2.0),
        SampleAndAggregate(n_blocks=7, radius=2.0, ridge=1.0),
    ):
        gaps = []
        for epsilon in (1.0, 1e4, 1e15):
            W = fit(solver, problem, Budget(epsilon, 1e-5), X, y, seed)
            gaps.append(np.max(np.abs(W - exact)))
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] <= 1e-6


def test_one_block_is_the_minimizer_itself(seed):
    X, y = sample(Squared(), seed, n=200)
    solver = SampleAndAggregate(n_blocks=1, radius=2.0, ridge=2.0)
    W = fit(solver, problem_of(Squared(), 200), Budget(1e15, 1e-5), X, y, seed)
    Z = RowBounds().clip(X)
    exact = np.linalg.solve(Z.T @ Z + 2 * np.eye(2), Z.T @ y)
    np.testing.assert_allclose(W[:, 0], exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("region", [L2Ball(0.3), L1Ball(0.3)], ids=repr)
def test_weights_stay_in_their_set(region, seed):
    X, y = sample(Logistic(), seed)
    problem = problem_of(Logistic(), regularizer=region)
    plan = SampleAndAggregate().plan(problem, Budget(1.0, 1e-5))
    assert plan.radius == region.radius
    assert SampleAndAggregate(radius=0.1).plan(problem, Budget(1.0, 1e-5)).radius == 0.1
    W = fit(SampleAndAggregate(), problem, Budget(0.1, 1e-5), X, y, seed)
    assert region.contains(W)


def misbehave(X, y):
    """Fail in a way that depends on the rows."""
    warnings.warn("rows!", stacklevel=1)
    first = float(X[0, 0])
    if first > 0.5:
        raise ValueError(first)
    if first > 0.2:
        return np.full((2, 1), np.inf)
    if first > 0.0:
        return np.zeros(7)
    X[:] = 0.0  # must not reach the caller's rows
    return np.full((2, 1), 1e308)


def test_failures_of_an_estimate_are_not_told(seed, caplog):
    X, y = sample(Squared(), seed)
    solver = SampleAndAggregate(misbehave, 12, radius=1.0)
    plan = solver.plan(problem_of(Squared()), Budget(1e12, 1e-5))
    rows = bounded_rows(X, y, RowBounds())
    before = rows.arrays()[0].copy()
    with (
        caplog.at_level(logging.DEBUG),
        warnings.catch_warnings(record=True) as released,
    ):
        warnings.simplefilter("always")
        W = coefficients(solver, plan, rows, seed)
    assert not released
    assert not caplog.records
    np.testing.assert_array_equal(rows.arrays()[0], before)
    assert np.linalg.norm(W) <= 1.0
    assert "from block to block" in plan.assumptions[-1]


def test_empty_blocks_count_as_zero(seed):
    def estimate(X, y):
        return np.ones((2, 1)) if len(y) else np.full((2, 1), 1e9)

    solver = SampleAndAggregate(estimate, 1000, radius=10.0)
    X, y = sample(Squared(), seed, n=5)
    W = fit(solver, problem_of(Squared(), 5), Budget(1e12, 1e-5), X, y, seed)
    assert np.all(W > 0.003)
    assert np.all(W <= 0.005 + 1e-6)


def test_estimates_are_shortened_below_the_radius(seed):
    rng = as_generator(seed)
    for size in (1e-300, 1e-3, 1.0, 1e3, 1e200):
        for _ in range(50):
            v = norm_clipped(size * rng.normal(size=(5, 2)), 1.0)
            exact = sum(int(x * 2**200) ** 2 for x in v.ravel().tolist())
            assert exact <= (2**200) ** 2
    inside = np.full((2, 1), 0.1)
    np.testing.assert_array_equal(norm_clipped(inside, 1.0), inside)


def changed_row_last(pair):
    """Put the changed row last, so that others keep the labels they were drawn."""
    return [tuple(np.roll(part, -1, axis=0) for part in data) for data in pair]


def replayed(plan, pair, neighbors, judge=assert_replays, seed=0):
    first, second = pair
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        first = changed_row_last([first])[0]
    sides = [(bounded_rows(*data, plan.problem.bounds),) for data in (first, second)]
    solver = SampleAndAggregate()
    return judge(lambda rows: coefficients(solver, plan, rows, seed), *sides)


@each_loss
@each_relation
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_neighbors_stay_within_the_declared_sensitivity(
    loss, neighbors, n_blocks, seed
):
    solver = SampleAndAggregate(n_blocks=n_blocks, radius=0.5)
    plan = solver.plan(problem_of(loss, n=5), Budget(1.0, 1e-3, neighbors))
    kind = Huber() if isinstance(loss, Squared) else loss
    for pair in adversarial_pairs(kind, neighbors):
        both = (pair.first, pair.second)
        assert len(replayed(plan, both, neighbors, seed=seed).entries) == 1


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(data):
    def wild(X, y):
        with np.errstate(all="ignore"):
            return (1e6 * np.sin(1e6 * X.sum(axis=0)) / y.sum())[:, None]

    relation = Neighbors.REPLACE_ONE
    solver = SampleAndAggregate(wild, n_blocks=4, radius=1.0)
    plan = solver.plan(problem_of(Squared(), n=6), Budget(2.0, 1e-3, relation))
    pair = data.draw(neighboring_data(Huber(), relation))
    assert replayed(plan, (pair.first, pair.second), relation).ok


@each_relation
@each_law
def test_half_the_sensitivity_is_reported(neighbors, law):
    def seen(X, y):
        return np.full((2, 1), 1.0 if np.any(y > 0.9) else -1.0)

    solver = SampleAndAggregate(seen, n_blocks=3, radius=1.0, law=law)
    plan = solver.plan(problem_of(Squared(), n=9), Budget(1.0, 1e-3, neighbors))
    X, y = np.zeros((9, 2)), np.zeros(9)
    marked = y.copy()
    marked[0] = 1.0
    pair = ((X, marked), (X, y))
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        pair = ((X, marked), (X[1:], y[1:]))
    assert replayed(plan, pair, neighbors, replay).ok
    broken = replace(plan, sensitivity=plan.sensitivity / 2)
    assert_reported(replayed(broken, pair, neighbors, replay))


@pytest.mark.statistical
@pytest.mark.parametrize("removed", [0, 3])
def test_a_row_removed_anywhere_leaves_the_law_of_the_other_labels(removed, seed):
    # the coupling of the proof: labels of the others, given that row's, are the same
    def law(keep, start):
        drawn = [
            random_blocks(keep, 5, as_generator(start + i)).sum() for i in range(2000)
        ]
        return np.array(drawn) + as_generator(start).uniform(0, 1, size=2000)

    without = law(6, 10_000 * (seed + 1))
    with_all = np.array(
        [
            np.delete(random_blocks(7, 5, as_generator(5_000_000 + seed + i)), removed)
            for i in range(2000)
        ]
    ).sum(axis=1) + as_generator(seed).uniform(0, 1, size=2000)

    def cdf(shift):
        ordered = np.sort(without + shift)
        return lambda x: np.searchsorted(ordered, x) / 2000

    assert_follows(with_all, cdf(0.0), p_fail=1e-9)
    assert_detects(with_all, cdf(1.5))


def test_sensitivity_is_that_of_one_block_and_a_little_round_off():
    for k in (1, 10, 10**6):
        assert 2 * 3.0 / k < average_sensitivity(k, 3.0) < 2 * 3.0 / k * 1.001


def test_the_number_of_blocks_grows_with_the_noise():
    problem = problem_of(Squared(), 10_000, 8)
    counts = [block_rule(problem, multiplier) for multiplier in (0.01, 1.0, 3.0, 100.0)]
    assert counts == sorted(counts)
    assert counts[0] == 100
    assert counts[-1] == round(10_000 ** (2 / 3))


def test_rows_bounded_in_the_largest_entry_are_taken(seed):
    bounds = RowBounds(1.0, "linf")
    X, y = sample(Logistic(), seed)
    problem = Problem(Logistic(), bounds, 40, 2)
    W = fit(SampleAndAggregate(n_blocks=4), problem, Budget(1e9, 1e-5), X, y, seed)
    assert np.isfinite(W).all()
    assert np.linalg.norm(W) > 0.1
