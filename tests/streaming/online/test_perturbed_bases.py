"""How far a row moves iterates: attained by straight losses, never passed."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import targets

from tacit._random import as_generator
from tacit.convex import (
    Box,
    Free,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    OneVsRest,
    Simplex,
    Softmax,
    Squared,
)
from tacit.convex.implicit import implicit_step
from tacit.data import RowBounds
from tacit.privacy import Neighbors
from tacit.solvers import Problem
from tacit.solvers._gradients.row_pass import RowPass
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._iterates import (
    ImplicitGradient,
    IterateFacts,
    Leader,
    ProjectedGradient,
)

LEARNERS = [ImplicitGradient(0.5), ProjectedGradient(0.5), Leader(0.5)]
WALKERS = LEARNERS[:2]
each_learner = pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: type(learner).__name__
)
each_walker = pytest.mark.parametrize(
    "learner", WALKERS, ids=lambda learner: type(learner).__name__
)
LOSSES = [Logistic(), Logistic(cap=0.5), HuberizedHinge(), Huber(0.3)]
SETS = [Free(), L2Ball(0.7), L1Ball(0.5), Box(-0.3, 0.4), Simplex()]


def based(learner, loss, horizon=12, rows_per_step=1, published=False, **more):
    n_features = more.pop("n_features", 2)
    problem = Problem(loss, RowBounds(), horizon * rows_per_step, n_features, **more)
    terms = StreamTerms(horizon, rows_per_step)
    strength = learner.strong_convexity
    facts = IterateFacts(problem, terms, Neighbors.REPLACE_ONE, strength, published)
    return learner.iterates(facts)


def iterates(base, leaves):
    """Return the exact weights after each step, shape (steps, p, k)."""
    private, found = base.init(), []
    for t, (X, y) in enumerate(leaves, start=1):
        private, W = base.advance(private, t, X, y)
        found.append(W)
    return np.array(found)


def moves(base, first, second):
    """Return how far apart two streams bring the weights after each step."""
    return np.linalg.norm(iterates(base, first) - iterates(base, second), axis=(1, 2))


def random_leaves(loss, rng, horizon=12, rows_per_step=1, p=2):
    X = rng.normal(size=(horizon, rows_per_step, p))
    X /= np.maximum(1, np.linalg.norm(X, axis=2, keepdims=True)) * (1 + 1e-12)
    codes = rng.integers(0, 12, (horizon, rows_per_step))
    return [(x, targets(loss, c)) for x, c in zip(X, codes, strict=True)]


def straight(horizon, position, target):
    """Return steps of zero rows, but for one whose slope is one, whatever happens."""
    leaves = [(np.zeros((1, 2)), np.zeros(1)) for _ in range(horizon)]
    leaves[position] = (np.array([[1.0, 0.0]]), np.array([target]))
    return leaves


@each_learner
@pytest.mark.parametrize("position", [0, 4, 11])
def test_straight_losses_attain_the_bound(learner, position):
    base = based(learner, Huber(1.0))
    t = np.arange(1.0, 13.0)
    apart = moves(base, straight(12, position, 1e6), straight(12, position, -1e6))
    assert (apart[:position] == 0).all()
    np.testing.assert_allclose(
        apart[position:], 2 * base.influence(t)[position:], rtol=1e-4
    )
    # and the bound has next to nothing besides
    assert (apart <= base.sensitivity(t, 2.0)).all()
    assert (base.sensitivity(t, 2.0) <= 2 * base.influence(t) * 1.001).all()


def test_what_is_left_of_a_row_is_as_stated():
    t = np.arange(1.0, 6.0)
    for learner in (ImplicitGradient(0.5), Leader(0.5)):
        base = based(learner, Logistic(), rows_per_step=4)
        np.testing.assert_allclose(base.influence(t), 1 / (0.5 * 4 * (t + 1)))
    base = based(ProjectedGradient(0.5), Logistic(), rows_per_step=4)
    kappa = 1 + 0.25 / (0.5 * 4)
    np.testing.assert_allclose(base.influence(t), 1 / (0.5 * 4 * (t + kappa)))


@each_learner
@pytest.mark.parametrize("loss", [*LOSSES, Squared()], ids=repr)
@pytest.mark.parametrize("rows_per_step", [1, 3])
def test_replaced_rows_stay_within_the_bound(learner, loss, rows_per_step, seed):
    rng = as_generator(seed)
    more = {"regularizer": L2Ball(0.7)} if isinstance(loss, Squared) else {}
    base = based(learner, loss, rows_per_step=rows_per_step, **more)
    lipschitz = Problem(loss, RowBounds(), 1, 2, **more).lipschitz
    for _ in range(5):
        first = random_leaves(loss, rng, rows_per_step=rows_per_step)
        second = [(X.copy(), y.copy()) for X, y in first]
        position = rng.integers(0, 12)
        x, y = random_leaves(loss, rng)[0]
        second[position][0][-1], second[position][1][-1] = x[0], y[0]
        bound = base.sensitivity(np.arange(1.0, 13.0), 2 * lipschitz)
        assert (moves(base, first, second) <= bound).all()


@each_learner
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_more_or_less_move_half_as_far(learner, data):
    loss = data.draw(st.sampled_from(LOSSES))
    regularizer = data.draw(st.sampled_from(SETS))
    rng = as_generator(data.draw(st.integers(0, 10**6)))
    # far more rows than planned, and none at all
    sizes = data.draw(st.lists(st.integers(0, 6), min_size=2, max_size=5))
    base = based(learner, loss, len(sizes), regularizer=regularizer)
    pool = random_leaves(loss, rng, 1, sum(sizes) + 1)[0]
    cuts = np.cumsum([0, *sizes])
    first = [(pool[0][a:b], pool[1][a:b]) for a, b in pairwise(cuts)]
    position = data.draw(st.integers(0, len(sizes) - 1))
    inside = data.draw(st.integers(0, sizes[position]))
    X, y = first[position]
    second = list(first)
    second[position] = (
        np.insert(X, inside, pool[0][-1], axis=0),
        np.insert(y, inside, pool[1][-1]),
    )
    lipschitz = loss.max_derivative(np.inf, (-1.0, 1.0))
    bound = base.sensitivity(np.arange(1.0, len(sizes) + 1), lipschitz)
    assert (moves(base, first, second) <= bound).all()


@each_walker
def test_several_rows_of_a_person_add_up(learner):
    base = based(learner, Huber(1.0))
    first, second = (straight(12, 0, sign * 1e6) for sign in (1, -1))
    for leaves, other in ((first, 1e6), (second, -1e6)):
        leaves[3] = straight(12, 3, other)[3]
    bound = base.sensitivity(np.arange(1.0, 13.0), 2.0)
    apart = moves(base, first, second)
    assert (apart <= 2 * bound).all()
    assert apart[3] > 1.9 * bound[3]


@each_walker
@pytest.mark.parametrize("regularizer", SETS, ids=repr)
def test_walking_a_block_is_stepping_through_it(learner, regularizer, seed):
    base = based(learner, Logistic(), 30, 2, regularizer=regularizer)
    leaves = random_leaves(Logistic(), as_generator(seed), 30, 2)
    X, y = (np.concatenate(part) for part in zip(*leaves, strict=True))
    block = base.path(base.init(), 1, X, y, 2 * np.arange(1, 31))
    stepped = iterates(base, leaves)
    assert np.array_equal(block.transpose(0, 2, 1), stepped)
    if not isinstance(regularizer, Free):
        assert all(regularizer.contains(W) for W in stepped)


def test_implicit_steps_are_proximal_steps_on_the_whole_cost(seed):
    base = based(ImplicitGradient(0.5), Logistic(), 40)
    leaves = random_leaves(Logistic(), as_generator(seed), 40)
    w = np.zeros(2)
    for t, ((X, y), W) in enumerate(
        zip(leaves, iterates(base, leaves), strict=True), 1
    ):
        w = implicit_step(Logistic(), w, X[0], y[0], 1 / (0.5 * t), 0.5)
        np.testing.assert_allclose(W[:, 0], w, rtol=1e-10, atol=1e-14)


def test_gradient_steps_are_those_of_the_offset_schedule(seed):
    base = based(ProjectedGradient(0.5), Logistic(), 40)
    leaves = random_leaves(Logistic(), as_generator(seed), 40)
    w, kappa = np.zeros(2), 1 + 0.25 / 0.5
    for t, ((X, y), W) in enumerate(
        zip(leaves, iterates(base, leaves), strict=True), 1
    ):
        derivative = Logistic().derivative(y, X @ w[:, None])[0, 0]
        w = w - (derivative * X[0] + 0.5 * w) / (0.5 * (t + kappa))
        np.testing.assert_allclose(W[:, 0], w, rtol=1e-10, atol=1e-14)


def test_the_leader_is_the_minimum_over_all_rows(seed):
    base = based(Leader(0.5), Logistic(), 10)
    leaves = random_leaves(Logistic(), as_generator(seed), 10)
    W = iterates(base, leaves)[-1]
    X, y = (np.concatenate(part) for part in zip(*leaves, strict=True))
    gradient = X.T @ Logistic().derivative(y, X @ W) + 0.5 * 11 * W
    assert np.linalg.norm(gradient) <= base.tolerance
    assert base.tolerance < 1e-3


@each_walker
def test_round_off_is_within_what_the_sensitivity_allows(learner, seed):
    loss = Logistic()
    base = based(learner, loss, 300, regularizer=L2Ball(0.2), n_features=4)
    leaves = random_leaves(loss, as_generator(seed), 300, p=4)
    # the same steps with more digits, each to the root of its own equation
    w = np.zeros(4, dtype=np.longdouble)
    walk, before, steps, after = base.row_pass, *base.factors(np.arange(1.0, 301.0))
    far, allowed = [], []
    for t, ((X, y), W) in enumerate(zip(leaves, iterates(base, leaves), strict=True)):
        x, step = X[0].astype(np.longdouble), np.longdouble(steps[t])
        w = w * np.longdouble(before[t])
        z, weight = x @ w, (step * (x @ x) if walk.implicit else np.longdouble(0))
        low, high = np.longdouble(0), np.longdouble(1)
        for _ in range(70):
            middle = (low + high) / 2
            above = middle < 1 / (1 + np.exp(y[0] * z + weight * middle))
            low, high = (middle, high) if above else (low, middle)
        w = w + step * low * y[0] * x
        w = w * np.longdouble(after[t])
        w = w * min(np.longdouble(1), np.longdouble(0.2) / np.sqrt(w @ w))
        far.append(float(np.sqrt(((w - W[:, 0]) ** 2).sum())))
        one = step * walk.derivative_roundoff + walk.row_roundoff + walk.leaf_roundoff
        allowed.append(float(one))
    assert max(far) > 0
    assert (np.array(far) <= np.cumsum(allowed)).all()


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("regularizer", [L1Ball(0.7), Simplex()], ids=repr)
def test_rounding_of_projections_is_within_what_is_planned(regularizer, size, seed):
    rng = as_generator(seed)
    walk = RowPass(Problem(Logistic(), RowBounds(), 9, size, 0.0, regularizer), True)
    for _ in range(50):
        w = rng.normal(size=size) * 10 ** rng.uniform(-6, 0)
        w *= min(1.0, regularizer.radius / np.linalg.norm(w))
        found = regularizer.prox(w[:, None], 1.0)[:, 0]
        exact = _exact_projection(regularizer, w)
        assert np.linalg.norm(found - exact) <= walk.leaf_roundoff


def _exact_projection(regularizer, w):
    """Return the projection in more digits, by halving for the level."""
    w = w.astype(np.longdouble)
    goal = np.longdouble(regularizer.radius)
    signs, sizes = np.ones_like(w), w
    if isinstance(regularizer, L1Ball):
        signs, sizes = np.sign(w), np.abs(w)
        if sizes.sum() <= goal:
            return w
    low, high = sizes.min() - goal - 1, sizes.max()
    for _ in range(90):
        level = (low + high) / 2
        more = np.maximum(sizes - level, 0).sum() > goal
        low, high = (level, high) if more else (low, level)
    return (signs * np.maximum(sizes - low, 0)).astype(np.float64)


def test_published_gradient_steps_move_twice_as_far_as_their_lemma_says():
    # C = [-1, 1], costs 50 w and -50 w with half a square, at step 100 alone
    strength, derivative, t = 1.0, 50.0, 100
    base = based(
        ProjectedGradient(strength),
        Huber(derivative),
        t,
        published=True,
        regularizer=L2Ball(1.0),
    )
    printed = 2 * (derivative + strength) / (strength * t)
    apart = moves(base, straight(t, t - 1, 1e6), straight(t, t - 1, -1e6))[-1]
    assert apart == pytest.approx(2.0)
    assert printed == pytest.approx(1.02)
    assert apart <= base.sensitivity(np.array([100.0]), 2 * derivative)[0]
    np.testing.assert_allclose(base.influence(np.array([100.0])), 2 / 100)


def test_published_gradient_steps_begin_after_the_printed_start():
    base = based(ProjectedGradient(1.0), Huber(1.0), 40, published=True)
    start = 2 * (1 + 1) ** 2 + 1
    assert base.offset == start
    leaves = [(np.array([[1.0, 0.0]]), np.array([1e6]))] * 40
    weights = iterates(base, leaves)[:, 0, 0]
    assert (weights[:start] == 0).all()
    assert (weights[start:] != 0).all()
    # the first step is 2 over its number
    np.testing.assert_allclose(weights[start], 2 / (start + 1))


@pytest.mark.parametrize("learner", WALKERS, ids=["implicit", "gradient"])
def test_regret_without_noise_is_within_its_bound(learner, seed):
    strength, n = 0.5, 400
    loss = Logistic()
    base = based(learner, loss, n, regularizer=L2Ball(1.0))
    leaves = random_leaves(loss, as_generator(seed), n)
    X, y = (np.concatenate(part) for part in zip(*leaves, strict=True))
    W = np.vstack([np.zeros((1, 2)), iterates(base, leaves)[:-1, :, 0]])

    def cost(weights):
        margins = np.einsum("tp,tp->t", X, weights)[:, None]
        squares = np.einsum("tp,tp->t", weights, weights)
        return float((loss.value(y, margins) + strength / 2 * squares).sum())

    grid = np.linspace(-1, 1, 41)
    best = min(
        cost(np.tile([a, b], (n, 1))) for a in grid for b in grid if a**2 + b**2 <= 1
    )
    lipschitz, diameter = 1 + strength, 2.0
    if isinstance(learner, ImplicitGradient):
        bound = lipschitz**2 / (2 * strength) * (1 + np.log(n))
        bound += strength / 2 * diameter**2
    else:
        smooth = 0.25 + strength
        kappa = smooth / strength
        bound = smooth / 2 * diameter**2
        bound += lipschitz**2 / (2 * strength) * np.log((n + kappa) / kappa)
    assert 0 < cost(W) - best + 0.05 <= bound


def test_classes_have_their_own_margins(seed):
    rng = as_generator(seed)
    loss = OneVsRest(Logistic(), 3)
    X = rng.normal(size=(20, 2)) / 5
    y = rng.integers(0, 3, 20)
    base = based(ImplicitGradient(0.5), loss, 20)
    leaves = [(X[i : i + 1], y[i : i + 1]) for i in range(20)]
    W = iterates(base, leaves)[-1]
    for c in range(3):
        one = based(ImplicitGradient(0.5), Logistic(), 20)
        labels = np.where(y == c, 1.0, -1.0)
        alone = [(X[i : i + 1], labels[i : i + 1]) for i in range(20)]
        np.testing.assert_allclose(W[:, c], iterates(one, alone)[-1][:, 0], rtol=1e-12)
    soft = based(ProjectedGradient(0.5), Softmax(3), 20)
    np.testing.assert_allclose(iterates(soft, leaves)[-1].sum(axis=1), 0, atol=1e-12)


def test_zero_rows_move_nothing():
    for learner in LEARNERS:
        base = based(learner, Logistic(), 3)
        leaves = [(np.zeros((4, 2)), np.zeros(4))] * 3
        assert np.abs(iterates(base, leaves)).max() == 0


def test_bounds_are_planned_for_the_rows_that_can_come():
    base = based(ImplicitGradient(0.5), Logistic())
    assert base.most_rows == 2**24
    more = replace(base, most_rows=2**30)
    t = np.ones(1)
    assert more.sensitivity(t, 2.0) > base.sensitivity(t, 2.0)


@pytest.mark.parametrize("radius", [1e-200, 1e-170, 1e-160, 1e-3, 1e160, 1e200])
def test_weights_are_brought_into_balls_of_any_size(radius):
    x_norm = min(1.0, 1 / sqrt(radius))
    problem = Problem(Logistic(), RowBounds(x_norm), 9, 2, 0.0, L2Ball(radius))
    walk, one = RowPass(problem, False), np.ones(1)
    way, y, ends = np.array([[0.6, 0.8]]), np.ones(1), np.ones(1, dtype=np.int64)
    for length in (0.5, 1.5, 1e3, 1e6):
        # a slope of a half, so that the step alone is so many radii long
        step = 2 * length * radius / x_norm * one
        found = walk.leaves(walk.start(), way * x_norm, y, ends, one, step, one)[0]
        wanted = min(length, 1.0) * radius * way
        assert found == pytest.approx(wanted, rel=1e-15, abs=0)


@each_walker
def test_the_sensitivity_covers_the_round_off_of_both_streams(learner):
    base = based(learner, Logistic(), horizon=1000)
    t = np.array(1e6)  # so late that no gradient is left
    walk = base.row_pass
    one_stream = base.most_rows * walk.row_roundoff + t * walk.leaf_roundoff
    assert base.sensitivity(t, 0.0) >= 2 * one_stream > 0
