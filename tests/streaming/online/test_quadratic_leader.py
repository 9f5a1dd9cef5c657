"""The leader of quadratic losses from one noisy sum of moments."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from tests.strategies import each_relation
from tests.streaming.online.walking import walk

from tacit._random import as_generator
from tacit.convex import (
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    Softmax,
    Squared,
)
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.mechanisms.continual._base import to_matrix
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.streaming import QuadraticLeader
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._quadratic_leader import joint_moments, steepest_at_zero

# so little noise that it is seen nowhere
HUGE = Budget(1e15, 0.1)
TERMS = StreamTerms(12, 9)
LOSSES = [Logistic(), HuberizedHinge(), Huber(0.5), Squared(), Softmax(4)]


def problem(loss=None, x_norm=2.0, y_range=(-3.0, 3.0), **parts):
    bounds = RowBounds(x_norm, y_range=y_range)
    return Problem(loss or Squared(), bounds, TERMS.n_rows, 4, **parts)


def stream(loss=None, seed=0, n_steps=12, n_rows=9):
    rng = as_generator(seed)
    for _ in range(n_steps):
        X = rng.uniform(-1, 1, (n_rows, 4))
        y = np.clip(X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=n_rows), -3, 3)
        if isinstance(loss, Softmax):
            y = rng.integers(0, loss.n_classes, n_rows)
        elif isinstance(loss, Logistic | HuberizedHinge):
            y = np.where(y > 0, 1.0, -1.0)
        yield X, y


def ridge_leaders(steps, ridge, weight=lambda t, s: 1.0):
    """Return least squares with a ridge after each step, rows weighted by step."""
    steps = list(steps)
    found = []
    for t in range(len(steps)):
        A, b = ridge * np.eye(4), np.zeros(4)
        for s, (X, y) in enumerate(steps[: t + 1]):
            A, b = A + weight(t, s) * X.T @ X, b + weight(t, s) * X.T @ y
        found.append(np.linalg.solve(A, b)[:, None])
    return np.array(found)


every_sum = pytest.mark.parametrize("sums", ["blt", "tree", "honaker", "square_root"])


@every_sum
def test_without_noise_it_is_the_ridge_regression_of_all_rows(sums):
    learner = QuadraticLeader(sums, noise="float", ridge=0.5, recent=0.0).plan(
        problem(), HUGE, TERMS
    )
    expected = ridge_leaders(stream(), 0.5)
    np.testing.assert_allclose(walk(learner, stream()), expected, atol=1e-6)


def test_on_the_grid_it_is_the_same_but_for_noise():
    budget = Budget(1e9, 0.1)
    learner = QuadraticLeader(ridge=0.5, recent=0.0).plan(problem(), budget, TERMS)
    expected = ridge_leaders(stream(), 0.5)
    np.testing.assert_allclose(walk(learner, stream()), expected, atol=1e-2)


def test_the_ridge_of_the_problem_is_the_least():
    learner = QuadraticLeader(noise="float", ridge=0.5, recent=0.0).plan(
        problem(ridge=7.0), HUGE, TERMS
    )
    expected = ridge_leaders(stream(), 7.0)
    np.testing.assert_allclose(walk(learner, stream()), expected, atol=1e-6)


def test_a_half_life_lets_rows_count_half_after_it():
    method = QuadraticLeader(noise="float", ridge=0.5, half_life=3.0)
    learner = method.plan(problem(), HUGE, TERMS)
    expected = ridge_leaders(stream(), 0.5, lambda t, s: 0.5 ** ((t - s) / 3))
    np.testing.assert_allclose(walk(learner, stream()), expected, atol=1e-6)


def test_an_average_of_sums_lets_the_last_rows_count_less():
    learner = QuadraticLeader(noise="float", ridge=0.5, recent=0.5).plan(
        problem(), HUGE, TERMS
    )
    # mean_t = (1 - c) mean_(t-1) + c sum_t: what step s weighs at step t
    shares = np.zeros((12, 12))
    for t in range(12):
        c = 1 / max(1.0, (t + 1) / 2)
        if t:
            shares[t] = (1 - c) * shares[t - 1]
        shares[t, : t + 1] += c
    expected = ridge_leaders(stream(), 0.5, lambda t, s: shares[t, s])
    np.testing.assert_allclose(walk(learner, stream()), expected, atol=1e-6)


def test_many_small_steps_end_where_one_large_one_does():
    rows = list(stream())
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    method = QuadraticLeader(noise="float", ridge=0.5, recent=0.0)
    one = method.plan(problem(), HUGE, StreamTerms(1, len(X)))
    many = method.plan(problem(), HUGE, StreamTerms(len(X)))
    single = [(X[i : i + 1], y[i : i + 1]) for i in range(len(X))]
    np.testing.assert_allclose(
        walk(one, [(X, y)])[-1], walk(many, single)[-1], atol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_quadratic_of_a_loss_touches_it_at_zero_and_is_above_it(loss):
    rng = as_generator(3)
    for X, y in stream(loss):
        W = rng.normal(size=(4, loss.n_outputs)) * 3
        Z = X @ W
        zero = np.zeros_like(Z)
        above = loss.value(y, zero) + (loss.derivative(y, zero) * Z).sum(axis=1)
        above = above + loss.max_curvature() / 2 * (Z**2).sum(axis=1)
        assert (above >= loss.value(y, Z) - 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_without_noise_it_minimizes_that_quadratic(loss):
    learner = QuadraticLeader(noise="float", ridge=0.5, recent=0.0).plan(
        problem(loss), HUGE, TERMS
    )
    W = walk(learner, stream(loss))[-1]
    G = 0.5 * W
    for X, y in stream(loss):
        derivative = loss.derivative(y, np.zeros((len(y), loss.n_outputs)))
        G = G + X.T @ (derivative + loss.max_curvature() * X @ W)
    np.testing.assert_allclose(G, 0.0, atol=1e-5)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(4)], ids=repr)
@each_relation
def test_a_row_moves_the_moments_by_no_more_than_the_sensitivity(loss, neighbors):
    facts = problem(loss)
    budget = Budget(1.0, 1e-6, neighbors)
    plan = QuadraticLeader().plan(facts, budget, StreamTerms(5, rows_per_person=3))
    rng = as_generator(5)
    moved = 0.0
    ends = (-3.0, 3.0) if isinstance(loss, Squared) else (-1.0, 1.0)
    pairs = range(4) if isinstance(loss, Softmax) else ends
    # cosines between the rows, among them the worst of 60 degrees
    for cosine in (*np.linspace(-1, 1, 9), *rng.uniform(-1, 1, 20)):
        x = np.array([[2.0, 0, 0, 0]])
        z = np.array([[2 * cosine, 2 * sqrt(1 - cosine**2), 0, 0]])
        for y in pairs:
            for u in pairs:
                there = joint_moments(facts, z, np.array([u]))
                if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
                    there = 0.0
                here = joint_moments(facts, x, np.array([y]))
                moved = max(moved, float(np.linalg.norm(here - there)))
    assert 3 * moved <= plan.mechanism.sensitivity
    assert plan.mechanism.sensitivity <= 3 * moved * 1.001


def test_targets_beyond_their_range_count_as_its_ends():
    facts = problem()
    X = np.ones((1, 4))
    np.testing.assert_allclose(
        joint_moments(facts, X, np.array([1e9])),
        joint_moments(facts, X, np.array([3.0])),
    )
    assert steepest_at_zero(facts) == 3.0


def test_moments_are_those_of_the_rows():
    facts = problem()
    ((X, y),) = stream(n_steps=1)
    found = joint_moments(facts, X, y)
    np.testing.assert_allclose(to_matrix(found[:-4]), X.T @ X / 4)
    np.testing.assert_allclose(found[-4:], X.T @ y / 6)


def test_in_a_ball_the_minimum_is_on_its_surface():
    small = QuadraticLeader(noise="float", ridge=0.0, recent=0.0).plan(
        problem(regularizer=L2Ball(0.7)), HUGE, TERMS
    )
    W = walk(small, stream())[-1]
    assert np.linalg.norm(W) == pytest.approx(0.7)
    X, y = (np.concatenate(part) for part in zip(*stream(), strict=True))
    pull = X.T @ (y[:, None] - X @ W)
    cosine = (pull * W).sum() / np.linalg.norm(pull) / 0.7
    assert cosine == pytest.approx(1.0, abs=1e-6)


def test_in_any_other_set_projected_steps_find_the_minimum():
    ball = L1Ball(1.2)
    learner = QuadraticLeader(noise="float", ridge=0.0, recent=0.0).plan(
        problem(regularizer=ball), HUGE, TERMS
    )
    W = walk(learner, stream())[-1]
    assert ball.contains(W)
    X, y = (np.concatenate(part) for part in zip(*stream(), strict=True))
    G = X.T @ (X @ W - y[:, None])
    # the Frank-Wolfe gap bounds how far the value is from the least
    assert (G * (W - ball.lmo(G))).sum() < 1e-4


@pytest.mark.parametrize("loss", [Squared(), Softmax(4)], ids=repr)
@pytest.mark.parametrize("epsilon", [1e-2, 1.0])
def test_noise_that_drowns_the_moments_raises_nothing(loss, epsilon):
    terms = StreamTerms(60, 1)
    learner = QuadraticLeader().plan(problem(loss), Budget(epsilon, 1e-6), terms)
    nothing = np.empty((0, 4)), np.empty(0)
    W = walk(learner, [nothing] * 60)
    assert np.isfinite(W).all()
    # the ridge keeps weights to a few units, whatever the noise
    assert np.abs(W).max() < 10 * learner.unit


@every_sum
@pytest.mark.parametrize("horizon", [1, 12, 100])
def test_the_ridge_follows_the_largest_noise_so_far(sums, horizon):
    terms = StreamTerms(horizon)
    learner = QuadraticLeader(sums).plan(problem(), Budget(1.0, 1e-6), terms)
    std = learner.mechanism.std(learner.size)
    ridges = np.array([learner._ridge_at(t) for t in range(1, horizon + 1)])
    largest = np.maximum.accumulate(std)
    assert (ridges >= 0.7 * 3 * largest * (1 - 1e-12)).all()
    assert (ridges <= 0.7 * 3 * std.max() * (1 + 1e-12)).all()
    fixed = replace(learner, ridge=8.0)
    assert fixed._ridge_at(1) == fixed._ridge_at(horizon) == 2.0


def test_sums_of_trees_have_less_noise_at_some_later_steps():
    # the control: the noise of the last step alone would be too low a ridge
    learner = QuadraticLeader("tree").plan(problem(), Budget(1.0, 1e-6), TERMS)
    std = learner.mechanism.std(learner.size)
    assert std[11] < 0.9 * std[10]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": "some"}, "ridge"),
        ({"half_life": 0.0}, "half_life"),
        ({"recent": -0.1}, "recent"),
        ({"noise": "loud"}, "noise"),
        ({"sums": "leaves"}, "sums must be 'blt', "),
    ],
)
def test_bad_settings_are_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        QuadraticLeader(**parts)


def test_a_budget_without_delta_is_refused():
    with pytest.raises(PlanError, match="delta > 0"):
        QuadraticLeader().plan(problem(), Budget(1.0), TERMS)
