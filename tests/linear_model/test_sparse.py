"""Models with few weights: the objective, its units, and what they tell."""

from time import process_time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import linear_model as plain
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from tacit._random import as_generator
from tacit.convex import L1Ball, Logistic
from tacit.convex.regularizers import CoordinatePenalty, coordinate_parts
from tacit.data.features import FeatureBounds
from tacit.evaluation import coefficient_intervals, expected_score, private_score
from tacit.linear_model import (
    ElasticNet,
    Lasso,
    LogisticRegression,
    SelectionPath,
    SparseLogisticRegression,
)
from tacit.preprocessing import PublicScaler
from tacit.privacy import Budget, Ledger
from tacit.solvers import CoordinateDescent, FrankWolfe, GreedyCoordinateDescent

N, P = 3000, 8
BOUNDS = np.array([(-1, 3), (0, 10), (-2, 2), (5, 6), *[(-1, 1)] * 4], dtype=float)
Y_RANGE = (-25.0, 15.0)
WEIGHTS = np.array([2.0, 1.0, 0.0, -3.0, 0.0, 0.0, 0.0, 0.0])


def data(seed=0, n=N):
    rng = as_generator(seed)
    X = rng.uniform(BOUNDS[:, 0], BOUNDS[:, 1], size=(n, P))
    return X, X @ WEIGHTS + 4.0 + rng.normal(size=n)


def quiet(kind, **parameters):
    """Return a model whose noise is next to none, and whose steps are many."""
    solver = CoordinateDescent(
        n_passes=400, step=1.0, clip=4.0, smoothness="public", order="cyclic"
    )
    return kind(1e8, 1e-2, solver=solver, random_state=0, **parameters)


TARGETS = {"feature_bounds": BOUNDS, "y_range": Y_RANGE}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_lasso_has_the_objective_of_scikit_learn(alpha, fit_intercept):
    X, y = data()
    given = {"alpha": alpha, "fit_intercept": fit_intercept}
    ours = quiet(Lasso, **TARGETS, **given).fit(X, y)
    theirs = plain.Lasso(**given, tol=1e-8, max_iter=10**5).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=0.02)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=0.1)
    assert_array_equal(ours.selected_features_, np.flatnonzero(theirs.coef_))


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_elastic_net_has_the_objective_of_scikit_learn(l1_ratio):
    X, y = data()
    given = {"alpha": 0.2, "l1_ratio": l1_ratio}
    ours = quiet(ElasticNet, **TARGETS, **given).fit(X, y)
    theirs = plain.ElasticNet(**given, tol=1e-8, max_iter=10**5).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=0.02)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=0.1)


def test_positive_weights_are_those_of_scikit_learn():
    X, y = data()
    ours = quiet(Lasso, alpha=0.05, positive=True, **TARGETS).fit(X, y)
    theirs = plain.Lasso(alpha=0.05, positive=True, tol=1e-8).fit(X, y)
    assert ours.coef_.min() == 0.0
    assert_allclose(ours.coef_, theirs.coef_, atol=0.02)


def test_alpha_is_one_over_rows_times_c_in_scikit_learn():
    X, y = data()
    labels = (y > np.median(y)).astype(int)
    unit = FeatureBounds.of(BOUNDS, P).to_unit(X)  # where scikit-learn gets there
    alpha = 0.01
    ours = quiet(SparseLogisticRegression, alpha=alpha, feature_bounds=1.0)
    ours.fit(unit, labels)
    theirs = plain.LogisticRegression(
        C=1 / (N * alpha), l1_ratio=1.0, solver="saga", tol=1e-6, max_iter=10**4
    ).fit(unit, labels)
    assert_allclose(ours.coef_, theirs.coef_, atol=0.05)
    assert_allclose(ours.predict_proba(unit), theirs.predict_proba(unit), atol=0.02)


def test_units_of_features_and_targets_change_nothing_else():
    X, y = data()
    one = quiet(Lasso, alpha=0.1, **TARGETS).fit(X, y)
    units = np.array([1, 10, 0.1, 3, 1, 1, 7, 1e-3])
    other = quiet(
        Lasso,
        # columns whose unit is smaller get weights that are larger, and penalties so
        alpha=0.0,
        feature_bounds=BOUNDS * units[:, None],
        y_range=(-2500, 1500),
    ).fit(X * units, y * 100)
    assert_allclose(
        coordinate_parts(other._facts.setting.regularizer, 0.0, P + 1)[0], 0.0
    )
    free = quiet(Lasso, alpha=0.0, **TARGETS).fit(X, y)
    assert_allclose(other.coef_ * units / 100, free.coef_, rtol=1e-6)
    assert one._facts.planned.event == other._facts.planned.event


