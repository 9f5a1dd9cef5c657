"""Passes over a random order: how far a row reaches, attained and never passed."""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.refusal import raises_one_line
from tests.solvers.running import (
    assert_reported,
    assert_seed_decides,
    assert_tight,
    coefficients,
    exact_minimum,
    replayed,
    sample,
    straight_pair,
)
from tests.strategies import adversarial_pairs, neighboring_data

from tacit._random import as_generator
from tacit.audit import replay
from tacit.convex import (
    L1,
    Huber,
    HuberizedHinge,
    L2Ball,
    Logistic,
    Softmax,
    Squared,
)
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers._gradients.kernels import _projected
from tacit.solvers.permuted_sgd import (
    PermutedSGD,
    PermutedSGDPlan,
    any_loss_pass,
    largest_influence,
    last_weights,
)

LOSSES = [Logistic(), Logistic(cap=0.5), Softmax(3), HuberizedHinge(), Huber()]
BUDGET = Budget(1.0, 1e-5)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_ridge = pytest.mark.parametrize("ridge", [0.0, 3.0])


def problem_of(loss, n_rows=40, n_features=2, **more):
    return Problem(loss, RowBounds(), n_rows, n_features, **more)


def planned(loss, n_rows, *, n_passes, batch, step=None, ridge=0.0, **more):
    """Return a plan without asking whether it is allowed."""
    problem = problem_of(loss, n_rows, **more)
    return PermutedSGDPlan(problem, n_passes, batch, step, ridge, 1.0, 1.0)


def distance(plan, first, second, order=None):
    """Return how far apart two data sets bring the last weights."""
    order = np.arange(len(first[1])) if order is None else order
    ends = [last_weights(plan, X, y, order) for X, y in (first, second)]
    return float(np.linalg.norm(ends[0] - ends[1]))


@each_loss
@each_ridge
def test_planned_event_fits_and_wastes_nothing(loss, ridge):
    plan = PermutedSGD(ridge=ridge).plan(problem_of(loss), BUDGET)
    less = replace(plan, multiplier=0.99 * plan.multiplier)
    assert_tight(plan, BUDGET, less)


def test_without_delta_the_noise_is_pure(seed):
    budget, solver = Budget(1.0), PermutedSGD()
    plan = solver.plan(problem_of(Logistic()), budget)
    assert plan.event.curve(budget.neighbors).pure <= budget.epsilon
    rows = bounded_rows(*sample(Logistic(), seed), RowBounds())
    assert np.isfinite(coefficients(solver, plan, rows, seed)).all()
    pair = next(iter(adversarial_pairs(Logistic(), Neighbors.REPLACE_ONE)))
    replayed(solver, solver.plan(problem_of(Logistic(), 5), budget), pair)


