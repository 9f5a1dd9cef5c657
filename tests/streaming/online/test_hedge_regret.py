"""Private Hedge: what it regrets, beside its bounds."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from benchmarks.streams import hedge as measuring

from tacit._random import as_generator
from tacit.privacy import Budget
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import Experts

NOTHING = np.zeros(1)


def played(learner, costs, rng):
    """Return the expected regret of weights, or that of drawn experts, over costs."""
    experts, state = learner.experts, learner.init()
    paid = 0.0
    for row in costs:
        paid += float(row @ learner.weights(state)[:, 0])
        state = learner.step(state, experts.centered(row[None]), NOTHING, rng)
    return paid - costs.sum(axis=0).min()


def sequences(T, p, rng):
    """Yield costs that try a learner: alike at all times, and set against it."""
    alike = (rng.random((T, p)) < 0.5).astype(float)
    alike[:, 1] = rng.random(T) < 0.2
    yield alike
    turns = np.ones((T, p))
    turns[np.arange(T), np.arange(T) % 2] = 0.0  # whoever leads loses next
    yield turns
    late = np.ones((T, p)) * 0.5
    late[: T // 2, 0] = 0.0
    late[T // 2 :, 0] = 1.0
    late[T // 2 :, 1] = 0.0
    yield late
    yield np.zeros((T, p))


def regrets(learner, costs, n_runs, rng):
    """Return regrets over the same costs, each with noise of its own."""
    p, best = learner.experts.n_experts, costs.sum(axis=0).min()
    found = []
    for _ in range(n_runs):
        if hasattr(learner, "hold"):
            player = measuring.Draws(learner, p)
        else:
            player = measuring.Weights(learner.mechanism, learner.temperature, p)
        found.append(player(costs, rng) - best)
    return np.array(found)


@pytest.mark.statistical
@pytest.mark.parametrize("play", ["sample", "weights"])
def test_regret_is_below_its_bound(play, seed):
    # the mean of runs is above the bound by five of its deviations in one of millions
    T, p, rng = 400, 4, as_generator(seed)
    learner = Hedge(play).plan(Experts(p), Budget(3.0, 1e-6), StreamTerms(T))
    for costs in sequences(T, p, rng):
        found = regrets(learner, costs, 15, rng)
        error = found.std(ddof=1) / sqrt(len(found))
        assert found.mean() - 5 * error <= learner.regret_bound
    assert learner.regret_bound < T / 3  # it says something


@pytest.mark.statistical
def test_noise_that_the_bound_does_not_know_breaks_it(seed):
    T, p, rng = 400, 4, as_generator(seed)
    learner = Hedge("weights").plan(Experts(p), Budget(3.0, 1e-6), StreamTerms(T))
    loud = replace(learner, multiplier=20 * learner.multiplier)
    found = regrets(loud, next(sequences(T, p, rng)), 40, rng)
    error = found.std(ddof=1) / sqrt(len(found))
    assert found.mean() - 5 * error > learner.regret_bound


@pytest.mark.statistical
def test_one_who_follows_the_worst_breaks_the_bound(seed):
    T, rng = 400, as_generator(seed)
    learner = Hedge("weights").plan(Experts(4), Budget(3.0, 1e-6), StreamTerms(T))
    costs = next(sequences(T, 4, rng))
    state, paid = learner.init(), 0.0
    for row in costs:
        paid += float(row @ learner.weights(state)[:, 0])
        state = learner.step(state, Experts(4).centered(1 - row[None]), NOTHING, rng)
    assert paid - costs.sum(axis=0).min() > learner.regret_bound


def regret_against_answers(learner, T, rng, *, sees_now):
    """Return the regret where costs are set against a draw: the last, or the next."""
    p = learner.experts.n_experts
    before = state = learner.init()
    paid, total = 0.0, np.zeros(p)
    for _ in range(T):
        known = (state if sees_now else before).expert
        row = np.eye(1, p, known or 0)
        paid += float((row @ learner.weights(state))[0, 0])
        total += row[0]
        before = state
        state = learner.step(state, learner.experts.centered(row), NOTHING, rng)
    return paid - total.min()


@pytest.mark.statistical
def test_costs_may_depend_on_draws_that_were_played(seed):
    T = 300
    learner = Hedge("sample", hold=1).plan(
        Experts(3), Budget(20.0, 1e-6), StreamTerms(T)
    )
    rng = as_generator(seed)
    blind, sighted = (
        [regret_against_answers(learner, T, rng, sees_now=now) for _ in range(8)]
        for now in (False, True)
    )
    assert np.mean(blind) - 5 * np.std(blind, ddof=1) / sqrt(8) < learner.regret_bound
    assert min(sighted) > learner.regret_bound


def test_the_measured_regret_is_that_of_steps():
    T, p, seed = 200, 4, 3
    costs = measuring.alike(0, T, T, p, as_generator(seed))
    learner = Hedge("sample").plan(Experts(p), measuring.BUDGET, StreamTerms(T))
    stepped = played(learner, costs, as_generator(seed + 1))
    found = measuring.hedge_regret("sample", "alike", T, p, seed)
    assert found == pytest.approx(stepped)


def mean_regret(learner, means, rows, rng):
    """Return the regret on rows that are alike, against the best in the mean."""
    state, paid = learner.init(), 0.0
    for _ in range(learner.horizon):
        paid += rows * float(means @ learner.weights(state)[:, 0] - means.min())
        costs = rng.random((rows, len(means))) < means
        state = learner.step(
            state, learner.experts.centered(costs), np.zeros(rows), rng
        )
    return paid


@pytest.mark.statistical
@pytest.mark.parametrize("method", [Hedge("sample"), Hedge("weights"), Hedge(hold=3)])
def test_regret_of_several_rows_a_step_is_below_its_bound(method, seed):
    T, rows, rng = 10, 100, as_generator(seed)
    terms = StreamTerms(T, rows)
    for means in (np.array([0.5, 0.45, 0.5, 0.6]), np.array([1.0, 1.0, 0.0, 1.0])):
        learner = method.plan(Experts(4), Budget(3.0, 1e-6), terms)
        found = np.array([mean_regret(learner, means, rows, rng) for _ in range(20)])
        error = found.std(ddof=1) / sqrt(len(found))
        assert found.mean() - 5 * error <= learner.regret_bound
    assert learner.regret_bound < T * rows


def test_what_is_lost_before_the_first_play_belongs_to_the_bound(seed):
    T, rows, p = 4, 5000, 50
    learner = Hedge("sample", hold=1).plan(
        Experts(p), Budget(3.0, 1e-6), StreamTerms(T, rows)
    )
    means = np.ones(p)
    means[7] = 0.0
    found = mean_regret(learner, means, rows, as_generator(seed))
    assert learner.regret_bound - rows < found <= learner.regret_bound


def test_rows_of_a_step_set_against_it_are_beyond_the_bound(seed):
    # rows must be alike: whoever leads loses the whole of the next step
    T, rows, rng = 40, 100, as_generator(seed)
    learner = Hedge("sample", hold=1).plan(
        Experts(2), Budget(30.0, 1e-6), StreamTerms(T, rows)
    )
    state, sums, paid = learner.init(), np.array([0.0, 1.0]), 0.0
    for _ in range(T):
        costs = np.zeros((rows, 2))
        costs[:, int(sums.argmin())] = 1.0
        paid += float(costs.sum(axis=0) @ learner.weights(state)[:, 0])
        state = learner.step(
            state, learner.experts.centered(costs), np.zeros(rows), rng
        )
        sums += costs.sum(axis=0)
    regret = paid - sums.min()
    assert regret > learner.regret_bound
    factor = rows * T * rows / (8 * learner.temperature)
    assert regret <= learner.temperature * np.log(2) + factor
