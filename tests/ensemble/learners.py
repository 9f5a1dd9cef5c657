"""Learners that misbehave; in a module, so that workers can read them."""

import os
import sys
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

SECRET = "row 17 has income 31415"


class Majority(ClassifierMixin, BaseEstimator):
    """Says the label that most of its rows have."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.label_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.label_)


class Misbehaving(Majority):
    """Does something in `fit`, or in `predict`, that a learner should not."""

    def __init__(self, how="raise", when="fit"):
        self.how = how
        self.when = when

    def fit(self, X, y):
        if self.when == "fit":
            self._misbehave()
        return super().fit(X, y)

    def predict(self, X):
        said = super().predict(X)
        if self.when == "predict":
            said = self._misbehave(said)
        return said

    def _misbehave(self, said=None):
        return getattr(self, f"_{self.how}")(said)

    def _raise(self, said):
        raise ValueError(SECRET)

    def _exit(self, said):
        sys.exit(SECRET)

    def _interrupt(self, said):
        raise KeyboardInterrupt

    def _talk(self, said):
        print(SECRET)  # noqa: T201
        print(SECRET, file=sys.stderr)  # noqa: T201
        warnings.warn(SECRET, stacklevel=1)
        np.float64(1.0) / np.zeros(3)
        return said

    def _shell(self, said):
        os.system(f"echo {SECRET}; echo {SECRET} >&2")
        return said

    def _nan(self, said):
        return np.full(len(said), np.nan)

    def _unknown(self, said):
        return np.full(len(said), "nobody")

    def _short(self, said):
        return said[:-1]

    def _wide(self, said):
        return np.stack([said, said], axis=1)

    def _nothing(self, said):
        return None

    def _unpicklable(self, said):
        self.held_ = (step for step in "abc")

    def _crash(self, said):
        os._exit(3)


class Scribbler(Majority):
    """Writes into the rows that it predicts, and reads what it finds there."""

    def predict(self, X):
        said = np.where(X[:, 0] == 0, 1, 0)
        X[:, 0] = 1.0
        return said


class Drawer(Majority):
    """Draws from the generators that all code shares, as often as it has rows."""

    def fit(self, X, y):
        self.drawn_ = np.random.rand(len(y))[-1]  # noqa: NPY002
        return super().fit(X, y)

    def predict(self, X):
        return np.full(X.shape[0], int(self.drawn_ * 1000) % 2)


class Seeded(Majority):
    """Says what it was seeded with."""

    def __init__(self, random_state=None, inner=None):
        self.random_state = random_state
        self.inner = inner

    def predict(self, X):
        seeds = [self.random_state, getattr(self.inner, "random_state", 0)]
        return np.resize(np.array(seeds, dtype=float), X.shape[0])


class Looker(Majority):
    """Says how many rows it was given, and how wide strings and categories are."""

    def fit(self, X, y):
        self.seen_ = len(y), np.asarray(y).dtype.itemsize
        if hasattr(X, "iloc"):
            kinds = X["kind"].cat.categories
            self.seen_ = (*self.seen_, len(kinds), max(X.index, default=-1))
        return super().fit(X, y)
