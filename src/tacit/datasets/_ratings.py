"""Ratings of items by users: loaders of public sets, and ratings of rank one."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit._random import as_generator
from tacit._validate import at_least, at_most, one_of
from tacit.datasets._real import _read_columns, _require
from tacit.datasets._tables import JESTER_JOKES, JESTER_RATING

# stars are integers
STARS: Final = (1.0, 5.0)
# users whose items are drawn together
BLOCK_USERS: Final = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class RatingData:
    """Ratings as three columns, with what is public about them.

    Parameters
    ----------
    users
        Who rated: numbers from 0.
    items
        What was rated: numbers from 0 to below ``n_items``.
    ratings
        How.
    n_items
        Number of items.
    rating_range
        Lowest and highest rating there can be.
    description
        What the ratings are, in words.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    n_items: int
    rating_range: tuple[float, float]
    description: str

    def __repr__(self) -> str:
        return f"RatingData({self.description!r}, n_items={self.n_items})"


def load_jester_ratings() -> RatingData:
    """Jester: what people think of a hundred jokes."""
    words = "Jester: ratings of 100 jokes"
    return _numbered("jester_1", JESTER_JOKES, JESTER_RATING, words)


def load_movielens_100k() -> RatingData:
    """MovieLens 100K: stars that people gave to movies."""
    words = "MovieLens 100K: stars given to 1,682 movies"
    return _numbered("movielens_100k", 1_682, STARS, words)


def load_movielens_1m() -> RatingData:
    """MovieLens 1M, without the movies that nobody rated."""
    words = "MovieLens 1M: stars given to 3,706 movies"
    return _numbered("movielens_1m", 3_706, STARS, words)


def load_netflix_sample() -> RatingData:
    """Sample of the Netflix Prize: people and movies are numbers."""
    words = "Netflix Prize, a sample: stars given to 1,336 movies"
    return _numbered("netflix_sample", 1_336, STARS, words)


def make_rank_one_ratings(
    n_users: int,
    n_items: int,
    ratings_each: int,
    kind: str = "sign",
    random_state: Any = 0,
) -> RatingData:
    """Make ratings that are a number of the user times a number of the item.

    Parameters
    ----------
    n_users, n_items
        How many of each.
    ratings_each
        Ratings of each user, of as many items drawn at random.
    kind
        ``"sign"`` for numbers that are -1 or 1, ``"uniform"`` for numbers between,
        scaled so that the largest user and the largest item have 1.
    random_state
        Seed or generator. The same seed gives the same ratings.

    Returns
    -------
    RatingData
        Ratings from -1 to 1, user by user.

    Examples
    --------
    >>> from tacit.datasets import make_rank_one_ratings
    >>> data = make_rank_one_ratings(1000, 50, 10)
    >>> len(data.ratings), data.n_items, data.rating_range
    (10000, 50, (-1.0, 1.0))
    """
    at_least(1, n_users=n_users, n_items=n_items, ratings_each=ratings_each)
    at_most(n_items, ratings_each=ratings_each)
    one_of(("sign", "uniform"), kind=kind)
    rng = as_generator(random_state)
    sides = [
        rng.choice([-1.0, 1.0], n) if kind == "sign" else rng.uniform(-1.0, 1.0, n)
        for n in (n_users, n_items)
    ]
    of_user, of_item = (side / np.abs(side).max() for side in sides)
    items = np.empty((n_users, ratings_each), dtype=np.int32)
    for first in range(0, n_users, BLOCK_USERS):
        n = min(BLOCK_USERS, n_users - first)
        drawn = np.argsort(rng.random((n, n_items), dtype=np.float32), axis=1)
        items[first : first + n] = np.sort(drawn[:, :ratings_each], axis=1)
    ratings = (of_user[:, None] * of_item[items]).astype(np.float32)
    return RatingData(
        np.repeat(np.arange(n_users, dtype=np.int32), ratings_each),
        items.ravel(),
        ratings.ravel(),
        int(n_items),
        (-1.0, 1.0),
        f"Ratings of rank one, {kind}",
    )


def _numbered(
    name: str, n_items: int, rating_range: tuple[float, float], words: str
) -> RatingData:
    """Return the ratings of a published file, which counts from one."""
    columns = _read_columns(_require(f"{name}/{name}.parquet"))
    return RatingData(
        columns["user"].astype(np.int32) - 1,
        columns["item"].astype(np.int32) - 1,
        np.clip(columns["target"], *rating_range).astype(np.float32),
        n_items,
        rating_range,
        words,
    )
