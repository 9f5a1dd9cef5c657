"""Private logistic regression as a person uses it."""

import json
import logging
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.convex import Logistic
from tacit.convex.objective import MOST_ADDITIONS, gradient_roundoff
from tacit.data import RowBounds
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import LogisticRegression
from tacit.privacy import Budget, Ledger, Neighbors
from tacit.solvers import AMP, NoisyGD, ObjectivePerturbation, Problem
from tacit.solvers._base import INTERCEPT_FRACTION

N, P = 120, 3
FITTED = {
    "bounds_",
    "classes_",
    "coef_",
    "intercept_",
    "loss_",
    "noise_",
    "privacy_",
    "n_features_in_",
}


def data(n_classes=2, n=N, seed=0):
    rng = as_generator(seed)
    X = rng.normal(size=(n, P)) / 3
    scores = X @ rng.normal(size=(P, n_classes)) * 5 + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def fitted_attributes(model):
    return {name for name in vars(model) if name.endswith("_")}


@pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])
@pytest.mark.parametrize("solver", ["auto", "amp", ObjectivePerturbation(), "noisy_gd"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_solver_fits_both_forms(n_classes, solver, neighbors, seed):
    X, y = data(n_classes)
    model = LogisticRegression(
        1.0, 1e-5, solver=solver, neighbors=neighbors, random_state=seed, x_norm=1.0
    ).fit(X, y)
    outputs = 1 if n_classes == 2 else n_classes
    assert model.coef_.shape == (outputs, P)
    assert model.intercept_.shape == (outputs,)
    assert model.n_features_in_ == P
    assert_array_equal(model.classes_, np.arange(n_classes))
    assert fitted_attributes(model) == FITTED
    assert model.privacy_.spent <= 1.0


@pytest.mark.parametrize("n_classes", [2, 4])
def test_learns_when_privacy_is_cheap(n_classes, seed):
    X, y = data(n_classes, n=4000)
    score = (
        LogisticRegression(10.0, random_state=seed, x_norm=1.0).fit(X, y).score(X, y)
    )
    peer = SklearnLogistic().fit(X, y).score(X, y)
    assert score >= peer - 0.03


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_give_what_dense_rows_give(n_classes, seed):
    X, y = data(n_classes)
    X[X < 0] = 0.0
    dense, thin = (
        LogisticRegression(random_state=seed, x_norm=1.0).fit(Z, y)
        for Z in (X, sparse.csr_array(X))
    )
    assert_allclose(thin.coef_, dense.coef_, rtol=0, atol=1e-5)
    assert_allclose(thin.intercept_, dense.intercept_, rtol=0, atol=1e-5)
    assert_allclose(
        thin.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X), atol=1e-5
    )


def test_single_precision_is_widened_before_it_is_clipped(seed):
    X, y = data()
    X = X.astype(np.float32)
    narrow, wide = (
        LogisticRegression(random_state=seed, x_norm=1.0).fit(Z, y)
        for Z in (X, X.astype(np.float64))
    )
    assert narrow.coef_.dtype == np.float64
    assert_array_equal(narrow.coef_, wide.coef_)
    assert_array_equal(narrow.predict(X), wide.predict(X))


def test_long_single_precision_rows_are_shortened_like_any(seed):
    X, y = data()
    X = (X * 1e30).astype(np.float32)
    model = LogisticRegression(random_state=seed, x_norm=1.0).fit(X, y)
    unit = X / np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    assert_allclose(model.decision_function(X), model.decision_function(unit))


def test_feature_names_of_a_frame_are_kept_and_checked(seed):
    X, y = data()
    frame = pd.DataFrame(X, columns=["age", "income", "height"])
    model = LogisticRegression(random_state=seed, x_norm=1.0).fit(frame, pd.Series(y))
    assert_array_equal(model.feature_names_in_, frame.columns)
    bare = LogisticRegression(random_state=seed, x_norm=1.0).fit(X, y)
    assert_array_equal(model.predict(frame), bare.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "years"}))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_intercept_zero_rows_are_undecided(n_classes, seed):
    X, y = data(n_classes)
    model = LogisticRegression(fit_intercept=False, random_state=seed, x_norm=1.0).fit(
        X, y
    )
    assert_array_equal(model.intercept_, np.zeros_like(model.intercept_))
    even = model.predict_proba(np.zeros((1, P)))
    assert_allclose(even, np.full((1, n_classes), 1 / n_classes), rtol=1e-12)


