"""Rows, groups and linear models that tests of fairness share."""

from dataclasses import dataclass, field

import numpy as np

from tacit._random import as_generator


@dataclass
class Linear:
    """A linear classifier without a fit."""

    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray = field(default_factory=lambda: np.array([0, 1]))

    def predict(self, X):
        scores = X @ self.coef_.T + self.intercept_
        codes = (scores[:, 0] > 0) * 1 if scores.shape[1] == 1 else scores.argmax(1)
        return self.classes_[codes]


def people(n=600, p=5, n_labels=2, seed=0):
    """Rows whose groups differ in size, in labels and in features."""
    rng = as_generator(seed)
    s = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, p)) + 0.3 * s[:, None]
    w = rng.normal(size=(p, n_labels))
    y = (X @ w + 2 * rng.normal(size=(n, n_labels))).argmax(axis=1)
    return X, y, s


def models(p=5, n_labels=2, distance=0.3, seed=0, intercept=True):
    """Two linear classifiers whose weights are this far apart, intercepts included."""
    rng = as_generator(seed)
    k = 1 if n_labels == 2 else n_labels
    first = rng.normal(size=(k, p + 1))
    step = rng.normal(size=(k, p + 1))
    if not intercept:
        first[:, -1] = step[:, -1] = 0.0
    second = first + distance * step / np.linalg.norm(step)
    labels = np.arange(n_labels)
    return tuple(Linear(W[:, :-1], W[:, -1], labels) for W in (first, second))
