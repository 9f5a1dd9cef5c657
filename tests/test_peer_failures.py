"""Failures measured in other libraries, each of which must not happen here."""

import multiprocessing
import os
import sys
from math import log1p

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.model_selection import GridSearchCV
from tests.solvers.densities import worst_line_ratio

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import assert_replays, audit, precision_attack
from tacit.convex import Logistic, Softmax, composite
from tacit.convex import minimize as minimizer
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.privacy import Budget, Ledger, Neighbors, calibrate
from tacit.privacy.events import TiltedMinimum
from tacit.solvers import AMP, AdaptiveMoments, NoisyGD, ObjectivePerturbation, Problem
from tacit.solvers._base import INTERCEPT_FRACTION
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbationPlan,
    tilt_offset,
)

ADD, REPLACE = Neighbors.ADD_OR_REMOVE_ONE, Neighbors.REPLACE_ONE


def data(n=60, p=2, n_classes=2):
    rng = as_generator(1)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] > 0).astype(int) if n_classes == 2 else np.arange(n) % n_classes


# Norm against squared norm: the Hessian of a row grows with the square of its norm.


def norm_plan(budget, x_norm, assumed_trace):
    """Return a plan, and the event it would claim if a row's trace were as assumed."""
    ridge = assumed_trace / np.expm1(0.1 * budget.epsilon)
    offset = log1p(assumed_trace / ridge)
    multiplier = calibrate(lambda noise: TiltedMinimum(offset, noise), budget)
    problem = Problem(Logistic(), RowBounds(x_norm), 5, 1)
    sensitivity = problem.sensitivity(budget.neighbors)
    plan = ObjectivePerturbationPlan(problem, ridge, multiplier, sensitivity, 1e-6)
    return plan, TiltedMinimum(offset, multiplier)


def test_curvature_grows_with_the_square_of_the_norm():
    budget, x_norm = Budget(2.0, 1e-2, ADD), 100.0
    epsilons = (2.0, 4.0)
    plan, claimed = norm_plan(budget, x_norm, 0.25 * x_norm**2)
    assert plan.event == claimed
    assert worst_line_ratio(plan, claimed.curve(ADD), ADD, epsilons) <= 1.0
    # the bound of the peer, with the norm where its square belongs, is refuted
    plan, claimed = norm_plan(budget, x_norm, 0.25 * x_norm)
    assert worst_line_ratio(plan, claimed.curve(ADD), ADD, epsilons) > 1.0
    assert plan.event.offset > 3 * claimed.offset


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=repr)
def test_offset_scales_with_the_squared_norm_over_the_ridge(loss):
    for x_norm in (0.01, 1.0, 100.0):
        problem = Problem(loss, RowBounds(x_norm), 5, 2)
        reference = Problem(loss, RowBounds(), 5, 2)
        assert tilt_offset(problem, 2.0) == pytest.approx(
            tilt_offset(reference, 2.0 / x_norm**2), rel=1e-9
        )


# Free intercept: a coefficient without penalty or bound has no strong convexity.


