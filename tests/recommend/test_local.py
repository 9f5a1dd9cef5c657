"""Levels of users, from their own ratings only."""

import numpy as np
from tests.recommend.doubles import some_ratings

from tacit.recommend.items.side import centered
from tacit.recommend.ratings.table import RatingFacts, Ratings

FACTS = RatingFacts(n_items=30, low=1.0, high=5.0, n_users=100, max_ratings=80)


def test_a_level_is_the_mean_shrunk_to_the_prior():
    ratings = Ratings.of_row([3, 8, 9], [1.0, 2.0, 5.0], 30)
    (_, _, rest), levels = centered(ratings, 3.5, 2.0)
    level = (2 * 3.5 + 8) / 5
    np.testing.assert_allclose(levels, [level], rtol=1e-14)
    np.testing.assert_allclose(rest, np.array([1, 2, 5]) - level, rtol=1e-14)


def test_offsets_are_taken_off_first():
    ratings = Ratings.of_row([3, 8], [2.0, 5.0], 30)
    offsets = np.linspace(-1, 1, 30)
    (_, _, rest), levels = centered(ratings, FACTS.middle, 1.0, offsets)
    values = np.array([2.0, 5.0]) - offsets[[3, 8]]
    np.testing.assert_allclose(levels, [(3.0 + values.sum()) / 3], rtol=1e-14)
    np.testing.assert_allclose(rest, values - levels, rtol=1e-14)


def test_a_user_without_ratings_has_the_prior_level():
    nothing = Ratings.of_row([], [], 30)
    for count in (0.0, 3.0):
        (_, _, rest), levels = centered(nothing, 3.7, count)
        assert levels.tolist() == [3.7]
        assert rest.size == 0


def test_no_bit_of_a_level_depends_on_other_users(seed):
    ratings = some_ratings(200, 30, seed)
    (_, _, rest), levels = centered(ratings, 3.6, 3.0)
    for i in range(ratings.n_users):
        (_, _, own), single = centered(Ratings.of_row(*ratings.row(i), 30), 3.6)
        assert single[0] == levels[i]
        assert (own == rest[ratings.indptr[i] : ratings.indptr[i + 1]]).all()


def test_ratings_themselves_stay_as_they_are(seed):
    ratings = some_ratings(20, 30, seed)
    before = ratings.values.copy()
    centered(ratings, FACTS.middle)
    assert (ratings.values == before).all()