@pytest.mark.parametrize(
    ("solver", "problem", "budget", "cure"),
    [
        ({}, {}, {"neighbors": "add_or_remove_one"}, "NoisyGD or AMP"),
        ({}, {"loss": Squared()}, {}, r"Huber\(\)"),
        ({}, {"bounds": RowBounds(norm="linf")}, {}, "norm='l2'"),
        ({}, {"regularizer": L1()}, {}, "NoisySGD"),
        ({"step": 8.01, "ridge": 0.0}, {}, {}, "at most 8"),
        ({"step": 2.0, "ridge": 40.0}, {}, {}, "at most 0.8889"),
        ({"accounting": "paper"}, {}, {"epsilon": 40.0}, "accounting='tight'"),
        ({"accounting": "paper"}, {}, {"delta": 0.0}, "give a delta"),
    ],
    ids=["relation", "slope", "linf", "penalty", "step", "ridged", "paper", "pure"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(solver, problem, budget, cure):
    facts = {
        "loss": Logistic(),
        "bounds": RowBounds(),
        "n_rows": 40,
        "n_features": 2,
        **problem,
    }
    spent = {"epsilon": 1.0, "delta": 1e-5, **budget}
    with raises_one_line(PlanError, match=cure):
        PermutedSGD(**solver).plan(Problem(**facts), Budget(**spent))


def test_bad_parameters_are_rejected():
    with pytest.raises(ValueError, match="accounting"):
        PermutedSGD(accounting="loose")
    for wrong in ({"n_passes": 0}, {"batch": 0}, {"step": -1.0}, {"ridge": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            PermutedSGD(**wrong).plan(problem_of(Logistic()), BUDGET)


def test_published_noise_is_kept_where_it_is_sound():
    problem = problem_of(Logistic(), 1000)
    for ridge in (0.0, 10.0):
        options = {"n_passes": 3, "batch": 10, "ridge": ridge}
        paper = PermutedSGD(accounting="paper", **options).plan(problem, BUDGET)
        tight = PermutedSGD(**options).plan(problem, BUDGET)
        printed = 2 / ridge if ridge else 2 * 3 * tight.step / 10
        noise = paper.multiplier * paper.sensitivity
        np.testing.assert_allclose(noise, printed * np.sqrt(2 * np.log(2e5)))
        assert tight.multiplier * tight.sensitivity < noise


@pytest.mark.parametrize("batch", [1, 4, 7])
@pytest.mark.parametrize("ridge", [0.0, 2.0, 50.0])
@pytest.mark.parametrize("step", [0.3, None])
def test_straight_losses_attain_the_sensitivity(batch, ridge, step):
    if ridge == 0:
        step = 0.3
    n, n_passes = 30, 4
    plan = planned(Huber(), n, n_passes=n_passes, batch=batch, step=step, ridge=ridge)
    limit = PermutedSGD(n_passes, batch, step, ridge).plan(plan.problem, BUDGET)
    reached = [distance(plan, *straight_pair(n, position)) for position in range(n)]
    assert max(reached) <= limit.sensitivity
    np.testing.assert_allclose(max(reached), limit.sensitivity, rtol=1e-8)
    if ridge == 0:
        np.testing.assert_allclose(max(reached), 2 * n_passes * 0.3 / batch)
    elif step is None:
        assert max(reached) <= 2 / ridge * (1 + 1e-12)


# rows, batch, passes, strength and smoothness, then what is printed as the bound and
# what rows reach when passes and when updates are counted
PUBLISHED = [
    (36_000, 50, 5, 0.01, 1.01, 0.00556, 0.03963, 0.00556),
    (36_000, 50, 5, 0.001, 1.001, 0.05556, 0.07575, 0.05283),
    (36_000, 50, 10, 1e-4, 1.0001, 0.55556, 0.29550, 0.29550),
    (36_000, 50, 5, 0.5, 1.5, 0.00011, 0.01600, 0.00011),
]


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda c: f"strength {c[3]:g}")
def test_counting_passes_breaks_the_published_bound_and_updates_keep_it(case):
    n, batch, n_passes, strength, smoothness, bound, by_pass, by_update = case
    n_batches = n // batch

    def reach(t):
        steps = np.minimum(1 / smoothness, 1 / (strength * t))
        return 2 * largest_influence(steps, strength, n_batches) / batch

    counted = np.arange(1, n_passes * n_batches + 1.0)
    np.testing.assert_allclose(reach(counted), by_update, atol=6e-6)
    assert reach(counted) <= 2 / (strength * n) * (1 + 1e-9)
    np.testing.assert_allclose(2 / (strength * n), bound, atol=6e-6)
    passes = np.repeat(np.arange(1, n_passes + 1.0), n_batches)
    np.testing.assert_allclose(reach(passes), by_pass, atol=6e-6)


def test_the_published_schedule_moves_weights_beyond_the_published_bound():
    n, ridge = 60, 30.0
    honest = planned(Huber(), n, n_passes=3, batch=2, ridge=ridge)

    @dataclass(frozen=True)
    class CountsPasses(PermutedSGDPlan):
        def steps(self):
            passes = np.repeat(np.arange(1, 4.0), self.n_batches)
            return np.minimum(1 / 1.5, 1 / (self.strength * passes))

    wrong = CountsPasses(honest.problem, 3, 2, None, ridge, 1.0, 1.0)
    pair = straight_pair(n, n - 1)
    assert distance(honest, *pair) <= 2 / ridge * (1 + 1e-9)
    assert distance(wrong, *pair) > 5 * 2 / ridge


def test_steps_beyond_twice_the_inverse_smoothness_move_weights_apart():
    n, n_passes, batch = 10, 3, 1
    X, y = np.ones((n, 1)), np.zeros(n)
    y[0], other = 1.0, y.copy()
    other[0] = -1.0
    for step, broken in ((1.99, False), (2.1, True)):
        plan = planned(
            Huber(100.0), n, n_passes=n_passes, batch=batch, step=step, n_features=1
        )
        reached = distance(plan, (X, y), (X, other))
        # the derivatives of these targets differ by two, so Lipschitz constants of one
        assert (reached > 2 * n_passes * step / batch) == broken


def test_a_short_batch_counts_no_more_than_a_whole_one():
    n, batch = 7, 5
    plan = planned(Huber(), n, n_passes=2, batch=batch, step=0.5)
    reached = [distance(plan, *straight_pair(n, position)) for position in (0, n - 1)]
    np.testing.assert_allclose(reached, 2 * 2 * 0.5 / batch)


@pytest.mark.parametrize("n", [33, 40, 57])
def test_another_number_of_rows_than_planned_keeps_the_sensitivity(n):
    plan = PermutedSGD(n_passes=3, batch=4, ridge=5.0).plan(problem_of(Huber()), BUDGET)
    reached = [distance(plan, *straight_pair(n, position)) for position in range(n)]
    assert max(reached) <= plan.sensitivity


@each_loss
@each_ridge
@pytest.mark.parametrize("radius", [inf, 0.7])
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "csr"])
def test_kernels_do_what_numpy_does(loss, ridge, radius, thin, seed):
    more = {} if radius == inf else {"regularizer": L2Ball(radius)}
    step = None if ridge else 0.4
    plan = planned(loss, 41, n_passes=3, batch=4, step=step, ridge=ridge, **more)
    X, y = sample(loss, seed, 41)
    X = RowBounds().clip(X)
    X[np.abs(X) < 0.3] = 0.0
    order = as_generator(seed).permutation(41)
    fast = last_weights(plan, sparse.csr_array(X) if thin else X, y, order)
    W = np.zeros(plan.problem.shape)
    updates = plan.steps().reshape(3, -1)
    for t in range(3):
        decays = 1 - updates[t] * plan.strength
        W = any_loss_pass(plan, X, y, order, W, updates[t], decays)
    np.testing.assert_allclose(fast, W, rtol=0, atol=1e-13)
    assert np.linalg.norm(fast) <= radius * (1 + 1e-12)


@dataclass(frozen=True)
class Foreign(Huber):
    """A loss that the kernels do not know."""


def test_a_loss_of_somebody_else_is_taken(seed):
    solver = PermutedSGD(n_passes=2, batch=4)
    X, y = sample(Huber(), seed)
    outputs = []
    for loss in (Huber(), Foreign()):
        plan = solver.plan(problem_of(loss), Budget(1e9, 1e-5))
        for Z in (X, sparse.csr_array(X)):
            rows = bounded_rows(Z, y, RowBounds())
            outputs.append(coefficients(solver, plan, rows, seed))
    for W in outputs[1:]:
        np.testing.assert_allclose(W, outputs[0], rtol=0, atol=1e-8)


def test_a_ball_bounds_the_slope_of_the_squared_loss(seed):
    problem = problem_of(Squared(), regularizer=L2Ball(2.0))
    solver = PermutedSGD()
    plan = solver.plan(problem, BUDGET)
    for pair in adversarial_pairs(Huber(), Neighbors.REPLACE_ONE):
        replayed(solver, plan, pair, seed=seed)


@each_loss
@each_ridge
def test_neighbors_stay_within_the_declared_sensitivity(loss, ridge, seed):
    solver = PermutedSGD(n_passes=3, batch=2, ridge=ridge)
    plan = solver.plan(problem_of(loss, 5), BUDGET)
    for pair in adversarial_pairs(loss, Neighbors.REPLACE_ONE):
        assert len(replayed(solver, plan, pair, seed=seed).entries) == 1


@each_ridge
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(ridge, data):
    loss = data.draw(st.sampled_from(LOSSES))
    solver = PermutedSGD(
        n_passes=data.draw(st.integers(1, 4)),
        batch=data.draw(st.integers(1, 7)),
        step=data.draw(st.none() | st.floats(0.01, 0.4)),
        ridge=ridge,
    )
    plan = solver.plan(problem_of(loss, 6), BUDGET)
    replayed(solver, plan, data.draw(neighboring_data(loss, BUDGET.neighbors)))


@each_ridge
def test_half_the_sensitivity_is_reported(ridge):
    solver = PermutedSGD(n_passes=3, batch=2, ridge=ridge)
    plan = solver.plan(problem_of(Huber(), 8), BUDGET)

    class Straight:
        first, second = straight_pair(8, 7)

    assert replayed(solver, plan, Straight, replay).ok
    halved = replace(plan, sensitivity=plan.sensitivity / 2)
    report = replayed(solver, halved, Straight, replay)
    assert_reported(report)


@each_loss
def test_same_seed_same_bits_and_sparse_as_dense(loss, seed):
    solver = PermutedSGD()
    plan = solver.plan(problem_of(loss), BUDGET)
    X, y = sample(loss, seed)
    X[X < 0] = 0.0
    rows = bounded_rows(X, y, RowBounds())
    first = assert_seed_decides(solver, plan, rows, seed)
    thin = bounded_rows(sparse.csr_array(X), y, RowBounds())
    np.testing.assert_allclose(
        coefficients(solver, plan, thin, seed),
        first,
        rtol=0,
        atol=1e-7,
    )


@pytest.mark.parametrize("loss", [Logistic(), HuberizedHinge(), Huber()], ids=repr)
def test_tends_to_the_minimum_with_passes_and_budget(loss, seed):
    rows = bounded_rows(*sample(loss, seed, n=200), RowBounds())
    exact = exact_minimum(loss, rows, 20.0)
    gaps = []
    for n_passes in (1, 20, 2000):
        solver = PermutedSGD(n_passes=n_passes, batch=10, ridge=20.0)
        plan = solver.plan(problem_of(loss, 200), Budget(1e12, 1e-5))
        gaps.append(np.abs(coefficients(solver, plan, rows, seed) - exact).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 1e-3


def test_whole_batches_reach_the_minimum_itself(seed):
    rows = bounded_rows(*sample(Logistic(), seed, n=200), RowBounds())
    exact = exact_minimum(Logistic(), rows, 20.0, 1e-10)
    solver = PermutedSGD(n_passes=300, batch=200, step=3.0, ridge=20.0)
    plan = solver.plan(problem_of(Logistic(), 200), Budget(1e13, 1e-5))
    W = coefficients(solver, plan, rows, seed)
    np.testing.assert_allclose(W, exact, rtol=0, atol=1e-6)


def test_plan_is_a_function_of_public_facts():
    solver, problem = PermutedSGD(), problem_of(Softmax(3), 5000, 20)
    plan = solver.plan(problem, BUDGET)
    assert plan == solver.plan(problem, BUDGET)
    rows, most = plan.assumptions
    assert most == "there are at most 2^24 rows"
    assert rows.startswith(f"planned for {plan.problem.n_rows} rows")
    assert not any(isinstance(value, Budget) for value in vars(plan).values())
    assert solver.plan(replace(problem, ridge=1.0), BUDGET).ridge >= 1.0


def test_round_off_is_a_small_part_of_the_sensitivity():
    for n, p in ((10**3, 10), (10**6, 100), (10**8, 1000)):
        plan = PermutedSGD().plan(problem_of(Logistic(), n, p), Budget(1.0, 1e-9))
        influence = largest_influence(plan.steps(), 0.0, plan.n_batches)
        assert plan.sensitivity <= 2 * influence / plan.batch * 1.05


def test_rows_out_of_memory_are_refused(seed):
    class Streamed:
        n_rows, n_features, block_rows = 40, 2, 8

        def sum(self, function):
            return function(np.zeros((1, 2)), np.ones(1))

    plan = PermutedSGD().plan(problem_of(Logistic()), BUDGET)
    with pytest.raises(ValueError, match="NoisyGD"):
        PermutedSGD().run(plan, Streamed(), as_generator(seed))


@pytest.mark.parametrize("radius", [1e-200, 1e-170, 1e-3, 1e170])
def test_weights_are_brought_into_balls_of_any_size(radius):
    V = radius * np.array([[3.0, 4.0]])
    for factor in (1.0, 0.5):
        assert _projected(V, factor, radius) == pytest.approx(0.2, rel=1e-14)
    assert _projected(V, 0.1, radius) == 0.1
    assert _projected(0.0 * V, 1.0, radius) == 1.0
