"""Entries stay in their public ranges, whatever they are."""

from fractions import Fraction
from time import process_time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from tacit._random import as_generator
from tacit.data import RowBounds, bounded_rows
from tacit.data.features import FeatureBounds

FINITE = {"allow_nan": False, "allow_infinity": False}
EXTREMES = [0.0, 1.0, -1.0, 1e300, -1.7e308, 1e-300, 5e-324, 1 / 3]
entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-2, 2), st.floats(**FINITE))
matrices = hnp.arrays(np.float64, (3, 4), elements=entries)
ranges = st.tuples(st.floats(-1e9, 0.0), st.floats(1e-9, 1e9)).filter(
    lambda pair: pair[1] - pair[0] > 1e-6 * max(-pair[0], pair[1])
)
several = st.lists(ranges, min_size=4, max_size=4)


def unit_range():
    return RowBounds(1.0, "linf")


@given(matrices, several)
def test_entries_are_within_their_ranges_exactly(X, pairs):
    bounds = FeatureBounds.of(pairs, 4)
    for kind in (np.asarray, sparse.csr_array):
        clipped = bounds.clip(kind(X))
        assert clipped.dtype == np.float64
        dense = clipped if kind is np.asarray else clipped.toarray()
        for row, out in zip(X, dense, strict=True):
            for x, kept, (low, high) in zip(row, out, pairs, strict=True):
                assert Fraction(low) <= Fraction(kept) <= Fraction(high)
                if low <= x <= high:
                    assert x == kept


@example(np.full((3, 4), -1.7e308), [(-1e-3, 1e-3)] * 4, True)
@given(matrices, several, st.booleans())
def test_units_are_within_one_exactly(X, pairs, centered):
    bounds = FeatureBounds.of(pairs, 4, centered=centered)
    units = bounds.to_unit(X)
    assert units.min() >= -1
    assert units.max() <= 1
    back = bounds.from_unit(units)
    off = np.abs(back - bounds.clip(X))
    assert (off <= 1e-15 * np.maximum(*np.abs(bounds.ends)) * 4).all()


@given(matrices, several)
def test_sparse_rows_become_the_units_of_dense_ones(X, pairs):
    bounds = FeatureBounds.of(pairs, 4, centered=False)
    units = bounds.to_unit(sparse.csr_array(X))
    assert sparse.issparse(units)
    assert np.array_equal(units.toarray(), bounds.to_unit(X))
    back = bounds.from_unit(units)
    assert sparse.issparse(back)
    assert np.array_equal(back.toarray(), bounds.from_unit(bounds.to_unit(X)))


def test_the_ends_of_a_range_become_one():
    bounds = FeatureBounds.of([(0, 10), (-3, 1), (5, 6)], 3)
    ends = np.array(bounds.ends)
    assert np.array_equal(bounds.to_unit(ends), [[-1] * 3, [1] * 3])
    plain = FeatureBounds.of([(0, 10), (-3, 1), (5, 6)], 3, centered=False)
    assert np.array_equal(plain.half_width, [10, 3, 6])
    assert np.array_equal(plain.to_unit(np.zeros((1, 3))), [[0, 0, 5 / 6]])


@pytest.mark.parametrize(
    "given",
    [
        [2, 2.0],
        np.array([2.0, 2.0]),
        np.array([2, 2]),
        [(-2, 2), (-2, 2)],
        np.array([[-2, 2], [-2, 2]]),
        [2, (-2, 2)],
        2,
        np.float32(2),
    ],
    ids=repr,
)
def test_every_form_says_the_same(given):
    assert FeatureBounds.of(given, 2) == FeatureBounds((-2, -2), (2, 2))


def test_names_may_come_in_any_order():
    named = FeatureBounds.of({"b": 3, "a": (0, 1)}, ["a", "b"])
    assert named == FeatureBounds.of([(0, 1), 3], 2)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (None, "feature_bounds must be given"),
        (0, "feature_bounds must be finite and above zero"),
        (-1, "above zero"),
        (np.nan, "above zero"),
        (np.inf, "above zero"),
        (1e101, "above zero"),
        (True, "one pair a feature"),
        ("1", "one pair a feature"),
        ("12", "one pair a feature"),
        ("1", "or a dict from names to numbers or pairs"),
        (1j, "one pair a feature"),
        ([], "one entry for each of the 2 features, got 0"),
        ([1], "got 1 entries"),
        ([1, 2, 3], "got 3 entries"),
        ((0, 10), r"write \[\(0, 10\), \(0, 10\)\] for the pair, or \[0, 10\]"),
        ((18.5, np.float64(100)), r"\[\(18.5, 100\), \(18.5, 100\)\]"),
        ((10**400, 1), "may mean one pair or two largest values"),
        ((0, True), r"feature_bounds\[1\] must be a number or a pair"),
        ([(0, 1), (1, 0)], r"feature_bounds\[1\] .* the lower end first"),
        ([(0, 1), (1, 1)], r"feature_bounds\[1\] .* the lower end first"),
        ([(0, 1), (1, 1 + 1e-12)], r"feature_bounds\[1\] .* wider than round-off"),
        ([(0, 1), (0, 1e-200)], r"feature_bounds\[1\] .* wider than round-off"),
        ([(0, 1), (0, np.nan)], r"feature_bounds\[1\] .* the lower end first"),
        ([(0, 1, 2), (0, 1, 2)], r"feature_bounds\[0\] must be a number or a pair"),
        ([(0, "1"), (0, 1)], r"feature_bounds\[0\] must be a number or a pair"),
        ([None, 1], r"feature_bounds\[0\] must be a number or a pair"),
        ([1, 2, None], r"feature_bounds\[2\] must be a number or a pair"),
        ([10**400, 1], r"feature_bounds\[0\] .* above zero"),
        (np.ones((2, 3)), "one entry for each"),
        (np.ones((2, 2, 2)), "one pair a feature"),
        (np.array(["a", "b"]), "one pair a feature"),
        (np.array([True, True]), "one pair a feature"),
        ({"a": 1, "b": 1}, "X has no names"),
    ],
    ids=repr,
)
def test_what_is_no_range_is_refused(given, match):
    with pytest.raises(ValueError, match=match):
        FeatureBounds.of(given, 2)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"a": 1}, "no entry 'b';"),
        ({}, "no entry 'a', 'b';"),
        ({"a": 1, "b": 1, "c": 1}, "an unknown entry 'c';"),
        ({"a": 1, "b": (1, 0)}, r"feature_bounds\['b'\] .* the lower end first"),
        ({"a": 1, "b": "1"}, r"feature_bounds\['b'\] must be a number or a pair"),
        ([1, (1, 0)], r"feature_bounds\['b'\] .* the lower end first"),
    ],
)
def test_names_must_be_those_of_the_columns(given, match):
    with pytest.raises(ValueError, match=match):
        FeatureBounds.of(given, ["a", "b"])


