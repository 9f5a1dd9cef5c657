"""Hedge on a stream, attacked by what one row of costs does to every play."""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.privacy import Budget, Neighbors
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import Experts

SHARED_CASES = Cases(audits="Hedge")

# one expert against another: the first row decides the odds of every play
PAIR = np.array([[1.0, -1.0]]), np.array([[-1.0, 1.0]])
NOTHING = np.zeros(0)


def less_private(learner, factor):
    """Return the learner with so much of its noise."""
    if hasattr(learner, "epsilon"):
        return replace(learner, epsilon=learner.epsilon / factor)
    return replace(learner, multiplier=learner.multiplier * factor)


def lower_bound(learner, pair, delta, n_runs, seed, method):
    """Return the bound on epsilon from all plays, where the first row differs."""
    empty = np.zeros((0, 2))

    def plays(first, seed):
        rng, state, seen = as_generator(seed), learner.init(), []
        for t in range(learner.horizon):
            state = learner.step(state, first if t == 0 else empty, NOTHING, rng)
            # log-odds, from which all else can be computed
            weights = np.clip(learner.weights(state)[:, 0], 1e-300, 1.0)
            odds = np.log(weights[0] / weights[1])
            seen.append(np.sign(odds) if hasattr(learner, "epsilon") else odds)
        return np.array(seen)

    return bound_of_runs(plays, pair, n_runs, delta, seed, method)


def check(name, play, budget, horizon, n_runs, seed, factor=0.5, method="gaussian"):
    added = budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE
    # small, so that the budget is spent and no more noise is taken than it asks for
    terms = StreamTerms(horizon)
    learner = Hedge(play, hold=1, temperature=1e-6).plan(Experts(2), budget, terms)
    pair = (PAIR[0], np.zeros((0, 2))) if added else PAIR
    planned, control = (
        lower_bound(
            less_private(learner, part), pair, budget.delta, n_runs, seed, method
        )
        for part in (1.0, factor)
    )
    assert_refutes_the_control(name, budget.epsilon, planned, control, factor)


@pytest.mark.statistical
def test_a_third_of_the_noise_is_caught_quickly(seed):
    check("Hedge, 20 draws", "sample", Budget(4.0, 1e-3), 20, 500, seed, factor=1 / 3)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_draws_survive_and_half_the_noise_does_not(neighbors, seed):
    # many draws are nearly a Gaussian mechanism; under addition the odds of this pair
    # move by all of the range, as they do under replacement
    budget = Budget(4.0, 1e-3, neighbors)
    check("Hedge, 40 draws", "sample", budget, 40, 1500, seed)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_weights_survive_and_half_the_noise_does_not(neighbors, seed):
    budget = Budget(4.0, 1e-3, neighbors)
    check("Hedge, weights", "weights", budget, 8, 1500, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_one_pure_draw_survives_without_assuming_a_trade_off(seed):
    # of a symmetric pair a draw has half its range, so that a fifth is needed
    check(
        "Hedge, one draw",
        "sample",
        Budget(1.0),
        1,
        8000,
        seed,
        factor=0.2,
        method="clopper-pearson",
    )