def test_intercept_is_a_feature_inside_the_bound(seed):
    X, y = data()
    with_constant = np.c_[X, np.full(N, INTERCEPT_FRACTION)]
    bounds = RowBounds(1.0)
    solver = AMP(ridge=3.0)
    model = LogisticRegression(
        1e13, 1e-5, solver=solver, random_state=seed, x_norm=1.0
    ).fit(X, y)
    by_hand = SklearnLogistic(C=1 / 3, fit_intercept=False, tol=1e-12, max_iter=10_000)
    by_hand.fit(np.c_[bounds.clip(X), with_constant[:, -1:]], y)
    assert_allclose(model.coef_[0], by_hand.coef_[0, :-1], rtol=0, atol=1e-6)
    assert_allclose(
        model.intercept_, by_hand.coef_[0, -1:] * INTERCEPT_FRACTION, rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cheap_privacy_gives_the_fit_of_scikit_learn(n_classes, seed):
    X, y = data(n_classes)
    model = LogisticRegression(
        1e13,
        1e-5,
        solver=AMP(ridge=2.0),
        fit_intercept=False,
        random_state=seed,
        x_norm=1.0,
    ).fit(X, y)
    peer = SklearnLogistic(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(RowBounds(1.0).clip(X), y)
    assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-6)
    assert_allclose(
        model.predict_proba(X), peer.predict_proba(RowBounds(1.0).clip(X)), atol=1e-6
    )


@pytest.mark.parametrize(("n_classes", "epsilon"), [(2, 0.5), (2, 1e13), (3, 1.0)])
def test_probabilities_are_those_of_the_loss(n_classes, epsilon, seed):
    X, y = data(n_classes)
    model = LogisticRegression(epsilon, random_state=seed, x_norm=1.0).fit(X, y)
    proba, scores = model.predict_proba(X), model.decision_function(X)
    assert proba.shape == (N, n_classes)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    assert_allclose(model.predict_log_proba(X), np.log(proba))
    if n_classes > 2:
        expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert_allclose(proba, expected, rtol=1e-9)
        return
    # at its probability the expected loss of a margin is least, so flat
    ones, Z = np.ones(N), scores[:, None]
    up, down = (
        model.loss_.derivative(ones, Z)[:, 0],
        model.loss_.derivative(-ones, Z)[:, 0],
    )
    assert_allclose(proba[:, 1] * up + proba[:, 0] * down, 0.0, atol=1e-12)


def test_long_rows_are_shortened_when_predicting_too(seed):
    X, y = data()
    model = LogisticRegression(random_state=seed, x_norm=1.0).fit(X, y)
    longer = X[:5] / np.linalg.norm(X[:5], axis=1, keepdims=True) * 2
    assert_allclose(
        model.decision_function(longer), model.decision_function(longer * 1e6)
    )


@pytest.mark.parametrize(
    "labels", [["no", "yes"], ["a", "b", "c"], [10, -3], [True, False]]
)
def test_labels_of_any_kind_come_back(labels, seed):
    X, y = data(len(labels))
    named = np.array(labels)[y]
    model = LogisticRegression(random_state=seed, x_norm=1.0).fit(X, named)
    assert_array_equal(model.classes_, np.unique(named))
    assert set(model.predict(X)) <= set(labels)
    assert model.predict(X).dtype == named.dtype


def test_public_classes_may_come_in_any_order_and_go_unseen(seed):
    X, y = data()
    fits = [
        LogisticRegression(classes=classes, random_state=seed, x_norm=1.0).fit(X, y)
        for classes in ([0, 1, 7], [7, 1, 0], np.array([1, 0, 7]), range(8))
    ]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert_array_equal(fits[0].coef_, fits[2].coef_)
    assert_array_equal(fits[1].classes_, [0, 1, 7])
    assert fits[3].coef_.shape == (8, P)
    assert not any("taken from y" in a for a in fits[0].privacy_.assumptions)


def test_delta_defaults_to_one_over_the_squared_rows(seed):
    X, y = data()
    guarantee = (
        LogisticRegression(random_state=seed, x_norm=1.0).fit(X, y).privacy_.guarantee
    )
    assert guarantee == Budget(1.0, 1 / N**2, Neighbors.REPLACE_ONE)


def test_delta_must_be_given_where_the_row_count_is_private():
    X, y = data()
    with pytest.raises(ValueError, match="delta must be given"):
        LogisticRegression(neighbors="add_or_remove_one", x_norm=1.0).fit(X, y)


class Spy(NoisyGD):
    """A solver that remembers what it was asked to plan."""

    asked: list = []  # noqa: RUF012 - reset by each test

    def plan(self, problem, budget):
        self.asked.append((problem, budget))
        return super().plan(problem, budget)


@pytest.mark.parametrize(
    ("neighbors", "delta", "expected_rows", "planned"),
    [
        ("replace_one", None, None, N),
        ("replace_one", 1e-6, 77, 77),
        ("add_or_remove_one", 1e-6, None, 1000),
        ("add_or_remove_one", 1e-6, 77, 77),
    ],
)
def test_rows_planned_for_are_public(neighbors, delta, expected_rows, planned):
    Spy.asked.clear()
    LogisticRegression(
        delta=delta,
        neighbors=neighbors,
        expected_rows=expected_rows,
        solver=Spy(),
        x_norm=1.0,
    ).fit(*data())
    ((problem, budget),) = Spy.asked
    assert problem.n_rows == pytest.approx(planned, abs=1)
    assert budget.neighbors.value == neighbors


def test_report_says_what_was_promised_spent_and_assumed(seed):
    X, y = data()
    report = (
        LogisticRegression(0.7, 1e-6, random_state=seed, x_norm=1.0).fit(X, y).privacy_
    )
    assert report.guarantee == Budget(0.7, 1e-6)
    assert 0.69 < report.spent <= 0.7
    assert [entry.label for entry in report.entries] == ["LogisticRegression"]
    assert report.entries[0].epsilon == 0.7
    assert any("taken from y" in a for a in report.assumptions)
    assert any("norm 1" in a for a in report.assumptions)
    assert any("number of rows is public" in a for a in report.assumptions)
    assert report.seeded
    assert "FIXED SEED" in str(report)
    assert json.loads(report.to_json())["promise"]["epsilon"] == 0.7


def test_report_tells_seeds_from_the_operating_system():
    X, y = data()
    report = LogisticRegression(
        delta=1e-6, neighbors="add_or_remove_one", x_norm=1.0
    ).fit(X, y)
    report = report.privacy_
    assert not report.seeded
    assert "operating system" in str(report)
    assert not any("number of rows is public" in a for a in report.assumptions)


def test_ledger_is_charged_once_and_before_the_run():
    ledger = Ledger(Budget(3.0, 1e-4))
    charges = []

    class Watching(AMP):
        def run(self, plan, rows, rng):
            charges.append(len(ledger.report().entries))
            return super().run(plan, rows, rng)

    X, y = data()
    LogisticRegression(1.0, 1e-5, solver=Watching(), x_norm=1.0).fit(
        X, y, ledger=ledger
    )
    assert charges == [1]
    assert len(ledger.report().entries) == 1
    assert 0.8 < ledger.spent() <= 1.0


def test_fit_that_fails_after_the_charge_stays_charged():
    ledger = Ledger(Budget(3.0, 1e-4))

    class Failing(AMP):
        def run(self, plan, rows, rng):
            raise RuntimeError("no luck")

    model = LogisticRegression(1.0, 1e-5, solver=Failing(), x_norm=1.0)
    with pytest.raises(RuntimeError, match="no luck"):
        model.fit(*data(), ledger=ledger)
    assert len(ledger.report().entries) == 1
    assert not fitted_attributes(model)


def test_refused_fit_releases_and_charges_nothing():
    ledger = Ledger(Budget(1.2, 1e-5))
    X, y = data()
    LogisticRegression(1.0, 1e-5, x_norm=1.0).fit(X, y, ledger=ledger)
    model = LogisticRegression(1.0, 1e-5, x_norm=1.0)
    with pytest.raises(BudgetExceeded, match="nothing was charged or released"):
        model.fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 1
    assert not fitted_attributes(model)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_refused_refit_leaves_the_model_as_it_was(seed):
    X, y = data()
    model = LogisticRegression(1.0, 1e-5, random_state=seed, x_norm=1.0).fit(X, y)
    before = vars(model).copy()
    ledger = Ledger(Budget(0.5, 1e-5))
    with pytest.raises(BudgetExceeded):
        model.fit(X[:, :2], 1 - y, ledger=ledger)
    assert vars(model) == before


def test_two_fits_share_one_ledger():
    ledger = Ledger(Budget(2.0, 1e-3))
    X, y = data()
    models = [
        LogisticRegression(e, 1e-5, x_norm=1.0).fit(X, y, ledger=ledger)
        for e in (0.5, 1.0)
    ]
    assert [entry.epsilon for entry in ledger.report().entries] == [0.5, 1.0]
    assert [len(model.privacy_.entries) for model in models] == [1, 1]
    alone = Ledger(ledger.budget)
    alone.charge(models[1].privacy_.entries[0].event, "second")
    assert alone.spent() < ledger.spent() <= 1.5 + 1e-5


def test_ledger_of_the_other_relation_is_refused():
    ledger = Ledger(Budget(2.0, 1e-3, Neighbors.ADD_OR_REMOVE_ONE))
    model = LogisticRegression(1.0, 1e-5, x_norm=1.0)
    with pytest.raises(ValueError, match="neighbors='replace_one'"):
        model.fit(*data(), ledger=ledger)
    assert not ledger.report().entries
    assert not hasattr(model, "coef_")


def test_fitted_model_survives_pickling_and_a_clone_is_blank(seed):
    X, y = data()
    model = LogisticRegression(
        0.5, solver=AMP(ridge=9.0), random_state=seed, x_norm=1.0
    ).fit(X, y, ledger=Ledger(Budget(1.0, 1e-3)))
    back = pickle.loads(pickle.dumps(model))
    assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.privacy_ == model.privacy_
    blank = clone(model)
    assert blank.get_params() == model.get_params()
    assert not fitted_attributes(blank)


def test_fitting_is_silent(seed, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    X, y = data(3)
    for solver in ("auto", "amp", "noisy_gd"):
        LogisticRegression(solver=solver, random_state=seed, x_norm=1.0).fit(
            X, y
        ).predict(X)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_fresh_fits_differ_and_seeded_ones_agree(seed):
    X, y = data()
    free = [LogisticRegression(x_norm=1.0).fit(X, y).coef_ for _ in range(3)]
    assert len({coef.tobytes() for coef in free}) == 3
    fixed = [
        LogisticRegression(random_state=seed, x_norm=1.0).fit(X, y).coef_
        for _ in range(2)
    ]
    assert_array_equal(*fixed)


def test_ledger_reaches_the_model_through_a_pipeline(seed):
    X, y = data()
    ledger = Ledger(Budget(2.0, 1e-3))
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression(1.0, 1e-5, random_state=seed, x_norm=1.0)
        steps = make_pipeline(
            FunctionTransformer(np.tanh), model.set_fit_request(ledger=True)
        )
        steps.fit(X, y, ledger=ledger)
        assert len(ledger.report().entries) == 1
        unasked = make_pipeline(
            FunctionTransformer(), LogisticRegression(1.0, 1e-5, x_norm=1.0)
        )
        with pytest.raises(ValueError, match="ledger"):
            unasked.fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 1


@pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])
@pytest.mark.parametrize("solver", ["amp", "noisy_gd"])
def test_nothing_but_the_releases_depends_on_the_rows(solver, neighbors, seed):
    X, y = data(n=12)
    X[0], other, labels = 1e6, X.copy(), y.copy()
    other[0], labels[0] = -1e6, 1 - y[0]
    if neighbors == "add_or_remove_one":
        other, labels = X[1:], y[1:]

    def train(X, y):
        return LogisticRegression(
            2.0,
            1e-4,
            solver=solver,
            neighbors=neighbors,
            classes=[0, 1],
            random_state=seed,
            x_norm=1.0,
        ).fit(X, y)

    assert_replays(train, (X, y), (other, labels))


