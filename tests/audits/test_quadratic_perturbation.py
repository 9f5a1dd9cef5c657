"""Perturbed least squares, with a plain ridge and an adaptive one, attacked."""

import pytest
from tests.audits.test_perturbation import Inside
from tests.audits.test_solvers import ADD, REPLACE, Attack, check
from tests.cases import Cases

from tacit.audit import worst_case_pair
from tacit.convex import Box, L2Ball, Squared
from tacit.privacy import Budget
from tacit.solvers import AdaptiveRidge, QuadraticPerturbation

SHARED_CASES = Cases(audits="AdaptiveRidge QuadraticPerturbation")

# So heavy a ridge and so small a set leave the pull of the target alone, which the
# pair attains; what is left is close to a plain Gaussian release
SMALL = L2Ball(0.05)
SOLVERS = {
    "plain in a ball": Inside(QuadraticPerturbation(ridge=1e4), SMALL),
    "plain in a box": Inside(QuadraticPerturbation(ridge=1e4), Box(-0.05, 0.05)),
    "adaptive": Inside(AdaptiveRidge(ridge=1e4), SMALL),
}

each_solver = pytest.mark.parametrize("name", SOLVERS)


def attack_on(name, budget, method="gaussian"):
    pair = worst_case_pair("squared", 2, 1, neighbors=budget.neighbors)
    return Attack(SOLVERS[name], Squared(), pair, budget, method)


@pytest.mark.statistical
@each_solver
def test_half_the_noise_is_caught_quickly(name, seed):
    # so large a claim shows in the fewest runs
    check(attack_on(name, Budget(10.0, 1e-5, REPLACE)), 800, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
@each_solver
def test_claim_survives_and_half_the_noise_is_caught(name, neighbors, seed):
    check(attack_on(name, Budget(4.0, 1e-3, neighbors)), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@each_solver
def test_pure_claim_survives_and_half_the_noise_is_caught(name, seed):
    check(attack_on(name, Budget(1.5, 0.0, ADD), "clopper-pearson"), 5000, seed)