def test_intercept_is_planned_bounded_and_penalized():
    planned = []

    class Spy(AMP):
        def plan(self, problem, budget):
            planned.append(problem)
            return super().plan(problem, budget)

    X, y = data(n_classes=2)
    y[:] = 1  # every label agrees: a free intercept would run away
    y[0] = 0
    solver = Spy(ridge=5.0)
    model = LogisticRegression(1e12, 1e-5, x_norm=2.0, solver=solver, random_state=0)
    model.fit(X, y)
    (problem,) = planned
    assert problem.n_features == 3
    value = INTERCEPT_FRACTION * 2.0
    assert problem.bounds.x_norm >= np.hypot(2.0, value)
    peer = SklearnLogistic(C=1 / 5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(np.c_[RowBounds(2.0).clip(X), np.full(len(y), value)], y)
    np.testing.assert_allclose(model.intercept_, peer.coef_[0, -1] * value, atol=1e-5)


# No noise on squares: their sensitivity was taken from the lower bound alone, twice
# (IBM/differential-privacy-library#105), and lower bounds are often zero.


@pytest.mark.parametrize(("ends", "caught"), [((0, 0), True), ((0, 1), False)])
def test_noise_on_squares_is_for_both_ends(ends, caught):
    # columns are from 0 to 1; the peer looked at the first end, and again at the first
    sensitivity = max(abs(end) for end in ends) ** 2

    def squares(x, seed):
        noise = as_generator(seed).laplace(scale=sensitivity)
        return np.array([np.sum(np.clip(x, 0, 1) ** 2) + noise])

    pair = np.zeros(5), np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    found = audit(squares, pair, n_runs=300, delta=0.0, random_state=0)
    assert (found.epsilon_lower > 1.0) is caught


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=lambda r: r.name)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_squares_of_columns_that_start_at_zero_have_noise(neighbors, fit_intercept):
    model = LinearRegression(
        1.0,
        1e-3,
        y_range=(0, 1),
        fit_intercept=fit_intercept,
        solver=AdaptiveMoments(),
        neighbors=neighbors.value,
        expected_rows=40,
        random_state=0,
        x_norm=1.0,
    )
    X, y = np.zeros((40, 1)), np.zeros(40)
    other, changed = X.copy(), y.copy()
    other[0], changed[0] = 1.0, 1.0
    if neighbors is ADD:
        X, y = X[1:], y[1:]

    def fit(X, y):
        return clone(model).fit(X, y).coef_

    report = assert_replays(fit, (X, y), (other, changed))
    assert "SymmetricGaussian" in {entry.label for entry in report.entries}
    with recording() as tape:
        fit(X, y)
    # a sum of squares of nothing is released with noise all the same
    assert all(np.abs(release.output).min() > 0 for release in tape.releases)


# Same noise in workers: every process must key its own generator.


def coefficients(model, X, y):
    return clone(model).fit(X, y).coef_.tobytes()


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(x_norm=1.0), LogisticRegression(solver="noisy_gd", x_norm=1.0)],
)
def test_workers_draw_noise_of_their_own(model):
    X, y = data(n=20)
    found = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(coefficients)(model, X, y) for _ in range(8)
    )
    assert len(set(found)) == 8


