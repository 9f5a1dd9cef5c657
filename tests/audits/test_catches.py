"""Known mistakes, each in a copy that makes it: an audit catches them all.

The copies are wrong on purpose: half the noise, a sensitivity that is too small by two,
scales and constants as they were printed. What is corrected survives the same attack.
"""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from tests.audits.test_mechanisms import in_parts
from tests.audits.test_solvers import STEEP
from tests.audits.verdict import (
    assert_refutes_the_control,
    event_bound,
    gaussian_event_bound,
)

from tacit._random import as_generator
from tacit.audit import worst_case_pair
from tacit.convex import Objective
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AMP, NoisyGD, OutputPerturbation, Problem
from tacit.solvers._minimum import certified_minimum

pytestmark = pytest.mark.statistical

RIDGE = 200.0
PROBLEM = Problem(STEEP, RowBounds(), 2, 1)
REPLACED, ADDED = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE


def noisy_of(mechanism, value, rng):
    """Return what draws so many releases of one number."""
    return lambda k: mechanism(np.full(k, value), rng)


def lower_bound(mechanism, values, threshold, n, seed, bound, delta=0.0):
    """Bound epsilon of noise on one of two numbers, the first of them the larger."""
    rng = as_generator(seed)
    hits = [
        int(np.sum(in_parts(noisy_of(mechanism, value, rng), n) >= threshold))
        for value in values
    ]
    return bound(*hits, n, delta)


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
@pytest.mark.parametrize(
    ("mistake", "wrong"),
    [
        ("half the noise", {"multiplier": 0.5}),
        ("half the sensitivity", {"sensitivity": 0.5}),
    ],
)
def test_too_little_noise_and_too_small_a_sensitivity_are_caught(
    kind, mistake, wrong, seed
):
    honest = kind(1.0, 1.0)
    delta, bound, threshold = 0.0, event_bound, 1.0
    if kind is Gaussian:
        delta, bound, threshold = 1e-5, gaussian_event_bound, 0.5
    claim = honest.curve(REPLACED).epsilon(delta)
    found = [
        lower_bound(mechanism, (1.0, 0.0), threshold, 50_000, seed, bound, delta)
        for mechanism in (honest, replace(honest, **wrong))
    ]
    name = f"{kind.__name__}, {mistake}"
    assert_refutes_the_control(name, claim, *found, mistake, least=0.8)


class ForgetsTheOtherRow(NoisyGD):
    """Takes a replaced row for an added one, so that its sensitivity is half."""

    def plan(self, problem, budget):
        return super().plan(problem, replace(budget, neighbors=ADDED))


def test_a_solver_that_forgets_what_a_row_is_replaced_by_is_caught(seed):
    budget, n = Budget(3.0, 1e-3), 1500
    pair = worst_case_pair("logistic", 2, 1)
    sides = [bounded_rows(X, y, RowBounds()) for X, y in pair]

    def lower(kind):
        solver = kind(n_steps=1, step=1e-3, momentum=0.0)
        plan, rng = solver.plan(PROBLEM, budget), as_generator(seed)
        hits = [
            sum(solver.run(plan, rows, rng)[0, 0] >= 0 for _ in range(n))
            for rows in sides
        ]
        return gaussian_event_bound(*hits, n, budget.delta)

    found = lower(NoisyGD), lower(ForgetsTheOtherRow)
    name, mistake = "NoisyGD, a replaced row", "half the sensitivity"
    assert_refutes_the_control(name, budget.epsilon, *found, mistake)


def noisy_max_bound(scales, sides, n, seed):
    """Bound epsilon by how often the first score is the largest with its noise."""
    rng = as_generator(seed)
    hits = [
        int(np.sum(np.argmax(scores + scales * laplace(n, len(scores), rng), 1) == 0))
        for scores in sides
    ]
    return event_bound(*hits, n)


def laplace(n, k, rng):
    return Laplace(1.0, 1.0, "float")(np.zeros((n, k)), rng)


