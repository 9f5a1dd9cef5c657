"""Ratings and searches for the tests of spectral methods."""

import numpy as np

from tacit._random import as_generator
from tacit.mechanisms import DiscreteGaussian
from tacit.recommend.ratings.table import Ratings
from tacit.recommend.solvers.moments import NoisyMoments

# Of which noise is as small as integers allow
HUGE = 1e7


def silence(monkeypatch):
    """Take the noise away altogether, which no budget does."""
    monkeypatch.setattr(
        DiscreteGaussian, "_noise", lambda self, shape, rng: np.zeros(shape, np.int64)
    )
    monkeypatch.setattr(NoisyMoments, "scale", 0.0)


def full(matrix):
    """Return ratings of a matrix of which everything is known."""
    n_users, n_items = matrix.shape
    return Ratings(
        np.arange(n_users + 1, dtype=np.int64) * n_items,
        np.tile(np.arange(n_items, dtype=np.int32), n_users),
        matrix.ravel().astype(np.float32),
        n_items,
    )


def low_rank(n_users, n_items, rank, seed):
    """Return a matrix of low rank within (-1, 1), whose rows sum to zero."""
    rng = as_generator(seed)
    right = rng.normal(size=(rank, n_items))
    right -= right.mean(axis=1, keepdims=True)
    matrix = rng.normal(size=(n_users, rank)) @ right
    return matrix / (1.01 * np.abs(matrix).max())


def signs(n_users, n_items, seed):
    """Return a matrix of rank one of plus and minus one, of which rows sum to zero."""
    left = as_generator(seed).choice([-1.0, 1.0], n_users)
    return np.outer(left, np.resize([1.0, -1.0], n_items))


def rows_to_try(n_items, low, high, seed, n=60):
    """Return rows of users that may move sums far: all of one item, ends, random."""
    rng = as_generator(seed)
    rows = [([], []), ([0], [high]), (range(n_items), [low] * n_items)]
    alternating = [low, high] * n_items
    rows += [(range(n_items), alternating[:n_items])]
    rows += [(range(n_items), alternating[1 : n_items + 1])]
    for _ in range(n):
        length = int(rng.integers(1, n_items + 1))
        items = np.sort(rng.permutation(n_items)[:length])
        rows.append((items, rng.choice([low, (low + high) / 2, high], length)))
    return [Ratings.of_row(items, values, n_items) for items, values in rows]


def farthest(parts, replaced):
    """Return how far apart two of the parts are, or how long the longest is."""
    parts = np.array([np.asarray(part, dtype=np.float64) for part in parts])
    if not replaced:
        return float(np.linalg.norm(parts, axis=1).max())
    return max(float(np.linalg.norm(parts - part, axis=1).max()) for part in parts)