def test_replay_of_the_estimator_notices_a_learned_bound(seed):
    X, y = data(n=12)
    other = X.copy()
    other[0] *= 50

    def train(X, y):
        bound = float(np.linalg.norm(X, axis=1).max())  # what must not be done
        return LogisticRegression(2.0, 1e-4, x_norm=bound, random_state=seed).fit(X, y)

    assert not replay(train, (X, y), (other, y)).ok


def test_a_solver_may_be_named_or_given(seed):
    X, y = data()
    for name, kind in {"amp": AMP, "noisy_gd": NoisyGD}.items():
        by_name, by_object = (
            LogisticRegression(solver=solver, random_state=seed, x_norm=1.0).fit(X, y)
            for solver in (name, kind())
        )
        assert_array_equal(by_name.coef_, by_object.coef_)


def test_report_names_what_research_settings_assume(seed):
    X, y = data()
    exact = LogisticRegression(
        solver=ObjectivePerturbation(), random_state=seed, x_norm=1.0
    )
    assert any("arithmetic is exact" in a for a in exact.fit(X, y).privacy_.assumptions)
    floating = LogisticRegression(noise="float", random_state=seed, x_norm=1.0).fit(
        X, y
    )
    assert any("floating-point" in a for a in floating.privacy_.assumptions)
    plain = LogisticRegression(random_state=seed, x_norm=1.0).fit(X, y)
    assert not any("floating-point" in a for a in plain.privacy_.assumptions)


