"""How fits share one budget: all of it, no more, and fixed before the first row."""

from itertools import pairwise
from math import exp, expm1, log, sqrt

import numpy as np
import pytest
from tests.streaming.incremental.summing import NoisySum

from tacit.convex import Free, L1Ball, Logistic, Squared
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Budget,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    PureDP,
    Repeated,
)
from tacit.privacy.events import TiltedMinimum
from tacit.solvers import Problem
from tacit.streaming import IncrementalERM
from tacit.streaming.incremental._refit_learner import fit_parameters
from tacit.streaming.incremental._refit_plan import (
    MOST_REFITS,
    balanced_interval,
    doubling_steps,
    grouped,
    refit_steps,
)

Y, TWO = (-2.0, 3.0), ["no", "yes"]
ESTIMATORS = {
    "logistic": LogisticRegression(classes=TWO, x_norm=1.0),
    "softmax": LogisticRegression(classes=range(3), x_norm=1.0),
    "svc": LinearSVC(classes=TWO, x_norm=1.0),
    "linear": LinearRegression(y_range=Y, x_norm=1.0),
    "ridge": Ridge(y_range=Y, x_norm=1.0),
    "huber": HuberRegressor(y_range=Y, x_norm=1.0),
    "simplex": SimplexRegressor(y_range=Y, x_max=1.0),
    "lasso": Lasso(feature_bounds=1.0, y_range=Y, alpha=0.01),
    "net": ElasticNet(feature_bounds=1.0, y_range=Y, alpha=0.01),
    "sparse logistic": SparseLogisticRegression(feature_bounds=1.0, classes=TWO),
    "selected": SparseLinearRegression(
        n_features_to_select=1, feature_bounds=1.0, y_range=Y
    ),
    "noisy_sgd": LogisticRegression(classes=TWO, solver="noisy_sgd", x_norm=1.0),
    "permuted_sgd": LogisticRegression(classes=TWO, solver="permuted_sgd", x_norm=1.0),
    "online_to_batch": LogisticRegression(
        classes=TWO, solver="online_to_batch", x_norm=1.0
    ),
    "amp": LogisticRegression(classes=TWO, solver="amp", x_norm=1.0),
    "output": LogisticRegression(classes=TWO, solver="output_perturbation", x_norm=1.0),
    "frank_wolfe": LinearRegression(
        y_range=Y,
        bound_norm="linf",
        penalty=L1Ball(3.0),
        solver="frank_wolfe",
        x_norm=1.0,
    ),
    "gcd": Lasso(feature_bounds=1.0, y_range=Y, solver="gcd"),
    "ada_ssp": LinearRegression(y_range=Y, solver="ada_ssp", x_norm=1.0),
    "adaptive_ridge": Ridge(y_range=Y, solver="adaptive_ridge", x_norm=1.0),
    "quadratic": LinearRegression(
        y_range=Y, solver="quadratic_perturbation", x_norm=1.0
    ),
    "blocks": LinearRegression(y_range=Y, solver="sample_and_aggregate", x_norm=1.0),
}
REPLACE_ALONE = {"permuted_sgd"}
CASES = [
    *((name, "replace_one") for name in ESTIMATORS),
    *((name, "add_or_remove_one") for name in ESTIMATORS if name not in REPLACE_ALONE),
]
SHARED = {"horizon": 4, "rows_per_step": 40, "update_every": 2}


def spent(planned):
    return planned.event.curve(planned.budget.neighbors).epsilon(planned.budget.delta)


def assert_used_up(planned):
    assert 0.98 <= spent(planned) / planned.budget.epsilon <= 1 + 1e-9


def targets(estimator, n_rows):
    classes = getattr(estimator, "classes", None)
    if classes is None:
        return np.linspace(*Y, n_rows)
    return np.array(list(classes))[np.arange(n_rows) % len(classes)]


