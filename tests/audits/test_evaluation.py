"""Intervals and the private score, attacked on the data sets that reveal most."""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import bound_of_runs, check
from tests.cases import Cases

from tacit._random import as_generator
from tacit.convex import Squared
from tacit.data import RowBounds
from tacit.data.rows import ArrayRows
from tacit.evaluation._curvature import plan_curvature
from tacit.evaluation._score import PARTS, ScorePlan
from tacit.privacy import Budget, LaplaceNoise, Neighbors, calibrate
from tacit.solvers import Problem

SHARED_CASES = Cases(audits="coefficient_intervals private_score")

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE

each_relation = pytest.mark.parametrize(
    "neighbors", [REPLACE, ADD], ids=["replace", "add"]
)


def matrices_attack(budget, n_runs, seed):
    """One row at a corner, or at another; its residual is as large as it can be.

    Weights are small, so that rows across from each other have nearly the largest
    residual, and their outer products nothing in common.
    """
    W = np.full((2, 1), -0.01)
    first = np.array([[1.0, 0.0]])
    second = np.array([[0.0, 1.0]]) if budget.neighbors is REPLACE else np.zeros((1, 2))
    problem = Problem(Squared(), RowBounds(), 1, 2)
    plan = plan_curvature(problem, W, budget, with_hessian=True)

    def epsilon(noise):
        quieter = replace(plan, multiplier=noise * plan.multiplier)

        def release(rows, seed):
            return np.stack(quieter.run(rows, as_generator(seed)))

        return bound_of_runs(
            release,
            [ArrayRows(X, np.ones(1)) for X in (first, second)],
            n_runs,
            budget.delta,
            seed,
        )

    return epsilon


@pytest.mark.statistical
@each_relation
def test_half_the_noise_of_intervals_is_caught(neighbors, seed):
    budget = Budget(10.0, 1e-5, neighbors)
    check("coefficient_intervals", 10.0, matrices_attack(budget, 500, seed))


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_of_intervals_survives_at_a_usual_budget(neighbors, seed):
    budget = Budget(4.0, 1e-3, neighbors)
    check("coefficient_intervals", 4.0, matrices_attack(budget, 4000, seed))


def score_attack(budget, n_runs, seed):
    """All answers are right, but for one: it is wrong, or it is not there."""
    rows = np.full(20, PARTS, dtype=np.int64)
    other = rows[1:].copy()
    if budget.neighbors is REPLACE:
        other = rows.copy()
        other[0] = 0
    n = len(rows) if budget.neighbors is REPLACE else None
    plan = ScorePlan(n, calibrate(LaplaceNoise, budget))

    def epsilon(noise):
        quieter = replace(plan, multiplier=noise * plan.multiplier)
        return bound_of_runs(
            lambda parts, s: quieter.run(parts, as_generator(s)),
            (rows, other),
            n_runs,
            0.0,
            seed,
            method="clopper-pearson",
        )

    return epsilon


@pytest.mark.statistical
@each_relation
def test_half_the_noise_of_a_score_is_caught(neighbors, seed):
    check("private_score", 1.0, score_attack(Budget(1.0, 0.0, neighbors), 1500, seed))


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_of_a_score_survives_many_runs(neighbors, seed):
    check("private_score", 0.5, score_attack(Budget(0.5, 0.0, neighbors), 6000, seed))
