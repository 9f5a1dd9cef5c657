"""Rows that one column divides into two classes."""

import numpy as np

from tacit._random import as_generator


def rows(n=300, p=3, seed=0):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, p)) / np.sqrt(p)
    return X, (X[:, 0] + 0.1 * rng.standard_normal(n) > 0).astype(int)
