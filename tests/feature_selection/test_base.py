"""What all private selectors do: bounds, charges, names, no answer and pipelines."""

import pickle
import re
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tests.refusal import raises_one_line

from tacit._random import as_generator
from tacit.exceptions import BudgetExceeded
from tacit.feature_selection import (
    BlockVoteSelector,
    ExponentialSelector,
    LassoStabilitySelector,
    PeelingSelector,
)
from tacit.feature_selection._base import PrivateSelector
from tacit.linear_model import LinearRegression
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import Budget, GaussianNoise, Ledger

N, P = 400, 6
RELEVANT = (1, 4)
KINDS = (
    BlockVoteSelector,
    ExponentialSelector,
    LassoStabilitySelector,
    PeelingSelector,
)


class Seen(PrivateSelector):
    """A selector that keeps what it was given, and answers what it is told."""

    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        n_features_to_select=2,
        feature_bounds=1.0,
        y_range=(-1, 1),
        classes=None,
        neighbors="replace_one",
        expected_rows=None,
        fallback=None,
        noise="grid",
        random_state=None,
        answer=RELEVANT,
    ):
        for name, value in locals().items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def plan_selection(self, budget, n_rows, n_features):
        self.planned = budget, n_rows, n_features
        return SimpleNamespace(event=GaussianNoise(100.0), assumptions=("so",))

    def select(self, plan, X, y, rng):
        self.seen = X, y
        return self.answer


def rows(seed=0, n=N):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, P))
    return X, X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(n)


SELECTORS = [
    PeelingSelector(n_features_to_select=2, feature_bounds=1.0, y_range=(-3, 3)),
    PeelingSelector(
        n_features_to_select=2,
        feature_bounds=1.0,
        y_range=(-3, 3),
        method="correlation",
    ),
    BlockVoteSelector(n_features_to_select=2),
    BlockVoteSelector(n_features_to_select=2, method="features"),
]
each_selector = pytest.mark.parametrize("selector", SELECTORS, ids=str)


def changed(selector, **params):
    """Return a copy with these parameters, of which it may lack some."""
    known = selector.get_params()
    given = {name: value for name, value in params.items() if name in known}
    return clone(selector).set_params(**given)


def test_rows_arrive_in_units_of_their_ranges():
    X = np.array([[0.0, -7.0], [5.0, 0.0], [20.0, 3.0]])
    selector = Seen(
        n_features_to_select=1,
        answer=(0,),
        feature_bounds=[(0, 10), 5.0],
        y_range=(0, 4),
    )
    selector.fit(X, [0.0, 3.0, 9.0])
    seen, y = selector.seen
    assert_array_equal(seen, [[-1.0, -1.0], [0.0, 0.0], [1.0, 0.6]])
    assert_array_equal(y, [-1.0, 0.5, 1.0])


def test_selectors_have_the_parameters_they_use():
    has = {kind: set(signature(kind).parameters) for kind in KINDS}
    for kind in (PeelingSelector, ExponentialSelector):  # which always answer
        assert "fallback" not in has[kind]
    assert "expected_rows" not in has[ExponentialSelector]
    assert "noise" not in has[LassoStabilitySelector]  # its rule of release is exact
    for kind in KINDS:
        selector = kind(n_features_to_select=1)
        assert selector.fallback is None
        assert selector.expected_rows is None
        assert selector.noise == "grid"


def test_two_labels_arrive_as_signs():
    X, y = rows()
    selector = Seen(y_range=None, classes=["no", "yes"])
    selector.fit(X, np.where(y > 0, "yes", "no"))
    assert_array_equal(selector.seen[1], np.where(y > 0, 1.0, -1.0))
    assert "the two labels are public" in selector.privacy_.assumptions


def test_what_was_selected_is_kept_and_reported():
    X, y = rows()
    selector = Seen().fit(X, y)
    assert selector.selection_ == RELEVANT
    assert selector.released_
    assert_array_equal(np.flatnonzero(selector.support_), RELEVANT)
    assert_array_equal(selector.get_support(indices=True), RELEVANT)
    assert_array_equal(selector.transform(X), X[:, RELEVANT])
    assert_array_equal(
        np.flatnonzero(selector.inverse_transform(X[:, RELEVANT]).any(axis=0)),
        RELEVANT,
    )
    assert selector.privacy_.guarantee == Budget(1.0, 1 / N**2)
    assert "so" in selector.privacy_.assumptions


