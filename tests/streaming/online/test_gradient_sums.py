"""Learning from noisy sums of gradients."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.stat import assert_detects, assert_follows
from tests.strategies import each_relation
from tests.streaming.online.walking import walk

from tacit._random import as_generator
from tacit._release import recording, replaying
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
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.streaming import GradientSums
from tacit.streaming._model import StreamTerms

# so little noise that it is seen nowhere
HUGE = Budget(1e15, 0.1)
LOSSES = [Logistic(), Logistic(cap=0.5), HuberizedHinge(), Huber(0.5), Squared()]


def problem(loss, **parts):
    return Problem(loss, RowBounds(1.0), 400, 3, **parts)


def stream(loss, n_steps=20, n_rows=7, seed=0):
    rng = as_generator(seed)
    for _ in range(n_steps):
        X = rng.uniform(-1, 1, (n_rows, 3)) / sqrt(3)
        if isinstance(loss, Softmax):
            y = rng.integers(0, loss.n_classes, n_rows)
        else:
            y = np.where(rng.uniform(size=n_rows) < 0.5, -1.0, 1.0)
        yield X, y


def leader(loss, steps, rate, clip=np.inf, ridge=0.0, project=lambda W: W):
    """Return the weights of regularized leaders without noise, one row at a time."""
    W = total = np.zeros((3, loss.n_outputs))
    found = []
    for X, y in steps:
        for row, target in zip(X, y, strict=True):
            derivative = loss.derivative(np.array([target]), row[None] @ W)[0]
            derivative = derivative * min(
                1, clip / max(np.linalg.norm(derivative), 1e-300)
            )
            total = total + np.outer(row, derivative)
        W = project(-total / (1 / rate + ridge))
        found.append(W)
    return np.array(found)


@pytest.mark.parametrize("loss", [*LOSSES, Softmax(3)], ids=repr)
def test_without_noise_it_is_the_regularized_leader(loss):
    method = GradientSums(noise="float", learning_rate=0.3, recent=0.0)
    learner = method.plan(problem(loss), HUGE, StreamTerms(20, 7))
    found = walk(learner, stream(loss))
    plain = leader(loss, stream(loss), 0.3, learner.clip)
    np.testing.assert_allclose(found, plain, atol=1e-6)


@pytest.mark.parametrize("sums", ["blt", "tree", "honaker", "square_root"])
def test_every_kind_of_sum_leads_to_the_same_weights(sums):
    method = GradientSums(sums, noise="float", learning_rate=0.3, recent=0.0)
    learner = method.plan(problem(Logistic()), HUGE, StreamTerms(20, 7))
    plain = leader(Logistic(), stream(Logistic()), 0.3)
    np.testing.assert_allclose(walk(learner, stream(Logistic())), plain, atol=1e-6)


@pytest.mark.parametrize("ball", [L2Ball(0.3), L1Ball(0.3)])
def test_weights_stay_in_the_set(ball):
    method = GradientSums(noise="float", learning_rate=0.3, recent=0.0)
    learner = method.plan(
        problem(Squared(), regularizer=ball, ridge=2.0), HUGE, StreamTerms(20, 7)
    )
    plain = leader(
        Squared(), stream(Squared()), 0.3, ridge=2.0, project=lambda W: ball.prox(W, 1)
    )
    np.testing.assert_allclose(walk(learner, stream(Squared())), plain, atol=1e-6)
    noisy = GradientSums().plan(learner.problem, Budget(0.1, 1e-6), StreamTerms(20, 7))
    assert all(ball.contains(W) for W in walk(noisy, stream(Squared())))


def test_shown_weights_are_the_mean_of_the_last_ones():
    terms = StreamTerms(20, 7)
    exact = GradientSums(noise="float", learning_rate=0.3, recent=0.0)
    iterates = walk(exact.plan(problem(Logistic()), HUGE, terms), stream(Logistic()))
    learner = replace(exact, recent=0.5).plan(problem(Logistic()), HUGE, terms)
    mean, found = np.zeros((3, 1)), []
    for t, W in enumerate(iterates, start=1):
        mean = mean + (W - mean) / max(1.0, t / 2)
        found.append(mean)
    np.testing.assert_allclose(walk(learner, stream(Logistic())), found, atol=1e-6)


def test_the_noise_is_that_of_the_sums_and_of_no_smaller_ones(seed):
    # no rows, so that weights are noise alone
    method = GradientSums(learning_rate=1e-3, recent=0.0)
    wide = Problem(Logistic(), RowBounds(1.0), 4, 2000)
    learner = method.plan(wide, Budget(1.0, 1e-6), StreamTerms(4, 1))
    W = walk(learner, [(np.empty((0, 2000)), np.empty(0))] * 4, seed)[-1, :, 0]
    std = 1e-3 * learner.mechanism.std_at(4, 2000)
    assert_follows(W / std, stats.norm.cdf)
    assert_detects(1.25 * W / std, stats.norm.cdf)


def opposite(loss, length=1.0):
    """Return a long row that pulls one way and another that pulls the other."""
    labels = (0, 1) if isinstance(loss, Softmax) else (-1.0, 1.0)
    return [(np.array([[length, 0.0, 0.0]]), np.array([label])) for label in labels]


def moved(learner, loss, length=1.0, added=False):
    """Return how far a row moves all that is released, over what it may."""
    here, there = (
        [*stream(loss, 3), pair, *stream(loss, 3, seed=1)]
        for pair in opposite(loss, length)
    )
    if added:
        there[3] = (np.empty((0, 3)), np.empty(0))
    with recording() as tape:
        walk(learner, here)
    with replaying(tape) as other:
        walk(learner, there)
    pairs = zip(tape.releases, other.releases, strict=True)
    far = np.sqrt(sum(np.sum((a.value - b.value) ** 2) for a, b in pairs))
    return far / tape.releases[0].sensitivity


@each_relation
@pytest.mark.parametrize("loss", [*LOSSES, Softmax(4)], ids=repr)
def test_a_row_moves_all_releases_by_no_more_than_the_sensitivity(loss, neighbors):
    terms = StreamTerms(7, 7)
    # so slow that weights stay near zero, and slopes what they are there
    method = GradientSums(learning_rate=1e-6)
    learner = method.plan(problem(loss), Budget(1.0, 1e-6, neighbors), terms)
    added = neighbors is Neighbors.ADD_OR_REMOVE_ONE
    share = moved(learner, loss, added=added)
    assert 0.4 < share <= 1
    # the control: a row that is thrice as long as the bound
    assert moved(learner, loss, 3.0, added) > 1
    twice = method.plan(
        learner.problem, Budget(1.0, 1e-6, neighbors), replace(terms, rows_per_person=2)
    )
    assert moved(twice, loss, added=added) == pytest.approx(share / 2, rel=1e-3)


def test_on_the_grid_it_is_the_same_but_for_noise():
    budget = Budget(1e9, 0.1)
    learner = GradientSums(learning_rate=0.3, recent=0.0).plan(
        problem(Logistic()), budget, StreamTerms(20, 7)
    )
    plain = leader(Logistic(), stream(Logistic()), 0.3)
    np.testing.assert_allclose(walk(learner, stream(Logistic())), plain, atol=1e-3)


def test_a_clip_below_the_slope_of_the_loss_saves_noise():
    terms, budget = StreamTerms(5, 7), Budget(1.0, 1e-6)
    plain = GradientSums().plan(problem(Logistic()), budget, terms)
    clipped = GradientSums(clip=0.5).plan(problem(Logistic()), budget, terms)
    ratio = clipped.mechanism.sensitivity / plain.mechanism.sensitivity
    assert ratio == pytest.approx(0.5, rel=1e-3)
    huge = GradientSums(noise="float", learning_rate=0.3, recent=0.0, clip=0.1)
    learner = huge.plan(problem(Logistic()), HUGE, StreamTerms(20, 7))
    expected = leader(Logistic(), stream(Logistic()), 0.3, clip=0.1)
    np.testing.assert_allclose(walk(learner, stream(Logistic())), expected, atol=1e-6)


def test_the_rate_falls_with_noise_and_with_long_steps():
    def rate(epsilon, horizon=1000, rows=10):
        budget, terms = Budget(epsilon, 1e-6), StreamTerms(horizon, rows)
        facts = Problem(Logistic(), RowBounds(1.0), terms.n_rows, 3)
        return GradientSums().plan(facts, budget, terms).rate

    assert rate(0.1) < rate(1.0) < rate(10.0)
    assert rate(1e6, rows=1000) == pytest.approx(2 / (1000 * 0.25))
    # in other units of the rows it is the same rule
    one, two = (
        GradientSums().plan(
            Problem(Logistic(), RowBounds(norm), 10_000, 3),
            Budget(1.0, 1e-6),
            StreamTerms(1000, 10),
        )
        for norm in (1.0, 8.0)
    )
    assert one.rate == pytest.approx(64 * two.rate, rel=1e-6)


@pytest.mark.slow
def test_the_rate_is_near_the_best_of_a_grid(seed):
    rng = as_generator(seed)
    n_rows, rows = 20_000, 20
    X = rng.uniform(-1, 1, (n_rows, 6)) / sqrt(6)
    margins = X @ rng.normal(size=6) * 8
    y = np.where(rng.uniform(size=n_rows) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    facts = Problem(Logistic(cap=0.5), RowBounds(1.0), n_rows, 6)
    terms = StreamTerms(n_rows // rows, rows)
    planned = GradientSums(noise="float").plan(facts, Budget(1.0, 1e-8), terms)

    def mean_loss(learner):
        generator, state, total = as_generator(seed), learner.init(), 0.0
        for start in range(0, n_rows, rows):
            part = slice(start, start + rows)
            W = learner.weights(state)
            total += Logistic().value(y[part], X[part] @ W).sum()
            state = learner.step(state, X[part], y[part], generator)
        return total / n_rows

    grid = [replace(planned, rate=planned.rate * 2.0**k) for k in range(-4, 5)]
    losses = [mean_loss(learner) for learner in grid]
    assert mean_loss(planned) < min(losses) + 0.03
    # the control: rates at the ends of the grid are clearly worse
    assert min(losses[0], losses[-1]) > min(losses) + 0.06


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"clip": -1.0}, "clip"),
        ({"recent": 1.0}, "recent"),
        ({"noise": "loud"}, "noise"),
        ({"sums": "leaves"}, "sums must be 'blt', "),
    ],
)
def test_bad_settings_are_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        GradientSums(**parts)


def test_what_it_cannot_do_is_refused_with_a_way_out():
    terms = StreamTerms(5)
    with pytest.raises(PlanError, match="delta > 0"):
        GradientSums().plan(problem(Logistic()), Budget(1.0), terms)
    entries = Problem(Logistic(), RowBounds(1.0, "linf"), 10, 3)
    with pytest.raises(PlanError, match="norm='l2'"):
        GradientSums().plan(entries, Budget(1.0, 1e-6), terms)
