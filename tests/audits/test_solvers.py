"""Each claim attacked end to end, thousands of trainings on a worst-case pair.

An honest solver is refuted with probability at most P_FAIL an audit. The control is
the same solver with less noise than planned, which must be refuted; the numbers of
runs put its bound four standard deviations or more above the claim.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases

from tacit._random import as_generator
from tacit.audit import pushed_pair, worst_case_pair
from tacit.convex import HuberizedHinge, Logistic
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AMP, NoisyGD, ObjectivePerturbation, PreconditionedGD, Problem
from tacit.solvers.amp import CoveredTilt
from tacit.solvers.preconditioned_gd import PreconditionedGDPlan

SHARED_CASES = Cases(audits="AMP NoisyGD ObjectivePerturbation PreconditionedGD")

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE

# A heavy ridge, or short steps, keep the weights where the capped loss is steepest:
# the release is then close to a plain Gaussian one, whose audit is sharpest.
STEEP = Logistic(cap=0.5)
SOLVERS = {
    "objective": ObjectivePerturbation(ridge=200.0),
    "amp": AMP(ridge=200.0),
    "descent": NoisyGD(n_steps=4, step=1e-3, momentum=0.0),
    "preconditioned": PreconditionedGD(n_steps=4, damping=1e4),
}


@dataclass(frozen=True)
class Attack:
    """A solver, a claim and the pair on which it is attacked."""

    solver: Any
    loss: Any
    pair: Any
    budget: Budget
    method: str = "gaussian"

    @property
    def subject(self):
        """Public name of the solver, which may be kept in a set."""
        return type(getattr(self.solver, "solver", self.solver)).__name__

    def epsilon(self, n_runs, seed, noise=1.0):
        """Return the lower bound on epsilon with this part of the planned noise."""
        X, _ = self.pair.first
        bounds = RowBounds()
        problem = Problem(self.loss, bounds, *X.shape)
        plan = quieter(self.solver.plan(problem, self.budget), noise)
        sides = [bounded_rows(X, y, bounds) for X, y in self.pair]
        return bound_of_runs(
            lambda rows, seed: (
                self.solver.run(plan, rows, as_generator(seed)).coefficients
            ),
            sides,
            n_runs,
            self.budget.delta,
            seed,
            method=self.method,
        )


def quieter(plan, part):
    if isinstance(plan, CoveredTilt):
        return replace(
            plan,
            tilted=quieter(plan.tilted, part),
            output_multiplier=plan.output_multiplier * part,
        )
    if isinstance(plan, PreconditionedGDPlan):
        plan = replace(plan, moment_multiplier=plan.moment_multiplier * part)
    return replace(plan, multiplier=plan.multiplier * part)


def worst(name, budget, loss=STEEP, kind="logistic", method="gaussian"):
    pair = worst_case_pair(kind, 2, 1, neighbors=budget.neighbors)
    return Attack(SOLVERS[name], loss, pair, budget, method)


def check(attack, n_runs, seed, broken=0.5):
    planned = attack.epsilon(n_runs, seed)
    control = attack.epsilon(n_runs, seed, noise=broken)
    relation = attack.budget.neighbors.name.lower()
    name = f"{attack.subject}, {relation}"
    assert_refutes_the_control(name, attack.budget.epsilon, planned, control, broken)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["amp", "descent", "preconditioned"])
def test_half_the_noise_is_caught_quickly(name, seed):
    # so large a claim shows in the fewest runs
    check(worst(name, Budget(10.0, 1e-5, ADD)), 800, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("name", SOLVERS)
def test_claim_survives_and_half_the_noise_is_caught(name, neighbors, seed):
    check(worst(name, Budget(3.0, 1e-3, neighbors)), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["amp", "descent"])
def test_claim_survives_without_assuming_a_trade_off(name, seed):
    budget = Budget(1.5, 3e-2, ADD)
    check(worst(name, budget, method="clopper-pearson"), 12_000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_for_the_hinge_survives(seed):
    check(worst("amp", Budget(4.0, 1e-4), HuberizedHinge(), "hinge"), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_claim_survives_where_other_rows_push_the_weights(seed):
    pair = pushed_pair(60, 2)
    attack = Attack(AMP(ridge=0.5), Logistic(), pair, Budget(5.0, 1e-5))
    # this pair moves the gradient by less than is declared, so less noise shows
    check(attack, 2000, seed, broken=0.25)