@pytest.mark.parametrize(("name", "neighbors"), CASES)
def test_every_estimator_spends_the_budget_whatever_the_rows(name, neighbors, rng):
    estimator = ESTIMATORS[name]
    model = IncrementalERM(estimator, 1.0, 1e-6, neighbors=neighbors, **SHARED)
    planned = model.plan(3)
    assert_used_up(planned)
    learner = planned.learner
    assert [refit.step for refit in learner.refits] == [2, 4]
    first = learner.refits[0]
    fit = learner.estimator.set_params(**fit_parameters(first.budget, first.n_rows))
    for n_rows in (2, 10**6):
        assert fit.plan(n_rows, 3).event == first.event
    # fewer rows than planned for, none, more, and two fits in a row
    for n_rows in (3, 0, 90, 1):
        X = rng.normal(size=(n_rows, 3)) / 2
        model.partial_fit(X, targets(estimator, n_rows))
    assert model.n_steps_ == model.last_refit_ == 4
    assert np.isfinite(model.coef_).all()
    assert model.predict(X).shape == (1,)
    assert model.privacy_.spent == pytest.approx(spent(planned))
    (entry,) = model.privacy_.entries
    assert entry.event == planned.event


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_the_budget_is_used_up_at_any_size(epsilon, delta):
    model = IncrementalERM(ESTIMATORS["logistic"], epsilon, delta, horizon=16)
    assert_used_up(model.plan(2))


@pytest.mark.parametrize("split", ["even", "harmonic"])
def test_pure_privacy_is_divided_too(split):
    planned = IncrementalERM(
        ESTIMATORS["simplex"], 1.0, 0.0, split=split, **SHARED
    ).plan(3)
    assert_used_up(planned)
    assert all(refit.budget.delta == 0 for refit in planned.learner.refits)


def test_even_shares_have_the_same_noise():
    estimator = ESTIMATORS["ada_ssp"]
    planned = IncrementalERM(estimator, horizon=8, update_every=2).plan(2)
    noises = [refit.event.multiplier for refit in planned.learner.refits]
    assert noises == [noises[0]] * 4
    # as one Gaussian, which is what four of them are
    assert planned.event.multiplier == pytest.approx(noises[0] / 2)


def test_harmonic_shares_fall_with_the_rows():
    estimator = Ridge(y_range=Y, alpha=1.0, solver="ada_ssp", x_norm=1.0)
    planned = IncrementalERM(estimator, horizon=8, update_every=2).plan(2)
    squared = [refit.event.multiplier**-2 for refit in planned.learner.refits]
    harmonic = sum(1 / m for m in range(1, 5))
    whole = planned.event.multiplier**-2
    for m, share in enumerate(squared, 1):
        assert share == pytest.approx(whole / (m * harmonic), rel=2e-3)
    # a problem without a ridge has even shares unless asked
    free = IncrementalERM(ESTIMATORS["ada_ssp"], horizon=8, update_every=2)
    assert len({r.event for r in free.plan(2).learner.refits}) == 1


@pytest.mark.parametrize("every", [1, 5, 20])
def test_published_shares_are_as_published(every):
    epsilon, delta, horizon = 0.7, 1e-5, 20
    planned = IncrementalERM(
        ESTIMATORS["logistic"],
        epsilon,
        delta,
        horizon=horizon,
        update_every=every,
        accounting="paper",
    ).plan(2)
    ratio = horizon / every
    for refit in planned.learner.refits:
        part = epsilon / (2 * sqrt(2 * ratio * log(2 / delta)))
        assert refit.budget.epsilon == pytest.approx(part, rel=1e-12)
        assert refit.budget.delta == pytest.approx(delta / (2 * ratio), rel=1e-12)
    assert planned.event == ApproxDP(epsilon, delta)
    # which leaves some of the budget: the exact composition of the same fits is less
    events = Composed(tuple(refit.event for refit in planned.learner.refits))
    assert events.curve(Neighbors.REPLACE_ONE).epsilon(delta) < 0.75 * epsilon


