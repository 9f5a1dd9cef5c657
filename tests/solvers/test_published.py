"""Constants as published: those that hold, and those that fail."""

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
import pytest
from tests.solvers.test_perturbation import (
    each_relation,
    problem_of,
    run_on,
    sample,
    tilt_of,
)

from tacit._release import recording
from tacit.convex import HuberizedHinge, Logistic, Softmax
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.privacy import Budget, GaussianNoise, Neighbors
from tacit.solvers import AMP, ObjectivePerturbation
from tacit.solvers._published import AMPSplit
from tacit.solvers.output_perturbation import OutputPerturbation


@dataclass(frozen=True)
class Linear:
    """The loss ``y z``: as simple as a Lipschitz loss can be."""

    n_outputs: int = 1
    targets: str = "labels"

    def value(self, y, Z):
        return y * Z[:, 0]

    def derivative(self, y, Z):
        return np.array(y, dtype=float)[:, None]

    def curvature(self, y, Z):
        return np.zeros(Z.shape)

    def curvature_product(self, y, Z, V):
        return np.zeros(Z.shape)

    def max_derivative(self, reach, y_range):
        return 1.0

    def max_curvature(self):
        return 1e-12  # it is zero, which no step size is made for

    def max_trace(self):
        return self.max_curvature()

    def derivative_rank(self):
        return 1


def test_linear_loss_shows_that_printed_objective_noise_is_too_small(seed):
    # the minimizer of a linear loss is -(sum of gradients + tilt) / ridge: a Gaussian
    # mechanism, whose delta is known exactly
    problem, budget = problem_of(Linear(), 30), Budget(1.0, 1e-6)
    solver = ObjectivePerturbation(ridge=3.0)
    plan = solver.plan(problem, budget)
    X, y = sample(Logistic(), seed, n=30)
    with recording() as tape:
        W = run_on(solver, plan, (X, y), seed)
    tilt = tape.releases[0].output
    gradients = RowBounds().clip(X).T @ y[:, None]
    np.testing.assert_allclose(W, -(gradients + tilt) / 3.0, atol=1e-6)

    def exact_delta(multiplier):
        return GaussianNoise(multiplier).curve(budget.neighbors).delta(budget.epsilon)

    assert exact_delta(plan.multiplier) <= budget.delta
    # Jain and Thakurta (2014), Theorem 2, over the sensitivity of a replacement
    for delta, factor in ((1e-6, 5.9), (1e-9, 110.0)):
        printed = 2 * sqrt(log(1 / delta) + 1.0) / 1.0 / 2
        assert exact_delta(printed) / delta == pytest.approx(factor, rel=0.02)
    # adding a row to it reaches the bound of output perturbation
    output = OutputPerturbation(ridge=3.0).plan(problem, budget)
    assert output.sensitivity == pytest.approx(2 / 3.0, rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "ridge"),
    [
        (0.01, 20_202.0),
        (0.0316, 1459.0),
        (0.1, 297.2),
        (0.316, 76.3),
        (1.0, 21.51),
        (3.162, 6.351),
        (10.0, 2.020),
    ],
)
def test_published_split_has_the_published_values(epsilon, ridge):
    n = 36_176
    budget = Budget(epsilon, n**-2.0)
    problem = problem_of(Logistic(), n, 100)
    plan = AMP(accounting="paper").plan(problem, budget)
    assert plan.tilted.ridge == pytest.approx(ridge, rel=3e-3)
    split = AMPSplit.of(problem, budget, None, None)
    std = plan.tilted.multiplier * plan.tilted.sensitivity
    expected = 2 * (1 + sqrt(2 * log(1 / split.tilt_delta))) / split.noise_epsilon
    assert std == pytest.approx(expected, rel=1e-12)
    if epsilon in (0.1, 1.0):
        known = {0.1: 162.2, 1.0: 16.68}[epsilon]
        assert std == pytest.approx(known, rel=1e-3)
    # few rows a feature: the other rule
    wide = AMP(accounting="paper").plan(problem_of(Logistic(), n, n), budget)
    left = 0.99 * epsilon * min(0.03, 0.99 / (0.99 * epsilon))
    assert wide.tilted.ridge == pytest.approx(2 / left, rel=1e-9)