def test_certificate_is_within_reach_of_many_rows_when_their_number_is_private():
    # planned for a thousand rows, which the delta suggests, and given many more
    budget = Budget(1.0, 1e-6, "add_or_remove_one")
    problem = Problem(Logistic(), RowBounds(), 1000, 101)
    plan = AMP().plan(problem, budget)
    at_most = gradient_roundoff(
        n_rows=problem.most_rows,
        shape=problem.shape,
        additions=MOST_ADDITIONS,
        x_norm=1.0,
        derivative=1.0,
        curvature=0.25,
        w_norm=50.0,
    )
    assert at_most < plan.gradient_tolerance
    # and still so small that its noise is lost in that of the tilt
    tilt = plan.tilted.multiplier * plan.tilted.sensitivity / plan.tilted.ridge
    assert plan.mechanism.scale(101) < 0.05 * tilt


def test_entries_that_add_up_to_infinity_are_refused_before_the_charge(seed):
    X, y = data()
    twice = sparse.csr_array(
        (np.r_[X.ravel(), 3e38].astype(np.float32), _indices(X), _indptr(X)),
        shape=X.shape,
    )
    twice.data[-2] = 3e38
    model = LogisticRegression(random_state=seed, x_norm=1.0).fit(twice, y)
    assert np.isfinite(model.coef_).all()  # finite in float64
    wide = sparse.csr_array(
        (np.r_[X.ravel(), 1.7e308], _indices(X), _indptr(X)), shape=X.shape
    )
    wide.data[-2] = 1.7e308
    ledger = Ledger(Budget(5.0, 1e-3))
    with pytest.raises(ValueError, match="infinity"):
        LogisticRegression(random_state=seed, x_norm=1.0).fit(wide, y, ledger=ledger)
    assert ledger.report().entries == ()


def _indices(X):
    return np.r_[np.tile(np.arange(X.shape[1]), X.shape[0]), X.shape[1] - 1]


def _indptr(X):
    starts = np.arange(X.shape[0] + 1) * X.shape[1]
    starts[-1] += 1
    return starts
