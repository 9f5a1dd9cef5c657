"""Rows in two clouds, learners that misbehave, and what a labeler shows."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB

from tacit._random import as_generator
from tacit.ensemble import PrivateLabeler


def clouds(seed, n_rows=300, n_questions=40):
    """Return private rows and labels, and public rows and labels."""
    rng = as_generator(seed)
    y = rng.integers(0, 2, n_rows + n_questions)
    X = rng.normal(size=(len(y), 2)) + np.where(y, 2.0, -2.0)[:, None]
    return X[n_questions:], y[n_questions:], X[:n_questions], y[:n_questions]


def labeler(estimator=None, n_teachers=15, **parameters):
    given = {
        "epsilon": 40.0,
        "delta": 1e-5,
        "classes": [0, 1],
        "n_queries": 40,
        "random_state": 3,
        **parameters,
    }
    return PrivateLabeler(
        GaussianNB() if estimator is None else estimator, n_teachers, **given
    )


class Odd(ClassifierMixin, BaseEstimator):
    """A learner that misbehaves in a way of its own, and else votes for one."""

    def __init__(self, how="nothing"):
        self.how = how

    def fit(self, X, y):
        if self.how == "raises":
            raise RuntimeError(f"first row {X[0]}")
        if self.how == "warns":
            warnings.warn(f"first row {X[0]}", stacklevel=2)
            np.log(np.zeros(1))
        if self.how == "prints":
            print(X[0])  # noqa: T201
        self.is_fitted_ = True
        return self

    def predict(self, X):
        if self.how == "fails":
            raise RuntimeError("no")
        if self.how == "nan":
            return np.full(len(X), np.nan)
        if self.how == "unknown":
            return np.full(len(X), "stranger")
        if self.how == "short":
            return np.ones(1)
        return np.ones(len(X), dtype=int)


def shown(found):
    """Return all of some labels, as plain data that is equal for equal bits."""
    votes = None if found.votes is None else found.votes.tobytes()
    return found.values.tobytes(), found.answered.tolist(), votes, found.n_queried