@pytest.mark.parametrize("is_sparse", [False, True])
def test_penalties_are_in_the_units_of_the_features(is_sparse):
    wide = [(0, 8), (-1, 1)]
    model = ElasticNet(
        1.0, alpha=0.5, l1_ratio=0.4, feature_bounds=wide, y_range=(-3, 5)
    )
    planned = model.plan(100, 2, sparse=is_sparse)
    l1, l2, low, high = planned.problem.regularizer.arrays
    half = np.array([8, 1]) if is_sparse else np.array([4, 1])
    assert_allclose(l1, [*(100 * 0.5 * 0.4 / (half * 4)), 0])
    assert_allclose(l2, [*(100 * 0.5 * 0.6 / half**2), 0])
    assert_array_equal(low, [-np.inf] * 3)
    assert_array_equal(high, [np.inf] * 3)
    assert planned.problem.constant == 1.0


def test_the_penalty_is_planned_for_the_public_number_of_rows():
    model = Lasso(1.0, 1e-4, alpha=1.0, **TARGETS, neighbors="add_or_remove_one")
    weights = [
        clone(model).set_params(**given).plan(n, P).problem.regularizer.l1[0]
        for n, given in ((50, {}), (5000, {}), (50, {"expected_rows": 200}))
    ]
    assert weights[0] == weights[1]  # one over the root of delta, whatever there are
    assert weights[2] == 2 * weights[0]


def test_penalties_beyond_all_slopes_leave_nothing():
    X, y = data()
    for alpha in (1e6, 1e300):
        model = Lasso(1.0, alpha=alpha, **TARGETS, solver="cd").fit(X, y)
        assert model.selected_features_.size == 0
        assert np.isfinite(model.intercept_)


@pytest.mark.parametrize("solver", ["cd", "gcd", "frank_wolfe"])
@pytest.mark.parametrize("kind", [Lasso, ElasticNet, SparseLogisticRegression])
def test_every_solver_fits_and_keeps_its_promise(kind, solver, seed):
    X, y = data(n=500)
    model = kind(1.0, 1e-5, feature_bounds=BOUNDS, solver=solver, random_state=seed)
    if kind is SparseLogisticRegression:
        y = np.where(y > -5, "up", "down")
    else:
        model.set_params(y_range=Y_RANGE)
    if solver == "frank_wolfe":
        model.set_params(l1_radius=5.0)
        if kind is ElasticNet:
            model.set_params(l1_ratio=1.0)
    ledger = Ledger(Budget(1.0, 1e-5))
    model.fit(X, y, ledger=ledger)
    assert np.isfinite(model.coef_).all()
    assert len(model.predict(X)) == len(X)
    assert 0.9 < model.privacy_.spent <= 1.0
    assert len(ledger.report().entries) == 1
    assert (model.path_ is not None) is (solver == "gcd")


@pytest.mark.parametrize(
    ("by_name", "by_object"),
    [
        ("cd", CoordinateDescent()),
        ("gcd", GreedyCoordinateDescent()),
        ("frank_wolfe", FrankWolfe()),
    ],
)
def test_an_object_does_what_its_name_does(by_name, by_object, seed):
    X, y = data(n=300)
    radius = 4.0 if by_name == "frank_wolfe" else None
    one, other = (
        Lasso(**TARGETS, solver=solver, l1_radius=radius, random_state=seed).fit(X, y)
        for solver in (by_name, by_object)
    )
    assert_array_equal(one.coef_, other.coef_)


def test_frank_wolfe_keeps_weights_in_the_ball_it_was_given(seed):
    X, y = data(n=500)
    model = Lasso(
        5.0, **TARGETS, solver="frank_wolfe", l1_radius=9.0, random_state=seed
    ).fit(X, y)
    assert model._facts.setting.regularizer == L1Ball(9.0 / 20.0)
    half = np.ptp(BOUNDS, axis=1) / 2
    assert 0 < np.abs(model.coef_ * half).sum() <= 9.0


