"""Output perturbation, pure tilts and constrained minima attacked end to end.

As in the audits of the other solvers, an honest claim is refuted with probability at
most P_FAIL, and the control with less noise must be refuted.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.audits.test_solvers import ADD, REPLACE, STEEP, Attack, check
from tests.cases import Cases

from tacit.audit import worst_case_pair
from tacit.convex import Box
from tacit.privacy import Budget
from tacit.solvers import AMP
from tacit.solvers.output_perturbation import OutputPerturbation

SHARED_CASES = Cases(audits="AMP OutputPerturbation")

# A heavy ridge keeps the weights where the capped loss is steepest, so that rows move
# them as far as declared.
GAUSSIAN = {
    "output": OutputPerturbation(ridge=200.0),
    "published output": OutputPerturbation(ridge=200.0, accounting="paper"),
}
PURE = {
    "output": OutputPerturbation(ridge=200.0),
    "amp": AMP(ridge=200.0),
}


@dataclass(frozen=True)
class Inside:
    """A solver whose weights are kept in a set."""

    solver: Any
    regularizer: Any

    def plan(self, problem, budget):
        return self.solver.plan(replace(problem, regularizer=self.regularizer), budget)

    def run(self, plan, rows, rng):
        return self.solver.run(plan, rows, rng)


def attack_on(solver, budget, method="gaussian"):
    pair = worst_case_pair("logistic", 2, 1, neighbors=budget.neighbors)
    return Attack(solver, STEEP, pair, budget, method)


@pytest.mark.statistical
def test_half_the_noise_of_an_output_is_caught_quickly(seed):
    # so large a claim shows in the fewest runs
    check(attack_on(GAUSSIAN["output"], Budget(10.0, 1e-5, ADD)), 800, seed)


@pytest.mark.statistical
@pytest.mark.parametrize("name", PURE)
def test_half_the_noise_of_a_pure_claim_is_caught_quickly(name, seed):
    budget = Budget(1.0, 0.0, ADD)
    check(attack_on(PURE[name], budget, "clopper-pearson"), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_claim_for_an_output_survives_and_half_the_noise_is_caught(neighbors, seed):
    check(attack_on(GAUSSIAN["output"], Budget(3.0, 1e-3, neighbors)), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("name", PURE)
def test_pure_claim_survives_and_half_the_noise_is_caught(name, neighbors, seed):
    budget = Budget(1.5, 0.0, neighbors)
    check(attack_on(PURE[name], budget, "clopper-pearson"), 5000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_in_a_set_survives(seed):
    # so narrow that the noise often ends at its ends
    narrow = Inside(AMP(ridge=200.0), Box(-0.005, 0.005))
    attack = attack_on(narrow, Budget(3.0, 1e-3, ADD), "clopper-pearson")
    check(attack, 4000, seed, broken=0.25)


@pytest.mark.slow
@pytest.mark.statistical
def test_published_noise_of_an_output_has_room(seed):
    attack = attack_on(GAUSSIAN["published output"], Budget(3.0, 1e-3, ADD))
    found = attack.epsilon(2000, seed)
    assert found.epsilon_lower < 0.5 * attack.budget.epsilon
