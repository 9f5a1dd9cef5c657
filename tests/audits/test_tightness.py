"""How much of a claim the best attack shows, at epsilon one on worst-case data.

The event is fixed beforehand, so that all runs judge it: a release beyond the middle of
the two sides where the trade-off is Gaussian, beyond the far side for Laplace noise,
where an event of probability one half becomes least likely.
"""

import numpy as np
import pytest
from tests.audits.test_mechanisms import in_parts
from tests.audits.test_solvers import STEEP, quieter
from tests.audits.verdict import check, event_bound, gaussian_event_bound
from tests.cases import Cases

from tacit._random import as_generator
from tacit.audit import worst_case_pair
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy import Budget, GaussianNoise, calibrate
from tacit.solvers import NoisyGD, ObjectivePerturbation, Problem

SHARED_CASES = Cases(audits="Gaussian Laplace NoisyGD ObjectivePerturbation")

BUDGET = Budget(1.0, 1e-5)


def beyond(mechanism, value, threshold, n, seed):
    """Return how many of n releases of a number are beyond the threshold."""
    rng = as_generator(seed)
    releases = in_parts(lambda k: mechanism(np.full(k, value), rng), n)
    return int((releases >= threshold).sum())


def gaussian_lower(n, seed):
    multiplier = calibrate(GaussianNoise, BUDGET)

    def lower(part):
        mechanism = Gaussian(part * multiplier, 1.0)
        hits = [beyond(mechanism, side, 0.5, n, seed + side) for side in (1, 0)]
        return gaussian_event_bound(*hits, n, BUDGET.delta)

    return lower


def laplace_lower(n, seed):
    def lower(part):
        mechanism = Laplace(part, 1.0)
        hits = [beyond(mechanism, side, 1.0, n, seed + side) for side in (1, 0)]
        return event_bound(*hits, n)

    return lower


@pytest.mark.statistical
def test_four_fifths_of_a_gaussian_claim_are_shown_quickly(seed):
    check("Gaussian, at one", 1.0, gaussian_lower(200_000, seed), least=0.8)


@pytest.mark.statistical
def test_four_fifths_of_a_laplace_claim_are_shown_quickly(seed):
    check("Laplace, at one", 1.0, laplace_lower(100_000, seed), least=0.8)


@pytest.mark.slow
@pytest.mark.statistical
def test_nine_tenths_of_the_claims_of_mechanisms_are_shown(seed):
    check("Gaussian, at one", 1.0, gaussian_lower(1_000_000, seed), least=0.9)
    check("Laplace, at one", 1.0, laplace_lower(1_000_000, seed), least=0.9)


def solver_lower(solver, budget, n_runs, seed, bound=gaussian_event_bound):
    """Attack the one weight that two rows have, of which one changes its label."""
    pair = worst_case_pair("logistic", 2, 1, neighbors=budget.neighbors)
    problem = Problem(STEEP, RowBounds(), 2, 1)
    planned = solver.plan(problem, budget)
    sides = [bounded_rows(X, y, RowBounds()) for X, y in pair]

    def lower(part):
        # so much less noise shows in far fewer runs
        n, plan = n_runs if part == 1.0 else n_runs // 5, quieter(planned, part)
        rng = as_generator(seed)
        hits = [
            sum(solver.run(plan, rows, rng).coefficients[0, 0] >= 0 for _ in range(n))
            for rows in sides
        ]
        return bound(*hits, n, budget.delta)

    return lower


@pytest.mark.slow
@pytest.mark.statistical
def test_four_fifths_of_the_claim_of_noisy_descent_are_shown(seed):
    # short steps keep the derivative where it is, and all sums reveal the row
    solver = NoisyGD(n_steps=2, step=1e-3, momentum=0.0)
    lower = solver_lower(solver, Budget(1.0, 1e-3), 60_000, seed)
    check("NoisyGD, at one", 1.0, lower, least=0.8)


@pytest.mark.slow
@pytest.mark.statistical
def test_half_of_the_claim_of_a_perturbed_objective_is_shown(seed):
    # a heavy ridge leaves the tilt alone, which the row moves in full
    solver = ObjectivePerturbation(ridge=200.0)
    lower = solver_lower(solver, Budget(1.0, 1e-3), 20_000, seed)
    check("ObjectivePerturbation, at one", 1.0, lower, least=0.5)
