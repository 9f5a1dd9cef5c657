"""Forecasts of regressions, against simulation and against other formulas."""

from math import log, sqrt

import numpy as np
import pytest
from scipy import stats
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.convex import Squared
from tacit.data import RowBounds, bounded_rows
from tacit.evaluation import noise_at, regression_risk, rows_for_risk
from tacit.privacy import Budget, GaussianNoise
from tacit.solvers import AdaptiveRidge, AdaSSP, Problem, QuadraticPerturbation

SOLVERS = {
    "quadratic_perturbation": QuadraticPerturbation,
    "adaptive_ridge": AdaptiveRidge,
    "ada_ssp": AdaSSP,
}
# How far a forecast may be from what is measured on rows that are as guessed
FACTOR = 1.5


def synthetic(n, p, spread, decay, signal, seed):
    """Return rows with the spectrum and the signal that were guessed."""
    rng = as_generator(seed)
    falling = np.arange(1.0, p + 1) ** -decay
    stds = spread * np.sqrt(falling / falling.sum())
    # signs, so that no row is longer than its bound
    X = rng.choice([-1.0, 1.0], size=(n, p)) * stds
    w = np.full(p, signal / spread)
    return X, np.clip(X @ w + 0.05 * rng.normal(size=n), -1.0, 1.0)


def measured(solver, n, p, budget, guess, seed, runs):
    X, y = synthetic(n, p, *guess, seed)
    problem = Problem(Squared(), RowBounds(), n, p)
    rows = bounded_rows(X, y, problem.bounds)
    plan = solver.plan(problem, budget)
    best = np.linalg.lstsq(X, y)[0]
    rng, added = as_generator(seed), []
    for _ in range(runs):
        off = solver.run(plan, rows, rng).coefficients[:, 0] - best
        added.append(np.mean((X @ off) ** 2))
    return np.mean(added)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    ("n", "p", "epsilon", "guess"),
    [(2000, 4, 2.0, (0.5, 1.0, 0.3)), (5000, 10, 4.0, (0.7, 0.5, 0.5))],
)
def test_forecast_is_near_what_is_measured(name, n, p, epsilon, guess, seed):
    spread, decay, signal = guess
    told = regression_risk(
        n,
        p,
        epsilon=epsilon,
        delta=1e-5,
        solver=name,
        spread=spread,
        decay=decay,
        signal=signal,
    )
    budget = Budget(epsilon, 1e-5)
    found = measured(SOLVERS[name](), n, p, budget, guess, seed, runs=60)
    assert told / FACTOR < found < told * FACTOR
    # a forecast for half the budget is not taken for it
    half = regression_risk(n, p, epsilon=epsilon / 3, delta=1e-5, solver=name)
    assert found < half


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_risk_falls_with_rows_and_budget_and_grows_with_features(neighbors):
    def risk(n=10_000, p=8, epsilon=1.0, **facts):
        facts = {"delta": 1e-6, "neighbors": neighbors, **facts}
        return regression_risk(n, p, epsilon=epsilon, **facts)

    assert risk() > risk(n=40_000)
    assert risk() > risk(epsilon=2.0)
    assert risk() < risk(p=16)
    assert risk() < risk(radius=20.0)
    assert risk(ridge=1e4) > risk() * 0.99
    assert risk(solver="ada_ssp", ridge=0.0) > 0


def test_rows_for_a_risk_are_the_least():
    facts = {"epsilon": 1.0, "delta": 1e-6, "solver": "ada_ssp"}
    n = rows_for_risk(1e-3, 6, **facts)
    assert regression_risk(n, 6, **facts) <= 1e-3
    assert regression_risk(int(n / 1.02), 6, **facts) > 1e-3
    assert rows_for_risk(10.0, 6, **facts) == 8
    assert rows_for_risk(1e-30, 6, **facts) is None


def test_rows_for_a_risk_take_every_fact_of_the_risk():
    facts = {"epsilon": 1.0, "neighbors": "add_or_remove_one", "delta": 1e-6}
    facts["solver"] = "ada_ssp"
    more = rows_for_risk(0.01, 3, decay=3.0, **facts)
    assert more != rows_for_risk(0.01, 3, decay=0.0, **facts)


@each_relation
def test_noise_at_a_budget_is_the_least_that_keeps_it(neighbors):
    name = neighbors.value
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-5), (20.0, 1e-3)):
        scale = noise_at(epsilon, delta, sensitivity=3.0, neighbors=name)
        multiplier = scale / (3.0 * neighbors.rows_changed)
        mu = 1 / multiplier
        exact = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(
            epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu)
        )
        assert exact == pytest.approx(delta, rel=1e-3)
        assert exact <= delta * (1 + 1e-9)
        budget = Budget(epsilon, delta, neighbors)
        assert GaussianNoise(multiplier).curve(neighbors).fits(budget)


def test_laplace_noise_at_a_budget_is_exact():
    added = "add_or_remove_one"
    assert noise_at(0.5, law="laplace", neighbors=added) == pytest.approx(2.0)
    assert noise_at(0.5, law="laplace") == pytest.approx(4.0)
    scale = noise_at(1.0, 0.01, law="laplace", neighbors=added)
    x = np.linspace(-60, 60, 2_000_001)
    first, second = (np.exp(-np.abs(x - m) / scale) / (2 * scale) for m in (0.0, 1.0))
    mass = np.sum(np.maximum(first - np.e * second, 0.0)) * (x[1] - x[0])
    assert mass == pytest.approx(0.01, rel=1e-3)
    assert scale == pytest.approx(1 / (1 - 2 * log(0.99)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: regression_risk(1, 3, epsilon=1.0), "n_rows"),
        (lambda: regression_risk(10, 0, epsilon=1.0), "n_features"),
        (lambda: regression_risk(10, 3, epsilon=1.0, solver="amp"), "solver"),
        (lambda: regression_risk(10, 3, epsilon=1.0, radius=-1.0), "radius"),
        (lambda: regression_risk(10, 3, epsilon=1.0, spread=0.0), "spread"),
        (lambda: rows_for_risk(0.0, 3, epsilon=1.0), "target"),
        (lambda: noise_at(1.0), "delta"),
        (lambda: noise_at(1.0, law="cauchy"), "law"),
        (lambda: noise_at(-1.0, 1e-5), "epsilon"),
    ],
)
def test_senseless_questions_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_forecast_of_nothing_learned_is_the_signal(seed):
    risk = regression_risk(10, 5, epsilon=0.01, delta=1e-6)
    assert sqrt(risk) == pytest.approx(0.3, rel=0.05)
