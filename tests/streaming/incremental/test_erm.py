"""Fits again on all rows so far: when, to what, and what must never show."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from tests.streaming.incremental.summing import NoisySum

from tacit._random import as_generator
from tacit.convex import Box, L1Ball, Simplex
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    SimplexRegressor,
    SparseLinearRegression,
)
from tacit.privacy import Budget, GaussianNoise, Ledger
from tacit.streaming import DurableStream, IncrementalERM
from tacit.streaming.incremental._refit_learner import _RefitLedger, _with

TWO, Y = ["no", "yes"], (-1.0, 1.0)


def sums(part=1.0, **changes):
    """Return least squares whose only coefficient is a noisy sum of the features."""
    solver = NoisySum(part)
    return LinearRegression(
        y_range=Y, solver=solver, fit_intercept=False, **changes, x_norm=1.0
    )


def steps(rng, n_steps, n_rows=5, p=2):
    for _ in range(n_steps):
        X = rng.uniform(-0.5, 0.5, size=(n_rows, p))
        yield X, X[:, 0]


def watched(look):
    """Return a solver that notes something of the rows of each fit, and its notes."""
    seen = []

    class Watched(NoisySum):
        def run(self, plan, rows, rng):
            seen.append(look(rows))
            return super().run(plan, rows, rng)

    return Watched(), seen


@pytest.mark.parametrize(
    ("every", "horizon", "fits"),
    [
        (1, 4, [1, 2, 3, 4]),
        (3, 10, [3, 6, 9]),
        (10, 10, [10]),
        ("doubling", 11, [1, 2, 5, 11]),
    ],
)
def test_fits_are_few_and_on_all_rows_so_far(every, horizon, fits, rng):
    solver, seen = watched(lambda rows: rows.n_rows)
    estimator = sums().set_params(solver=solver)
    model = IncrementalERM(
        estimator, horizon=horizon, update_every=every, rows_per_step=5
    )
    models = []
    for X, y in steps(rng, horizon):
        model.partial_fit(X, y)
        models.append((model.last_refit_, model.coef_.tolist(), model.intercept_))
    assert seen == [5 * step for step in fits]
    # constant between fits, and another after each
    by_fit = {}
    for last, *weights in models:
        by_fit.setdefault(last, []).append(weights)
    assert set(by_fit) == {*fits, *([0] if fits[0] > 1 else [])}
    assert all(group == [group[0]] * len(group) for group in by_fit.values())
    distinct = {str(group[0]) for group in by_fit.values()}
    assert len(distinct) == len(by_fit)


def test_a_fit_sees_the_rows_that_came_and_their_order(rng):
    taken = list(steps(rng, 7, n_rows=3))
    model = IncrementalERM(
        sums(), 1e7, 1e-3, horizon=7, update_every=7, rows_per_step=3
    )
    for X, y in taken:
        model.partial_fit(X, y)
    exact = sum(X.sum(axis=0) for X, _ in taken)
    np.testing.assert_allclose(model.coef_, exact, atol=0.01)
    kept = model._private_stream._private_state
    assert_array_equal(
        np.concatenate(kept._private_X), np.vstack([X for X, _ in taken])
    )
    assert_array_equal(
        np.concatenate(kept._private_y), np.concatenate([y for _, y in taken])
    )


def test_rows_are_kept_in_few_blocks():
    blocks = ()
    for position in range(1000):
        blocks = _with(blocks, np.full(1, position))
        assert len(blocks) <= 10
    assert_array_equal(np.concatenate(blocks), np.arange(1000))
    assert len(_with(_with((), np.empty(0)), np.empty(0))) == 1


@pytest.mark.parametrize(
    ("estimator", "inside"),
    [
        (
            SimplexRegressor(y_range=Y, radius=2.0, x_max=1.0),
            lambda w: Simplex().contains(w / 2),
        ),
        (
            LinearRegression(
                y_range=Y, penalty=Box(0.5, 2.0), fit_intercept=False, x_norm=1.0
            ),
            lambda w: (w >= 0.5).all() and (w <= 2).all(),
        ),
        (
            LinearRegression(
                y_range=Y,
                penalty=L1Ball(0.3),
                fit_intercept=False,
                bound_norm="linf",
                x_norm=1.0,
            ),
            L1Ball(0.3).contains,
        ),
    ],
)
def test_every_output_is_in_the_set(estimator, inside, rng):
    model = IncrementalERM(estimator, horizon=4, update_every=2, rows_per_step=5)
    for X, y in steps(rng, 4):
        assert inside(np.reshape(model.partial_fit(X, y).coef_, (-1, 1)))


def test_the_model_before_the_first_fit_is_the_middle(rng):
    shared = {"horizon": 4, "update_every": 4}
    X, y = next(steps(rng, 1))
    linear = IncrementalERM(LinearRegression(y_range=(90, 110), x_norm=1.0), **shared)
    linear.partial_fit(X, y)
    assert_array_equal(linear.coef_, np.zeros(2))
    assert_array_equal(linear.predict(X), np.full(5, 100.0))
    labels = IncrementalERM(LogisticRegression(classes=TWO, x_norm=1.0), **shared)
    labels.partial_fit(X, np.where(y > 0, "yes", "no"))
    assert_array_equal(labels.predict_proba(X), np.full((5, 2), 0.5))
    assert labels.last_refit_ == linear.last_refit_ == 0


def test_one_charge_covers_the_horizon(rng):
    ledger = Ledger(Budget(1.0, 1e-5))
    model = IncrementalERM(sums(), 1.0, 1e-5, horizon=3, update_every=1)
    taken = list(steps(rng, 4))
    for X, y in taken[:3]:
        model.partial_fit(X, y, ledger=ledger)
    (entry,) = ledger.report().entries
    assert entry.label == "IncrementalERM"
    assert entry.event == model.plan(2).event
    before = vars(model).copy()
    with pytest.raises(ValueError, match="planned for horizon=3 steps, got step 4"):
        model.partial_fit(*taken[3])
    assert vars(model) == before
    with pytest.raises(BudgetExceeded):
        clone(model).partial_fit(*taken[0], ledger=ledger)


def test_only_what_was_paid_for_can_be_run():
    refit = IncrementalERM(sums(), horizon=2).plan(2).learner.refits[0]
    paid = _RefitLedger(refit)
    paid.require(refit.event, "the fit", refit.budget)
    paid.charge(refit.event, "the fit", refit.budget)
    quieter = GaussianNoise(2 * refit.event.multiplier)
    with pytest.raises(RuntimeError, match="not the one of its plan"):
        _RefitLedger(refit).charge(quieter, "the fit", refit.budget)


class Telling(NoisySum):
    """Fail with a number of the rows."""

    def run(self, plan, rows, rng):
        warnings.warn(f"saw {rows.n_rows}", stacklevel=1)
        sys.stdout.write(f"saw {rows.n_rows}")
        raise ValueError(f"secret of {rows.n_rows} rows")


def test_a_fit_that_fails_tells_nothing_and_changes_nothing(rng, capsys):
    estimator = sums().set_params(solver=Telling())
    model = IncrementalERM(estimator, horizon=3, update_every=2)
    taken = list(steps(rng, 2))
    model.partial_fit(*taken[0])
    before = vars(model).copy()
    with pytest.raises(RuntimeError, match="A fit on the rows so far failed") as found:
        model.partial_fit(*taken[1])
    assert found.value.__cause__ is None
    assert found.value.__context__ is None
    assert vars(model) == before
    assert "saw" not in "".join(capsys.readouterr())


def test_labels_and_tables_of_all_kinds_are_taken(rng):
    X = rng.normal(size=(60, 3)) / 3
    y = np.where(X[:, 0] > 0, "yes", "no")
    seeded = {"horizon": 2, "rows_per_step": 30, "random_state": 3}
    estimator = LogisticRegression(classes=TWO, x_norm=1.0)
    first = IncrementalERM(estimator, **seeded).fit(X, y)
    for other in (X.tolist(), sparse.csr_matrix(X), pd.DataFrame(X)):
        again = IncrementalERM(estimator, **seeded).fit(other, y.tolist())
        assert_array_equal(again.coef_, first.coef_)
    codes = LogisticRegression(classes=[False, True], x_norm=1.0)
    numbers = IncrementalERM(codes, **seeded).fit(X, y == "yes")
    assert_array_equal(numbers.coef_, first.coef_)
    assert numbers.predict(X).dtype == bool
    three = LogisticRegression(classes=[5, 7, 9], x_norm=1.0)
    more = IncrementalERM(three, **seeded).fit(
        X, np.array([5, 7, 9])[np.arange(60) % 3]
    )
    assert more.coef_.shape == (3, 3)
    assert set(more.predict(X)) <= {5, 7, 9}


def test_ranges_by_name_are_those_of_the_columns(rng):
    X = rng.uniform(-1, 1, size=(50, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    shared = {"alpha": 0.01, "y_range": (-3, 3)}
    seeded = {"horizon": 1, "rows_per_step": 50, "random_state": 1, "delta": 1e-6}
    named = IncrementalERM(
        Lasso(feature_bounds={"c": 3.0, "a": 1.0, "b": (-1, 2)}, **shared), **seeded
    ).fit(table, X[:, 0])
    ranges = [(-1.0, 1.0), (-1.0, 2.0), (-3.0, 3.0)]
    placed = IncrementalERM(Lasso(feature_bounds=ranges, **shared), **seeded)
    assert_array_equal(named.coef_, placed.fit(X, X[:, 0]).coef_)
    assert named.predict(table).shape == (50,)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(table[["b", "a", "c"]])


def test_what_is_shown_is_a_model_of_its_own(rng):
    X = rng.uniform(-1, 1, size=(200, 3))
    model = IncrementalERM(
        SparseLinearRegression(
            n_features_to_select=1, feature_bounds=1.0, y_range=(-3, 3), random_state=4
        ),
        8.0,
        1e-6,
        horizon=2,
        update_every=2,
        rows_per_step=100,
    ).fit(X, 3 * X[:, 1])
    shown = model.estimator_
    assert shown.selection_ == (1,)
    assert shown.selection_spent_ is None
    assert shown.privacy_ is model.privacy_
    assert (shown.epsilon, shown.delta) == (8.0, 1e-6)
    assert shown.random_state is None
    assert_array_equal(shown.predict(X), model.predict(X))
    assert is_regressor(model)
    assert not hasattr(model, "predict_proba")
    assert model.score(X, 3 * X[:, 1]) > 0.9


def test_a_classifier_stays_one():
    model = IncrementalERM(LogisticRegression(classes=TWO, x_norm=1.0))
    assert is_classifier(model)
    assert hasattr(model, "predict_proba")
    assert hasattr(model, "decision_function")


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (3, "estimator must be an object of a class of tacit.linear_model, got int"),
        (LogisticRegression, "estimator must be an object"),
        (LogisticRegression(x_norm=1.0), "classes of the estimator must be given"),
        (LinearRegression(x_norm=1.0), "y_range must be given"),
    ],
    ids=str,
)
def test_estimators_that_cannot_be_planned_are_refused(estimator, words, rng):
    model = IncrementalERM(estimator)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(*next(steps(rng, 1)))
    assert not hasattr(model, "privacy_")


def test_the_estimator_given_is_left_as_it_is(rng):
    estimator = LinearRegression(y_range=Y, epsilon=0.3, expected_rows=9, x_norm=1.0)
    before = estimator.get_params()
    IncrementalERM(estimator, horizon=2).fit(*next(steps(rng, 1)))
    assert estimator.get_params() == before
    assert not hasattr(estimator, "coef_")


def test_a_stream_on_disk_goes_on_where_it_was(rng, tmp_path):
    def model():
        return IncrementalERM(
            LogisticRegression(classes=TWO, x_norm=np.float64(1.0)),
            horizon=4,
            update_every=2,
            rows_per_step=5,
            random_state=7,
        )

    taken = [(X, np.where(y > 0, "yes", "no")) for X, y in steps(rng, 4)]
    whole = model()
    for X, y in taken:
        whole.partial_fit(X, y)
    for position, (X, y) in enumerate(taken):
        with DurableStream(model(), tmp_path / "stream") as stream:
            assert stream.n_steps == position
            stream.partial_fit(X, y)
            last = stream.model
    assert_array_equal(last.coef_, whole.coef_)
    assert_array_equal(last.predict(X), whole.predict(X))
    assert last.last_refit_ == 4


def test_other_rows_meet_other_noise():
    X = np.zeros((2, 1))
    released = [
        IncrementalERM(sums(), horizon=1, random_state=as_generator(0).integers(9))
        .partial_fit(X, [0.0, y])
        .coef_[0]
        for y in (0.0, 0.0, 0.5)
    ]
    assert released[0] == released[1] != released[2]
