"""How much of a coefficient is noise, against fits that differ in noise alone."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit.convex import L2Ball
from tacit.data import bounded_rows
from tacit.evaluation import noise_intervals
from tacit.linear_model import (
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    SimplexRegressor,
)
from tacit.linear_model._saved import CoefficientNoise
from tacit.solvers import (
    AMP,
    AdaSSP,
    NoisyGD,
    OutputPerturbation,
    PreconditionedGD,
    Result,
)

EPSILON, DELTA = 1.0, 1e-6


def labels(n=10_000, p=8, seed=1):
    rng = as_generator(seed)
    X = rng.standard_normal((n, p)) / np.sqrt(p)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    z = X @ rng.standard_normal(p)
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * z / z.std() - 0.3))).astype(int)


def targets(n=2000, p=4, seed=1):
    X, _ = labels(n, p, seed)
    rng = as_generator(seed + 1)
    return X, 50 + 3 * X @ rng.standard_normal(p) + rng.standard_normal(n)


def logistic(solver, **other):
    other = {"delta": DELTA, "classes": [0, 1], **other}
    return LogisticRegression(EPSILON, solver=solver, **other, x_norm=1.0)


def linear(solver, y_range=(40, 60), **other):
    return LinearRegression(
        EPSILON, DELTA, y_range=y_range, solver=solver, **other, x_norm=1.0
    )


def inside(model, X, y):
    """Return solver, plan and rows of a fitted model."""
    facts = model._facts
    setting, planned = facts.setting, facts.planned
    given = model._solver_targets(y, setting)
    rows = bounded_rows(X, given, setting.bounds, setting.intercept)
    return planned.solver, planned.plan, rows


def standardized(model, X, y, n_fits, seed):
    """Return errors from the mean of all fits, over the standard deviations stated."""
    rng = as_generator(seed)
    solver, plan, rows = inside(
        clone(model).set_params(random_state=rng).fit(X, y), X, y
    )
    fits = [solver.run(plan, rows, rng) for _ in range(n_fits)]
    found = np.array([fit.coefficients[:, 0] for fit in fits])
    stated = np.array([fit.noise.std[:, 0] for fit in fits])
    return (found - found.mean(axis=0)) / stated * np.sqrt(n_fits / (n_fits - 1))


def assert_mean_square(off, low, high):
    assert low < np.mean(off**2) < high


def assert_ratios(off, median, each):
    """Ratios of stated and found standard deviations: their median, and all of them."""
    ratio = 1 / off.std(axis=0)
    assert median[0] < np.median(ratio) < median[1]
    assert each[0] < ratio.min()
    assert ratio.max() < each[1]


def assert_and_detect(assertion, off):
    """Hold ``assertion``, which must reject standard deviations stated wrong by 1.6."""
    assertion(off)
    for factor in (1.6, 1 / 1.6):
        with pytest.raises(AssertionError):
            assertion(off * factor)


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_noise_of_output_perturbation_is_exact(law, seed):
    model = logistic(OutputPerturbation(law=law, noise="float"))
    off = standardized(model, *labels(200, 3), 300, seed).ravel()
    one = stats.norm if law == "gaussian" else partial(stats.laplace, scale=0.5**0.5)
    assert_follows(off, one().cdf)
    wider = stats.norm(0, 1.6) if law == "gaussian" else stats.laplace(0, 1.6 / 2**0.5)
    assert_detects(off, wider.cdf)


@pytest.mark.statistical
def test_noise_of_gamma_law_is_that_of_its_marginal(seed):
    model = logistic(OutputPerturbation(law="gamma", noise="float"))
    off = standardized(model, *labels(200, 3), 300, seed)
    # six standard deviations of the mean of 300 dependent rows of four squares
    assert_and_detect(partial(assert_mean_square, low=0.6, high=1.6), off)


@pytest.mark.statistical
def test_noise_of_ada_ssp_is_right_to_first_order(seed):
    off = standardized(linear(AdaSSP(noise="float")), *targets(), 300, seed).ravel()
    assert_follows(off, stats.norm().cdf)
    assert_detects(off, stats.norm(0, 1.6).cdf)


@pytest.mark.statistical
def test_noise_of_adaptive_ada_ssp_is_right_to_first_order(seed):
    model = linear(AdaSSP(adaptive=True, noise="float"))
    off = standardized(model, *targets(), 250, seed).ravel()
    assert_follows(off, stats.norm().cdf)
    assert_detects(off, stats.norm(0, 1.6).cdf)


@pytest.mark.statistical
def test_noise_of_preconditioned_descent_is_within_a_quarter_where_stated(seed):
    model = logistic(PreconditionedGD(noise="float")).set_params(epsilon=8.0)
    off = standardized(model, *labels(10_000, 4), 60, seed)
    # a standard deviation from 60 fits is itself off by a tenth
    assert_and_detect(partial(assert_ratios, median=(0.8, 1.25), each=(0.6, 1.6)), off)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p"), [(10_000, 8), (20_000, 20), (50_000, 8)])
def test_noise_of_preconditioned_descent_holds_on_larger_tables(n, p, seed):
    model = logistic(PreconditionedGD(noise="float"))
    model.set_params(epsilon=4.0)
    off = standardized(model, *labels(n, p), 200, seed)
    assert_and_detect(partial(assert_ratios, median=(0.85, 1.2), each=(0.7, 1.45)), off)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (logistic(AMP()), labels(100, 3)),
        (logistic(NoisyGD()), labels(500, 3)),
        (logistic(OutputPerturbation(), penalty=L2Ball(1.0)), labels(500, 3)),
        # noise hides the moments of so few rows
        (logistic(PreconditionedGD()), labels(300, 10)),
        (logistic(PreconditionedGD(), classes=[0, 1, 2]), labels(500, 3)),
        (
            LinearSVC(EPSILON, DELTA, solver=PreconditionedGD(), x_norm=1.0),
            labels(500, 3),
        ),
        (linear(AdaSSP(), penalty=L2Ball(1e-3)), targets(500)),
        (SimplexRegressor(EPSILON, DELTA, y_range=(40, 60), x_max=1.0), targets(500)),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else type(value).__name__,
)
def test_noise_is_none_where_no_theory_gives_it(model, rows):
    model = clone(model).set_params(random_state=0).fit(*rows)
    assert model.noise_ is None
    with pytest.raises(ValueError, match="OutputPerturbation and AdaSSP state it"):
        noise_intervals(model)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (logistic(OutputPerturbation()), labels(500, 3)),
        (logistic(PreconditionedGD()), labels(500, 3)),
        (linear(AdaSSP()), targets(500)),
        (linear(AdaSSP(adaptive=True)), targets(500)),
    ],
    ids=["output", "preconditioned", "ada_ssp", "adaptive"],
)
def test_the_solver_alone_draws_what_the_fit_drew(model, rows):
    fitted = clone(model).set_params(random_state=3).fit(*rows)
    solver, plan, within = inside(fitted, *rows)
    found = solver.run(plan, within, as_generator(3))
    assert (found.noise is None) == (fitted.noise_ is None)
    shown, _ = fitted._shaped(*fitted._parts(found.coefficients))
    np.testing.assert_array_equal(shown, fitted.coef_)


class Loud(OutputPerturbation):
    """A solver of one's own that changes what runs."""

    def run(self, plan, rows, rng):
        return Result(0 * super().run(plan, rows, rng).coefficients + 1.0)