@each_relation
@pytest.mark.parametrize("h", [0.1, 0.5])
def test_published_constants_keep_their_budget(neighbors, h):
    for epsilon in (0.01, 0.1, 0.316, 1.0, 3.16, 10.0):
        for loss in (Logistic(), HuberizedHinge(h)):
            problem = problem_of(loss, 5000, 20)
            budget = Budget(epsilon, 1e-7, neighbors)
            for solver in (
                AMP(accounting="paper"),
                ObjectivePerturbation(accounting="paper"),
                ObjectivePerturbation(accounting="paper", law="laplace"),
                OutputPerturbation(accounting="paper"),
                OutputPerturbation(accounting="paper", law="laplace"),
            ):
                plan = solver.plan(problem, budget)
                assert plan.event.curve(neighbors).fits(budget)
                if epsilon not in (0.1, 10.0):
                    continue
                tight = replace(solver, accounting="tight", ridge=tilt_of(plan).ridge)
                least = tilt_of(tight.plan(problem, budget)).multiplier
                assert tilt_of(plan).multiplier > least


def test_published_constants_are_those_of_their_papers():
    budget, n = Budget(0.8, 1e-6, Neighbors.ADD_OR_REMOVE_ONE), 900
    problem = problem_of(Logistic(), n)
    plan = ObjectivePerturbation(accounting="paper").plan(problem, budget)
    assert plan.ridge == pytest.approx(2 * 0.25 / 0.8)
    assert plan.multiplier**2 == pytest.approx((8 * log(2e6) + 4 * 0.8) / 0.8**2)
    plan = ObjectivePerturbation(accounting="paper", law="gamma").plan(problem, budget)
    assert plan.multiplier == pytest.approx(2 / 0.8)
    solver = OutputPerturbation(ridge=3.0, accounting="paper", law="gamma")
    plan = solver.plan(problem, budget)
    assert plan.multiplier * plan.sensitivity == pytest.approx(4 / (3.0 * 0.8))
    # four times the least, but for the tolerance of the minimizer
    assert plan.multiplier == pytest.approx(4 / 0.8, rel=1e-4)
    plan = OutputPerturbation(ridge=3.0, accounting="paper").plan(problem, budget)
    scale = plan.multiplier * plan.sensitivity
    assert scale**2 == pytest.approx(16 * (log(1e6) + 0.8) / (3.0 * 0.8) ** 2)
    plan = AMP(accounting="paper", output_share=0.2, tilt_share=0.5).plan(
        problem, budget
    )
    assert plan.tilted.ridge == pytest.approx(2 / (0.5 * 0.8 * 0.8))
    assert plan.gradient_tolerance == pytest.approx(1 / n)


@pytest.mark.parametrize(
    ("solver", "problem", "budget", "cure"),
    [
        (AMP, problem_of(Softmax(3)), Budget(1.0, 1e-5), "accounting='tight'"),
        (AMP, problem_of(Logistic()), Budget(1.0), "accounting='tight'"),
        (ObjectivePerturbation, problem_of(Softmax(3)), Budget(1.0, 1e-5), "'tight'"),
    ],
)
def test_published_constants_are_refused_where_they_have_no_proof(
    solver, problem, budget, cure
):
    with pytest.raises(PlanError, match=cure):
        solver(accounting="paper").plan(problem, budget)


def test_published_split_is_refused_outside_its_range():
    problem = problem_of(Logistic())
    with pytest.raises(PlanError, match="change tilt_share"):
        AMP(accounting="paper", tilt_share=0.5).plan(problem, Budget(10.0, 1e-5))
    with pytest.raises(PlanError, match="raise ridge"):
        AMP(accounting="paper", ridge=1e-3).plan(problem, Budget(1.0, 1e-5))
    with pytest.raises(ValueError, match="accounting='paper'"):
        AMP(output_share=0.1)


def test_final_noise_without_the_factor_two_breaks_its_promise():
    budget = Budget(1.0, 1e-6)
    plan = AMP(accounting="paper").plan(problem_of(Logistic(), 5000, 20), budget)
    split = AMPSplit.of(plan.tilted.problem, budget, None, None)
    assert plan.output_multiplier == split.output_multiplier

    def exact_delta(multiplier):
        curve = GaussianNoise(multiplier).curve(budget.neighbors)
        return curve.delta(split.output_epsilon)

    assert exact_delta(plan.output_multiplier) <= split.output_delta
    # two points may lie on opposite sides of the exact one, twice as far apart
    published = plan.output_multiplier * (plan.output_sensitivity / 2)
    assert exact_delta(published / plan.output_sensitivity) > 10 * split.output_delta
