"""The estimator, from rows as people have them."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.convex import Box, GroupBall, L1Ball, L2Ball, Simplex
from tacit.privacy import Budget, Ledger
from tacit.streaming import (
    DurableStream,
    GradientRegression,
    IncrementalLinearRegression,
    MomentRegression,
    ProjectedRegression,
    SparseRows,
)

METHODS = ["moments", "gradient", "projection", ProjectedRegression(n_components=2)]
every_method = pytest.mark.parametrize("method", METHODS, ids=str)


ESTIMATORS = [
    IncrementalLinearRegression(
        y_range=(-3, 3), horizon=40, random_state=0, x_norm=1.0
    ),
    IncrementalLinearRegression(
        y_range=(-3, 3),
        horizon=40,
        constraint=L2Ball(2.0),
        method=GradientRegression(most_iterations=5),
        random_state=0,
        x_norm=1.0,
    ),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def table(rng, n=4000, p=3, low=-1.0, high=1.0, fill=1.0):
    X = rng.uniform(-0.5, 0.5, (n, p))
    y = X[:, :2] @ [0.8, -0.5][:p] + 0.05 * rng.standard_normal(n)
    return X, (low + high) / 2 + fill * (high - low) / 2 * np.clip(y, -1, 1)


def model(**options):
    given = {"horizon": 10, "rows_per_step": 400, "y_range": (-1.0, 1.0)}
    return IncrementalLinearRegression(
        1.0, 1e-6, random_state=0, **{**given, **options}, x_norm=1.0
    )


def score(X, y, **options):
    return model(**options).fit(X, y).score(X, y)


def test_signal_is_found_with_and_without_sets(rng):
    X, y = table(rng)
    for constraint in (None, L2Ball(1.0), L1Ball(1.5), GroupBall(1.5, group_size=2)):
        assert score(X, y, constraint=constraint) > 0.7


def test_targets_far_from_zero_and_in_a_small_part_of_their_range(rng):
    X, y = table(rng, low=1000.0, high=3000.0)
    assert score(X, y, y_range=(1000.0, 3000.0)) > 0.7
    assert score(X, y, y_range=(1000.0, 3000.0), constraint=L2Ball(1000.0)) > 0.7
    X, y = table(rng, n=40_000, fill=0.1)
    assert score(X, y, rows_per_step=4000) > 0.5


def test_radius_is_in_units_of_the_targets(rng):
    X, y = table(rng, low=0.0, high=200.0)
    for method in METHODS:
        fitted = model(
            y_range=(0.0, 200.0), constraint=L1Ball(30.0), method=method
        ).fit(X, y)
        assert np.abs(fitted.coef_).sum() <= 30.0 * (1 + 1e-9)
    assert np.abs(fitted.coef_).sum() > 3.0


def test_weights_of_a_simplex_sum_to_one_in_units_of_the_targets(rng):
    X = rng.uniform(0, 0.5, (4000, 3))
    y = X @ [0.7, 0.3, 0.0]
    for high in (1.0, 5.0):
        fitted = model(
            y_range=(0.0, high), constraint=Simplex(), fit_intercept=False
        ).fit(X, y)
        assert Simplex().contains(fitted.coef_[:, None])


def test_no_set_binds_the_intercept(rng):
    X = rng.uniform(-0.5, 0.5, (4000, 2))
    fitted = model(constraint=L2Ball(0.05)).fit(X, np.full(4000, 0.9))
    assert fitted.intercept_ == pytest.approx(0.9, abs=0.1)
    assert np.linalg.norm(fitted.coef_) <= 0.05 * (1 + 1e-9)


@every_method
def test_every_method_steps_through_a_stream(method, rng):
    X, y = table(rng, n=100)
    fitted = model(method=method, constraint=L1Ball(1.0), rows_per_step=10)
    for start in range(0, 100, 10):
        fitted.partial_fit(X[start : start + 10], y[start : start + 10])
    assert fitted.n_steps_ == 10
    assert np.isfinite(fitted.coef_).all()
    assert fitted.expected_excess_risk_ > 0
    before = fitted.coef_
    with pytest.raises(ValueError, match="horizon=10"):
        fitted.partial_fit(X[:1], y[:1])
    assert fitted.coef_ is before


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("horizon", [1, 2])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_extreme_budgets_and_horizons_work(epsilon, horizon, neighbors, rng):
    X, y = table(rng, n=horizon * 50, p=1)
    for constraint in (None, L1Ball(1.0)):
        fitted = IncrementalLinearRegression(
            epsilon,
            1e-6,
            horizon=horizon,
            y_range=(-1, 1),
            constraint=constraint,
            neighbors=neighbors,
            x_norm=1.0,
        )
        for start in range(0, len(X), 50):
            fitted.partial_fit(X[start : start + 50], y[start : start + 50])
        assert np.isfinite(fitted.coef_).all()


def test_rows_that_cannot_be_used_count_as_zero_rows(rng):
    X, y = table(rng, n=40)
    X[3, 1], X[5, 0], y[7] = np.nan, np.inf, np.nan
    fitted = model().partial_fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    features, targets = fitted._reader().read(X, y, first=False)
    used = features.any(axis=1)
    assert np.flatnonzero(~used).tolist() == [3, 5, 7]
    assert not targets[~used].any()


def test_kinds_of_tables_agree(rng):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    X, y = table(rng, n=40)
    dense = model().partial_fit(X, y)
    for other in (sparse.csr_array(X), X.tolist()):
        assert np.array_equal(model().partial_fit(other, y).coef_, dense.coef_)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    named = model().partial_fit(frame, pandas.Series(y))
    assert np.array_equal(named.coef_, dense.coef_)
    assert list(named.feature_names_in_) == ["a", "b", "c"]


def test_steps_may_be_empty(rng):
    fitted = model().partial_fit(np.zeros((0, 3)), np.zeros(0))
    assert fitted.coef_.shape == (3,)


def test_rows_outside_of_the_rule_count_as_zero(rng):
    X = np.zeros((6, 4))
    X[0, 0] = X[1, :2] = X[2, :3] = X[3] = 0.3
    fitted = model(keep=SparseRows(2))
    features, targets = fitted._reader().read(X, np.full(6, 0.5), first=True)
    assert (features != 0).any(axis=1).tolist() == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert (targets != 0).tolist() == [True, True, False, False, True, True]
    fitted.partial_fit(X, np.full(6, 0.5))
    assert any("SparseRows(k=2)" in line for line in fitted.privacy_.assumptions)


def test_a_stream_of_rows_outside_of_the_rule_is_noise_alone(rng):
    X, y = table(rng)
    ends = [
        model(keep=lambda row: False).fit(X, targets)
        for targets in (y, -y)  # nothing of the targets is in the leaves
    ]
    assert np.array_equal(ends[0].coef_, ends[1].coef_)
    assert ends[0].n_steps_ == 10


def writes(row):
    row[:] = 0.0
    return True


def fails(row):
    print("a secret", row)  # noqa: T201 - what a careless rule would do
    raise SystemExit(str(row))


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (lambda row: row[0] > 0, [True, False]),
        (lambda row: bool(row[0] > 0), [True, False]),
        (writes, [True, True]),
        (fails, [False, False]),
        (lambda row: None, [False, False]),
        (lambda row: row, [False, False]),
        (lambda row: 1 / 0, [False, False]),
        (lambda row: np.log(-row[0]) > -9, [False, True]),
    ],
)
def test_a_rule_that_fails_or_says_nothing_keeps_nothing_in_silence(rule, kept, capsys):
    X = np.array([[0.5, 0.1], [-0.5, 0.1]])
    features, _ = model(keep=rule)._reader().read(X, np.zeros(2), first=True)
    assert np.array_equal(features[:, :2], np.where(np.array(kept)[:, None], X, 0.0))
    assert capsys.readouterr() == ("", "")


def test_what_a_row_decides_is_about_itself_alone(rng):
    seen = []
    reader = model(keep=lambda row: seen.append(row.shape) or True)._reader()
    reader.read(rng.standard_normal((3, 4)) / 9, np.zeros(3), first=True)
    assert seen == [(4,)] * 3


def test_projection_knows_the_width_of_sparse_rows():
    planned = model(method="projection", keep=SparseRows(2), constraint=L1Ball(1.0))
    assert planned._method(400).row_width == SparseRows(2).width(400) < 20
    assert model(method="projection")._method(400).row_width is None


@pytest.mark.statistical
@pytest.mark.parametrize("k", [1, 5, 40])
def test_width_of_sparse_rows_is_a_bound(k, rng):
    draws = np.sort(rng.standard_normal((500, 40)) ** 2, axis=1)[:, -k:]
    lengths = np.sqrt(draws.sum(axis=1))
    error = 5 * lengths.std() / np.sqrt(500)
    assert lengths.mean() - error <= SparseRows(k).width(40)


def test_squared_targets_give_a_sum_of_squared_residuals(rng):
    X, y = table(rng, low=0.0, high=10.0)
    squares = MomentRegression(squares=True, noise="float")
    silent = model(y_range=(0.0, 10.0), method=squares).set_params(epsilon=1e15)
    fitted = silent.fit(X, y)
    residuals = ((y - X @ fitted.coef_ - fitted.intercept_) ** 2).sum()
    assert fitted.residual_sum_ == pytest.approx(residuals, rel=1e-6)
    assert model().fit(X, y).residual_sum_ is None


def test_copies_predict_and_do_not_go_on(rng):
    X, y = table(rng, n=40)
    fitted = model().partial_fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict(X), fitted.predict(X))
    assert "_private_stream" not in vars(copy)
    with pytest.raises(ValueError, match="cannot continue"):
        copy.partial_fit(X, y)
    assert clone(fitted).get_params()["horizon"] == 10


@every_method
def test_a_stream_in_a_folder_goes_on_as_if_nothing_had_happened(method, rng, tmp_path):
    X, y = table(rng, n=40)

    def fresh():
        return model(method=method, constraint=L1Ball(1.0), keep=SparseRows(3))

    straight = fresh()
    for start in (0, 10, 20):
        straight.partial_fit(X[start : start + 10], y[start : start + 10])
    for start in (0, 10, 20):
        resumed = fresh()
        with DurableStream(resumed, tmp_path / "stream") as stream:
            stream.partial_fit(X[start : start + 10], y[start : start + 10])
    assert np.array_equal(resumed.coef_, straight.coef_)
    assert resumed.expected_excess_risk_ == straight.expected_excess_risk_
    other = fresh().set_params(keep=SparseRows(2))
    with pytest.raises(ValueError, match="parameters"):
        DurableStream(other, tmp_path / "stream")


def test_one_charge_pays_for_all_steps(rng):
    X, y = table(rng, n=40)
    ledger = Ledger(Budget(1.5, 1e-5))
    fitted = model().partial_fit(X, y, ledger=ledger)
    spent = ledger.report().spent
    fitted.partial_fit(X, y)
    assert ledger.report().spent == spent <= 1.0
    assert len(ledger.report().entries) == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"constraint": Box()}, "constraint must be None or one of"),
        ({"constraint": 1.0}, "constraint must be None or one of"),
        ({"constraint": GroupBall(groups=(0, 1))}, "groups must have one entry"),
        ({"method": "magic"}, "method must be"),
        ({"method": MomentRegression}, "method must be"),
        ({"method": "gradient"}, "requires weights in a set"),
        ({"keep": 3}, "keep must be"),
        ({"sums": "heap"}, "sums must be"),
        ({"noise": "none"}, "noise must be"),
        ({"delta": 0.0}, "needs delta > 0"),
        ({"y_range": None}, "y_range"),
        ({"y_range": (1.0, 0.0)}, "y_range"),
        ({"horizon": 0}, "horizon must be"),
        ({"neighbors": "all"}, "neighbors must be"),
        ({"fit_intercept": "no"}, "fit_intercept must be"),
        ({"x_norm": -1.0}, "x_norm must be"),
    ],
)
def test_bad_parameters_are_refused_before_any_charge(options, match, rng):
    X, y = table(rng, n=20)
    ledger = Ledger(Budget(2.0, 1e-3))
    with pytest.raises(ValueError, match=match):
        model().set_params(**options).partial_fit(X, y, ledger=ledger)
    assert ledger.report().entries == ()


def test_methods_as_objects_bring_their_own_settings():
    learner = model(
        method=GradientRegression(most_iterations=7), constraint=L2Ball(1.0)
    ).plan(3)
    assert learner.learner.most_iterations == 7
    assert model(sums="tree").plan(3).learner.sums.mechanism.levels == 4


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("method", ["moments", "gradient"])
def test_a_set_that_derives_from_one_of_the_library_is_refused(fit_intercept, method):
    class Ball(L2Ball):
        pass

    ledger = Ledger(Budget(2.0, 1e-3))
    model = IncrementalLinearRegression(
        1.0,
        1e-5,
        horizon=4,
        y_range=(0, 1),
        constraint=Ball(1.0),
        fit_intercept=fit_intercept,
        method=method,
        x_norm=1.0,
    )
    with pytest.raises(ValueError, match="constraint must not derive from L2Ball"):
        model.partial_fit(np.ones((5, 2)), np.ones(5), ledger=ledger)
    assert not ledger.report().entries
