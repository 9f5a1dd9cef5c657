"""Each plan charges the mechanisms that its run draws from, as often as it does."""

import numpy as np
import pytest

from tacit._random import as_generator
from tacit._release import recording
from tacit.convex import L1Ball, Logistic, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms.subsets import RATE_CELLS
from tacit.privacy import Budget, Composed, GaussianNoise, PoissonSampled, Repeated
from tacit.privacy.combined import FixedSizeSampled
from tacit.solvers import (
    AMP,
    AdaSSP,
    CoordinateDescent,
    FrankWolfe,
    NoisyGD,
    OutputPerturbation,
    Problem,
)
from tacit.solvers.noisy_sgd import Sampling

BUDGET = Budget(1.0, 1e-6)
N_ROWS, N_FEATURES = 30, 3


def amp_parts(plan):
    return plan.tilted.event, plan.mechanism.event


def ada_ssp_parts(plan):
    return plan.mechanism.event, plan.eigenvalue_mechanism.event


def coordinate_parts(plan):
    updates = Repeated(plan.mechanism.event, plan.n_passes * N_FEATURES)
    return plan.squares.mechanism.event, updates


def steps(plan):
    return (Repeated(plan.mechanism.event, plan.n_steps),)


def one(plan):
    return (plan.mechanism.event,)


BALL = L1Ball(1.0)
# the solver, its problem, what it charges, and the labels of what it releases
CASES = {
    "noisy_gd": (NoisyGD(n_steps=4), {}, steps, ["Gaussian"] * 4),
    "frank_wolfe": (
        FrankWolfe(n_steps=4),
        {"norm": "linf", "regularizer": BALL},
        steps,
        ["Exponential"] * 4,
    ),
    "amp": (AMP(), {}, amp_parts, ["Gaussian", "TiltedMinimum", "Gaussian"]),
    "output": (OutputPerturbation(), {}, one, ["Gaussian"]),
    "ada_ssp": (
        AdaSSP(adaptive=True),
        {"loss": Squared()},
        ada_ssp_parts,
        ["SymmetricGaussian", "Gaussian"],
    ),
    "coordinate": (
        CoordinateDescent(n_passes=2, smoothness="private"),
        {"norm": "linf"},
        coordinate_parts,
        ["DiscreteGaussian", "CoordinateSums"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_charge_is_that_of_all_releases(name, seed):
    solver, facts, parts, labels = CASES[name]
    facts = dict(facts)
    bounds = RowBounds(norm=facts.pop("norm", "l2"))
    loss = facts.pop("loss", Logistic())
    problem = Problem(loss, bounds, N_ROWS, N_FEATURES, **facts)
    plan = solver.plan(problem, BUDGET)
    charged = parts(plan)
    assert plan.event == (charged[0] if len(charged) == 1 else Composed(charged))
    rng = as_generator(seed)
    y = np.where(rng.random(N_ROWS) < 0.5, -1.0, 1.0)
    rows = bounded_rows(rng.uniform(-1, 1, (N_ROWS, N_FEATURES)), y, bounds)
    with recording() as tape:
        solver.run(plan, rows, rng)
    assert [release.label for release in tape.releases] == labels


def test_steps_on_samples_are_charged_at_the_rate_of_the_draws():
    noise = GaussianNoise(2.0)
    fixed = Sampling(n_rows=100, batch=10, n_steps=7, poisson=False)
    assert fixed.event(2.0) == Repeated(FixedSizeSampled(noise, 10, 100), 7)
    poisson = Sampling(n_rows=100, batch=10, n_steps=7, poisson=True)
    rate = poisson.cells / RATE_CELLS
    assert poisson.event(2.0) == Repeated(PoissonSampled(noise, rate), 7)
    assert rate == pytest.approx(0.1, rel=1e-15)
    for everything in (100, 101):
        plan = Sampling(n_rows=100, batch=everything, n_steps=7, poisson=False)
        assert plan.event(2.0) == Repeated(noise, 7)
