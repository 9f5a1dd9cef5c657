"""Gradients clipped row by row: their sensitivity, and their sum."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.solvers.running import assert_reported, coefficients
from tests.strategies import adversarial_pairs, each_relation, targets

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import L1, Huber, HuberizedHinge, Logistic, Softmax, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import NoisyGD, NoisySGD
from tacit.solvers._base import Problem
from tacit.solvers._gradients.descent import ClippedGradient
from tacit.solvers._gradients.row_clip import (
    CHUNK,
    RowClippedGradient,
    row_clip_sensitivity,
)
from tacit.solvers.noisy_gd import NoisyGDPlan
from tacit.solvers.noisy_sgd import (
    NoisySGDPlan,
    Sampling,
    least_log_noise,
    sample_sensitivity,
)

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
LOSSES = [Logistic(), Softmax(3), HuberizedHinge(), Huber(), Squared()]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)

FAR = RowBounds(30.0)


def problem_of(loss, n_rows=5, n_features=2, **more):
    return Problem(loss, more.pop("bounds", FAR), n_rows, n_features, **more)


def sampled(loss, neighbors, clip_norm, batch=3):
    """Return a plan with noise that was not searched for."""
    problem = problem_of(loss)
    sampling = Sampling(5, batch, 4, poisson=neighbors is ADD)
    moved = sample_sensitivity(problem, sampling, 1.0, neighbors, clip_norm)
    return NoisySGDPlan(
        problem, sampling, 0.05, 0.5, 1.0, False, 2.0, moved, clip_norm=clip_norm
    )


def full(loss, neighbors, clip_norm):
    problem = problem_of(loss)
    moved = row_clip_sensitivity(problem, clip_norm, neighbors, 2**24, 2**13)
    return NoisyGDPlan(problem, 4, 0.05, 0.5, 1.0, 2.0, moved, clip_norm=clip_norm)


def judged(plan, pair, judge=assert_replays, seed=0):
    # the row that only one data set has is the last, so that samples stay in step
    first, second = (
        (bounded_rows(X[::-1].copy(), y[::-1].copy(), plan.problem.bounds),)
        for X, y in (pair.first, pair.second)
    )
    solver = NoisySGD() if isinstance(plan, NoisySGDPlan) else NoisyGD()
    return judge(
        lambda rows: coefficients(solver, plan, rows, seed),
        first,
        second,
    )


def pairs(loss, neighbors):
    kind = Huber() if isinstance(loss, Squared) else loss
    return adversarial_pairs(kind, neighbors, FAR.x_norm)


@each_relation
@each_loss
@pytest.mark.parametrize("kind", [sampled, full])
@pytest.mark.parametrize("clip_norm", [0.2, 50.0])
def test_neighbors_stay_within_the_bound_on_gradients(
    loss, neighbors, kind, clip_norm, seed
):
    plan = kind(loss, neighbors, clip_norm)
    rows_changed = neighbors.rows_changed
    assert plan.sensitivity == pytest.approx(rows_changed * clip_norm, rel=1e-4)
    for pair in pairs(loss, neighbors):
        assert len(judged(plan, pair, seed=seed).entries) == 4


@each_relation
@pytest.mark.parametrize("kind", [sampled, full])
def test_half_the_sensitivity_is_reported(neighbors, kind):
    plan = kind(HuberizedHinge(), neighbors, 0.5)
    pair = next(iter(pairs(HuberizedHinge(), neighbors)))
    assert judged(plan, pair, replay).ok
    halved = replace(plan, sensitivity=plan.sensitivity / 2)
    reports = [judged(halved, pair, replay, seed) for seed in range(8)]
    assert_reported(*reports)


def test_clipping_slopes_in_place_of_gradients_is_caught(monkeypatch):
    def derivatives_only(self, derivatives, norms):
        sizes = np.sqrt(np.einsum("ij,ij->i", derivatives, derivatives))
        return derivatives * np.minimum(1.0, self.clip_norm / sizes)[:, None]

    plan = full(Squared(), REPLACE, 0.5)
    monkeypatch.setattr(RowClippedGradient, "_clip_norm", derivatives_only)
    reports = [judged(plan, pair, replay) for pair in pairs(Squared(), REPLACE)]
    assert not all(report.ok for report in reports)


@each_loss
def test_rows_at_the_bound_are_cut_as_their_slopes_are(loss, seed):
    rng = as_generator(seed)
    X = rng.normal(size=(60, 3))
    X *= 30.0 / np.linalg.norm(X, axis=1, keepdims=True)
    y = targets(loss, np.arange(60))
    W = 0.05 * rng.normal(size=(3, loss.n_outputs))
    by_norm = RowClippedGradient(loss, W, 0.3 * 30.0)(X, y)[0]
    by_derivative = ClippedGradient(loss, W, 0.3)(X, y)[0]
    np.testing.assert_allclose(by_norm, by_derivative, rtol=1e-10, atol=1e-10)


@each_loss
def test_the_sum_is_that_of_shortened_gradients_dense_or_sparse(loss, seed):
    rng = as_generator(seed)
    X = rng.normal(size=(CHUNK + 50, 4)) * rng.lognormal(size=(CHUNK + 50, 1))
    X[np.abs(X) < 0.4] = 0.0
    y = targets(loss, np.arange(len(X)))
    W = rng.normal(size=(4, loss.n_outputs))
    derivatives = loss.derivative(y, X @ W)
    sizes = np.linalg.norm(X, axis=1) * np.linalg.norm(derivatives, axis=1)
    short = derivatives * np.minimum(1.0, 0.7 / np.maximum(sizes, 1e-300))[:, None]
    gradient = RowClippedGradient(loss, W, 0.7)
    positions = np.sort(rng.permutation(len(X))[:99])
    for Z in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(gradient(Z, y)[0], X.T @ short, atol=1e-8)
        some = X[positions].T @ short[positions]
        np.testing.assert_allclose(gradient.at(Z, y, positions), some, atol=1e-10)


@each_loss
def test_no_computed_gradient_is_longer_than_the_bound(loss, seed):
    rng = as_generator(seed)
    X = rng.normal(size=(40, 300)) * 10.0 ** rng.integers(-3, 4, size=(40, 1))
    y = targets(loss, np.arange(40))
    gradient = RowClippedGradient(
        loss, 1e3 * rng.normal(size=(300, loss.n_outputs)), 1.0
    )
    lengths = [np.linalg.norm(gradient.at(X, y, np.array([i]))) for i in range(40)]
    assert max(lengths) <= 1.0
    assert max(lengths) >= 1 - 1e-12


def test_the_gradient_of_a_row_is_the_same_bits_among_any_others(seed):
    rng = as_generator(seed)
    X, W = rng.normal(size=(300, 37)), rng.normal(size=(37, 1))
    gradient = RowClippedGradient(Squared(), W, 0.5)
    y = rng.normal(size=300)
    alone = gradient(X[[7]], y[[7]])[0]
    for others in (np.arange(300), rng.permutation(300)):
        i = int(np.flatnonzero(others == 7)[0])
        among = gradient.at(X[others], y[others], np.array([i]))
        np.testing.assert_array_equal(among, alone)


@pytest.mark.parametrize("kind", [NoisyGD, NoisySGD])
@each_relation
def test_the_plan_fits_and_needs_no_bounded_slope(kind, neighbors, seed):
    budget = Budget(2.0, 1e-5, neighbors)
    solver = kind(n_steps=5, clip_norm=3.0)
    plan = solver.plan(problem_of(Squared(), 60), budget)
    assert plan.event.curve(neighbors).fits(budget)
    assert plan.sensitivity == pytest.approx(3.0 * neighbors.rows_changed, rel=1e-4)
    rng = as_generator(seed)
    rows = bounded_rows(10 * rng.normal(size=(60, 2)), rng.normal(size=60), FAR)
    W = coefficients(solver, plan, rows, seed)
    assert np.isfinite(W).all()
    np.testing.assert_array_equal(W, coefficients(solver, plan, rows, seed))


@pytest.mark.parametrize("kind", [NoisyGD, NoisySGD])
def test_weights_far_beyond_the_usual_margins_are_reached(kind):
    # margins of derivatives are kept below 200; here the weights must go on
    bounds = RowBounds(1e4, y_range=(-1.0, 1.0))
    problem = problem_of(Squared(), 50, 1, bounds=bounds)
    X, y = np.full((50, 1), 1e-2), np.ones(50)
    solver = kind(n_steps=60, step=150.0, momentum=0.0, clip_norm=1.0)
    plan = solver.plan(problem, Budget(1e12, 1e-5))
    W = coefficients(solver, plan, bounded_rows(X, y, bounds), 0)
    assert W[0, 0] == pytest.approx(100.0, rel=0.05)


@pytest.mark.parametrize("kind", [NoisyGD, NoisySGD])
def test_penalties_enter_as_before(kind, seed):
    problem = problem_of(Logistic(), 80, 6, regularizer=L1(200.0))
    solver = kind(n_steps=10, clip_norm=1.0)
    plan = solver.plan(problem, Budget(1.0, 1e-5, ADD))
    X, y = as_generator(seed).normal(size=(80, 6)), targets(Logistic(), np.arange(80))
    W = coefficients(solver, plan, bounded_rows(X, y, FAR), seed)
    assert (W == 0).any()


@pytest.mark.parametrize("kind", [NoisyGD, NoisySGD])
def test_bad_bounds_are_refused(kind):
    budget, problem = Budget(1.0, 1e-5), problem_of(Logistic())
    for wrong in (0.0, -1.0, np.inf, np.nan, 1e-80):
        with pytest.raises(ValueError, match="clip_norm"):
            kind(clip_norm=wrong).plan(problem, budget)
    with pytest.raises(ValueError, match="exclude each other"):
        kind(clip_norm=1.0, clip=0.5).plan(problem, budget)


def test_the_search_closes_in_where_the_curve_is_far_from_straight():
    def spent(noise):
        return 30.0 if noise < 0.6 else 0.02 + 2.0 * max(0.0, 0.63 - noise) / 0.03

    found = np.exp(least_log_noise(spent, 1.0, np.log(0.4)))
    assert spent(found) <= 1.0
    assert spent(0.998 * found) > 1.0
