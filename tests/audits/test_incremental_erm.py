"""Repeated fits on a stream: one guarantee covers all of them together.

The solver releases the sum of the rows, so that each fit reveals about a row as much as
the guarantee allows, and the attack adds up what the fits released.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases
from tests.streaming.incremental.summing import NoisySum

from tacit._random import as_generator
from tacit.linear_model import LinearRegression
from tacit.privacy import Budget, GaussianNoise, Neighbors
from tacit.streaming import IncrementalERM

SHARED_CASES = Cases(audits="IncrementalERM")

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
# Rows of the steps; the row of interest comes first, so that all fits see it
OTHERS = np.array([[0.5], [-0.25]])


def stream(row, count):
    """Return the steps of a stream whose first has a row so many times."""
    return [np.vstack([*[[row]] * count, OTHERS]), *[OTHERS] * 3]


def bound(budget, n_runs, seed, part, *, undivided=False, **changes):
    """Return the bound on epsilon from the sum of all models, weighted by precision."""
    solver = NoisySum(part)
    estimator = LinearRegression(
        y_range=(-1, 1), solver=solver, fit_intercept=False, x_norm=1.0
    )
    model = IncrementalERM(
        estimator,
        budget.epsilon,
        budget.delta,
        neighbors=budget.neighbors,
        horizon=4,
        rows_per_step=3,
        **{"update_every": 1, **changes},
    )
    learner = model.plan(1).learner
    if undivided:
        # the mistake that composition is there to prevent: each fit spends it all
        event = estimator.solver.plan(None, budget).event
        whole = [replace(r, budget=budget, event=event) for r in learner.refits]
        learner = replace(learner, refits=tuple(whole))

    def released(steps, seed):
        rng, state, total = as_generator(seed), start, 0.0
        for X in steps:
            state = learner.step(state, X, np.zeros(len(X)), rng)
            total += learner.weights(state)[0, 0] * precision[state.n_steps]
        return np.array([total])

    start, precision = learner.init(), dict.fromkeys(range(1, 5), 0.0)
    for refit in learner.refits:
        assert isinstance(refit.event, GaussianNoise)
        precision[refit.step] = refit.event.multiplier**-2
    rows = model.rows_per_person
    replaced = budget.neighbors is REPLACE
    pair = stream([1.0], rows), stream([-1.0], rows if replaced else 0)
    return bound_of_runs(released, pair, n_runs, budget.delta, seed)


def check(budget, n_runs, seed, broken=0.5, **changes):
    honest = bound(budget, n_runs, seed, 1.0, **changes)
    control = bound(budget, n_runs, seed, broken, **changes)
    assert_refutes_the_control(
        "IncrementalERM", budget.epsilon, honest, control, broken
    )


@pytest.mark.statistical
def test_too_little_noise_of_the_fits_is_caught_quickly(seed):
    check(Budget(2.0, 1e-3), 150, seed, broken=0.25, update_every=4)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("split", ["even", "harmonic"])
def test_half_the_noise_of_the_fits_is_caught(neighbors, split, seed):
    check(Budget(8.0, 1e-3, neighbors), 300, seed, split=split)


@pytest.mark.slow
@pytest.mark.statistical
def test_half_the_noise_is_caught_where_a_person_has_several_rows(seed):
    check(Budget(8.0, 1e-3), 300, seed, rows_per_person=3, update_every="doubling")


@pytest.mark.slow
@pytest.mark.statistical
def test_a_budget_that_is_not_divided_is_caught(seed):
    budget = Budget(8.0, 1e-3)
    honest = bound(budget, 300, seed, 1.0)
    whole = bound(budget, 300, seed, 1.0, undivided=True)
    assert_refutes_the_control(
        "IncrementalERM", budget.epsilon, honest, whole, "each fit with all of it"
    )
