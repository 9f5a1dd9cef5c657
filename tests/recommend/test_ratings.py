from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tacit.recommend.ratings.columns import Catalogue
from tacit.recommend.ratings.reading import read_ratings
from tacit.recommend.ratings.table import Ratings, grouped


def some_ratings(seed, n_users=50, n_items=30, most=20):
    rng = np.random.Generator(np.random.PCG64(seed))
    rows = [
        (user, item, rng.integers(1, 6))
        for user in range(n_users)
        for item in rng.choice(n_items, rng.integers(1, most), replace=False)
    ]
    return read_ratings(rows, items=n_items, rating_range=(1, 5))


def test_blocks_are_views_of_all_rows_in_order(seed):
    ratings = some_ratings(seed)
    position = 0
    for block in ratings.blocks(users=7):
        assert block.indptr[0] == 0
        assert np.shares_memory(block.items, ratings.items)
        for i in range(block.n_users):
            for found, whole in zip(block.row(i), ratings.row(position), strict=True):
                np.testing.assert_array_equal(found, whole)
            position += 1
    assert position == ratings.n_users == 50


def test_arrays_have_the_compact_types(seed):
    ratings = some_ratings(seed)
    assert ratings.indptr.dtype == np.int64
    assert (ratings.items.dtype, ratings.values.dtype) == (np.int32, np.float32)


def test_no_rating_is_printed(seed):
    assert repr(some_ratings(seed)) == "RatingTable(n_items=30)"


def test_a_row_is_sorted_and_the_mean_is_taken_of_repeated_items():
    row = Ratings.of_row([3, 1, 3], [1.0, 2.0, -4.0], n_items=5)
    assert row.row(0)[0].tolist() == [1, 3]
    assert row.row(0)[1].tolist() == [2.0, -1.5]
    assert Ratings.of_row([], [], n_items=5).indptr.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("items", "values", "named"),
    [
        ([5], [1.0], "items"),
        ([-1], [1.0], "items"),
        ([1, 2], [1.0], "items"),
        ([1], [np.nan], "values"),
    ],
)
def test_an_invalid_row_is_rejected(items, values, named):
    with pytest.raises(ValueError, match=f"^{named} "):
        Ratings.of_row(items, values, n_items=5)


def test_rows_do_not_depend_on_the_order_in_which_ratings_come(seed):
    rng = np.random.Generator(np.random.PCG64(seed))
    users = rng.integers(0, 6, 400).astype(np.uint16)
    items = rng.integers(0, 9, 400).astype(np.int32)
    values = rng.normal(size=400).astype(np.float32)
    order = rng.permutation(400)
    one = grouped(users, items, values, 7)
    two = grouped(users[order], items[order], values[order], 7)
    for found, again in zip(one, two, strict=True):
        np.testing.assert_array_equal(found, again)
    for user in range(7):
        for item in range(9):
            given = values[(users == user) & (items == item)].astype(np.float64)
            row = slice(one[0][user], one[0][user + 1])
            found = one[2][row][one[1][row] == item]
            if len(given):
                np.testing.assert_allclose(found, [given.mean()], rtol=1e-6)
            else:
                assert len(found) == 0


def test_labels_of_the_catalogue_have_positions():
    words = Catalogue.of(["rum", "tea"])
    assert [words.position(label) for label in ("tea", "gin", 0, None, [])] == [
        1,
        -1,
        -1,
        -1,
        -1,
    ]
    numbers = Catalogue.of(np.array([7, 9]))
    assert [numbers.position(label) for label in (9, 9.0, 0, "9")] == [1, 1, -1, -1]
    assert type(numbers.labels[0]) is int
    counted = Catalogue.of(3)
    assert [counted.position(x) for x in (2, 2.0, np.int8(1), 3, -1, 0.5, "1")] == [
        2,
        2,
        1,
        -1,
        -1,
        -1,
        -1,
    ]
    for odd in (np.nan, Decimal("NaN"), Decimal("sNaN"), Decimal("1.5"), 2**70, 1j):
        assert counted.position(odd) == -1
    assert counted.position(Decimal(2)) == counted.position(Fraction(4, 2)) == 2
    assert counted.as_strings().position("2") == 2


@pytest.mark.parametrize(
    "items", [None, 0, True, 2**40, [], "tea", [1, "tea"], [1.5], ["tea", "tea"], {}]
)
def test_an_invalid_catalogue_is_rejected(items):
    with pytest.raises(ValueError, match=r"^items must be"):
        Catalogue.of(items)
