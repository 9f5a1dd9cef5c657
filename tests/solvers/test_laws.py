"""The distributions that the noise of a perturbed minimum can have."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from tests.solvers.test_contract import problem_of

from tacit._random import as_generator
from tacit.convex import Logistic
from tacit.privacy import Budget, PureDP, calibrate
from tacit.solvers import AMP, ObjectivePerturbation
from tacit.solvers._minimizers.noise_distributions import NoiseDistribution


def test_noise_laws_keep_their_stated_reach(seed):
    rng = as_generator(seed)
    for law in ("gaussian", "gamma", "laplace"):
        plan = AMP(law=law).plan(problem_of(Logistic(), 40, 30), Budget(1.0, 1e-5))
        noise = plan.tilted.noise_distribution
        drawn = np.array(
            [plan.tilted.mechanism(np.zeros((30, 1)), rng).ravel() for _ in range(200)]
        )
        scale, sensitivity = plan.tilted.scale(), plan.tilted.sensitivity
        assert np.abs(drawn).max() <= noise.furthest(scale)
        norms = np.linalg.norm(drawn, axis=1)
        multiplier = plan.tilted.multiplier
        assert norms.max() <= noise.norm(multiplier) * sensitivity
        expected = noise.std(multiplier) * sensitivity
        assert drawn.std() == pytest.approx(expected, rel=0.1)


def test_gamma_noise_needs_less_than_laplace_in_many_dimensions():
    budget = Budget(1.0, 1e-6)
    gamma, laplace, gaussian = (
        ObjectivePerturbation(ridge=5.0, law=law)
        .plan(problem_of(Logistic(), 40, 50), budget)
        .noise_distribution.std(
            calibrate(lambda noise: PureDP(1 / noise), budget, rtol=1e-3)
        )
        for law in ("gamma", "laplace", "gaussian")
    )
    assert laplace / gamma == pytest.approx(sqrt(2 * 50 / 51))
    assert gaussian < gamma


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 999, 10**6])
def test_the_laplace_sensitivity_bounds_the_l1_norm_in_exact_arithmetic(size):
    for sensitivity in (1.0, 0.1, 1 / 3, np.nextafter(2.0, 1.0), 1e-9, 12345.678):
        found = (
            NoiseDistribution("laplace", size)
            .mechanism(1.0, float(sensitivity))
            .sensitivity
        )
        exact = size * Fraction(float(sensitivity)) ** 2
        assert exact <= Fraction(found) ** 2 <= exact * Fraction("1.00000000001")