def test_names_of_columns_come_out():
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcdef"))
    bounds = dict.fromkeys("abcdef", 1.0)
    selector = Seen(feature_bounds=bounds)
    assert selector.plan(N, P).features.n_features == P
    selector.fit(table, y)
    assert list(selector.get_feature_names_out()) == ["b", "e"]
    selector.set_output(transform="pandas")
    assert list(selector.transform(table).columns) == ["b", "e"]


def test_no_answer_is_a_value_and_is_rejected_only_where_it_is_used():
    X, y = rows()
    selector = Seen(answer=NO_ANSWER).fit(X, y)
    assert selector.selection_ == NO_ANSWER
    assert selector.support_ is None
    assert not selector.released_
    assert len(selector.privacy_.entries) == 1
    for use in (selector.get_support, lambda: selector.transform(X)):
        with raises_one_line(ValueError, match="fallback"):
            use()


@pytest.mark.parametrize(
    ("fallback", "columns"),
    [("all", range(P)), ([0, 2], [0, 2]), (["f", "a"], [0, 5]), ((), [])],
)
def test_fallback_is_used_without_an_answer(fallback, columns):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcdef"))
    selector = Seen(answer=NO_ANSWER, fallback=fallback).fit(table, y)
    assert_array_equal(selector.get_support(indices=True), columns)
    assert selector.support_ is None
    answered = Seen(fallback=fallback).fit(table, y)
    assert_array_equal(answered.get_support(indices=True), RELEVANT)


def test_an_empty_support_is_an_answer_that_transform_cannot_use():
    X, y = rows()
    selector = Seen(answer=()).fit(X, y)
    assert selector.selection_ == ()
    assert selector.released_
    assert not selector.support_.any()
    for use in (selector.get_support, lambda: selector.transform(X)):
        with raises_one_line(ValueError, match="selected no column"):
            use()


def test_fallback_is_used_for_an_empty_support():
    X, y = rows()
    selector = Seen(answer=(), fallback="all")
    assert_array_equal(selector.fit(X, y).transform(X), X)
    assert selector.selection_ == ()
    model = LinearRegression(x_norm=3.0, y_range=(-3, 3))
    assert make_pipeline(selector, model).fit(X, y).predict(X).shape == (N,)


def test_a_fallback_without_columns_is_no_cause_for_a_warning():
    X, y = rows()
    selector = Seen(answer=NO_ANSWER, fallback=()).fit(X, y)
    assert selector.transform(X).shape == (N, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"fallback": "none"},
        {"fallback": 3},
        {"fallback": [P]},
        {"fallback": ["a"]},
        {"fallback": [True]},
        {"n_features_to_select": 0},
        {"n_features_to_select": 2.5},
        {"n_features_to_select": P + 1},
        {"feature_bounds": None},
        {"feature_bounds": [1.0]},
        {"y_range": None},
        {"y_range": (1, 0)},
        {"y_range": (-1, 1), "classes": [0, 1]},
        {"y_range": None, "classes": [0, 1, 2]},
        {"y_range": None, "classes": [0.0, float("nan")]},
        {"noise": "none"},
        {"neighbors": "some"},
        {"epsilon": -1.0},
        {"delta": 2.0},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_wrong_parameters_are_rejected_by_name_before_any_charge(wrong):
    X, y = rows()
    ledger = Ledger(Budget(10.0, 1e-2))
    before = set(vars(Seen(**wrong)))
    selector = Seen(**wrong)
    with raises_one_line(ValueError, match="|".join(wrong)):
        selector.fit(X, y, ledger=ledger)
    assert ledger.report().entries == ()
    assert set(vars(selector)) == before


