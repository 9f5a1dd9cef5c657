"""Clipping holds in exact arithmetic, whatever the entries."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from tests.refusal import raises_one_line

from tacit.data import RowBounds, bounded_rows

FINITE = {"allow_nan": False, "allow_infinity": False}
EXTREMES = [0.0, 1.0, -1.0, 1e300, -1.7e308, 1e-300, 5e-324, 1e154, 1e-162, 1 / 3]

entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-2, 2), st.floats(**FINITE))
matrices = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=entries
)
norms = st.one_of(
    st.sampled_from([1.0, 0.1, 1e-100, 1e-15, 1e100]), st.floats(1e-100, 1e100)
)


def squared_norm(row):
    """Sum of squares of floats taken as the rational numbers that they are."""
    return sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))


def assert_within(X, x_norm):
    for row in X:
        assert squared_norm(row) <= Fraction(x_norm) ** 2


@given(matrices, norms)
def test_rows_are_within_the_l2_bound_in_exact_arithmetic(X, x_norm):
    clipped = RowBounds(x_norm).clip(X)
    assert clipped.dtype == np.float64
    assert clipped.shape == X.shape
    assert_within(clipped, x_norm)
    assert_within(RowBounds(x_norm).clip(sparse.csr_array(X)).toarray(), x_norm)


@given(matrices, norms)
def test_rows_clearly_inside_are_untouched_bit_for_bit(X, x_norm):
    clipped = RowBounds(x_norm).clip(X)
    for row, out in zip(X, clipped, strict=True):
        if squared_norm(row) <= (Fraction(x_norm) * (1 - Fraction(1, 10**13))) ** 2:
            assert row.tobytes() == out.tobytes()


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-5, 5)), st.floats(1e-3, 1e3))
def test_rows_outside_keep_their_direction_and_reach_the_bound(X, x_norm):
    clipped = RowBounds(x_norm).clip(X)
    for row, out in zip(X, clipped, strict=True):
        length = np.linalg.norm(row)
        if length > x_norm:
            assert np.linalg.norm(out) == pytest.approx(x_norm, rel=1e-13)
            assert np.allclose(out, row * (x_norm / length), rtol=1e-12)


def test_clipping_without_room_for_rounding_would_be_noticed():
    X = np.random.Generator(np.random.PCG64(0)).standard_normal((200, 5))
    plain = X / np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.raises(AssertionError):
        assert_within(plain, 1.0)
    assert_within(RowBounds().clip(X), 1.0)
    assert_within(RowBounds().clip(plain), 1.0)


@pytest.mark.parametrize("x_norm", [1e-100, 1e-15, 1.0, 1e100])
@pytest.mark.parametrize("width", [1, 3, 50])
def test_extreme_entries_neither_overflow_nor_escape(x_norm, width):
    sizes = np.array([1.79e308, 1.2e308, 1e300, 1e160, 1e-160, 1e-300, 5e-324, 0.0])
    X = np.repeat(sizes[:, None], width, axis=1)
    clipped = RowBounds(x_norm).clip(X)
    assert np.all(np.isfinite(clipped))
    assert_within(clipped, x_norm)
    assert np.array_equal(
        RowBounds(x_norm).clip(sparse.csr_array(X)).toarray(), clipped
    )
    # tiny rows stay as they are
    assert np.array_equal(clipped[4:], X[4:])


def test_one_huge_entry_does_not_hide_behind_small_ones():
    X = np.array([[1e300, 1.0, 0.0], [1.0, 1e-300, 0.0], [0.0, 0.0, 0.0]])
    clipped = RowBounds().clip(X)
    assert clipped[0, 0] == pytest.approx(1.0, rel=1e-14)
    assert clipped[1] == pytest.approx(X[1], rel=1e-14)
    assert np.array_equal(clipped[2], X[2])
    assert_within(clipped, 1.0)


@given(matrices, norms, st.sampled_from(["l2", "linf"]))
def test_sparse_rows_are_clipped_as_dense_ones(X, x_norm, norm):
    bounds = RowBounds(x_norm, norm)
    stored = sparse.csr_array(X)
    dense, clipped = bounds.clip(X), bounds.clip(stored)
    assert sparse.issparse(clipped)
    assert clipped.format == "csr"
    assert np.allclose(clipped.toarray(), dense, rtol=1e-13, atol=1e-300)
    assert np.array_equal(stored.toarray(), X)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_entries_stored_twice_are_added_before_clipping(norm):
    stored = np.array([0.6, 0.6, 0.6]), np.array([0, 0, 0]), np.array([0, 3])
    X = sparse.csr_array(stored, shape=(1, 2))
    clipped = RowBounds(1.0, norm).clip(X)
    assert clipped.toarray()[0, 0] == pytest.approx(1.0)
    assert_within(clipped.toarray(), 1.0)
    assert X.nnz == 3  # the caller's matrix is left alone
    rows = bounded_rows(X, np.zeros(1), RowBounds(1.0, norm), 1.0)
    (total,) = rows.sum(lambda X, y: (X.sum(axis=0),))
    assert total[0] <= 1.0


@pytest.mark.parametrize("layout", [sparse.csc_array, sparse.coo_array])
def test_other_sparse_layouts_are_clipped_by_row(layout):
    X = np.array([[3.0, 4.0], [0.0, 1.0], [5.0, 0.0]])
    clipped = RowBounds().clip(layout(X))
    assert clipped.toarray() == pytest.approx(RowBounds().clip(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("x_norm", [0.1, 1.0, 2.7])
def test_narrow_types_are_clipped_in_float64(dtype, norm, x_norm):
    X = np.array([[3, -4], [1, 0], [0, 0], [100, 0]]).astype(dtype)
    wide = RowBounds(x_norm, norm).clip(X.astype(np.float64))
    for narrow in (X, sparse.csr_array(X)) if dtype != np.float16 else (X,):
        clipped = RowBounds(x_norm, norm).clip(narrow)
        assert clipped.dtype == np.float64
        dense = clipped.toarray() if sparse.issparse(clipped) else clipped
        assert np.array_equal(dense, wide)
        if norm == "linf":
            assert np.abs(dense).max() <= x_norm
        else:
            assert_within(dense, x_norm)


@given(matrices, norms)
def test_largest_entries_are_cut_on_both_sides(X, x_norm):
    clipped = RowBounds(x_norm, "linf").clip(X)
    assert np.all(np.abs(clipped) <= x_norm)
    inside = np.abs(X) <= x_norm
    assert np.array_equal(clipped[inside], X[inside])
    assert np.all(clipped[x_norm < X] == x_norm)
    assert np.all(clipped[-x_norm > X] == -x_norm)


def test_clipping_leaves_its_input_alone():
    X = np.array([[3.0, 4.0], [0.1, 0.1]])
    for norm in ("l2", "linf"):
        for given_X in (X.copy(), sparse.csr_array(X)):
            RowBounds(1.0, norm).clip(given_X)
            kept = given_X.toarray() if sparse.issparse(given_X) else given_X
            assert np.array_equal(kept, X)


@given(norms, st.floats(-1e100, 1e100), matrices)
def test_an_intercept_is_inside_the_wider_bound(x_norm, value, X):
    try:
        wider = RowBounds(x_norm).with_intercept(value)
    except ValueError:
        assert np.hypot(x_norm, value) > 0.99e100
        return
    (total,) = bounded_rows(X[:1], np.zeros(1), RowBounds(x_norm), value).sum(
        lambda X, y: (X[0],)
    )
    assert squared_norm(total) <= Fraction(wider.x_norm) ** 2
    # the bound itself covers any row within the first one
    least = Fraction(x_norm) ** 2 + Fraction(value) ** 2
    assert least <= Fraction(wider.x_norm) ** 2


@given(norms, st.floats(-1e99, 1e99))
def test_an_intercept_counts_by_its_size_in_the_largest_entry(x_norm, value):
    if x_norm > 0.99e100:
        return
    wider = RowBounds(x_norm, "linf").with_intercept(value)
    assert wider.x_norm >= max(x_norm, abs(value))
    assert wider.x_norm <= max(x_norm, abs(value)) * (1 + 1e-15)


@pytest.mark.parametrize(
    ("x_norm", "value"),
    [
        (1.1165122450891778, 0.8774408622465861),
        (1.323971509060134, 0.5701833163506875),
    ],
)
def test_an_intercept_counts_in_full_where_every_rounding_is_down(x_norm, value):
    wider = RowBounds(x_norm).with_intercept(value)
    least = Fraction(x_norm) ** 2 + Fraction(value) ** 2
    assert Fraction(wider.x_norm) ** 2 >= least
    # control: one rounding fewer is not enough
    assert Fraction(np.sqrt(x_norm**2 + value**2) * (1 + 2.0**-52)) ** 2 < least


def test_an_intercept_keeps_the_other_facts():
    bounds = RowBounds(2.0, "l2", (-3.0, 5.0), (0, 1)).with_intercept(1.0)
    assert bounds.x_norm == pytest.approx(5**0.5)
    assert (bounds.y_range, bounds.classes) == ((-3.0, 5.0), (0, 1))
    assert "np.float64" not in repr(bounds)


def test_targets_are_cut_to_their_range():
    y = np.array([-1e300, -2.0, 0.25, 3.0, 1e300])
    cut = RowBounds(y_range=(-2.0, 3.0)).clip_target(y)
    assert np.array_equal(cut, [-2.0, -2.0, 0.25, 3.0, 3.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, None, "1", 1e-200, 1e200])
def test_a_bad_norm_bound_is_refused(bad):
    with pytest.raises(ValueError, match=r"^x_norm must .*\.$"):
        RowBounds(bad)


def test_other_bad_parameters_are_refused():
    with pytest.raises(ValueError, match=r"^norm must be 'l2' or 'linf', got 'l1'\.$"):
        RowBounds(norm="l1")
    for bad in ((1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(ValueError, match="y_range must be two finite numbers"):
            RowBounds(y_range=bad)


def test_a_wrong_memory_of_unique_entries_does_not_widen_the_bound():
    X = sparse.csr_array((np.ones(400), np.arange(400), [0, 400]), shape=(1, 400))
    assert X.has_canonical_format  # scipy remembers this
    X.indices[:] = 0
    clipped = RowBounds(1.0).clip(X).toarray()
    assert np.linalg.norm(clipped) <= 1.0


def test_a_bound_without_room_for_an_intercept_is_rejected_as_it_was_given():
    for x_norm, value in ((1e100, 2.5e99), (1.0, 1e101)):
        with raises_one_line(ValueError, match="together") as rejection:
            RowBounds(x_norm).with_intercept(value)
        assert f"got {x_norm!r};" in str(rejection.value)
    assert RowBounds(1e99).with_intercept(1e99).x_norm < 1e100
