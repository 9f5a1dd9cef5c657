"""Noise on iterates and on their average, attacked on pairs that reach the bounds.

What is claimed survives; half the noise is refuted.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases

from tacit._random import as_generator
from tacit.convex import Huber
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import OnlineToBatch, Problem
from tacit.streaming import PerturbedIterates
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._iterates import ImplicitGradient, Leader, ProjectedGradient

SHARED_CASES = Cases(
    audits="ImplicitGradient Leader OnlineToBatch PerturbedIterates ProjectedGradient"
)

ADD = Neighbors.ADD_OR_REMOVE_ONE
HORIZON = 4


def straight(sign, n=HORIZON):
    """Return a row of derivative ``sign`` and others that move nothing."""
    X, y = np.zeros((n, 1)), np.zeros(n)
    X[0], y[0] = abs(sign), sign * 1e6
    return X, y


def evidence(plan, data, seed):
    """Return the score by which all releases together tell a pair best.

    Releases are normal with known standard deviations and differ by the sensitivities:
    the likelihood ratio is this sum.
    """
    X, y = data
    rng, state, total = as_generator(seed), plan.init(), 0.0
    std = plan.std()
    for t in range(plan.horizon):
        state = plan.step(state, X[t : t + 1], y[t : t + 1], rng)
        shown = float(plan.weights(state)[0, 0])
        total += shown * plan.sensitivity(t + 1) / std[t] ** 2
    return np.array([[total]])


def check(method, budget, pair, n_runs, seed):
    horizon = len(pair[0][1])
    problem = Problem(Huber(1.0), RowBounds(), horizon, 1)
    # far wider than the noise, so that the score stays a sum of normals
    plan = replace(method.plan(problem, budget, StreamTerms(horizon)), reach=1e9)
    schedule = plan.schedule
    halved = replace(plan, schedule=replace(schedule, spread=schedule.spread / 2))
    bounds = [
        bound_of_runs(
            lambda data, seed, plan=plan: evidence(plan, data, seed),
            pair,
            n_runs,
            budget.delta,
            seed,
        )
        for plan in (plan, halved)
    ]
    learner = type(method.learner).__name__
    name = f"PerturbedIterates with {learner}, {method.schedule}"
    assert_refutes_the_control(name, budget.epsilon, *bounds)


@pytest.mark.statistical
def test_half_the_noise_on_iterates_is_caught_quickly(seed):
    method = PerturbedIterates(ImplicitGradient(0.5), noise="float")
    pair = straight(1, 2), straight(-1, 2)
    check(method, Budget(10.0, 1e-5), pair, 600, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("learner", "schedule"),
    [
        (ImplicitGradient(0.5), "root"),
        (ImplicitGradient(0.5), "two_thirds"),
        (ImplicitGradient(0.5), "published"),
        (ProjectedGradient(0.5), "root"),
        (Leader(0.5), "root"),
    ],
    ids=str,
)
def test_claim_on_all_iterates_survives(learner, schedule, seed):
    pair = straight(1), straight(-1)
    check(PerturbedIterates(learner, schedule), Budget(3.0, 1e-3), pair, 2000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_on_a_row_more_survives(seed):
    # zero rows move nothing, so that a stream with one is as good as without
    pair = straight(1), straight(0)
    method = PerturbedIterates(ImplicitGradient(0.5))
    check(method, Budget(3.0, 1e-3, ADD), pair, 2000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("average", ["weighted", "uniform", "last"])
def test_claim_on_the_average_of_a_pass_survives(average, seed):
    # one row, so that no random order hides where it comes
    budget = Budget(3.0, 1e-3)
    solver = OnlineToBatch(average, strong_convexity=0.5)
    plan = solver.plan(Problem(Huber(1.0), RowBounds(), 1, 1), budget)
    halved = replace(plan, multiplier=plan.multiplier / 2)
    sides = [bounded_rows(*straight(sign, 1), RowBounds()) for sign in (1, -1)]
    bounds = [
        bound_of_runs(
            lambda rows, seed, plan=plan: (
                solver.run(plan, rows, as_generator(seed)).coefficients
            ),
            sides,
            3000,
            budget.delta,
            seed,
        )
        for plan in (plan, halved)
    ]
    assert_refutes_the_control(f"OnlineToBatch, {average}", budget.epsilon, *bounds)
