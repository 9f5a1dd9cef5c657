"""Private item means: exact sums, how far one user moves them, what is made of them."""

from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.recommend.doubles import some_ratings
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.privacy import GaussianNoise, Neighbors
from tacit.recommend.ratings.table import RatingFacts, Ratings
from tacit.recommend.solvers.item_means import LEVEL_WEIGHT, ItemMeans, shrunk

LOW, HIGH = 1.0, 5.0


def facts(n_items, n_users=100):
    return RatingFacts(n_items, LOW, HIGH, n_users, n_items)


def part(means, items, values):
    """Return one user's part of all sums, in units."""
    row = Ratings.of_row(items, values, means.facts.n_items)
    return means._total(row) / means.mechanism.units


def rows_of(n_items):
    """Yield rows of all lengths, of ratings at the ends and between them."""
    for n in range(n_items + 1):
        for first in range(n_items - n + 1):
            for values in product((LOW, 3.0, HIGH), repeat=n):
                yield range(first, first + n), values


def farthest(means, n_items):
    """Return how far apart the parts of two users can be, by trying all pairs."""
    parts = np.array([part(means, *row).ravel() for row in rows_of(n_items)])
    if means.neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return float(np.linalg.norm(parts, axis=1).max())
    squares = (parts**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * parts @ parts.T
    return sqrt(float(apart.max()))


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_no_two_users_are_further_apart_than_the_sensitivity(neighbors):
    means = ItemMeans(facts(4), 1.5, neighbors)
    found = farthest(means, 4)
    assert found <= means.sensitivity * (1 + 1e-12)
    # and some come close, so that no noise is wasted
    assert max(found, far_apart(means)) > 0.94 * means.sensitivity


def far_apart(means):
    """Return how far apart two users are who disagree about one of many items."""
    wide = type(means)(facts(29), means.multiplier, means.neighbors)
    one = part(wide, range(15), [HIGH, *[LOW] * 14])
    other = part(wide, [0, *range(15, 29)], [LOW, *[HIGH] * 14])
    if means.neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return float(np.linalg.norm(one))
    return float(np.linalg.norm(one - other))


def test_larger_sums_or_a_heavier_level_would_be_seen():
    means = ItemMeans(facts(4), 1.5, "replace_one")

    class Loud(ItemMeans):
        def _total(self, ratings):
            total = super()._total(ratings)
            total[1] = total[1] * 1.1
            return total

    class Leveled(ItemMeans):
        def _total(self, ratings):
            total = super()._total(ratings)
            total[:, -1] = total[:, -1] * (0.8 / LEVEL_WEIGHT)
            return total

    for wrong in (Loud, Leveled):
        declared = wrong(means.facts, 1.5, means.neighbors)
        assert max(farthest(declared, 4), far_apart(declared)) > means.sensitivity


def test_random_pairs_of_users_stay_within_the_sensitivity(seed):
    for neighbors in Neighbors:
        means = ItemMeans(facts(50), 3.0, neighbors)
        ratings = some_ratings(300, 50, seed)
        parts = [
            means._total(Ratings.of_row(*ratings.row(i), 50)).ravel()
            for i in range(300)
        ]
        most = means.sensitivity * means.mechanism.units
        for one, other in zip(parts[::2], parts[1::2], strict=True):
            if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
                other = 0 * one
            square = sum(int(x) ** 2 for x in one - other)
            assert square <= most**2


def test_counts_and_sums_of_a_user_have_norm_one_at_most(seed):
    means = ItemMeans(facts(50), 3.0, "replace_one")
    ratings = some_ratings(300, 50, seed)
    longest = 0.0
    for i in range(300):
        counts, sums = means._total(Ratings.of_row(*ratings.row(i), 50))[:, :-1]
        assert (counts >= 0).all()
        for parts in (counts, sums):
            norm = np.linalg.norm(parts / means.mechanism.units)
            assert norm <= 1
            longest = max(longest, norm)
    assert longest > 0.999


def test_a_clipped_row_keeps_the_mean_of_an_item():
    # one user is clipped, and her rating of the item is as far from her mean
    means = ItemMeans(facts(4), 1.0, "replace_one")
    for row in ([HIGH, LOW, HIGH, LOW], [3.4, 2.6, 3.4, 2.6]):
        counts, sums = part(means, range(4), row)
        off = sums[:4] / counts[:4] * means.bound
        np.testing.assert_allclose(off, np.array(row) - 3.0, rtol=1e-6)


def test_two_releases_are_averaged_by_their_noise(seed):
    facts_ = facts(2000)
    nothing, rng = Ratings.of_row([], [], 2000), as_generator(seed)
    first = ItemMeans(facts_, 1.0).run(nothing, rng)
    both = ItemMeans(facts_, 2.0).run(nothing, rng, first)
    assert both.scale == pytest.approx(first.scale / sqrt(1.25), rel=1e-6)
    assert both.sums.std() == pytest.approx(both.sum_scale, rel=0.1)
    # control: the plain mean of both has more noise than is declared
    other = ItemMeans(facts_, 2.0).run(nothing, rng)
    assert ((first.sums + other.sums) / 2).std() > 1.15 * both.sum_scale


def test_sums_are_exact_in_any_order_and_in_blocks_of_any_size(seed):
    means = ItemMeans(facts(40), 2.0, "replace_one")
    ratings = some_ratings(101, 40, seed)
    whole = means._total(ratings)
    for users in (1, 7, 64):
        blocks = list(ratings.blocks(users))
        assert (sum(map(means._total, reversed(blocks))) == whole).all()


def test_noise_has_the_planned_distribution(seed):
    means = ItemMeans(facts(4000), 2.0, "replace_one")
    nothing = Ratings.of_row([], [], 4000)
    found = means.run(nothing, as_generator(seed))
    scale = 2.0 * means.sensitivity * 1.0  # multiplier, sensitivity and the bound
    assert found.sum_scale == pytest.approx(scale, rel=1e-6)
    assert_follows(found.sums, stats.norm(scale=scale).cdf)
    assert_detects(found.sums, stats.norm(scale=1.25 * scale).cdf)
    assert means.event == GaussianNoise(2.0)


def test_a_user_without_ratings_adds_nothing():
    for neighbors in Neighbors:
        means = ItemMeans(facts(5), 2.0, neighbors)
        assert not means._total(Ratings.of_row([], [], 5)).any()


def test_with_little_noise_means_are_those_of_the_ratings(seed):
    rng = as_generator(seed)
    n_users, n_items = 4000, 12
    offsets = rng.normal(0, 0.5, n_items)
    offsets -= offsets.mean()
    values = 3.4 + offsets + rng.normal(0, 0.2, (n_users, n_items))
    ratings = Ratings(
        np.arange(n_users + 1) * n_items,
        np.tile(np.arange(n_items, dtype=np.int32), n_users),
        np.clip(values, LOW, HIGH).astype(np.float32).ravel(),
        n_items,
    )
    for neighbors in Neighbors:
        found = ItemMeans(facts(n_items), 0.01, neighbors).run(ratings, rng)
        np.testing.assert_allclose(found.offsets, offsets, atol=0.03)
        assert found.level == pytest.approx(3.4, abs=0.03)
        assert found.n_users == pytest.approx(n_users, rel=0.01)
        np.testing.assert_allclose(found.counts, n_users / sqrt(n_items), rtol=0.01)


def test_shrunk_offsets_are_better_than_none_and_than_plain_ones(seed):
    rng = as_generator(seed)
    counts = rng.exponential(100.0, 500)
    truth = rng.normal(0, 0.2, 500)
    scale = 30.0
    sums = counts * truth + scale * rng.standard_normal(500)
    found = shrunk(counts + scale * rng.standard_normal(500), sums, scale, scale, 0.01)
    error = np.mean((found - truth) ** 2)
    plain = np.mean((np.clip(sums / counts, -1, 1) - truth) ** 2)
    assert error < 0.85 * np.mean(truth**2)
    assert error < 0.5 * plain


def test_offsets_follow_a_trend_of_popular_items(seed):
    rng = as_generator(seed)
    counts = rng.lognormal(3.0, 1.0, 400)
    truth = 0.1 * (np.log(counts) - 3) + rng.normal(0, 0.05, 400)
    sums = counts * truth + 10 * rng.standard_normal(400)
    found = shrunk(counts, sums, 1.0, 10.0, 0.01)
    assert np.corrcoef(found, truth)[0, 1] > 0.6
    shuffled = rng.permutation(counts)  # control: counts without information
    other = shrunk(shuffled, sums, 1.0, 10.0, 0.01)
    assert np.corrcoef(other, truth)[0, 1] < 0.5


@pytest.mark.parametrize("n_items", [1, 2, 7])
@pytest.mark.parametrize("multiplier", [1e-3, 1.0, 1e5])
def test_any_noise_gives_finite_means_without_a_warning(n_items, multiplier, seed):
    for neighbors in Neighbors:
        means = ItemMeans(facts(n_items), multiplier, neighbors)
        for ratings in (
            Ratings.of_row([], [], n_items),
            Ratings.of_row([0], [5.0], n_items),
            some_ratings(30, n_items, seed),
        ):
            found = means.run(ratings, as_generator(seed))
            assert np.isfinite(found.offsets).all()
            assert (np.abs(found.offsets) <= 2).all()
            assert LOW <= found.level <= HIGH


def test_ratings_of_other_items_are_rejected():
    means = ItemMeans(facts(3), 1.0, "replace_one")
    with pytest.raises(ValueError, match="3 items"):
        means.run(Ratings.of_row([3], [2.0], 4), as_generator(0))


def test_ratings_beyond_the_range_weigh_no_more_than_its_ends():
    means = ItemMeans(facts(4), 1.0, "replace_one")
    far, ends = [99.0, 99.0, -99.0], [HIGH, HIGH, LOW]
    assert (part(means, [0, 1, 2], far) == part(means, [0, 1, 2], ends)).all()


def test_noise_beyond_integers_is_rejected_in_the_plan():
    with pytest.raises(PlanError, match="multiplier"):
        ItemMeans(facts(3), 1e9, "replace_one")
