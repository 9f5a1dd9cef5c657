"""The selector by stability of the lasso, from defaults to refusals."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.public import excused_without_rows

from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.feature_selection import ExponentialSelector, LassoStabilitySelector
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.privacy import ApproxDP, Budget, Ledger

BOUNDS = {"feature_bounds": 5.0, "y_range": (-3, 3)}
COMMON = {"n_features_to_select": 1, "random_state": 0, **BOUNDS}
ADD = {"delta": 1e-6, "neighbors": "add_or_remove_one", "expected_rows": 50}
CHECKED = [
    LassoStabilitySelector(penalty=2.0, fallback="all", **COMMON),
    LassoStabilitySelector(penalty=2.0, fallback="all", **COMMON, **ADD),
    ExponentialSelector(neighbors="add_or_remove_one", delta=1e-6, **COMMON),
]


@parametrize_with_checks(CHECKED, expected_failed_checks=excused_without_rows)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def rows(n=10_000, p=20, seed=0, kind="even"):
    rng = as_generator(seed)
    if kind == "codes":
        X = (rng.random((n, p)) < 0.3).astype(float)
        noise = 0.4 * rng.standard_normal(n)
        return X, X[:, 2] - X[:, 5] + noise, (0, 1), (-2, 2)
    X = rng.uniform(0, 10, (n, p))
    y = X[:, 2] - X[:, 5] + rng.standard_normal(n)
    return X, y, (0, 10), (-10, 10)


def selector(bounds, targets, **given):
    return LassoStabilitySelector(
        **{"epsilon": 1.0, "delta": 1e-6, "n_features_to_select": 2, "random_state": 0}
        | {"feature_bounds": bounds, "y_range": targets}
        | given
    )


@pytest.mark.parametrize("kind", ["even", "codes"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_defaults_find_the_columns(kind, neighbors, seed):
    X, y, bounds, targets = rows(kind=kind, seed=seed)
    given = {"neighbors": neighbors}
    if neighbors == "add_or_remove_one":
        given["expected_rows"] = 9_500
    fitted = selector(bounds, targets, **given).fit(X, y)
    assert fitted.selection_ == (2, 5)
    assert fitted.released_
    assert fitted.transform(X[:3]).shape == (3, 2)


def test_no_answer_is_a_value_and_costs_the_same(seed):
    X, _, bounds, targets = rows(2_000, seed=seed)
    noise = as_generator(seed).uniform(-10, 10, 2_000)
    ledger = Ledger(Budget(1.0, 1e-6))
    fitted = selector(bounds, targets, penalty=30.0, fallback=[0])
    fitted.fit(X, noise, ledger=ledger)
    assert fitted.selection_ is NO_ANSWER or fitted.selection_ == NO_ANSWER
    assert fitted.support_ is None
    assert fitted.get_support(indices=True).tolist() == [0]
    with pytest.raises(BudgetExceeded):
        selector(bounds, targets).fit(X, noise, ledger=ledger)
    assert fitted.privacy_.entries[0].event == ApproxDP(1.0, 1e-6)


def test_a_wrong_guess_of_the_rows_costs_accuracy_alone(seed):
    X, y, bounds, targets = rows(seed=seed)
    for guess in (2_000, 200_000):
        fitted = selector(
            bounds,
            targets,
            neighbors="add_or_remove_one",
            expected_rows=guess,
        ).fit(X, y)
        assert fitted.selection_ == NO_ANSWER or set(fitted.selection_) <= {2, 5}


def test_plans_come_without_rows_and_say_what_they_need():
    plan = selector(5.0, (-3, 3)).plan(10_000, 20)
    assert plan.event == ApproxDP(1.0, 1e-6)
    assert plan.plan.facts.penalty < 10_000
    assert any("rows" in words for words in plan.assumptions)
    narrow = selector(5.0, (-3, 3), noise_level=0.05).plan(10_000, 20)
    assert narrow.plan.facts.penalty < plan.plan.facts.penalty


@pytest.mark.parametrize(
    ("given", "n_rows", "message"),
    [
        ({"epsilon": 0.01}, 2_000, "raise epsilon"),
        ({}, 2, "raise epsilon"),
        ({"delta": 0.0}, 10_000, "delta > 0"),
        ({"penalty": 20_000.0}, 10_000, "as given"),
        ({"accounting": "paper"}, 10_000, "selects no column"),
        ({"accounting": "paper", "penalty": 10.0}, 10_000, "accounting='tight'"),
        ({}, MAX_INTEGER_ROWS + 1, "rows"),
    ],
)
def test_what_cannot_be_released_is_rejected_before_the_charge(given, n_rows, message):
    with pytest.raises(PlanError, match=re.escape(message)):
        selector(5.0, (-3, 3), **given).plan(n_rows, 20)


@pytest.mark.parametrize(
    "given",
    [
        {"accounting": "loose"},
        {"coef_bound": 0.0},
        {"incoherence": -1.0},
        {"curvature": 1.5},
        {"noise_level": 0.0},
        {"penalty": 0.0},
        {"fit_intercept": "yes"},
        {"n_features_to_select": 30},
    ],
)
def test_bad_parameters_are_named(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        selector(5.0, (-3, 3), **given).plan(10_000, 20)


def test_the_published_slacks_answer_on_very_many_rows():
    plan = selector(
        5.0, (-3, 3), accounting="paper", n_features_to_select=1, fit_intercept=False
    ).plan(1_000_000, 20)
    assert plan.plan.facts.penalty > plan.plan.facts.least_penalty


def test_nothing_but_the_distance_depends_on_the_rows(seed):
    X, y, bounds, targets = rows(3_000, 6, seed=seed)
    Z, t = X.copy(), y.copy()
    Z[0], t[0] = 10.0, -10.0

    def train(X, y):
        return selector(bounds, targets, epsilon=4.0).fit(X, y)

    assert_replays(train, (X, y), (Z, t))
    added = {"neighbors": "add_or_remove_one", "expected_rows": 3_000}

    def train_added(X, y):
        return selector(bounds, targets, epsilon=4.0, **added).fit(X, y)

    assert_replays(train_added, (X, y), (X[1:], y[1:]))


def test_sparse_rows_strings_and_missing_values_are_rejected_in_words(seed):
    X, y, bounds, targets = rows(2_000, seed=seed)
    chosen = selector(bounds, targets, epsilon=10.0)
    with pytest.raises(TypeError, match="sparse"):
        chosen.fit(sparse.csr_array(X), y)
    X[3, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        chosen.fit(X, y)
    with pytest.raises((TypeError, ValueError), match="numbers"):
        chosen.fit(X.astype(str), y)


def test_names_of_columns_are_kept(seed):
    X, y, bounds, targets = rows(seed=seed)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(20)])
    fitted = selector(bounds, targets).fit(table, y)
    assert fitted.get_feature_names_out().tolist() == ["c2", "c5"]