def _fit_into(queue, model, X, y):
    queue.put(coefficients(model, X, y))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_workers_draw_noise_of_their_own():
    X, y = data(n=20)
    model = LogisticRegression(x_norm=1.0)
    first = coefficients(model, X, y)  # anything kept in the parent would be copied
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [
        context.Process(target=_fit_into, args=(queue, model, X, y)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    found = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert len({first, *found}) == 4


def test_classes_of_one_fit_get_different_noise():
    X = np.zeros((30, 2))
    y = np.arange(30) % 3
    for solver in ("amp", "noisy_gd"):
        coef = (
            LogisticRegression(solver=solver, fit_intercept=False, x_norm=1.0)
            .fit(X, y)
            .coef_
        )
        assert len(set(coef.ravel().tolist())) == coef.size


# Budget lost by clone and GridSearchCV: the account is not a parameter.


def search(ledger_budget, **settings):
    ledger = Ledger(ledger_budget)
    model = LogisticRegression(0.5, 1e-6, x_norm=1.0).set_fit_request(ledger=True)
    grid = GridSearchCV(
        model, {"ridge": [0.0, 1.0]}, cv=3, error_score="raise", **settings
    )
    return ledger, grid


def test_a_clone_shares_no_account():
    model = LogisticRegression(1.0, 1e-6, x_norm=1.0)
    ledger = Ledger(Budget(2.0, 1e-3))
    X, y = data()
    for _ in range(2):
        clone(model).fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 2
    assert "ledger" not in model.get_params()


def test_grid_search_is_counted_fit_by_fit():
    with config_context(enable_metadata_routing=True):
        ledger, grid = search(Budget(10.0, 1e-2))
        grid.fit(*data(), ledger=ledger)
    # two settings in three folds, and the best once more on all rows
    assert len(ledger.report().entries) == 7


def test_grid_search_past_the_budget_is_refused():
    with config_context(enable_metadata_routing=True):
        ledger, grid = search(Budget(0.8, 1e-5))
        with pytest.raises(BudgetExceeded, match="nothing was charged or released"):
            grid.fit(*data(), ledger=ledger)
    assert len(ledger.report().entries) < 7
    assert ledger.spent() <= 0.8


def test_grid_search_in_other_processes_is_refused():
    with config_context(enable_metadata_routing=True):
        ledger, grid = search(Budget(10.0, 1e-2), n_jobs=2)
        with pytest.raises(Exception, match="pickle") as rejection:
            grid.fit(*data(), ledger=ledger)
    causes = [rejection.value, rejection.value.__cause__, rejection.value.__context__]
    assert any("Ledger cannot be copied" in str(cause) for cause in causes)
    assert not ledger.report().entries


# Label set from y: a class that one person carries must not shape the model.


def test_a_vanished_class_changes_neither_shape_nor_outcome():
    X, y = data()
    y[0] = 2  # one person alone in a class
    other = y.copy()
    other[0] = 0
    fits = [
        LogisticRegression(classes=[0, 1, 2], random_state=0, x_norm=1.0).fit(X, labels)
        for labels in (y, other)
    ]
    assert fits[0].coef_.shape == fits[1].coef_.shape
    assert fits[0].privacy_ == fits[1].privacy_

    def train(labels):
        return LogisticRegression(classes=[0, 1, 2], random_state=0, x_norm=1.0).fit(
            X, labels
        )

    assert_replays(train, (y,), (other,))


def test_labels_taken_from_y_are_a_stated_assumption():
    X, y = data()
    stated = LogisticRegression(x_norm=1.0).fit(X, y).privacy_.assumptions
    assert any("set of labels is public" in sentence for sentence in stated)
    given = (
        LogisticRegression(classes=[0, 1], x_norm=1.0).fit(X, y).privacy_.assumptions
    )
    assert not any("set of labels" in sentence for sentence in given)


# Clip, then use the unclipped rows.


@pytest.mark.parametrize("solver", [ObjectivePerturbation(), AMP(), NoisyGD()])
@pytest.mark.parametrize("neighbors", [REPLACE, ADD])
def test_a_row_of_any_length_stays_within_the_sensitivity(solver, neighbors):
    bounds = RowBounds()
    plan = solver.plan(Problem(Logistic(), bounds, 4, 2), Budget(5.0, 1e-3, neighbors))
    X = np.array([[1e6, 0.0], [0.1, 0.2], [0.0, -0.3]])
    y, other = np.array([1.0, -1.0, 1.0]), np.array([-1.0, -1.0, 1.0])
    first = bounded_rows(X, y, bounds)
    second = bounded_rows(X, other, bounds)
    if neighbors is ADD:
        second = bounded_rows(X[1:], y[1:], bounds)
    assert_replays(
        lambda rows: solver.run(plan, rows, as_generator(0)).coefficients,
        (first,),
        (second,),
    )


# Small seeds: no more than one byte of entropy, or one seed for all.


def test_noise_without_a_seed_takes_128_bits_from_the_system(monkeypatch):
    asked = []
    urandom = os.urandom

    def counting(size):
        asked.append(size)
        return urandom(size)

    monkeypatch.setattr(os, "urandom", counting)
    X, y = data()
    found = {
        LogisticRegression(x_norm=1.0).fit(X, y).coef_.tobytes() for _ in range(20)
    }
    assert asked == [16] * 20
    assert len(found) == 20


# Redraw on failure, and unconverged release.


def count_releases(solver, plan, rows):
    with recording() as tape:
        solver.run(plan, rows, as_generator(0))
    return [release.label for release in tape.releases]


def struggling(p=3):
    """Return rows that are separable and long, with almost no ridge or noise."""
    X, y = data(n=200, p=p)
    bounds = RowBounds(50.0)
    problem = Problem(Logistic(), bounds, 200, p)
    return problem, bounded_rows(X * 100, 2.0 * y - 1, bounds)


def test_the_tilt_is_drawn_exactly_once_however_hard_the_minimum_is():
    problem, rows = struggling()
    plan = AMP(ridge=1e-3).plan(problem, Budget(1e9, 1e-6))
    assert count_releases(AMP(), plan, rows) == [
        "Gaussian",
        "TiltedMinimum",
        "Gaussian",
    ]


@pytest.mark.parametrize("solver", ["amp", ObjectivePerturbation()])
def test_a_minimum_that_is_not_reached_raises_nothing(solver, monkeypatch):
    # one Newton step is not enough for anything, nor are none in the ball
    monkeypatch.setattr(sys.modules[minimizer.__module__], "NEWTON_STEPS", 1)
    monkeypatch.setattr(composite, "NEWTON_STEPS", 0)
    X, y = data(n=200)
    ledger = Ledger(Budget(2.0, 1e-3))
    model = LogisticRegression(1.0, 1e-5, solver=solver, x_norm=1.0)
    with recording() as tape:
        model.fit(X * 100, y, ledger=ledger)
    # an error after the charge would depend on the rows; the tilt is drawn once
    last = ["Gaussian"] if solver == "amp" else []
    drawn = ["Gaussian", "TiltedMinimum", *last]
    assert [release.label for release in tape.releases] == drawn
    assert len(ledger.report().entries) == 1
    assert np.isfinite(model.coef_).all()


# Precision attack on what is released.


@pytest.mark.statistical
@pytest.mark.parametrize("solver", [AMP(ridge=1.0), NoisyGD(n_steps=1, step=1.0)])
def test_last_digits_of_coefficients_betray_nothing(solver, seed):
    n = 4000
    problem = Problem(Logistic(cap=0.5), RowBounds(), 4, n)
    plan = solver.plan(problem, Budget(5.0, 1e-3))
    mechanism = plan.mechanism
    scale = mechanism.scale(n)
    rng = as_generator(seed)
    found = precision_attack(lambda value: mechanism(value, rng), 0.0, scale, n)
    assert found.conclusive
    assert not found.broken
    floats = precision_attack(
        lambda value: value + scale * rng.normal(size=value.shape), 0.0, scale, n
    )
    assert floats.broken


def test_coefficients_lie_on_the_public_grid():
    X, y = data()
    problem = Problem(Logistic(), RowBounds(), len(y), 2)
    plan = AMP().plan(problem, Budget(1.0, 1e-5))
    W = (
        AMP()
        .run(plan, bounded_rows(X, 2.0 * y - 1, RowBounds()), as_generator(0))
        .coefficients
    )
    cells = W / (plan.mechanism.scale(W.size) / 2**32)
    np.testing.assert_allclose(cells, np.round(cells), rtol=1e-15)


# Batch size or number of rows that leaks: under add/remove the plan knows neither.


@pytest.mark.parametrize("solver", ["auto", "amp", "noisy_gd", ObjectivePerturbation()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_plan_and_report_do_not_tell_the_number_of_rows(solver, n_classes):
    X, y = data(n_classes=n_classes)
    reports = [
        LogisticRegression(
            1.0,
            1e-6,
            solver=solver,
            neighbors="add_or_remove_one",
            classes=range(n_classes),
            random_state=0,
            x_norm=1.0,
        )
        .fit(X[:n], y[:n])
        .privacy_
        for n in (60, 59, 10)
    ]
    assert reports[0] == reports[1] == reports[2]


def test_under_replacement_the_number_of_rows_is_said_to_be_public():
    stated = LogisticRegression(x_norm=1.0).fit(*data()).privacy_.assumptions
    assert any("number of rows is public" in sentence for sentence in stated)
