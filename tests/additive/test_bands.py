"""The noise that is stated of shapes: against what noise does."""

import numpy as np
import pytest
from benchmarks.additive.coverage import coverage, given_bins, model, table

from tacit import Seed
from tacit._random import as_generator
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.convex import Huber
from tacit.data import RowBounds
from tacit.data.rows import ArrayRows
from tacit.privacy import Budget
from tacit.solvers import PreconditionedGD, Problem
from tacit.solvers._gradients.response import path_curvature, weight_covariance

X, Y = table("labels", 6000)


def fitted(**parameters):
    given = {
        "ranges": {0: (18, 90), 1: (0, 500), 2: (-5, 5)},
        "categories": {3: list("abcd")},
        "classes": [0, 1],
        "random_state": Seed(3),
    }
    return AdditiveClassifier(1.0, 1e-6, **given | parameters)


def quadratic(n=4000):
    """A descent on least squares, whose Hessian is that of the moments."""
    rng = as_generator(0)
    rows = rng.normal(0, 0.3, (n, 6)) * [1, 0.8, 0.6, 0.4, 0.2, 0.1]
    y = rows @ np.ones(6) + rng.normal(0, 0.1, n)
    rows /= np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None]
    bounds = RowBounds(1.0, y_range=(-3.0, 3.0))
    problem = Problem(Huber(9.0), bounds, n, 6)
    solver = PreconditionedGD(noise="float", damping=0.02)
    return solver.plan(problem, Budget(4.0, 1e-6)), ArrayRows(rows, y)


def test_the_stated_covariance_is_that_of_many_descents():
    # a variance from 300 draws is within 40% of the true one but for a chance of 1e-5
    plan, rows = quadratic()
    moments = rows._private_X.T @ rows._private_X
    solver = PreconditionedGD()
    landed = [solver.landing(plan, rows, as_generator(seed)) for seed in range(300)]
    found = np.var([landing.W[:, 0] for landing in landed], axis=0)
    stated = np.mean(
        [np.diag(weight_covariance(plan, each, moments)) for each in landed], axis=0
    )
    assert np.all(np.abs(found / stated - 1) < 0.4)
    # of half as many rows it would be another one
    other = np.diag(weight_covariance(plan, landed[0], 0.1 * moments))
    assert np.any(np.abs(found / other - 1) > 0.4)


def test_the_path_shows_the_curvature_of_rows():
    # the mean of 30 estimates with a standard deviation of about 0.05 each
    plan, rows = quadratic()
    moments = rows._private_X.T @ rows._private_X
    solver = PreconditionedGD()
    landed = [solver.landing(plan, rows, as_generator(seed)) for seed in range(30)]
    for factor in (1.0, 0.5):
        found = [path_curvature(plan, each, moments / factor) for each in landed]
        assert np.mean(found) == pytest.approx(factor, rel=0.15)


def test_every_value_has_a_band_of_its_shape():
    for shape in fitted().fit(X, Y).shapes_:
        assert shape.std.shape == shape.values.shape
        assert (shape.std > 0).all()


def test_nothing_is_stated_of_three_classes_or_of_few_rows():
    kinds = np.arange(len(Y)) % 3
    several = fitted(classes=[0, 1, 2]).fit(X, kinds)
    assert several.shapes_[0].std is None
    few = fitted().fit(X[:200], Y[:200])
    assert few.shapes_[0].std is None


def test_bands_have_the_unit_of_the_targets():
    small, large = (
        AdditiveRegressor(
            1.0,
            1e-6,
            ranges={0: (18, 90), 1: (0, 500), 2: (-5, 5)},
            categories={3: list("abcd")},
            y_range=(-20 * unit, 20 * unit),
            noise="float",
            random_state=Seed(0),
        ).fit(X, unit * (X[:, 0].astype(float) - 45) / 15)
        for unit in (1.0, 1024.0)
    )
    for first, second in zip(small.shapes_, large.shapes_, strict=True):
        np.testing.assert_allclose(second.std, 1024 * first.std, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels", "normal residuals", "two modes"])
def test_bands_contain_the_mean_of_many_fits(name):
    # over 200 fits it was 0.94 to 0.98, and the mean of 80 differs by less than 0.01
    assert 0.92 <= coverage(name, 20_000, 1.0, 80)["bins"] <= 0.995


@pytest.mark.slow
def test_bands_of_half_the_width_would_not():
    name, fits = "labels", 80
    rows, y = table(name, 20_000)
    first = model(name, 1.0, 0).fit(rows, y)
    with given_bins(first._bins):
        shapes = [model(name, 1.0, seed).fit(rows, y).shapes_ for seed in range(fits)]
    values, stds = (
        np.array([np.concatenate([getattr(s, part) for s in each]) for each in shapes])
        for part in ("values", "std")
    )
    inside = np.abs(values - values.mean(axis=0)) <= 0.98 * stds
    assert inside.mean() < 0.85


@pytest.mark.parametrize("usual", [1.0, 0.999])
def test_a_column_that_is_nearly_constant_does_not_hide_the_noise_of_others(usual):
    rng = as_generator(1)
    n = 100_000
    x = rng.random(n)
    labels = rng.random(n) < 1 / (1 + np.exp(3 - 6 * x))
    constant = (rng.random(n) > usual) * 1.0
    table = np.column_stack([constant, x])
    model = AdditiveClassifier(
        10.0, 1e-6, ranges=(0, 1), classes=[0, 1], random_state=Seed(1)
    ).fit(table, labels.astype(int))
    std = np.median(model.shapes_[1].std)
    assert 0.001 < std < 0.1


def test_rows_that_are_all_alike_are_fitted_at_any_budget():
    table, labels = np.full((1000, 2), 0.5), np.arange(1000) % 2
    for pairs in (0, [(0, 1)]):
        model = AdditiveClassifier(
            1e15, 1e-6, ranges=(0, 1), classes=[0, 1], interactions=pairs
        ).fit(table, labels)
        assert np.isfinite(model.decision_function(table)).all()