@pytest.mark.parametrize(
    ("epsilon", "horizon"),
    [
        (2 * log(2 / 1e-5) + 0.1, 12),  # the whole is too large
        (2 * sqrt(2 * log(2 / 1e-5)) + 0.1, 1),  # a fit is too large
    ],
)
def test_published_shares_are_refused_where_they_do_not_hold(epsilon, horizon):
    shared = {"horizon": horizon, "update_every": 1, "accounting": "paper"}
    estimator = ESTIMATORS["linear"]
    with pytest.raises(PlanError, match="lower epsilon, or use accounting='exact'"):
        IncrementalERM(estimator, epsilon, 1e-5, **shared).plan(2)
    IncrementalERM(estimator, epsilon - 0.2, 1e-5, **shared).plan(2)


def test_published_fractions_need_a_delta_and_are_even():
    shared = {"horizon": 4, "update_every": 1, "accounting": "paper"}
    with pytest.raises(PlanError, match="requires delta > 0"):
        IncrementalERM(ESTIMATORS["huber"], 1.0, 0.0, **shared).plan(2)
    with pytest.raises(ValueError, match="the published fractions are even"):
        IncrementalERM(ESTIMATORS["huber"], split="harmonic", **shared).plan(2)


def problem(**changes):
    given = {"loss": Logistic(), "bounds": RowBounds(), "n_rows": 1, "n_features": 8}
    return Problem(**(given | changes))


@pytest.mark.parametrize(
    ("kind", "exponent"),
    [
        ({}, 1 / 3),
        ({"ridge": 1.0}, 0.0),
        ({"regularizer": L1Ball(2.0), "bounds": RowBounds(1.0, "linf")}, 1 / 2),
    ],
)
def test_published_intervals_grow_as_published(kind, exponent):
    few, many = (balanced_interval(problem(**kind), n, 0.1) for n in (10**6, 10**9))
    assert log(many / few) / log(1000) == pytest.approx(exponent, abs=0.01)


def test_published_intervals_balance_noise():
    convex = [balanced_interval(problem(), 10**6, e) for e in (1.0, 1e-3)]
    assert convex[0] == 200
    assert convex[1] == 20000
    strong = balanced_interval(problem(ridge=2.0), 10**6, 0.1)
    assert strong == 29  # sqrt(8) / 0.1
    assert balanced_interval(problem(), 50, 1e-3) == 50


def test_the_published_interval_is_taken_for_published_shares():
    estimator = LogisticRegression(classes=TWO, fit_intercept=False, x_norm=1.0)
    model = IncrementalERM(
        estimator, 0.5, horizon=1000, rows_per_step=10, accounting="paper"
    )
    first = model.plan(8).learner.refits[0].step
    assert first == -(-balanced_interval(problem(), 10**4, 0.5) // 10)


def test_fits_are_where_they_were_asked_for():
    assert refit_steps(3, 10) == (3, 6, 9)
    assert refit_steps(10, 10) == (10,)
    assert doubling_steps(1) == (1,)
    assert doubling_steps(20) == (1, 2, 5, 10, 20)
    assert doubling_steps(20, useful=3.0) == (5, 10, 20)
    assert doubling_steps(20, useful=1e9) == (10, 20)
    assert doubling_steps(365)[-3:] == (91, 182, 365)


def test_the_last_fit_has_all_rows_and_none_has_over_twice_and_one_as_many():
    for horizon in range(1, 200):
        steps = doubling_steps(horizon)
        assert (steps[0], steps[-1]) == (1, horizon)
        assert all(b in (2 * a, 2 * a + 1) for a, b in pairwise(steps))


@pytest.mark.parametrize(
    ("every", "words"),
    [
        (0, "update_every must be an integer >= 1"),
        (11, "update_every must be at most horizon=10"),
        (2.5, "update_every must be an integer number of steps"),
        (True, "update_every must be an integer number of steps"),
        ("often", "update_every must be 'auto' or 'doubling'"),
    ],
)
def test_other_intervals_are_refused(every, words):
    with pytest.raises(ValueError, match=words):
        IncrementalERM(ESTIMATORS["huber"], horizon=10, update_every=every).plan(2)


def test_too_many_fits_are_refused():
    model = IncrementalERM(ESTIMATORS["huber"], horizon=3 * MOST_REFITS)
    with pytest.raises(ValueError, match="update_every must be at least 3 "):
        model.set_params(update_every=2).plan(2)


def test_early_fits_are_left_out_while_rows_are_few_for_the_budget():
    def first(**changes):
        given = {"horizon": 1024, "epsilon": 1.0, "delta": 1e-6} | changes
        model = IncrementalERM(ESTIMATORS["logistic"], **given)
        return model.plan(3).learner.refits[0].step

    alone = first()
    assert first(rows_per_step=alone) == 1
    assert first(epsilon=30.0) < alone < first(rows_per_person=2) == 2 * alone
    assert first(epsilon=1e-3) == 512  # two fits are left
    assert first(update_every="doubling") == 1


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (GaussianNoise(6.0), GaussianNoise(2.0)),
        (PureDP(0.1), PureDP(0.1 * 3)),
        (BoundedRange(0.5), BoundedRange(1.5)),
        (LaplaceNoise(6.0), PureDP(0.5)),
        (Repeated(GaussianNoise(3.0), 4), Repeated(GaussianNoise(1.0), 4)),
        (
            Composed((PureDP(1.0), Repeated(BoundedRange(1.0), 2))),
            Composed((PureDP(3.0), Repeated(BoundedRange(3.0), 2))),
        ),
        (TiltedMinimum(0.1, 2.0), None),
        (Composed((PureDP(1.0), ApproxDP(0.1, 1e-6))), None),
    ],
)
def test_events_are_told_for_several_rows_of_a_person(event, expected):
    assert grouped(event, 3) == expected