@each_selector
@pytest.mark.parametrize(
    "spoiled",
    ["nan", "inf", "text", "dates", "y nan", "y short", "y none", "y two columns"],
)
def test_bad_values_are_rejected_without_quoting_them(selector, spoiled):
    X, y = rows()
    if spoiled in ("nan", "inf"):
        X[17, 3] = float(spoiled)
    elif spoiled == "text":
        X = X.astype(str)
    elif spoiled == "dates":
        X = np.full(X.shape, np.datetime64("2001-02-03"))
    elif spoiled == "y nan":
        y[17] = np.nan
    elif spoiled == "y short":
        y = y[:-1]
    elif spoiled == "y two columns":
        y = np.column_stack([y, y])
    else:
        y = None
    ledger = Ledger(Budget(10.0, 1e-2))
    with pytest.raises((ValueError, TypeError)) as rejection:
        clone(selector).fit(X, y, ledger=ledger)
    assert re.search(r"17|2001|399|400", str(rejection.value)) is None
    assert ledger.report().entries == ()


@each_selector
def test_a_rejected_charge_releases_nothing(selector):
    X, y = rows()
    ledger = Ledger(Budget(0.5, 1e-5))
    selector = clone(selector).set_params(delta=1e-6)
    with pytest.raises(BudgetExceeded):
        selector.fit(X, y, ledger=ledger)
    assert not hasattr(selector, "selection_")
    assert ledger.report().entries == ()


@each_selector
def test_fit_spends_what_was_planned(selector, seed):
    X, y = rows()
    selector = clone(selector).set_params(random_state=seed, delta=1e-6)
    planned = selector.plan(N, P)
    ledger = Ledger(planned.budget)
    selector.fit(X, y, ledger=ledger)
    (entry,) = ledger.report().entries
    assert entry.event == planned.event
    curve = planned.event.curve(planned.budget.neighbors)
    assert curve.fits(planned.budget)
    assert selector.privacy_.assumptions[-1] == "the number of rows is public"


@each_selector
def test_number_of_rows_is_not_released_where_it_is_private(selector, seed):
    X, y = rows(n=397)
    selector = changed(
        selector,
        delta=1e-6,
        neighbors="add_or_remove_one",
        expected_rows=300,
        random_state=seed,
        fallback="all",
    )
    selector.fit(X, y)
    assert "397" not in str(selector.privacy_)
    assert selector.plan(0, P).event == selector.plan(10**6, P).event
    with pytest.raises(ValueError, match="delta"):
        clone(selector).set_params(delta=None).fit(X, y)


@each_selector
def test_sparse_rows_and_tables_are_taken(selector, seed):
    rng = as_generator(seed)
    X = (rng.random((2000, P)) < 0.3).astype(float)
    y = X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(2000)
    for table in (sparse.csr_array(X), sparse.coo_matrix(X), pd.DataFrame(X), X > 0):
        found = clone(selector).set_params(epsilon=20.0, random_state=seed)
        assert found.fit(table, y).selection_ == RELEVANT


@each_selector
def test_fitted_selectors_travel(selector, seed):
    X, y = rows()
    found = changed(selector, random_state=seed, fallback="all").fit(X, y)
    again = pickle.loads(pickle.dumps(found))
    assert again.selection_ == found.selection_
    assert_array_equal(again.transform(X), found.transform(X))


def test_one_ledger_serves_a_pipeline(seed):
    X, y = rows(n=2000)
    with config_context(enable_metadata_routing=True):
        selector = PeelingSelector(
            2.0,
            1e-6,
            n_features_to_select=2,
            feature_bounds=1.0,
            y_range=(-2, 2),
            random_state=seed,
        ).set_fit_request(ledger=True)
        model = LinearRegression(
            2.0, 1e-6, x_norm=1.5, y_range=(-2, 2), random_state=seed
        ).set_fit_request(ledger=True)
        ledger = Ledger(Budget(4.0, 1e-5))
        pipeline = make_pipeline(selector, model).fit(X, y, ledger=ledger)
        assert [e.label for e in ledger.report().entries] == [
            "PeelingSelector",
            "LinearRegression",
        ]
        assert pipeline.score(X, y) > 0.9
        with pytest.raises(BudgetExceeded):
            pipeline.fit(X, y, ledger=ledger)