def test_of_many_names_without_an_entry_five_are_listed():
    with pytest.raises(ValueError, match=r"no entry 0, 1, 2, 3, 4 and 3 more;"):
        FeatureBounds.of({8: 1}, range(9))


@pytest.mark.parametrize("n_features", [1, 3, 7])
def test_a_tuple_of_two_numbers_is_one_pair_for_all(n_features):
    found = FeatureBounds.of((18, 100), n_features)
    assert found == FeatureBounds.of([(18, 100)] * n_features, n_features)
    with pytest.raises(ValueError, match=r"feature_bounds must be .* lower end first"):
        FeatureBounds.of((100, 18), n_features)


def test_a_list_of_two_numbers_is_a_number_for_each_of_two():
    assert FeatureBounds.of([18, 100], 2) == FeatureBounds((-18, -100), (18, 100))
    with pytest.raises(ValueError, match="one entry for each of the 3 features, got 2"):
        FeatureBounds.of([18, 100], 3)


def test_sparse_rows_need_ranges_that_hold_zero():
    bounds = FeatureBounds.of([(0, 1), (2, 3)], 2, centered=False)
    for method in (bounds.clip, bounds.to_unit):
        with pytest.raises(ValueError, match="must hold 0"):
            method(sparse.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match="cannot be centered"):
        FeatureBounds.of(1.0, 2).to_unit(sparse.csr_array(np.eye(2)))


def test_rows_of_another_width_are_refused():
    for method in ("clip", "to_unit"):
        with pytest.raises(ValueError, match="must have 2 features"):
            getattr(FeatureBounds.of(1.0, 2), method)(np.eye(3))


def test_entries_stored_twice_are_added_before_they_are_cut():
    twice = sparse.csr_array(([0.8, 0.8], [0, 0], [0, 2]), shape=(1, 2))
    bounds = FeatureBounds.of(1.0, 2, centered=False)
    assert bounds.clip(twice).toarray().tolist() == [[1.0, 0.0]]
    assert bounds.to_unit(twice).toarray().tolist() == [[1.0, 0.0]]
    assert twice.data.tolist() == [0.8, 0.8]


@pytest.mark.parametrize("intercept", [None, 1.0])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_array])
def test_rows_behind_the_door_are_units_and_the_constant(kind, intercept, seed):
    rng = as_generator(seed)
    X = 5 * rng.standard_normal((20, 3)).astype(np.float32)
    bounds = FeatureBounds.of([1.0, (-9, 3), 20.0], 3, centered=False)
    rows = bounded_rows(kind(X), np.zeros(20), unit_range(), intercept, bounds)
    stored, _ = rows.arrays()
    stored = stored.toarray() if sparse.issparse(stored) else stored
    assert np.array_equal(stored[:, :3], bounds.to_unit(X.astype(float)))
    if intercept is not None:
        assert np.array_equal(stored[:, 3], np.ones(20))


def test_rows_of_a_file_become_the_same_units(tmp_path, seed):
    rng = as_generator(seed)
    X = 5 * rng.standard_normal((20, 3))
    file = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    file[:] = X
    bounds = FeatureBounds.of([1.0, (2, 3), 20.0], 3)
    both = [
        bounded_rows(source, np.zeros(20), unit_range(), 1.0, bounds).sum(
            lambda X, y: (X.T @ X,)
        )[0]
        for source in (X, file)
    ]
    assert np.array_equal(*both)


def test_many_features_are_bounded_fast():
    p = 100_000
    X = sparse.random_array((50, p), density=1e-3, format="csr", rng=0)
    pairs = [(-1.0, 2.0)] * p
    start = process_time()
    bounds = FeatureBounds.of(pairs, p, centered=False)
    bounds.clip(X)
    bounds.to_unit(X)
    assert process_time() - start < 2.0
    assert repr(bounds) == "FeatureBounds(100000 features)"
