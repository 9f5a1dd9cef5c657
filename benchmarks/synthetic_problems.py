"""Random classification problems that the default rules are fitted on.

Rows, features, classes, spectrum, signal and balance all vary; no real row is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from tacit._random import as_generator
from tacit.solvers._base import INTERCEPT_FRACTION

TEST_ROWS = 4000


@dataclass(frozen=True)
class Drawn:
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    P_test: np.ndarray  # true class probabilities

    def excess(self, W):
        """Return how much more often than the best classifier this one errs."""
        columns = np.column_stack(
            [self.X_test, np.full(len(self.X_test), INTERCEPT_FRACTION)]
        )
        Z = columns @ W
        chosen = (Z[:, 0] > 0).astype(int) if Z.shape[1] == 1 else Z.argmax(axis=1)
        got = self.P_test[np.arange(len(chosen)), chosen]
        return 100 * float(np.mean(self.P_test.max(axis=1) - got))


def labeled(X, W, n, rng, signal=(1, 6), frequent=0.0):
    """Draw labels from a softmax of centered features; rows within norm one.

    The margin of the first class is larger by ``frequent``.
    """
    Z = (X - X.mean(axis=0)) @ W
    Z *= np.exp(rng.uniform(*np.log(signal))) / Z.std()
    Z += rng.uniform(-1, 1, size=W.shape[1])  # unequal classes
    Z[:, 0] += frequent
    P = softmax(Z, axis=1)
    y = (P.cumsum(axis=1) < rng.random((len(P), 1))).sum(axis=1)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    return Drawn(X[:n], y[:n], X[n:], P[n:])


def _rows(rng, most):
    return int(np.exp(rng.uniform(np.log(500), np.log(most))))


def mixed(seed, n_classes, most=40_000):
    """Rows of norm one whose spectrum falls off, more or less off center."""
    rng = as_generator(seed)
    n = _rows(rng, most)
    p = int(np.exp(rng.uniform(np.log(5), np.log(200))))
    spectrum = np.arange(1, p + 1) ** -rng.uniform(0, 1.5)
    X = rng.standard_normal((n + TEST_ROWS, p)) * spectrum
    X += rng.uniform(0, 1) * np.abs(rng.standard_normal(p)) * spectrum
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = rng.standard_normal((p, n_classes)) * rng.uniform(0.3, 1, size=(p, 1))
    return labeled(X, W, n, rng)


def table(seed, n_classes, most=40_000):
    """Correlated columns in [0, 1], far from centered."""
    rng = as_generator(seed)
    n, p = _rows(rng, most), int(rng.integers(8, 80))
    factors = rng.standard_normal((n + TEST_ROWS, 3))
    loadings = rng.standard_normal((3, p))
    X = factors @ loadings / np.sqrt(3) + rng.standard_normal((n + TEST_ROWS, p))
    X = np.clip(0.15 * X + rng.uniform(0.1, 0.9, p), 0, 1)
    W = loadings.T @ rng.standard_normal((3, n_classes))
    return labeled(X, W + 0.5 * rng.standard_normal(W.shape), n, rng)


def survey(seed, n_classes, most=40_000):
    """Numbers in [0, 1] and indicators of categories, as a survey is encoded."""
    rng = as_generator(seed)
    n = _rows(rng, most)
    factors = rng.standard_normal((n + TEST_ROWS, 3))
    columns = []
    for _ in range(int(rng.integers(3, 12))):
        if rng.random() < 0.5:
            number = factors @ rng.standard_normal(3) / np.sqrt(3)
            number += rng.standard_normal(len(number))
            number = np.clip(0.15 * number + rng.uniform(0.1, 0.9), 0, 1)
            columns.append(number[:, None])
        else:
            m = int(rng.integers(2, 20))
            odds = 1.2 * rng.standard_normal(m)
            odds = odds + 0.5 * factors @ rng.standard_normal((3, m))
            chosen = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
            columns.append(np.eye(m)[chosen])
    X = np.concatenate(columns, axis=1)
    return labeled(X, rng.standard_normal((X.shape[1], n_classes)), n, rng)


def rare(seed, n_classes, most=120_000):
    """Skewed numbers, indicators and rare outcomes: the best weights are long."""
    rng = as_generator(seed)
    n, p = _rows(rng, most), int(rng.integers(8, 40))
    factors = rng.standard_normal((n + TEST_ROWS, 3))
    latent = factors @ rng.standard_normal((3, p)) / np.sqrt(3)
    latent += rng.standard_normal(latent.shape)
    X = np.clip(np.exp(0.8 * latent) / rng.uniform(10, 60, p), 0, 1)
    chosen = np.arange(p) % 3 == 0
    X[:, chosen] = (latent > rng.uniform(0, 1.5, p))[:, chosen]
    X /= np.linalg.norm(X, axis=1).max()
    W = rng.standard_normal((p, n_classes)) / X.std(axis=0)[:, None]
    return labeled(X, W, n, rng, signal=(2, 4), frequent=rng.uniform(2, 6))


FAMILIES = {"mixed": mixed, "table": table, "survey": survey, "rare": rare}
