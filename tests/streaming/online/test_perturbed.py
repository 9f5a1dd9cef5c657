"""Noise on iterates: one budget for all of them, and the law that was planned."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests.stat import assert_detects, assert_follows
from tests.strategies import budgets, each_relation, targets
from tests.streaming.online.walking import walk

from tacit._random import as_generator
from tacit._state import dumped, loaded
from tacit.audit import assert_replays, replay
from tacit.convex import (
    Box,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    OneVsRest,
    Simplex,
    Softmax,
)
from tacit.data import RowBounds
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers import Problem
from tacit.streaming import PerturbedIterates
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._iterates import ImplicitGradient, Leader, ProjectedGradient
from tacit.streaming.online._perturbed import POWERS, published_beta

BUDGET = Budget(1.0, 1e-6)
LEARNERS = [ImplicitGradient(0.5), ProjectedGradient(0.5), Leader(0.5)]
each_learner = pytest.mark.parametrize(
    "learner", LEARNERS, ids=lambda learner: type(learner).__name__
)
each_schedule = pytest.mark.parametrize("schedule", POWERS)


def problem_of(loss=None, n_features=2, **more):
    return Problem(loss or Logistic(), RowBounds(), 1, n_features, **more)


def planned(
    method=None, *, loss=None, budget=BUDGET, horizon=20, rows_per_step=1, **more
):
    terms = StreamTerms(horizon, rows_per_step, more.pop("rows_per_person", 1))
    method = method or PerturbedIterates(ImplicitGradient(0.5))
    return method.plan(problem_of(loss, **more), budget, terms)


def sample(loss, n, seed, p=2):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)) * (1 + 1e-12)
    return X, targets(loss, rng.integers(0, 12, n))


def leaves_of(X, y, rows_per_step=1):
    cuts = range(0, len(y), rows_per_step)
    return [(X[i : i + rows_per_step], y[i : i + rows_per_step]) for i in cuts]


@each_learner
@each_schedule
@pytest.mark.parametrize("accounting", ["exact", "paper"])
def test_squared_ratios_add_up_to_the_budget(learner, schedule, accounting):
    method = PerturbedIterates(learner, schedule, accounting)
    plan = planned(method, horizon=300)
    t = np.arange(1.0, 301.0)
    ratios = plan.sensitivities(t) / plan.std()
    mu = 1 / plan.event.multiplier
    assert (ratios**2).sum() == pytest.approx(mu**2, rel=1e-12)
    assert (ratios**2).sum() <= mu**2
    if accounting == "exact":
        assert plan.event.multiplier == calibrate(GaussianNoise, BUDGET)
    else:
        assert plan.event.multiplier > 9 * calibrate(GaussianNoise, BUDGET)


@each_schedule
@each_relation
def test_planned_event_fits_and_wastes_nothing(schedule, neighbors):
    budget = Budget(1.0, 1e-6, neighbors)
    plan = planned(PerturbedIterates(schedule=schedule), budget=budget)
    assert plan.event.curve(neighbors).fits(budget)
    less = GaussianNoise(0.99 * plan.event.multiplier)
    assert not less.curve(neighbors).fits(budget)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(data):
    neighbors = data.draw(st.sampled_from(list(Neighbors)))
    budget = data.draw(budgets(neighbors))
    method = PerturbedIterates(
        data.draw(st.sampled_from([ImplicitGradient(), ProjectedGradient(), Leader()])),
        data.draw(st.sampled_from(list(POWERS))),
        average=data.draw(st.booleans()),
    )
    horizon = data.draw(st.integers(1, 5000))
    rows_per_step = data.draw(st.sampled_from([1, 30, 1000]))
    plan = planned(method, budget=budget, horizon=horizon, rows_per_step=rows_per_step)
    assert plan.event.curve(neighbors).epsilon(budget.delta) <= budget.epsilon * (
        1 + 1e-9
    )
    t = np.arange(1.0, horizon + 1)
    ratios = plan.sensitivities(t) / plan.std()
    assert (ratios**2).sum() <= plan.event.multiplier**-2 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("rounds", "published", "exact"),
    [(10**2, 511.5, 42.0), (10**4, 5697, 422.4), (10**6, 62251, 4225)],
)
def test_published_noise_is_twelve_to_fifteen_times_as_much(rounds, published, exact):
    beta = published_beta(1.0, rounds, BUDGET)
    least = calibrate(GaussianNoise, BUDGET) * sqrt(rounds - 1)
    assert beta == pytest.approx(published, rel=2e-4)
    assert least == pytest.approx(exact, rel=2e-3)
    assert 12 < beta / least < 15


def test_published_noise_falls_as_printed():
    plan = planned(PerturbedIterates(ImplicitGradient(0.5), accounting="paper"))
    beta = published_beta(2 * 1.0 / 0.5, 21, BUDGET)
    np.testing.assert_allclose(plan.std(), beta / np.arange(1, 21))
    corrected = planned(PerturbedIterates(ProjectedGradient(0.5), accounting="paper"))
    np.testing.assert_allclose(corrected.std(), 2 * plan.std())


@pytest.mark.parametrize(
    ("schedule", "power"), [("root", 0.5), ("two_thirds", 2 / 3), ("published", 1.0)]
)
def test_noise_falls_with_the_power_of_the_schedule(schedule, power):
    method = PerturbedIterates(ImplicitGradient(1.0), schedule)
    plan = planned(method, horizon=10_000)
    std = plan.std()
    t = np.array([2.0, 10_001.0])
    derivative = np.log(std[-1] / std[0]) / np.log(t[1] / t[0])
    assert derivative == pytest.approx(-power, rel=1e-3)


def test_each_schedule_is_the_best_at_what_it_is_for():
    horizon = 4096
    noise = {
        name: planned(PerturbedIterates(ImplicitGradient(1.0), name), horizon=horizon)
        for name in POWERS
    }
    sums = {name: plan.std().sum() for name, plan in noise.items()}
    squares = {name: (plan.std() ** 2).sum() for name, plan in noise.items()}
    assert min(sums, key=sums.get) == "two_thirds"
    assert min(squares, key=squares.get) == "root"
    # polylogarithmic: the squared sum of sensitivities over mu squared
    harmonic = (1 / np.arange(2, horizon + 2)).sum()
    mu = 1 / calibrate(GaussianNoise, BUDGET)
    assert squares["root"] == pytest.approx((2 * harmonic / mu) ** 2, rel=1e-4)


@pytest.mark.parametrize("noise", ["grid", "float"])
def test_what_is_added_follows_the_planned_law(noise, seed):
    horizon = 1500
    method = PerturbedIterates(ImplicitGradient(0.5), noise=noise)
    plan = planned(method, horizon=horizon)
    # far wider than the noise, so that nothing is cut
    plan = replace(plan, reach=1e9)
    X, y = sample(Logistic(), horizon, seed)
    base = plan.iterates
    exact = base.path(base.init(), 1, X, y, np.arange(1, horizon + 1))[:, 0]
    added = walk(plan, leaves_of(X, y), seed)[:, :, 0] - exact
    unit = (added / plan.std()[:, None]).ravel()
    assert_follows(unit, norm.cdf)
    assert_detects(unit, norm(scale=0.75).cdf)


@each_learner
def test_without_noise_to_speak_of_it_is_the_learner(learner, seed):
    plan = planned(
        PerturbedIterates(learner),
        budget=Budget(1e13, 1e-6),
        horizon=30,
        regularizer=L2Ball(0.5),
    )
    X, y = sample(Logistic(), 30, seed)
    private, exact = plan.iterates.init(), []
    for t, (a, b) in enumerate(leaves_of(X, y), start=1):
        private, W = plan.iterates.advance(private, t, a, b)
        exact.append(W)
    np.testing.assert_allclose(walk(plan, leaves_of(X, y)), exact, atol=1e-5)


class Straight:
    """A stream whose first row has slope 1, or -1, and others that are zero."""

    @staticmethod
    def leaves(sign, n=6):
        X, y = np.zeros((n, 2)), np.zeros(n)
        X[0, 0], y[0] = 1.0, sign * 1e6
        return leaves_of(X, y)


def judged(plan, first, second, judge=assert_replays, **more):
    return judge(lambda leaves: walk(plan, leaves), (first,), (second,), **more)


@each_learner
@each_schedule
def test_replaying_with_the_same_noise_shows_nothing_else(learner, schedule, seed):
    for loss in (Logistic(), Huber(0.3)):
        plan = planned(PerturbedIterates(learner, schedule), loss=loss, horizon=6)
        X, y = sample(loss, 6, seed)
        other_X, other_y = X.copy(), y.copy()
        other_X[2], other_y[2] = sample(loss, 1, seed + 1)[0][0], -y[2]
        judged(plan, leaves_of(X, y), leaves_of(other_X, other_y), min_releases=6)


@each_learner
def test_half_the_sensitivity_is_reported(learner):
    plan = planned(PerturbedIterates(learner), loss=Huber(), horizon=6)
    pair = Straight.leaves(1), Straight.leaves(-1)
    assert judged(plan, *pair, replay).ok
    report = judged(replace(plan, moved=plan.moved / 2), *pair, replay)
    assert any("over the declared sensitivity" in line for line in report.violations)


@each_learner
def test_the_number_of_rows_in_a_step_is_protected_too(learner, seed):
    budget = Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)
    plan = planned(PerturbedIterates(learner), budget=budget, horizon=3)
    X, y = sample(Logistic(), 9, seed)
    first = [(X[:1], y[:1]), (X[1:8], y[1:8]), (X[:0], y[:0])]
    second = [(X[:0], y[:0]), *first[1:]]
    third = [first[0], (X[1:9], y[1:9]), first[2]]
    for other in (second, third):
        judged(plan, first, other, min_releases=3)
    twice = planned(PerturbedIterates(learner), horizon=3)
    assert twice.sensitivity(1) == pytest.approx(2 * plan.sensitivity(1), rel=1e-3)


def test_all_rows_of_a_person_count():
    one = planned(rows_per_person=1)
    five = planned(rows_per_person=5)
    t = np.arange(1.0, 21.0)
    np.testing.assert_allclose(
        five.sensitivities(t), 5 * one.sensitivities(t), rtol=1e-6
    )


@pytest.mark.parametrize(
    "regularizer",
    [L2Ball(0.3), L1Ball(0.4), Simplex(), Box(-0.2, 0.1)],
    ids=lambda kind: type(kind).__name__,
)
@each_learner
@pytest.mark.parametrize("average", [False, True])
def test_shown_weights_are_in_the_set(regularizer, learner, average, seed):
    method = PerturbedIterates(learner, average=average)
    plan = planned(method, regularizer=regularizer, n_features=3)
    X, y = sample(Logistic(), 20, seed, 3)
    shown = walk(plan, leaves_of(X, y))
    assert shown.shape == (20, 3, 1)
    for W in (plan.weights(plan.init()), *shown):
        assert plan.problem.regularizer.contains(W, 1e-9)


def test_without_a_set_weights_stay_where_a_ridge_leaves_them(seed):
    plan = planned(budget=Budget(0.01, 1e-6))
    shown = walk(plan, leaves_of(*sample(Logistic(), 20, seed)))
    assert np.linalg.norm(shown, axis=1).max() <= 1 / 0.5 * (1 + 1e-9)


def test_averages_have_less_noise_and_the_same_events(seed):
    X, y = np.zeros((400, 2)), np.zeros(400)
    spreads = {}
    for average in (False, True):
        method = PerturbedIterates(ImplicitGradient(0.5), average=average)
        plan = replace(planned(method, horizon=400), reach=1e9)
        spreads[average] = np.abs(walk(plan, leaves_of(X, y), seed)[-100:]).mean()
        assert plan.event.multiplier == calibrate(GaussianNoise, BUDGET)
    assert spreads[True] < spreads[False] / 4
    # weights in proportion to the number of the step
    plain, shown = (
        walk(replace(plan, average=average), leaves_of(X, y), seed)
        for average in (False, True)
    )
    positions = np.arange(1, 401)
    mean = np.tensordot(positions / positions.sum(), plain, 1)
    np.testing.assert_allclose(shown[-1], mean, atol=1e-9)


def test_several_classes_are_learned(seed):
    rng = as_generator(seed)
    X = rng.normal(size=(300, 2)) / 3
    y = np.argmax(X @ np.array([[1, -1, 0.2], [0.1, 1, -1]]), axis=1)
    for learner, loss in (
        (ImplicitGradient(0.05), OneVsRest(Logistic(), 3)),
        (ProjectedGradient(0.05), Softmax(3)),
        (Leader(0.05), Softmax(3)),
    ):
        plan = planned(
            PerturbedIterates(learner),
            loss=loss,
            budget=Budget(1e9, 1e-6),
            horizon=10,
            rows_per_step=30,
        )
        W = walk(plan, leaves_of(X, y, 30))[-1]
        assert W.shape == (2, 3)
        assert np.mean(np.argmax(X @ W, axis=1) == y) > 0.8


def test_nothing_comes_after_the_last_step():
    plan = planned(horizon=1)
    state = plan.step(plan.init(), np.zeros((1, 2)), np.ones(1), as_generator(0))
    with pytest.raises(ValueError, match="planned for 1 steps and cannot take step 2"):
        plan.step(state, np.zeros((1, 2)), np.ones(1), as_generator(0))


@each_learner
def test_a_stream_goes_on_from_its_written_state(learner, seed):
    plan = planned(PerturbedIterates(learner), horizon=6)
    leaves = leaves_of(*sample(Logistic(), 6, seed))
    rng, state = as_generator(seed), plan.init()
    for leaf in leaves[:3]:
        state = plan.step(state, *leaf, rng)
    again = loaded(dumped(state))
    ends = [plan.step(s, *leaves[3], as_generator(1)) for s in (state, again)]
    assert np.array_equal(plan.weights(ends[0]), plan.weights(ends[1]))
    assert "iterate" not in repr(state).replace("PerturbedState", "")


def test_a_plan_is_told_apart_by_its_parameters():
    assert repr(planned()) == repr(planned())
    assert repr(planned()) != repr(planned(horizon=21))
    assert repr(planned()) != repr(planned(PerturbedIterates(ImplicitGradient(0.6))))