@pytest.mark.parametrize("solver", ["auto", "gcd", "frank_wolfe"])
@pytest.mark.parametrize("kind", [Lasso, SparseLogisticRegression])
def test_no_delta_is_pure_privacy(kind, solver, seed):
    X, y = data(n=500)
    model = kind(1.0, 0.0, feature_bounds=BOUNDS, solver=solver, random_state=seed)
    if kind is Lasso:
        model.set_params(y_range=Y_RANGE)
    else:
        y = (y > -5).astype(int)
    if solver == "frank_wolfe":
        model.set_params(l1_radius=5.0)
    report = model.fit(X, y).privacy_
    assert report.guarantee == Budget(1.0, 0.0)
    (entry,) = report.entries
    assert entry.event.curve(report.guarantee.neighbors).epsilon(0.0) <= 1.0


def test_selected_features_are_told_by_place_and_by_name(seed):
    X, y = data()
    names = [f"f{j}" for j in range(P)]
    model = Lasso(20.0, alpha=0.3, **TARGETS, random_state=seed)
    model.fit(pd.DataFrame(X, columns=names), y)
    assert {0, 1} <= {*model.selected_features_.tolist()}
    assert_array_equal(model.selected_features_, np.flatnonzero(model.coef_))
    assert model.selected_names_.tolist() == [
        names[j] for j in model.selected_features_
    ]
    assert sparse.issparse(model.sparse_coef_)
    assert_array_equal(model.sparse_coef_.toarray(), model.coef_[None, :])
    assert not hasattr(model.fit(X, y), "selected_names_")
    assert not hasattr(clone(model), "selected_features_")
    assert model.noise_ is None


def test_the_path_of_a_greedy_fit_tells_how_sure_each_step_was(seed):
    X, y = data()
    model = Lasso(8.0, alpha=0.05, **TARGETS, solver="gcd", random_state=seed)
    path = model.fit(X, y).path_
    assert isinstance(path, SelectionPath)
    assert len(path) == model._facts.planned.plan.n_updates
    assert path.features[0] == -1  # the intercept comes first, and is not chosen
    visited = {*path.features.astype(int).tolist()}
    assert {*model.selected_features_.tolist()} <= visited
    assert (path.std > 0).all()
    # what matters stands out: a first look at the feature that matters most
    first = np.flatnonzero(path.features == 1)[0]
    assert abs(path.signal[first]) > 3


def test_names_give_bounds_to_columns_in_any_order(seed):
    X, y = data(n=400)
    names = [f"f{j}" for j in range(P)]
    named = {name: tuple(pair) for name, pair in zip(names, BOUNDS, strict=True)}
    backwards = dict(reversed(named.items()))
    frame = pd.DataFrame(X, columns=names)
    fits = [
        Lasso(feature_bounds=given, y_range=Y_RANGE, random_state=seed).fit(frame, y)
        for given in (named, backwards, BOUNDS.tolist())
    ]
    for other in fits[1:]:
        assert_array_equal(fits[0].coef_, other.coef_)
    assert fits[0].bounds_ == fits[1].bounds_


def test_a_plan_takes_names_before_there_are_columns():
    model = Lasso(feature_bounds={"a": 1, "b": (0, 2)}, y_range=(0, 1))
    assert model.plan(100, 2).problem.n_features == 3
    with pytest.raises(ValueError, match="has 2 entries"):
        model.plan(100, 3)


def test_sparse_rows_are_scaled_and_not_centered(seed):
    rng = as_generator(seed)
    dense = np.where(rng.random((800, 30)) < 0.2, rng.random((800, 30)) * 4, 0.0)
    y = dense[:, 3] - dense[:, 7]
    thin = sparse.csr_array(dense)
    given = {"alpha": 0.01, "feature_bounds": [(0, 4)] * 30, "y_range": (-4, 4)}
    model = Lasso(50.0, **given, random_state=seed).fit(thin, y)
    assert not model.bounds_.centered
    assert {3, 7} <= {*model.selected_features_.tolist()}
    assert_allclose(model.predict(thin), model.predict(dense))
    assert Lasso(50.0, **given, random_state=seed).fit(dense, y).bounds_.centered


def test_many_features_are_planned_and_fitted_fast(seed):
    p = 20_000
    X = sparse.random_array((3000, p), density=1e-3, format="csr", rng=0)
    model = SparseLogisticRegression(
        1.0, 1e-5, feature_bounds=1.0, classes=[0, 1], random_state=seed
    )
    y = np.arange(3000) % 2
    model.fit(X, y)  # compiles the kernels
    start = process_time()
    model.fit(X, y)
    assert process_time() - start < 1.0
    planned = model._facts.planned
    assert isinstance(planned.solver, GreedyCoordinateDescent)
    assert model.selected_features_.size <= planned.plan.n_steps <= 12