def test_a_run_that_was_changed_is_what_runs():
    model = logistic(Loud()).fit(*labels(100, 3))
    np.testing.assert_array_equal(model.coef_, np.ones((1, 3)))
    assert model.noise_ is None


def test_noise_has_the_units_of_the_targets():
    X, y = targets(500)
    small = linear(AdaSSP(), random_state=0).fit(X, y)
    large = linear(AdaSSP(), (400, 600), random_state=0).fit(X, 10 * y)
    np.testing.assert_allclose(large.noise_.coef, 10 * small.noise_.coef)
    np.testing.assert_allclose(large.noise_.intercept, 10 * small.noise_.intercept)


def test_noise_of_an_intercept_is_that_of_its_weight_times_the_constant():
    model = logistic(OutputPerturbation()).fit(*labels(500, 3))
    constant = model._facts.setting.intercept
    scale = model._facts.planned.plan.scale()
    np.testing.assert_allclose(model.noise_.coef, np.full((1, 3), scale))
    np.testing.assert_allclose(model.noise_.intercept, [scale * constant])
    without = logistic(OutputPerturbation(), fit_intercept=False).fit(*labels(500, 3))
    assert without.noise_.intercept == [0.0]


def test_noise_intervals_are_quantiles_about_the_coefficients():
    model = logistic(OutputPerturbation()).fit(*labels(500, 3))
    found = noise_intervals(model, 0.9)
    np.testing.assert_allclose(
        found.high - model.coef_, stats.norm.ppf(0.95) * model.noise_.coef
    )
    np.testing.assert_allclose(
        model.intercept_ - found.intercept_low,
        stats.norm.ppf(0.95) * model.noise_.intercept,
    )
    assert found.covers == "noise"
    assert found.privacy is model.privacy_


def test_noise_intervals_know_the_laplace_law():
    model = logistic(OutputPerturbation(law="laplace"), delta=0.0)
    model.fit(*labels(500, 3))
    wide = noise_intervals(model, 0.9).high - model.coef_
    law = stats.laplace(0, model.noise_.coef[0, 0] / np.sqrt(2))
    np.testing.assert_allclose(law.cdf(wide), 0.95)


def test_intervals_of_the_gamma_law_hold_by_a_bound_for_every_law():
    model = logistic(OutputPerturbation(law="gamma")).fit(*labels(500, 3))
    assert isinstance(model.noise_, CoefficientNoise)
    found = noise_intervals(model, 0.75)  # Chebyshev: two standard deviations
    np.testing.assert_allclose(found.high - model.coef_, 2 * model.noise_.coef)


@pytest.mark.parametrize("level", [0.0, 1.0, "high"])
def test_a_level_that_is_none_is_refused(level):
    model = logistic(OutputPerturbation()).fit(*labels(500, 3))
    with pytest.raises(ValueError, match="level must be"):
        noise_intervals(model, level)


def test_noise_is_a_number_or_not_stated_whatever_the_rows():
    rng = as_generator(0)
    for seed in range(60):
        X = rng.uniform(-1, 1, size=(60, 3))
        y = rng.integers(0, 2, size=60)
        model = LogisticRegression(
            1.0, classes=[0, 1], random_state=seed, x_norm=1.0
        ).fit(X, y)
        assert model.noise_ is None or np.isfinite(model.noise_.coef).all()
