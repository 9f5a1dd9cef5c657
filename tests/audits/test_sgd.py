"""Stochastic gradients attacked end to end, thousands of trainings on a worst pair.

An honest solver is refuted with probability at most P_FAIL an audit; with half the
noise it must be refuted.
"""

from dataclasses import replace

import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases

from tacit._random import as_generator
from tacit.audit import worst_case_pair
from tacit.convex import Huber, Logistic
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers.noisy_sgd import NoisySGD
from tacit.solvers.permuted_sgd import PermutedSGD

SHARED_CASES = Cases(audits="NoisySGD PermutedSGD")

ADD = Neighbors.ADD_OR_REMOVE_ONE


def lower_bound(solver, plan, pair, budget, n_runs, seed, method):
    sides = [bounded_rows(X, y, RowBounds()) for X, y in pair]
    return bound_of_runs(
        lambda rows, seed: solver.run(plan, rows, as_generator(seed)).coefficients,
        sides,
        n_runs,
        budget.delta,
        seed,
        method,
    )


def check(solver, problem, pair, budget, n_runs, seed, method="gaussian"):
    plan = solver.plan(problem, budget)
    halved = replace(plan, multiplier=plan.multiplier / 2)
    planned, control = (
        lower_bound(solver, p, pair, budget, n_runs, seed, method)
        for p in (plan, halved)
    )
    name = type(solver).__name__
    assert_refutes_the_control(name, budget.epsilon, planned, control)


def check_passes(solver, budget, n_runs, seed):
    # targets far beyond the threshold: every loss is a straight line
    pair = worst_case_pair("huber", 4, 1)
    problem = Problem(Huber(0.05), RowBounds(), 4, 1)
    check(solver, problem, pair, budget, n_runs, seed)


@pytest.mark.statistical
def test_half_the_noise_on_the_last_weights_is_caught_quickly(seed):
    solver = PermutedSGD(n_passes=3, batch=2, step=0.5)
    check_passes(solver, Budget(10.0, 1e-5), 800, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("ridge", [0.0, 2.0], ids=["plain", "ridge"])
def test_claim_on_the_last_weights_survives(ridge, seed):
    solver = PermutedSGD(n_passes=4, batch=1, ridge=ridge)
    check_passes(solver, Budget(3.0, 1e-3), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_half_the_noise_on_sampled_steps_is_caught(seed):
    # one step tells all that a sampled step can; more of them only hide it
    pair = worst_case_pair("logistic", 2, 1, neighbors=ADD)
    problem = Problem(Logistic(cap=0.5), RowBounds(), 2, 1)
    solver = NoisySGD(n_steps=1, batch=1, step=1e-3)
    budget = Budget(1.5, 1e-2, ADD)
    check(solver, problem, pair, budget, 6000, seed, "clopper-pearson")


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_on_full_samples_survives(seed):
    pair = worst_case_pair("logistic", 2, 1)
    problem = Problem(Logistic(cap=0.5), RowBounds(), 2, 1)
    solver = NoisySGD(n_steps=4, step=1e-3, momentum=0.0)
    check(solver, problem, pair, Budget(3.0, 1e-3), 3000, seed)
