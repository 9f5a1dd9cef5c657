"""What additive fits release: plans, sensitivities and audits."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from sklearn.base import clone
from tests.audits.quiet import quieter
from tests.audits.verdict import bound_of_runs, check
from tests.cases import Cases
from tests.sensitivity.fitting import of_model
from tests.strategies import each_relation

from tacit import Seed
from tacit._random import as_generator
from tacit._release import recording
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.additive._bins import ROUNDS, BinsPlan
from tacit.additive._columns import codes_of, public_columns
from tacit.additive._pairs import MOST_SHIFT, Shifted, _PairGradient
from tacit.additive._targets import PARTS, TargetsPlan
from tacit.additive._terms import pair_factor
from tacit.convex import Logistic
from tacit.data.rows import ArrayRows
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._gradients.descent import gradient_sensitivity

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
RANGE = {"ranges": (-4.0, 4.0)}
GIVEN = {**RANGE, "y_range": (-4.0, 6.0)}


def searched():
    """Estimators for the search of neighbors that move a release too far."""
    more = {"module": "additive"}
    return [
        of_model(AdditiveClassifier(**RANGE), **more),
        of_model(AdditiveClassifier(**RANGE, classes=range(3)), "of three", **more),
        of_model(AdditiveClassifier(**RANGE, interactions=1), "with pairs", **more),
        of_model(AdditiveRegressor(**GIVEN), **more),
        of_model(AdditiveRegressor(**GIVEN, interactions=1), "with pairs", **more),
    ]


SHARED_CASES = Cases(searches=searched, audits="AdditiveClassifier AdditiveRegressor")


def table(n_rows=400):
    """Return a table with numbers, categories and missing cells, and labels."""
    rng = as_generator(0)
    X = np.empty((n_rows, 3), dtype=object)
    X[:, 0] = rng.lognormal(size=n_rows)
    X[:, 1] = rng.choice(["a", "b", "zebra", None], n_rows)
    X[:, 2] = np.where(rng.random(n_rows) < 0.1, np.nan, rng.uniform(size=n_rows))
    y = (X[:, 0].astype(float) > 1).astype(int)
    return X, y


PUBLIC = {
    "ranges": {0: (0.0, 100.0), 2: (0.0, 1.0)},
    "categories": {1: ["a", "b"]},
}


@each_relation
@pytest.mark.parametrize("interactions", [0, 2, [(0, 2)]])
def test_plans_fit_the_budget_and_are_what_fits_charge(neighbors, interactions):
    X, y = table()
    model = AdditiveClassifier(
        1.5,
        1e-5,
        **PUBLIC,
        classes=[0, 1],
        interactions=interactions,
        neighbors=neighbors,
    )
    plan = model.plan(len(X))
    epsilon = plan.event.curve(Neighbors.of(neighbors)).epsilon(1e-5)
    assert 1.499 < epsilon <= 1.5
    (entry,) = model.fit(X, y).privacy_.entries
    assert entry.event == plan.event


def test_every_fraction_of_the_budget_is_spent_once():
    plan = AdditiveRegressor(1.0, 1e-5, **GIVEN, interactions=2).plan(1000, 4)
    whole = calibrate(GaussianNoise, Budget(1.0, 1e-5))
    parts = [
        len(ROUNDS) / plan.bins.multiplier**2,
        2 / plan.targets.multiplier**2,
        1 / plan.descent.moment_multiplier**2
        + plan.descent.n_steps / plan.descent.multiplier**2,
        1 / plan.pairs.choice_multiplier**2
        + 1 / plan.pairs.descent.moment_multiplier**2
        + plan.pairs.descent.n_steps / plan.pairs.descent.multiplier**2,
    ]
    assert sum(parts) == pytest.approx(1 / whole**2, rel=1e-6)


def test_a_row_that_moves_in_every_column_reaches_the_bound_on_counts():
    X, _ = table()
    columns = public_columns(PUBLIC["ranges"], PUBLIC["categories"], [0, 1, 2])
    other = X.copy()
    X[0], other[0] = (0.1, "a", 0.1), (90.0, None, np.nan)
    counted = []
    for rows in (X, other):
        plan = BinsPlan(3, REPLACE, 1e6)
        with recording() as log:
            plan.run(codes_of(rows, columns), columns, len(X), as_generator(0))
        counted.append(log.releases[0])
    moved = np.linalg.norm(counted[0].value - counted[1].value)
    assert moved == pytest.approx(sqrt(6))
    assert counted[0].sensitivity == pytest.approx(moved)


def test_products_of_a_row_are_within_the_norm_and_some_reach_it():
    X, y = table()
    model = AdditiveClassifier(
        1.0, 1e-5, **PUBLIC, classes=[0, 1], interactions=1, random_state=Seed(0)
    ).fit(X, y)
    plan = model.plan(len(X)).pairs
    columns = public_columns(PUBLIC["ranges"], PUBLIC["categories"], [0, 1, 2])
    codes = codes_of(X, columns)
    factors = [pair_factor(bins) for bins in model._bins]
    parts = [
        factor[bins.of(codes[:, k])]
        for k, (factor, bins) in enumerate(zip(factors, model._bins, strict=True))
    ]
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    blocks = tuple(slice(a, b) for a, b in pairwise(ends))
    gradient = _PairGradient(plan, blocks)
    # of several times the size, so that all but missing cells are clipped
    features = 3.0 * np.concatenate(parts, axis=1)
    norms = []
    for row, label in zip(features, 2.0 * y - 1.0, strict=True):
        shifted = np.array([[label, -label * MOST_SHIFT]])
        found = ArrayRows(row[None], shifted).sum(gradient)[0]
        off = [found[:, a, b] for j, a in enumerate(blocks) for b in blocks[j + 1 :]]
        norms.append(sqrt(sum((each**2).sum() for each in off)))
    bound = plan.choice_norm * plan.descent.clip
    assert max(norms) <= bound
    assert max(norms) > 0.999 * bound
    assert plan.choice_sensitivity >= 2 * bound


def test_a_shifted_loss_is_the_loss_at_the_sum_of_margins():
    rng = as_generator(1)
    y, Z, given = (
        rng.choice([-1.0, 1.0], 9),
        rng.normal(size=(9, 1)),
        rng.normal(size=9),
    )
    found = Shifted(Logistic()).derivative(np.column_stack([y, given]), Z)
    assert np.array_equal(found, Logistic().derivative(y, Z + given[:, None]))
    assert Shifted(Logistic()).max_curvature() == Logistic().max_curvature()


@pytest.mark.statistical
@each_relation
def test_half_the_noise_of_counts_is_detected(neighbors, seed):
    budget = Budget(10.0, 1e-5, Neighbors.of(neighbors))
    X, _ = table()
    X[0] = (0.1, "a", 0.1)
    other = X.copy()
    other[0] = (90.0, None, np.nan)
    if budget.neighbors is ADD:
        other = other[1:]
    columns = public_columns(PUBLIC["ranges"], PUBLIC["categories"], [0, 1, 2])
    plan = BinsPlan(3, budget.neighbors, calibrate(GaussianNoise, budget))
    values = []
    for rows in (X, other):
        with recording() as log:
            plan.run(codes_of(rows, columns), columns, 400, as_generator(0))
        values.append(log.releases[0].value)

    def epsilon(noise):
        quiet = replace(plan, multiplier=plan.multiplier * noise)
        return bound_of_runs(
            lambda counts, s: quiet.mechanism(counts, as_generator(s)),
            values,
            800,
            budget.delta,
            seed,
        )

    check("AdditiveClassifier, counts of bins", 10.0, epsilon)


@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize("part", ["center", "spread"])
def test_half_the_noise_of_targets_is_detected(part, neighbors, seed):
    budget = Budget(10.0, 1e-5, Neighbors.of(neighbors))
    multiplier = calibrate(GaussianNoise, budget)
    plan = TargetsPlan(0.0, 1.0, budget.neighbors, multiplier)
    moved = PARTS / 2 if part == "center" and budget.neighbors is ADD else PARTS
    values = [np.array([0.0]), np.array([float(moved)])]

    def epsilon(noise):
        quiet = getattr(replace(plan, multiplier=multiplier * noise), part)
        return bound_of_runs(
            lambda total, s: quiet(total, as_generator(s)),
            values,
            800,
            budget.delta,
            seed,
        )

    check(f"AdditiveRegressor, {part} of targets", 10.0, epsilon)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "model",
    [AdditiveClassifier(8.0, 1e-4, **RANGE), AdditiveRegressor(8.0, 1e-4, **GIVEN)],
    ids=["classifier", "regressor"],
)
def test_whole_fits_keep_their_claim(model, seed):
    # all rows but one are alike, and that one is at the other end of everything
    sides = []
    for last in (-4.0, 4.0):
        X = np.full((4, 2), -4.0)
        X[-1] = last
        sides.append((X, np.array([0, 1, 0, int(last > 0)])))

    def released(side, s):
        ready = clone(model).set_params(random_state=Seed(s))
        if isinstance(model, AdditiveClassifier):
            ready.set_params(classes=[0, 1])
        fitted = ready.fit(*side)
        return np.concatenate([shape.mass for shape in fitted.shapes_])

    def lower(part):
        with quieter(part):
            return bound_of_runs(released, sides, 300, 1e-4, seed)

    # a round of counts gets a fortieth of the squared parameter
    check(type(model).__name__, 8.0, lower, broken=0.02)


def test_rounding_shifted_margins_is_inside_the_sensitivity():
    plan = AdditiveClassifier(1.0, 1e-5, **PUBLIC, classes=[0, 1], interactions=1).plan(
        400
    )
    descent = plan.pairs.descent
    alone = gradient_sensitivity(
        replace(descent.problem, loss=descent.problem.loss.loss), descent.clip, REPLACE
    )
    # a rounding of the sum of two margins of this size, for each of 2^24 rows, twice
    off = 2 * 2**24 * np.finfo(float).eps / 2 * 2 * MOST_SHIFT
    curvature, x_norm = (
        descent.problem.loss.max_curvature(),
        descent.problem.bounds.x_norm,
    )
    assert descent.sensitivity - alone >= 0.99 * off * curvature * x_norm