def test_the_published_scale_of_noisy_max_is_caught(seed):
    # the first score falls and all others rise, as scores that are not counts may
    epsilon, k, n = 2.0, 20, 300_000
    up, down = np.zeros(k), np.ones(k)
    up[0], down[0] = 1.0, 0.0
    found = [
        noisy_max_bound(np.full(k, scale), (up, down), n, seed)
        for scale in (2 / epsilon, 1 / epsilon)
    ]
    mistake = "the scale as printed"
    assert_refutes_the_control("NoisyMax", epsilon, *found, mistake, least=0.7)


def test_a_scale_of_its_own_for_each_score_is_caught(seed):
    # the printed theorem gives a score that hardly moves hardly any noise: it then
    # wins when all others lose, which each of them makes less likely
    epsilon, k, n = 1.0, 20, 100_000
    first = np.zeros(k)
    first[0] = 2.0
    second = first + (np.arange(k) > 0)
    common = np.full(k, 2 / epsilon)
    own = np.where(np.arange(k) > 0, 1 / epsilon, 1e-9)
    found = [
        noisy_max_bound(scales, (first, second), n, seed) for scales in (common, own)
    ]
    mistake = "a scale for each score"
    assert_refutes_the_control("NoisyMax, unequal", epsilon, *found, mistake)


def minima(ridge, pair, tolerance):
    """Return the certified minimum on either side, and the rows."""
    objective = Objective(STEEP, ridge)
    sides = [bounded_rows(X, y, RowBounds()) for X, y in pair]
    return [
        (rows, certified_minimum(PROBLEM, objective, rows, tolerance, 1.0))
        for rows in sides
    ]


def test_the_published_variance_of_output_perturbation_is_caught(seed):
    budget, n = Budget(1.0, 1e-5), 100_000
    plan = OutputPerturbation(ridge=RIDGE).plan(PROBLEM, budget)
    pair = worst_case_pair("logistic", 2, 1)
    found = minima(RIDGE, pair, plan.gradient_tolerance)
    values = sorted((float(W[0, 0]) for _, W in found), reverse=True)
    # two log(1.25 / delta) over (ridge epsilon)^2: the proof needs four times that
    printed = sqrt(2 * log(1.25 / budget.delta)) * PROBLEM.lipschitz / RIDGE

    def lower(multiplier):
        return lower_bound(
            Gaussian(multiplier, plan.sensitivity),
            values,
            sum(values) / 2,
            n,
            seed,
            gaussian_event_bound,
            budget.delta,
        )

    bounds = lower(plan.multiplier), lower(printed / plan.sensitivity)
    assert_refutes_the_control(
        "OutputPerturbation, one weight", 1.0, *bounds, "the variance as printed"
    )


def test_the_missing_factor_of_approximate_minima_is_caught(seed):
    # The proof hands out the exact minimum and pays the final noise for how far two
    # runs may stop from it, each on its side: twice what the published lemma takes
    n, multiplier = 100_000, 1.0
    plan = replace(
        AMP(ridge=RIDGE).plan(PROBLEM, Budget(1.0, 1e-5)), output_multiplier=multiplier
    )
    tolerance = plan.gradient_tolerance
    reach = tolerance / (plan.tilted.ridge + PROBLEM.smoothness)
    pair = worst_case_pair("logistic", 2, 1)
    (rows, W), _ = minima(plan.tilted.ridge, pair, tolerance / 1000)
    objective = Objective(STEEP, plan.tilted.ridge)
    for stopped in (W - reach * 0.99, W + reach * 0.99):
        assert np.linalg.norm(objective.gradient(rows, stopped)) <= tolerance

    def lower(sensitivity):
        mechanism, stopped = Gaussian(multiplier, sensitivity), 0.99 * reach
        ends = stopped, -stopped
        return lower_bound(mechanism, ends, 0.0, n, seed, gaussian_event_bound, 1e-5)

    claim = Gaussian(multiplier, 1.0).curve(REPLACED).epsilon(1e-5)
    bounds = lower(plan.output_sensitivity), lower(plan.output_sensitivity / 2)
    assert_refutes_the_control(
        "AMP, the final noise", claim, *bounds, "the factor two left out", least=0.8
    )
