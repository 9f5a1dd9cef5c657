"""Synthetic sparse texts that the default for sparse rows is fitted on.

Words follow Zipf's law, texts have different lengths, and a few words are more frequent
in one of two classes. Rows are normalized counts, of Euclidean norm one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tacit._random import as_generator

TEST_ROWS = 3000


@dataclass(frozen=True)
class Texts:
    """Rows to fit on and to score on, and the accuracy of the more frequent label."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def majority(self) -> float:
        positive = float(self.y_test.mean())
        return max(positive, 1 - positive)


def texts(
    seed: int,
    n_rows: int,
    n_words: int,
    *,
    length: float = 80,
    informative: int = 200,
    ratio: float = 8.0,
    top: int = 1000,
    spread: float = 0.0,
    positives: float = 0.4,
    damped: bool = True,
) -> Texts:
    """Draw texts whose words depend on the class.

    ``informative`` of the ``top`` words are ``ratio`` times as frequent in one class,
    and ``spread`` is the standard deviation of the log ratio of all words.
    ``damped`` weights words by rarity and counts by their logarithm, as search engines
    do.
    """
    rng = as_generator(seed)
    frequency = 1 / (np.arange(n_words) + 2.7)
    frequency /= frequency.sum()
    # a few frequent words that mean nothing, then those that are worth a choice
    known = 20 + rng.choice(min(n_words - 20, top), informative, replace=False)
    side = rng.permutation(np.arange(informative) % 2)
    both = np.tile(frequency, (2, 1))
    # a little information in every word, as the style and subjects of texts have it
    both[1] *= np.exp(spread * rng.standard_normal(n_words))
    both[side, known] *= ratio ** rng.lognormal(0, 0.5, informative)
    both /= both.sum(axis=1, keepdims=True)
    total = n_rows + TEST_ROWS
    y = (rng.random(total) < positives).astype(int)
    lengths = np.maximum(rng.lognormal(np.log(length), 0.8, total).astype(int), 3)
    words = np.empty(lengths.sum(), dtype=np.int64)
    rows = np.repeat(np.arange(total), lengths)
    for label in (0, 1):
        mine = y[rows] == label
        ends = np.cumsum(both[label])
        words[mine] = np.searchsorted(ends, rng.random(mine.sum()) * ends[-1])
    counts = sparse.csr_matrix(
        (np.ones(len(words)), (rows, words)), shape=(total, n_words)
    )
    counts.sum_duplicates()
    if damped:
        counts.data = 1 + np.log(counts.data)
        seen = np.bincount(counts.indices, minlength=n_words)
        counts.data *= np.log((1 + total) / (1 + seen[counts.indices])) + 1
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    X = sparse.csr_matrix(sparse.diags(1 / norms) @ counts)
    return Texts(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