def test_noise_grows_with_the_rows_of_a_person():
    def multiplier(rows):
        planned = IncrementalERM(
            ESTIMATORS["ada_ssp"], 1.0, 1e-6, rows_per_person=rows, **SHARED
        ).plan(2)
        assert_used_up(planned)
        return planned.learner.refits[0].event.multiplier

    assert multiplier(3) == pytest.approx(3 * multiplier(1), rel=2e-3)


@pytest.mark.parametrize("accounting", ["exact", "paper"])
def test_where_no_better_bound_is_known_rows_of_a_person_are_a_chain(accounting):
    epsilon, delta, rows = 2.0, 1e-6, 3
    model = IncrementalERM(
        ESTIMATORS["amp"],
        epsilon,
        delta,
        rows_per_person=rows,
        accounting=accounting,
        **SHARED,
    )
    planned = model.plan(2)
    assert planned.event == ApproxDP(epsilon, delta)
    one = Composed(tuple(refit.event for refit in planned.learner.refits))
    curve = one.curve(Neighbors.REPLACE_ONE)
    # a chain of three neighbors, each with what is told of one row
    each = epsilon / rows
    chained = curve.delta(each) * sum(exp(i * each) for i in range(rows))
    assert chained == pytest.approx(curve.delta(each) * expm1(epsilon) / expm1(each))
    assert chained <= delta
    if accounting == "exact":
        assert curve.epsilon(delta * expm1(each) / expm1(epsilon)) > 0.98 * each


def test_a_plan_that_rests_on_the_number_of_rows_is_refused():
    estimator = SimplexRegressor(y_range=Y, solver="entropy_sampling", x_max=1.0)
    with pytest.raises(PlanError, match="depends on the number of rows"):
        IncrementalERM(estimator, horizon=4).plan(2)


def test_a_budget_that_no_fit_can_do_with_is_refused():
    class Greedy(NoisySum):
        def plan(self, problem, budget):
            part = Budget(50.0, budget.delta, budget.neighbors)
            return super().plan(problem, part)

    estimator = LinearRegression(y_range=Y, solver=Greedy(), x_norm=1.0)
    with pytest.raises(PlanError, match="enough for each fit"):
        IncrementalERM(estimator, 1.0, horizon=2).plan(2)
    # without the greed there is a share for it
    honest = LinearRegression(y_range=Y, solver=NoisySum(), x_norm=1.0)
    assert_used_up(IncrementalERM(honest, 1.0, horizon=2).plan(2))


def test_a_free_problem_is_a_convex_one_for_squares_too():
    squares = problem(loss=Squared(), regularizer=Free())
    assert balanced_interval(squares, 10**6, 1.0) == 200
