"""Forecasts: synthetic rows, what privacy costs on them, and how many rows it takes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Plain

from tacit.datasets import make_census, make_census_table
from tacit.datasets._census import CATEGORIES, RANGES
from tacit.datasets._synthetic_rows import synthetic_rows
from tacit.evaluation import _forecast_scores as _scores
from tacit.evaluation import expected_score
from tacit.evaluation._forecast_scores import _epsilon_of_fewer, least_rows
from tacit.exceptions import PlanError
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.privacy import Budget, GaussianNoise, calibrate

WIDTHS = [1, 1, 1, 4]
MODEL = LogisticRegression(1.0, x_norm=1.5)


def test_made_up_rows_look_like_encoded_ones():
    X, y = synthetic_rows(1000, WIDTHS, n_classes=3)
    assert X.shape == (1000, 7)
    assert np.abs(X[:, :3]).max() <= 1
    np.testing.assert_array_equal(X[:, 3:].sum(axis=1), 1.0)
    assert set(y) == {0, 1, 2}
    counts = X[:, 3:].sum(axis=0)
    assert (np.diff(counts) < 0).all()  # the first categories are the most frequent


def test_made_up_targets_are_within_their_range():
    _, y = synthetic_rows(1000, WIDTHS)
    assert np.abs(y).max() <= 1
    assert y.std() > 0.2


def test_a_small_budget_is_expected_to_cost_more():
    large = expected_score(MODEL, 2_000, WIDTHS, n_classes=2)
    small = expected_score(
        LogisticRegression(0.02, x_norm=1.5), 2_000, WIDTHS, n_classes=2
    )
    assert large.measure == "accuracy"
    for near, far in zip(large.outlooks, small.outlooks, strict=True):
        assert near.plain == far.plain
        assert near.low <= near.high
        assert far.loss > near.loss + 0.02


def test_what_is_expected_is_what_happens():
    # fresh rows of the same kind, fitted with the full budget and all rows
    n_rows = 40_000
    expected = expected_score(MODEL, n_rows, WIDTHS, n_classes=2).outlooks[1]
    X, y = synthetic_rows(n_rows + 8_192, WIDTHS, n_classes=2, random_state=1)
    model = LogisticRegression(1.0, x_norm=1.5, random_state=7)
    fit, test = (X[:n_rows], y[:n_rows]), (X[n_rows:], y[n_rows:])
    plain = Plain(C=10.0).fit(*fit).score(*test)
    assert plain - model.fit(*fit).score(*test) == pytest.approx(
        expected.loss, abs=0.005
    )


def test_fewer_rows_with_less_noise_stand_for_more_rows():
    budget = Budget(1.0, 1e-6)
    less = Budget(_epsilon_of_fewer(budget, 8.0), 1e-6)
    ratio = calibrate(GaussianNoise, budget) / calibrate(GaussianNoise, less)
    assert ratio == pytest.approx(8.0, rel=1e-4)


def test_least_rows_grow_as_the_budget_shrinks():
    found = [
        least_rows(LogisticRegression(epsilon, x_norm=1.5), WIDTHS, n_classes=2)
        for epsilon in (10.0, 1.0, 0.1)
    ]
    assert found[0] < found[1] < found[2]
    # noise is in proportion to one over epsilon and rows
    assert 4 <= found[2] / found[1] <= 32


def test_least_rows_of_a_hopeless_budget_are_none():
    model = LogisticRegression(1e-6, 1e-12, x_norm=1.5)
    assert least_rows(model, WIDTHS, n_classes=2) is None


def test_a_regression_is_measured_by_r2_and_the_model_is_left_alone():
    model = LinearRegression(1.0, x_norm=1.5, y_range=(0, 100))
    before = model.get_params()
    forecast = expected_score(model, 5_000, WIDTHS)
    assert forecast.measure == "R2"
    assert 0.4 < forecast.outlooks[1].plain < 1
    assert model.get_params() == before


def test_a_target_that_fills_little_of_its_range_is_expected_to_cost_more():
    def losses(solver, seed=0):
        model = LinearRegression(0.5, x_norm=1.5, y_range=(0, 100), solver=solver)
        found = expected_score(model, 5_000, WIDTHS, random_state=seed)
        *_, whole, _, tenth = found.outlooks
        assert "tenth" in tenth.signal
        assert tenth.plain == pytest.approx(whole.plain, abs=0.05)
        return whole.loss, tenth.loss

    whole, tenth = losses("preconditioned_gd")
    assert tenth > whole + 0.1
    # the default learns how much of the range is filled
    assert np.mean([losses("auto", 10 * k) for k in range(5)], axis=0).max() < 0.02
    _, y = synthetic_rows(1000, WIDTHS, spread=0.1)
    assert y.min() >= -1
    assert y.max() <= -0.8


def test_the_census_is_also_a_table_of_answers():
    table = make_census_table(500, random_state=3)
    census = make_census(500, random_state=3)
    low, high = RANGES["age"]
    np.testing.assert_allclose((table["age"] - low) / (high - low), census.X[:, 0])
    assert set(table["sector"]) <= set(CATEGORIES["sector"])
    np.testing.assert_array_equal(table["high_income"] == "yes", census.y == 1)


def test_rows_that_no_plan_is_made_for_are_too_few():
    model = LinearRegression(1.0, x_norm=3, y_range=(0, 60), solver="tukey")
    with pytest.raises(PlanError):
        model.plan(64, 5)
    assert 128 <= least_rows(model, [1] * 5) <= 2**20


def test_a_model_that_can_plan_for_no_number_of_rows_has_no_least(monkeypatch):
    def reject(*_):
        raise PlanError("never")

    monkeypatch.setattr(_scores, "_scores", reject)
    assert least_rows(MODEL, WIDTHS, n_classes=2) is None


@pytest.mark.parametrize("widths", [35, [], "35", [1, 0], [1.5], None])
def test_columns_that_are_no_list_of_widths_are_refused(widths):
    for forecast in (
        lambda: expected_score(MODEL, 500, widths, n_classes=2),
        lambda: least_rows(MODEL, widths, n_classes=2),
    ):
        with pytest.raises(ValueError, match="widths"):
            forecast()


@pytest.mark.parametrize(
    ("model", "n_classes"),
    [(MODEL, 0), (MODEL, 1), (LinearRegression(x_norm=2.0, y_range=(0, 1)), 2)],
)
def test_labels_that_do_not_suit_the_model_are_refused(model, n_classes):
    for forecast in (
        lambda: expected_score(model, 500, WIDTHS, n_classes=n_classes),
        lambda: least_rows(model, WIDTHS, n_classes=n_classes),
    ):
        with pytest.raises(ValueError, match="n_classes"):
            forecast()
