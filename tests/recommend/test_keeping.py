import numpy as np
import pytest
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit.recommend.ratings.table import Ratings, kept

N_ITEMS = 40


def rows_of(ratings):
    return [
        tuple(part.tolist() for part in ratings.row(i)) for i in range(ratings.n_users)
    ]


def table_of(rows):
    indptr = np.cumsum([0, *(len(items) for items, _ in rows)])
    items = np.concatenate([items for items, _ in rows]).astype(np.int32)
    values = np.concatenate([values for _, values in rows]).astype(np.float32)
    return Ratings(indptr, items, values, N_ITEMS)


def some_rows(seed, n=60):
    rng = np.random.Generator(np.random.PCG64(seed))
    return [
        (np.sort(rng.choice(N_ITEMS, size, replace=False)), rng.normal(size=size))
        for size in rng.integers(0, 30, n)
    ]


def same_among_others(keep, rows, stranger):
    """Whether each row is limited in the same way beside another user and isolated."""
    beside = rows_of(keep(table_of([stranger, *rows])))[1:]
    isolated = [rows_of(keep(table_of([row])))[0] for row in rows]
    return beside == rows_of(keep(table_of(rows))) == isolated


def test_another_user_moves_nobodys_kept_ratings(seed):
    rows = some_rows(seed)
    stranger = (np.arange(35), np.ones(35))
    weights = np.linspace(0.1, 3.0, N_ITEMS)
    assert same_among_others(lambda r: kept(r, 8, b"key"), rows, stranger)
    assert same_among_others(lambda r: kept(r, 8, b"key", weights), rows, stranger)


def test_a_choice_by_position_would_be_caught(seed):
    def by_position(ratings):
        rng = np.random.Generator(np.random.PCG64(1))
        found = []
        for i in range(ratings.n_users):
            items, values = ratings.row(i)
            few = np.sort(rng.permutation(len(items))[:8])
            found.append((items[few], values[few]))
        return table_of(found)

    stranger = (np.arange(35), np.ones(35))
    assert not same_among_others(by_position, some_rows(seed), stranger)


def test_blocks_are_answered_as_the_whole_is(seed):
    ratings = table_of(some_rows(seed))
    whole = rows_of(kept(ratings, 5, b"key"))
    for users in (1, 7, 60):
        found = [rows_of(kept(b, 5, b"key")) for b in ratings.blocks(users)]
        assert [row for block in found for row in block] == whole


def test_a_row_keeps_as_many_as_it_may_in_the_order_of_items(seed):
    rows = some_rows(seed)
    for row, (items, values) in zip(
        rows, rows_of(kept(table_of(rows), 8, b"key")), strict=True
    ):
        assert len(items) == min(len(row[0]), 8)
        assert items == sorted(items)
        row_of = dict(zip(row[0].tolist(), row[1].astype(np.float32), strict=True))
        assert [row_of[item] for item in items] == values


def test_short_rows_are_not_copied(seed):
    ratings = table_of(some_rows(seed))
    assert kept(ratings, N_ITEMS, b"key") is ratings


def test_what_is_kept_changes_with_the_key_and_with_what_a_row_holds():
    row = (np.arange(30), np.zeros(30))
    other = (np.arange(30), np.append(np.zeros(29), 1.0))
    kinds = [(row, b"one"), (row, b"two"), (other, b"one")]
    found = {tuple(rows_of(kept(table_of([r]), 8, key))[0][0]) for r, key in kinds}
    assert len(found) == 3


def first_items(n, most, weights):
    """Return how often each item is kept, in rows that differ in one rating."""
    items = np.arange(len(weights))
    whole = np.append(weights, np.ones(N_ITEMS - len(weights)))
    rows = [(items, np.append(np.zeros(len(items) - 1), i)) for i in range(n)]
    few = kept(table_of(rows), most, b"key", whole)
    return np.bincount(few.items, minlength=len(weights))


def test_one_kept_rating_has_the_probability_of_its_weight():
    weights = np.array([1.0, 2.0, 3.0, 6.0])
    counts = first_items(20_000, 1, weights)
    assert_counts_follow(counts, weights / 12)
    assert_counts_detect(counts, [0.25, 0.25, 0.25, 0.25])
    assert_counts_detect(counts, np.array([1.2, 2.0, 3.0, 5.8]) / 12)


def test_two_kept_ratings_are_drawn_without_replacement():
    weights = np.array([1.0, 2.0, 5.0])
    # the one that is left out names the pair
    left = 20_000 - first_items(20_000, 2, weights)
    rates = weights / weights.sum()
    pairs = [
        rates[i] * rates[j] / (1 - rates[i]) + rates[i] * rates[j] / (1 - rates[j])
        for i, j in ((1, 2), (0, 2), (0, 1))
    ]
    assert_counts_follow(left, pairs)
    assert_counts_detect(left, [1 / 3, 1 / 3, 1 / 3])


def test_equal_weights_keep_all_items_alike():
    items = np.arange(10)
    rows = [(items, np.append(np.zeros(9), i)) for i in range(20_000)]
    counts = np.bincount(kept(table_of(rows), 1, b"key").items, minlength=10)
    assert_counts_follow(counts, np.full(10, 0.1))
    tilted = np.linspace(0.9, 1.1, 10)
    assert_counts_detect(counts, tilted / tilted.sum())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "one for each of 40 items"),
        (np.zeros(N_ITEMS), "finite numbers > 0"),
        (np.full(N_ITEMS, np.inf), "finite numbers > 0"),
    ],
)
def test_invalid_weights_are_rejected(weights, message, seed):
    with pytest.raises(ValueError, match=message):
        kept(table_of(some_rows(seed)), 3, b"key", weights)
    with pytest.raises(ValueError, match=r"^most must be"):
        kept(table_of(some_rows(seed)), 0, b"key")
