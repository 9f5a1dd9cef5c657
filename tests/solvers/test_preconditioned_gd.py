"""Descent in the geometry of noisy second moments."""

from dataclasses import replace

import numpy as np
import pytest
from tests.solvers.running import coefficients, exact_minimum
from tests.solvers.test_contract import problem_of, sample
from tests.strategies import adversarial_pairs, each_relation

from tacit import Seed
from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import L1, Huber, Logistic, Softmax
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.linear_model import LogisticRegression
from tacit.privacy import Budget, GaussianNoise, Repeated
from tacit.solvers import PreconditionedGD, Problem
from tacit.solvers.preconditioned_gd import MOST_FEATURES, FeatureSums

BUDGET = Budget(1.0, 1e-5)


def test_moments_are_a_small_part_of_the_budget():
    plan = PreconditionedGD().plan(problem_of(Logistic()), BUDGET)
    steps = Repeated(GaussianNoise(plan.multiplier), plan.n_steps)
    alone = steps.curve(BUDGET.neighbors).epsilon(BUDGET.delta)
    assert 0.97 <= alone / BUDGET.epsilon < 1.0


@pytest.mark.parametrize("x_norm", [1e-3, 7.0, 1e3])
def test_the_unit_of_the_features_does_not_matter(x_norm, seed):
    X, y = sample(Logistic(), seed, n=400)
    fitted = []
    for unit in (1.0, x_norm):
        solver = PreconditionedGD(noise="float")
        plan = solver.plan(problem_of(Logistic(), 400, x_norm=unit), BUDGET)
        rows = bounded_rows(unit * X, y, RowBounds(unit))
        fitted.append(unit * coefficients(solver, plan, rows, seed))
    np.testing.assert_allclose(fitted[1], fitted[0], rtol=1e-6)


def test_tends_to_the_minimum_with_steps_and_budget(seed):
    # columns of very unequal spread, for which plain descent would need many steps
    X, y = sample(Logistic(), seed, n=300)
    X = np.column_stack([X[:, 0], 1e-2 * X[:, 1]])
    rows = bounded_rows(X, y, RowBounds())
    problem = problem_of(Logistic(), 300, ridge=0.1)
    exact = exact_minimum(Logistic(), rows, 0.1)
    gaps = []
    for n_steps in (2, 20, 200):
        solver = PreconditionedGD(n_steps=n_steps, damping=1e-9)
        plan = solver.plan(problem, Budget(1e13, 1e-5))
        W = coefficients(solver, plan, rows, seed)
        gaps.append(np.linalg.norm(W - exact) / np.linalg.norm(exact))
    assert gaps[0] > 100 * gaps[1]
    assert max(gaps[1:]) <= 1e-4


def test_two_opposite_rows_reach_the_bound_on_the_moments():
    plan = PreconditionedGD().plan(problem_of(Logistic()), BUDGET)
    moments = FeatureSums(plan.problem, plan.clip).moments
    first, second = (
        bounded_rows(np.array([row]), np.array([1.0]), RowBounds()).sum(moments)[0]
        for row in ([1.0, 0.0], [0.0, 1.0])
    )
    distance = np.linalg.norm(first - second)
    assert 0.999 * plan.moment_sensitivity <= distance <= plan.moment_sensitivity


@pytest.mark.parametrize("loss", [Logistic(cap=0.5), Softmax(3), Huber()], ids=repr)
@each_relation
def test_neighbors_stay_within_both_sensitivities(loss, neighbors, seed):
    solver = PreconditionedGD(n_steps=3)
    budget = Budget(5.0, 1e-3, neighbors)
    plan = solver.plan(problem_of(loss, n_rows=5), budget)
    halved = replace(
        plan,
        moment_sensitivity=plan.moment_sensitivity / 2,
        sensitivity=plan.sensitivity / 2,
    )
    caught = False
    for pair in adversarial_pairs(loss, neighbors):
        sides = [
            (bounded_rows(*data, RowBounds()),) for data in (pair.first, pair.second)
        ]
        report = assert_replays(
            lambda rows: coefficients(solver, plan, rows, seed), *sides
        )
        assert len(report.entries) == 4
        caught |= not replay(
            lambda rows: coefficients(solver, halved, rows, seed),
            *sides,
        ).ok
    assert caught


@pytest.mark.parametrize(
    ("problem", "budget", "cure"),
    [
        (problem_of(Logistic()), Budget(1.0, 0.0), "AMP"),
        (replace(problem_of(Logistic()), regularizer=L1()), BUDGET, "NoisyGD"),
        (problem_of(Logistic(), n_features=MOST_FEATURES + 1), BUDGET, "NoisyGD"),
        (Problem(Logistic(), RowBounds(norm="linf"), 40, 2), BUDGET, "norm='l2'"),
    ],
    ids=["pure", "penalty", "wide", "linf"],
)
def test_what_it_cannot_do_is_refused_with_a_cure(problem, budget, cure):
    with pytest.raises(PlanError, match=cure):
        PreconditionedGD().plan(problem, budget)


@pytest.mark.parametrize("x_norm", [1e-90, 1e-60, 1e60, 1e78, 1e90])
def test_the_noise_is_that_of_the_same_rows_in_other_units(x_norm):
    rng = as_generator(0)
    X = rng.normal(size=(5000, 2)) / 3
    y = X[:, 0] + rng.normal(size=5000) / 3 > 0

    def fitted(unit):
        model = LogisticRegression(
            8.0,
            1e-6,
            classes=(False, True),
            x_norm=unit,
            solver=PreconditionedGD(),
            random_state=Seed(0),
        )
        return model.fit(unit * X, y)

    noise, same = fitted(x_norm).noise_, fitted(1.0).noise_
    assert same is not None
    assert np.allclose(noise.coef * x_norm, same.coef, rtol=1e-9)
