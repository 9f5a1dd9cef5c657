"""Scaling and encoding by public facts."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from tests.refusal import raises_one_line

from tacit.preprocessing import PublicOneHot, PublicScaler

RANGES = {"age": (18, 98), "hours": (0, 80)}
FRAME = pd.DataFrame({"age": [58.0, 0.0, 98.0], "hours": [20.0, 80.0, 1e9]})
SCALED = [[0.0, -0.5], [-1.0, 1.0], [1.0, 1.0]]
HOUSING = pd.DataFrame(
    {"housing": ["owner", "cave", None], "rooms": [2, 1, 7]}, index=[7, 8, 9]
)
LISTS = {"housing": ["owner", "tenant"], "rooms": [1, 2, 3]}


@pytest.mark.parametrize(
    "ranges",
    [
        RANGES,
        {**RANGES, "unused": (0, 1)},
        list(RANGES.values()),
        np.array([[18, 98], [0, 80]]),
    ],
    ids=["mapping", "larger mapping", "sequence", "array"],
)
def test_ranges_of_any_form_give_the_same(ranges):
    scaler = PublicScaler(ranges)
    assert_allclose(scaler.fit_transform(FRAME), SCALED, atol=1e-15)
    assert list(scaler.get_feature_names_out()) == ["age", "hours"]


def test_one_pair_serves_all_columns_and_places_name_columns_of_arrays():
    X = np.array([[0.0, 5.0], [10.0, -3.0]])
    for ranges in ((0, 10), {0: (0, 10), 1: (0, 10)}):
        scaled = PublicScaler(ranges, target=(0.0, 1.0)).fit_transform(X)
        assert_allclose(scaled, [[0.0, 0.5], [1.0, 0.0]])


def test_fit_reads_names_and_shape_only():
    hidden = pd.DataFrame({"age": [np.nan] * 3, "hours": ["text"] * 3})
    first = PublicScaler(RANGES).fit(hidden)
    second = PublicScaler(RANGES).fit(FRAME)
    assert vars(first).keys() == vars(second).keys()
    assert first.ranges_ == second.ranges_
    assert not hasattr(first, "privacy_")
    encoders = [PublicOneHot(LISTS).fit(X) for X in (HOUSING, HOUSING.iloc[::-1])]
    assert encoders[0].categories_ == encoders[1].categories_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_rows_are_within_the_target_and_the_norm(dtype, data):
    ends = st.floats(-1e6, 1e6, width=32)
    target = sorted(data.draw(st.tuples(ends, ends)))
    target[1] = max(target[1], target[0] + 0.1)
    X = data.draw(hnp.arrays(dtype, (4, 3), elements=st.floats(-1e9, 1e9, width=32)))
    scaler = PublicScaler((-0.1, 0.3), target)
    scaled = scaler.fit_transform(X)
    assert scaled.dtype == dtype
    wide = scaled.astype(np.float64)
    assert wide.min() >= target[0]
    assert wide.max() <= target[1]
    assert np.linalg.norm(wide, axis=1).max() <= scaler.x_norm_ * (1 + 1e-15)


def test_bound_on_the_norm_is_reached():
    scaler = PublicScaler((-1, 1), target=(-3.0, 2.0)).fit(np.zeros((1, 4)))
    corner = scaler.transform(np.full((1, 4), -9.0))
    assert_allclose(np.linalg.norm(corner), scaler.x_norm_, rtol=1e-14)
    assert_allclose(scaler.x_norm_, 6.0)


def test_sparse_rows_stay_sparse_where_zero_stays_zero():
    X = sparse.random_array((30, 3), density=0.4, random_state=0, format="csr") * 9
    scaler = PublicScaler([(0, 3), (0, 8), (0, 9)], target=(0.0, 1.0))
    thin = scaler.fit_transform(X)
    assert sparse.issparse(thin)
    assert_allclose(thin.toarray(), scaler.transform(X.toarray()))
    twice = sparse.csr_array(([2.0, 2.0], [0, 0], [0, 2]), shape=(1, 3))
    assert_allclose(scaler.transform(twice).toarray(), [[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match=re.escape("call X.toarray() first")):
        PublicScaler((0, 9)).fit(X).transform(X)


def test_missing_values_are_filled_with_public_ones_or_refused():
    X = np.array([[np.nan, 5.0], [0.0, np.nan]])
    for missing in (5, [5.0, 5.0], {0: 5.0, 1: 5.0}):
        scaled = PublicScaler((0, 10), missing=missing).fit_transform(X)
        assert_allclose(scaled, [[0.0, 0.0], [-1.0, 0.0]])
    assert np.isnan(X[0, 0])
    thin = sparse.csr_array([[np.nan, 0.0]])
    filled = PublicScaler((-4, 4), missing=2.0).fit_transform(thin)
    assert_allclose(filled.toarray(), [[0.5, 0.0]])
    with raises_one_line(ValueError, match="X contains NaN"):
        PublicScaler((0, 10)).fit_transform(X)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"ranges": {"age": (18, 98)}}, "no entry for column 'hours'"),
        ({"ranges": [(0, 1)]}, "ranges has 1 entries and X has 2 columns"),
        ({"ranges": (1, 0)}, "the lower first, got (1, 0)"),
        ({"ranges": {"age": (18, 98), "hours": (0, np.inf)}}, "column 'hours'"),
        ({"ranges": {"age": (18, np.nan), "hours": (0, 1)}}, "column 'age'"),
        ({"ranges": [(0, 1), (0, 1, 2)]}, "ranges of column 'hours'"),
        ({"ranges": [(0, 1), "ab"]}, "ranges of column 'hours'"),
        ({"ranges": None}, "ranges must map columns to pairs"),
        ({"ranges": "0:1"}, "ranges must map columns to pairs"),
        ({"ranges": []}, "ranges has 0 entries"),
        ({"ranges": (0, 1), "target": (1, 1)}, "target must be two finite"),
        ({"ranges": (0, 1), "target": 3}, "target must be two finite"),
        ({"ranges": (0, 1), "missing": np.nan}, "missing must be None or finite"),
        ({"ranges": (0, 1), "missing": "?"}, "missing must be None or finite"),
        ({"ranges": (0, 1), "missing": [1.0]}, "missing has 1 entries"),
    ],
    ids=str,
)
def test_bad_scaler_is_refused_by_name_and_left_as_it_was(parameters, match):
    scaler = PublicScaler(**parameters)
    before = vars(scaler).copy()
    with raises_one_line(ValueError, match=re.escape(match)):
        scaler.fit(FRAME)
    assert vars(scaler) == before


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.array([[1.0, np.inf]]), "X contains infinity"),
        (np.array([["0.123", "secret"]]), "X must hold numbers only"),
        (np.array([[1.0, 2j]]), "Complex data not supported"),
        (np.zeros(2), "X must have 2 dimensions, got 1"),
        (np.zeros((1, 3)), "X has 3 features, but PublicScaler is expecting 2"),
    ],
    ids=["inf", "text", "complex", "flat", "columns"],
)
def test_bad_rows_are_refused_without_showing_them(X, match):
    scaler = PublicScaler((0, 1)).fit(np.zeros((1, 2)))
    with pytest.raises((ValueError, TypeError), match=re.escape(match)) as rejection:
        scaler.transform(X)
    assert "secret" not in str(rejection.value)


def test_indicators_of_listed_and_other_values():
    encoder = PublicOneHot(LISTS)
    found = encoder.fit_transform(HOUSING)
    names = list(encoder.get_feature_names_out())
    assert names[:3] == ["housing=owner", "housing=tenant", "housing=other"]
    assert names[3:] == ["rooms=1", "rooms=2", "rooms=3", "rooms=other"]
    assert_array_equal(
        found,
        [[1, 0, 0, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0, 1]],
    )
    assert_allclose(encoder.x_norm_, np.sqrt(2))
    lists = PublicOneHot([["owner", "tenant"], [1, 2, 3]])
    assert_array_equal(lists.fit_transform(HOUSING.values.tolist()), found)


def test_other_values_get_no_indicator_or_join_a_category():
    nowhere = PublicOneHot(LISTS, other=None).fit_transform(HOUSING)
    assert_array_equal(nowhere[1], [0, 0, 1, 0, 0])
    assert_array_equal(nowhere[2], 0)
    joined = PublicOneHot(["cave", "owner"], other="owner").fit(HOUSING[["housing"]])
    assert_array_equal(joined.transform(HOUSING[["housing"]]), [[0, 1], [1, 0], [0, 1]])


def test_values_without_a_hash_and_missing_ones_are_others():
    X = np.empty((4, 1), dtype=object)
    X[:, 0] = [["a"], np.nan, pd.NA, "a"]
    assert_array_equal(PublicOneHot(["a"]).fit_transform(X)[:, 0], [0, 0, 0, 1])


def test_sparse_indicators_are_the_dense_ones():
    dense, thin = (
        PublicOneHot(LISTS, sparse_output=kind).fit_transform(HOUSING)
        for kind in (False, True)
    )
    assert thin.format == "csr"
    assert_array_equal(thin.toarray(), dense)


@pytest.mark.parametrize(
    ("categories", "match"),
    [
        ({"housing": ["owner"]}, "no entry for column 'rooms'"),
        ([["a"]], "categories has 1 entries"),
        ([["a", "a"], ["b"]], "column 'housing' must be a list of distinct"),
        ([["a"], []], "column 'rooms' must be a list of distinct"),
        ({"housing": "owner", "rooms": [1]}, "column 'housing' must be a list"),
        ([["a"], [["b"]]], "column 'rooms' must be a list of distinct"),
        ("ab", "categories must map columns to lists"),
        (None, "categories must map columns to lists"),
    ],
    ids=str,
)
def test_bad_categories_are_refused_by_name(categories, match):
    encoder = PublicOneHot(categories)
    before = vars(encoder).copy()
    with pytest.raises(ValueError, match=re.escape(match)):
        encoder.fit(HOUSING)
    assert vars(encoder) == before


def test_mixed_tables_go_through_a_column_transformer_as_frames():
    table = pd.concat([FRAME, HOUSING.reset_index(drop=True)], axis=1)
    transformer = make_column_transformer(
        (PublicScaler(RANGES), list(RANGES)),
        (PublicOneHot(LISTS), list(LISTS)),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    found = transformer.fit_transform(table)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns[:3]) == ["age", "hours", "housing=owner"]
    assert_allclose(found[["age", "hours"]], SCALED, atol=1e-15)
    bounds = [step.x_norm_ for step in transformer.named_transformers_.values()]
    assert np.linalg.norm(found, axis=1).max() <= np.hypot(*bounds)


@pytest.mark.parametrize(
    "transformer",
    [PublicScaler(RANGES, missing=3), PublicOneHot({"age": [58, 0], "hours": [20]})],
    ids=["scaler", "encoder"],
)
def test_parameters_changed_later_do_not_move_what_was_fitted(transformer):
    fitted = clone(transformer).fit(FRAME)
    before = fitted.transform(FRAME)
    fitted.set_params(**{k: None for k in fitted.get_params() if k != "sparse_output"})
    assert_array_equal(fitted.transform(FRAME), before)
    copied = pickle.loads(pickle.dumps(clone(transformer).fit(FRAME)))
    assert_array_equal(copied.transform(FRAME), before)
    with pytest.raises(NotFittedError):
        clone(transformer).transform(FRAME)
