"""Noisy steps on samples: the samples of the event, and nothing but them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from tests.refusal import raises_one_line
from tests.solvers.running import (
    assert_reported,
    assert_seed_decides,
    assert_tight,
    coefficients,
    exact_minimum,
    sample,
)
from tests.strategies import adversarial_pairs, each_relation

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import (
    L1,
    ElasticNet,
    GroupL1,
    Huber,
    HuberizedHinge,
    L2Ball,
    Logistic,
    Simplex,
    Softmax,
    Squared,
)
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.mechanisms.subsets import RATE_CELLS
from tacit.privacy import Budget, GaussianNoise, Neighbors, PoissonSampled, Repeated
from tacit.privacy.combined import FixedSizeSampled
from tacit.privacy.losses import PoissonLoss
from tacit.solvers._base import Problem
from tacit.solvers._gradients.descent import ClippedGradient
from tacit.solvers.noisy_gd import NoisyGD
from tacit.solvers.noisy_sgd import (
    NoisySGD,
    NoisySGDPlan,
    Sampling,
    least_noise,
    sample_sensitivity,
    sampled_sum,
)

LOSSES = [Logistic(), Logistic(cap=0.5), Softmax(3), HuberizedHinge(), Huber()]
REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem_of(loss, n_rows=40, n_features=2, **more):
    return Problem(loss, RowBounds(), n_rows, n_features, **more)


def planned(loss, neighbors, *, n_rows=5, batch=3, n_steps=4, multiplier=2.0, **more):
    """Return a plan with noise that was not searched for, which takes seconds."""
    problem = problem_of(loss, n_rows, **more)
    clip = problem.max_derivative
    sampling = Sampling(n_rows, batch, n_steps, poisson=neighbors is ADD)
    limit = sample_sensitivity(problem, sampling, clip, neighbors)
    return NoisySGDPlan(problem, sampling, 0.05, 0.5, clip, False, multiplier, limit)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighbors", "kind"), [(ADD, PoissonSampled), (REPLACE, FixedSizeSampled)]
)
def test_planned_event_fits_and_wastes_nothing(neighbors, kind):
    budget = Budget(2.0, 1e-5, neighbors)
    solver = NoisySGD(n_steps=20, batch=50)
    plan = solver.plan(problem_of(Logistic(), 1000), budget)
    assert isinstance(plan.event, Repeated)
    assert isinstance(plan.event.event, kind)
    assert plan.event.count == 20
    less = replace(plan, multiplier=0.99 * plan.multiplier)
    assert_tight(plan, budget, less)


def test_the_exact_part_fits_and_wastes_nothing():
    budget = Budget(2.0, 1e-5, ADD)
    solver, problem = NoisySGD(n_steps=20, batch=50), problem_of(Logistic(), 1000)
    plan = solver.plan(problem, budget)
    assert plan.event == Repeated(
        PoissonSampled(GaussianNoise(plan.multiplier), plan.sampling.cells / 2**53), 20
    )
    assert plan.sampling.profile(plan.multiplier).delta(2.0) <= budget.delta
    assert plan.sampling.profile(0.99 * plan.multiplier).delta(2.0) > budget.delta
    assert plan == solver.plan(problem, budget)
    rows, most = plan.assumptions
    assert most == "there are at most 2^24 rows"
    assert rows.startswith(f"planned for {plan.problem.n_rows} rows")


def test_the_same_search_is_made_once():
    sampling, budget = Sampling(1000, 50, 20, poisson=True), Budget(2.0, 1e-5, ADD)
    first = least_noise(sampling, budget)
    before = least_noise.cache_info().hits
    assert least_noise(sampling, budget) == first
    assert least_noise.cache_info().hits == before + 1


@each_relation
def test_samples_of_all_rows_are_full_gradients(neighbors):
    budget = Budget(1.0, 1e-5, neighbors)
    plan = NoisySGD(n_steps=10, batch=99).plan(problem_of(Logistic()), budget)
    full = NoisyGD(n_steps=10).plan(problem_of(Logistic()), budget)
    assert plan.event == Repeated(GaussianNoise(full.multiplier), 10)
    assert plan.sampling.draw(40, as_generator(0)) is None


@pytest.mark.parametrize("batch", [1, 3, 333, 999])
def test_rows_are_drawn_with_the_very_rate_of_the_event(batch, monkeypatch):
    requested = []

    def noted(n, cells, rng):
        requested.append(Fraction(cells, RATE_CELLS))
        return np.arange(0)

    monkeypatch.setattr("tacit.solvers.noisy_sgd.poisson_subset", noted)
    sampling = Sampling(1000, batch, 5, poisson=True)
    sampling.draw(1000, as_generator(0))
    event = sampling.event(1.0)
    assert requested == [Fraction(event.event.rate)]
    assert abs(requested[0] - Fraction(batch, 1000)) <= Fraction(1, RATE_CELLS)
    assert sampling.profile(1.0).parts == ((PoissonLoss(1.0, event.event.rate), 5),)


@pytest.mark.parametrize("n", [30, 100, 170])
def test_another_number_of_rows_than_planned_is_no_better_sampled(n, seed):
    rng, sampling = as_generator(seed), Sampling(100, 20, 5, poisson=False)
    drawn = [sampling.draw(n, rng) for _ in range(300)]
    hits = np.bincount(np.concatenate(drawn), minlength=n)
    assert len(hits) == n
    assert max(len(rows) for rows in drawn) <= 20
    # a rate of one in five at most, and six standard deviations
    assert hits.max() <= 60 + 6 * np.sqrt(300 * 0.2 * 0.8)


@each_relation
@pytest.mark.parametrize(
    ("more", "delta", "cure"),
    [
        ({}, 0.0, "give a delta"),
        ({"loss": Squared()}, 1e-5, r"Huber\(\)"),
        ({"bounds": RowBounds(norm="linf")}, 1e-5, "norm='l2'"),
    ],
    ids=["pure", "unbounded derivative", "linf"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(neighbors, more, delta, cure):
    facts = {"loss": Logistic(), "bounds": RowBounds(), **more}
    with raises_one_line(PlanError, match=cure):
        NoisySGD().plan(
            Problem(**facts, n_rows=40, n_features=2), Budget(1.0, delta, neighbors)
        )


def test_bad_parameters_are_rejected():
    budget = Budget(1.0, 1e-5, ADD)
    for wrong in (
        {"n_steps": 0},
        {"batch": 0},
        {"step": 0.0},
        {"momentum": 1.0},
        {"clip": -1.0},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            NoisySGD(**wrong).plan(problem_of(Logistic()), budget)


@each_relation
def test_defaults_follow_from_public_facts(neighbors):
    budget = Budget(1.0, 1e-8, neighbors)
    small = NoisySGD().plan(problem_of(Logistic(), 200), budget)
    assert small.sampling.batch == 200
    large = NoisySGD().plan(problem_of(Logistic(), 100_000, 20), budget)
    assert 256 <= large.sampling.batch <= 10_000
    assert large.multiplier >= 1.5


@each_loss
@pytest.mark.parametrize("clip", [0.3, np.inf])
def test_sum_over_a_sample_is_that_of_its_rows(loss, clip, seed):
    X, y = sample(loss, seed, 300, 5)
    X[np.abs(X) < 0.5] = 0.0
    rng = as_generator(seed)
    gradient = ClippedGradient(loss, rng.normal(size=(5, loss.n_outputs)), clip)
    positions = np.sort(rng.permutation(300)[:77])
    slow = np.zeros(gradient.W.shape)
    for i in positions:
        derivative = loss.derivative(y[[i]], X[[i]] @ gradient.W)[0]
        derivative *= (
            min(1.0, clip / np.linalg.norm(derivative)) if derivative.any() else 1.0
        )
        slow += np.outer(X[i], derivative)
    for Z in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(
            sampled_sum(gradient, Z, y, positions), slow, atol=1e-9
        )
        whole = gradient(X, y)[0]
        np.testing.assert_allclose(sampled_sum(gradient, Z, y, None), whole, atol=1e-9)
        none = sampled_sum(gradient, Z, y, np.arange(0))
        np.testing.assert_array_equal(none, np.zeros_like(none))


def test_samples_of_several_chunks_are_summed_whole(seed, monkeypatch):
    monkeypatch.setattr("tacit.solvers.noisy_sgd.CHUNK", 10)
    X, y = sample(Logistic(), seed, 100)
    gradient = ClippedGradient(Logistic(), np.ones((2, 1)), np.inf)
    positions = np.arange(0, 100, 2)
    expected = gradient(X[positions], y[positions])[0]
    for Z in (X, sparse.csr_array(X)):
        got = sampled_sum(gradient, Z, y, positions)
        np.testing.assert_allclose(got, expected, atol=1e-12)


@each_relation
@each_loss
def test_same_seed_same_bits_and_sparse_as_dense(loss, neighbors, seed):
    solver, plan = NoisySGD(), planned(loss, neighbors, n_rows=40, batch=15)
    X, y = sample(loss, seed)
    X[X < 0] = 0.0
    rows = bounded_rows(X, y, RowBounds())
    first = assert_seed_decides(solver, plan, rows, seed)
    thin = bounded_rows(sparse.csr_array(X), y, RowBounds())
    np.testing.assert_allclose(
        coefficients(solver, plan, thin, seed),
        first,
        rtol=0,
        atol=1e-6,
    )


def assert_replayed(plan, pair, judge=assert_replays, seed=0):
    # the row that only one data set has is the last, so that samples stay in step
    first, second = (
        (bounded_rows(X[::-1].copy(), y[::-1].copy(), plan.problem.bounds),)
        for X, y in (pair.first, pair.second)
    )
    solver = NoisySGD()
    return judge(
        lambda rows: coefficients(solver, plan, rows, seed),
        first,
        second,
    )


@each_relation
@each_loss
def test_neighbors_stay_within_the_declared_sensitivity(loss, neighbors, seed):
    plan = planned(loss, neighbors)
    for pair in adversarial_pairs(loss, neighbors):
        assert len(assert_replayed(plan, pair, seed=seed).entries) == 4


@each_relation
def test_an_unbounded_slope_is_clipped(neighbors, seed):
    plan = replace(planned(Huber(0.5), neighbors), clip=0.5)
    plan = replace(plan, problem=replace(plan.problem, loss=Squared()))
    for pair in adversarial_pairs(Huber(), neighbors):
        assert_replayed(plan, pair, seed=seed)


@each_relation
def test_half_the_sensitivity_is_reported(neighbors):
    plan = planned(HuberizedHinge(), neighbors, batch=4)
    pair = next(iter(adversarial_pairs(HuberizedHinge(), neighbors)))
    assert assert_replayed(plan, pair, replay).ok
    halved = replace(plan, sensitivity=plan.sensitivity / 2)
    reports = [assert_replayed(halved, pair, replay, seed) for seed in range(8)]
    assert_reported(*reports)


@each_relation
def test_tends_to_the_minimum_with_steps_and_budget(neighbors, seed):
    n, ridge = 400, 20.0
    rows = bounded_rows(*sample(Logistic(), seed, n=n), RowBounds())
    exact = exact_minimum(Logistic(), rows, ridge)
    gaps = []
    for n_steps, step in ((5, 0.004), (100, 0.004), (1500, 0.0015)):
        plan = planned(
            Logistic(), neighbors, n_rows=n, batch=50, n_steps=n_steps, ridge=ridge
        )
        plan = replace(plan, step=step, momentum=0.0, average=True, multiplier=1e-6)
        W = coefficients(NoisySGD(), plan, rows, seed)
        gaps.append(np.abs(W - exact).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 0.05


def composite_minimum(loss, regularizer, X, y, ridge=0.0):
    """Return the minimum of the penalized sum, by many proximal steps in NumPy."""
    W = np.zeros((X.shape[1], loss.n_outputs))
    step = 1 / (loss.max_curvature() * np.linalg.norm(X, 2) ** 2 + ridge)
    for _ in range(1500):
        gradient = X.T @ loss.derivative(y, X @ W) + ridge * W
        W = regularizer.prox(W - step * gradient, step)
    return W


PENALTIES = [L1(6.0), ElasticNet(4.0, 3.0), GroupL1(6.0), L2Ball(0.5), Simplex()]


@pytest.mark.parametrize(
    ("penalty", "loss"),
    [*((penalty, Logistic()) for penalty in PENALTIES), (GroupL1(6.0), Softmax(3))],
    ids=repr,
)
def test_descent_with_a_penalty_tends_to_the_composite_minimum(penalty, loss, seed):
    X, y = sample(loss, seed, n=100, p=4)
    X = RowBounds().clip(X)
    exact = composite_minimum(loss, penalty, X, y, ridge=1.0)
    problem = problem_of(loss, 100, 4, regularizer=penalty, ridge=1.0)
    # the rule would clip derivatives of softmax, which moves the minimum
    clip = None if loss.n_outputs == 1 else 1.5
    solver = NoisyGD(n_steps=300, step=0.02, momentum=0.8, clip=clip)
    gaps = []
    for epsilon in (1e2, 1e13):
        plan = solver.plan(problem, Budget(epsilon, 1e-5))
        rows = bounded_rows(X, y, RowBounds())
        W = coefficients(solver, plan, rows, seed)
        assert penalty.value(W) < np.inf
        gaps.append(np.abs(W - exact).max())
    assert gaps[0] >= gaps[1]
    assert gaps[1] <= 1e-5
    if isinstance(penalty, L1):
        np.testing.assert_array_equal(W == 0, exact == 0)
        assert (W == 0).any()


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_steps_on_samples_take_penalties_too(penalty, seed):
    X, y = sample(Logistic(), seed, n=200, p=4)
    X = RowBounds().clip(X)
    exact = composite_minimum(Logistic(), penalty, X, y)
    plan = planned(
        Logistic(), ADD, n_rows=200, batch=150, n_steps=500, n_features=4,
        regularizer=penalty, multiplier=1e-3,
    )  # fmt: skip
    plan = replace(plan, step=0.004, momentum=0.0)
    rows = bounded_rows(X, y, RowBounds())
    W = coefficients(NoisySGD(), plan, rows, seed)
    assert penalty.value(W) < np.inf
    assert np.abs(W - exact).max() <= 0.2


@pytest.mark.parametrize("kind", [NoisyGD, NoisySGD])
def test_l1_gives_exact_zeros_under_noise(kind, seed):
    problem = problem_of(Logistic(), 200, 10, regularizer=L1(60.0))
    solver = kind(n_steps=20)
    plan = solver.plan(problem, Budget(1.0, 1e-5, ADD))
    X, y = sample(Logistic(), seed, n=200, p=10)
    W = coefficients(solver, plan, bounded_rows(X, y, RowBounds()), seed)
    assert (W == 0).any()


@pytest.mark.parametrize("kind", [NoisyGD, NoisySGD])
def test_a_set_bounds_the_slope_of_the_squared_loss(kind, seed):
    problem = problem_of(Squared(), 5, regularizer=L2Ball(1.5))
    plan = kind(n_steps=4).plan(problem, Budget(5.0, 1e-3))
    assert plan.clip == 2.5
    for pair in adversarial_pairs(Huber(), REPLACE):
        first, second = (
            (bounded_rows(*data, problem.bounds),) for data in (pair.first, pair.second)
        )
        assert_replays(
            lambda rows: coefficients(kind(), plan, rows, seed),
            first,
            second,
        )


def test_a_set_beyond_the_usual_margins_is_not_cut_short(seed):
    problem = Problem(Huber(), RowBounds(1e3), 20, 2, regularizer=Simplex())
    plan = NoisyGD(n_steps=5).plan(problem, Budget(1.0, 1e-3))
    X, y = sample(Huber(), seed, n=20)
    W = coefficients(NoisyGD(), plan, bounded_rows(X, y, problem.bounds), seed)
    assert Simplex().contains(W)


@pytest.mark.parametrize(
    ("n", "batch", "n_steps", "target"),
    [(36_176, 300, 5, 1.0), (36_176, 50, 1000, 1.0), (4000, 300, 5, 10.0)],
)
def test_the_published_closed_form_breaks_its_promise(n, batch, n_steps, target):
    delta = n**-2.0
    multiplier = 4 * batch / n * np.sqrt(n_steps * np.log(1 / delta)) / target
    sampling = Sampling(n, batch, n_steps, poisson=True)
    assert sampling.profile(multiplier).epsilon(delta) > 1.5 * target