def test_entries_are_cut_to_their_ranges_when_predicting_too(seed):
    X, y = data(n=300)
    model = Lasso(**TARGETS, random_state=seed).fit(X, y)
    far = np.where(np.arange(P) % 2, 1e9, -1e9) * np.ones((2, P))
    edge = np.where(np.arange(P) % 2, BOUNDS[:, 1], BOUNDS[:, 0]) * np.ones((2, P))
    assert_array_equal(model.predict(far), model.predict(edge))
    assert model.bounds_ == FeatureBounds.of(BOUNDS, P)


def test_rows_of_a_file_are_read_for_columns(tmp_path, seed):
    X, y = data(n=300)
    file = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    file[:] = X
    given = {**TARGETS, "solver": "cd", "random_state": seed}
    assert_array_equal(
        Lasso(**given).fit(file, y).coef_, Lasso(**given).fit(X, y).coef_
    )


def test_files_too_large_to_copy_are_refused_before_the_charge(tmp_path, monkeypatch):
    from tacit.linear_model import _base  # noqa: PLC0415

    X, y = data(n=300)
    file = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    monkeypatch.setattr(_base, "MOST_COPIED", 10)
    ledger = Ledger(Budget(1.0, 1e-3))
    with pytest.raises(ValueError, match="needs rows in memory"):
        Lasso(**TARGETS, solver="cd").fit(file, y, ledger=ledger)
    assert ledger.report().entries == ()


def test_a_pipeline_scales_first(seed):
    X, y = data(n=500)
    pipeline = make_pipeline(
        PublicScaler(BOUNDS.tolist()),
        Lasso(20.0, alpha=0.1, feature_bounds=1.0, y_range=Y_RANGE, random_state=seed),
    ).fit(X, y)
    assert np.isfinite(pipeline.predict(X)).all()
    assert pipeline[-1].bounds_ == FeatureBounds.of(1.0, P)


def test_scores_can_be_paid_for_and_intervals_are_refused(seed):
    X, y = data(n=1000)
    model = Lasso(4.0, alpha=0.1, **TARGETS, random_state=seed).fit(X, y)
    found = private_score(model, X, y, epsilon=1.0, random_state=seed)
    assert found.low <= found.value <= found.high
    with pytest.raises(ValueError, match="not available for sparse models"):
        coefficient_intervals(model, X, y, epsilon=1.0)


def test_a_forecast_is_in_the_units_of_the_model():
    widths = [1] * P
    narrow = Lasso(5.0, 1e-6, alpha=0.004, feature_bounds=1.0, y_range=(-1, 1))
    alpha = 0.004 * 0.1 * 30
    wide = Lasso(5.0, 1e-6, alpha=alpha, feature_bounds=0.1, y_range=(-30, 30))
    scores = [
        [outlook.low for outlook in expected_score(model, 2000, widths).outlooks]
        for model in (narrow, wide)
    ]
    assert_allclose(*scores)


def test_the_penalty_of_a_setting_is_one_of_coordinates():
    planned = Lasso(1.0, **TARGETS).plan(1000, P)
    assert isinstance(planned.problem.regularizer, CoordinatePenalty)
    assert planned.problem.loss.max_curvature() == 1.0


@pytest.mark.parametrize("solver", ["cd", "gcd", CoordinateDescent(3)])
def test_coordinates_leave_the_logistic_loss_as_it_is(solver):
    sparse_model = SparseLogisticRegression(feature_bounds=1.0, classes=[0, 1])
    dense_model = LogisticRegression(bound_norm="linf", classes=[0, 1], x_norm=1.0)
    for model in (sparse_model, dense_model):
        planned = model.set_params(solver=solver).plan(500, P)
        assert planned.problem.loss == planned.plan.problem.loss == Logistic()
    other = LogisticRegression(solver="noisy_gd", classes=[0, 1], x_norm=1.0).plan(
        500, P
    )
    assert other.problem.loss == Logistic(cap=0.5)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_noise_never_makes_predictions_much_worse_than_none(epsilon, seed):
    X, y = data()

    def typical_score(solver):
        model = Lasso(epsilon, alpha=0.1, **TARGETS, solver=solver)
        draws = [model.set_params(random_state=seed + i).fit(X, y) for i in range(3)]
        return np.median([model.score(X, y) for model in draws])

    assert typical_score("auto") > -1.0
    # settings that do not go by the budget: what the rules are there to prevent
    assert typical_score(CoordinateDescent(100, step=1.0, clip=4.0)) < -10.0
