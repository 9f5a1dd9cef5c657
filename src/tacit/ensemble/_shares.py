"""A regressor of vote shares, as a classifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

__all__ = ["VoteClassifier", "offsets"]

# Turns by which offsets are found; each is one look at the shares of the public rows
TURNS = 100


class VoteClassifier(ClassifierMixin, BaseEstimator):
    """Predict the class to which a regressor gives the largest share of the votes.

    Parameters
    ----------
    regressor
        A regressor that takes several targets; it is cloned.
    classes
        Labels, in the order of the columns of the shares.
    balance
        How much of the offsets is added, from 0 to 1.

    Attributes
    ----------
    classes_
        Labels.
    offsets_
        What is added to each share before the largest is taken.
    regressor_
        The fitted regressor.

    Notes
    -----
    **Guarantee.** A function of public rows and released votes, which costs nothing.

    A regressor that smooths much says nearly the same of all rows, and the class with
    most votes in all would win everywhere. Offsets mend this: with them each class is
    predicted as often as it is voted for on average, as in the class mass normalization
    of Zhu, Ghahramani and Lafferty (2003 [1]_). That average is noisy too; as much of
    it as noise explains is left out (James and Stein 1961 [2]_). Where teachers
    disagree much, a rare class has more votes than it wins; a lower ``balance`` is
    better then.

    References
    ----------
    .. [1] X. Zhu, Z. Ghahramani, J. Lafferty, "Semi-supervised learning using Gaussian
       fields and harmonic functions", ICML 2003.
    .. [2] W. James, C. Stein, "Estimation with quadratic loss", Berkeley Symposium
       1961.
    """

    def __init__(self, regressor, classes, balance=0.5):
        self.regressor = regressor
        self.classes = classes
        self.balance = balance

    def fit(self, X, y, sample_weight=None):
        """Fit the regressor.

        Parameters
        ----------
        X
            Public rows.
        y
            Shares of the votes, one column a class.
        sample_weight
            How much a row counts, for regressors that can tell; None for all alike.
        """
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_ = clone(self.regressor).fit(X, y, **options)
        self.classes_ = np.asarray(self.classes)
        self.offsets_ = np.zeros(len(self.classes_))
        if self.balance:
            smooth = self._shares(X)
            self.offsets_ = self.balance * offsets(smooth, np.asarray(y), sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.regressor_, name):
                setattr(self, name, getattr(self.regressor_, name))
        return self

    def predict(self, X):
        """Return the label with the largest share.

        Parameters
        ----------
        X
            Any rows.
        """
        shares = self._shares(X)  # first, as it refuses what is not fitted
        return self.classes_[shares.argmax(axis=1)]

    def predict_proba(self, X):
        """Return shares with their offsets, none below zero, so that they sum to one.

        Parameters
        ----------
        X
            Any rows.
        """
        shares = np.maximum(self._shares(X), 0.0)
        totals = shares.sum(axis=1, keepdims=True)
        even = np.full_like(shares, 1 / shares.shape[1])
        return np.where(totals > 0, shares / np.where(totals > 0, totals, 1.0), even)

    def _shares(self, X):
        check_is_fitted(self)
        return np.asarray(self.regressor_.predict(X)) + self.offsets_

    def __sklearn_tags__(self):
        """Tell scikit-learn that rows may be what the regressor takes."""
        tags = super().__sklearn_tags__()
        if hasattr(self.regressor, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.regressor).input_tags
        return tags


def offsets(smooth, shares, weights):
    """Return what lets each class win as often as it is voted for on average.

    Parameters
    ----------
    smooth
        Shares that the regressor predicts.
    shares
        Noisy ones that it learned.
    weights
        How much a row counts, or None.
    """
    n_rows, n_classes = smooth.shape
    weights = np.ones(n_rows) if weights is None else np.asarray(weights)
    weights = weights / weights.sum()
    noise = (weights**2) @ ((shares - smooth) ** 2).sum(axis=1)
    wanted = np.maximum(weights @ shares, 0.0)
    now = _won(smooth)
    if not wanted.any():
        return np.zeros(n_classes)
    away = wanted / wanted.sum() - now
    apart = (away**2).sum()
    goal = now + away * max(0.0, 1 - noise / apart if apart else 0.0)
    added, step = np.zeros(n_classes), smooth.std()
    for turn in range(TURNS):
        added += step * (goal - _won(smooth + added)) / (1 + turn / 10)
    return added


def _won(shares):
    """Return how often each class has the largest share."""
    return np.bincount(shares.argmax(axis=1), minlength=shares.shape[1]) / len(shares)
