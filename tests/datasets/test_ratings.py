import numpy as np
import pytest
from tests.datasets.test_real import needs, raw
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit.datasets import load, make_rank_one_ratings

SIZES = {
    "jester_1": ("jester_ratings", 1_810_455, 24_983, 100),
    "movielens_100k": ("movielens_100k", 100_000, 943, 1_682),
    "movielens_1m": ("movielens_1m", 1_000_209, 6_040, 3_706),
    "netflix_sample": ("netflix_sample", 94_931, 800, 1_336),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs(f"{name}/{name}.parquet")) for name in SIZES],
)
def test_a_loaded_set_has_the_published_ratings_counted_from_zero(name):
    published, n_ratings, n_users, n_items = SIZES[name]
    data, columns = load(published), raw(f"{name}/{name}.parquet")
    assert len(data.ratings) == n_ratings
    assert (data.users.min(), data.users.max()) == (0, n_users - 1)
    assert (data.items.min(), data.items.max()) == (0, n_items - 1)
    assert data.n_items == n_items
    low, high = data.rating_range
    assert low <= data.ratings.min() <= data.ratings.max() <= high
    np.testing.assert_array_equal(data.users + 1, columns["user"])
    np.testing.assert_array_equal(data.items + 1, columns["item"])
    np.testing.assert_array_equal(data.ratings, columns["target"].astype(np.float32))
    pairs = data.users.astype(np.int64) * n_items + data.items
    assert len(np.unique(pairs)) == n_ratings


@pytest.mark.parametrize("kind", ["sign", "uniform"])
def test_made_ratings_are_of_rank_one_and_each_user_has_as_many(kind, seed):
    data = make_rank_one_ratings(300, 12, 12, kind, seed)
    whole = data.ratings.reshape(300, 12)
    np.testing.assert_array_equal(data.items.reshape(300, 12)[7], np.arange(12))
    values = np.linalg.svd(whole.astype(np.float64), compute_uv=False)
    assert values[1] < 1e-5 * values[0]
    assert np.abs(whole).max() == 1
    assert (np.abs(whole) == 1).all() == (kind == "sign")


def test_items_of_made_ratings_are_drawn_evenly_without_repetition(seed):
    data = make_rank_one_ratings(12_000, 20, 5, random_state=seed)
    items = data.items.reshape(12_000, 5)
    assert (np.diff(items, axis=1) > 0).all()
    counts = np.bincount(items[:, 0], minlength=20)
    # the smallest of five of twenty: hypergeometric
    rest = np.array([_below(20 - j - 1, 4) for j in range(20)])
    assert_counts_follow(counts, rest / rest.sum())
    assert_counts_detect(counts, np.full(20, 1 / 20))


def _below(n, k):
    out = 1.0
    for i in range(k):
        out *= max(n - i, 0) / (i + 1)
    return out


def test_one_seed_makes_one_set():
    one, same, other = (
        make_rank_one_ratings(50, 9, 3, random_state=s) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.items, same.items)
    np.testing.assert_array_equal(one.ratings, same.ratings)
    assert not np.array_equal(one.items, other.items)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"n_users": 0}, "n_users"),
        ({"ratings_each": 10}, "ratings_each"),
        ({"kind": "rank"}, "kind"),
    ],
)
def test_what_cannot_be_made_is_rejected(wrong, named):
    with pytest.raises(ValueError, match=f"^{named} must be"):
        make_rank_one_ratings(**{"n_users": 5, "n_items": 9, "ratings_each": 3} | wrong)
