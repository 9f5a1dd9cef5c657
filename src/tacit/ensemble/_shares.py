"""A regressor of vote shares, as a classifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

__all__ = ["VoteClassifier"]


class VoteClassifier(ClassifierMixin, BaseEstimator):
    """Predict the class to which a regressor gives the largest share of the votes.

    Parameters
    ----------
    regressor
        A regressor that takes several targets; it is cloned.
    classes
        Labels, in the order of the columns of the shares.

    Attributes
    ----------
    classes_
        Labels.
    regressor_
        The fitted regressor.
    """

    def __init__(self, regressor, classes):
        self.regressor = regressor
        self.classes = classes

    def fit(self, X, y, **options):
        """Fit the regressor.

        Parameters
        ----------
        X
            Public rows.
        y
            Shares of the votes, one column a class.
        options
            For the fit of the regressor.
        """
        self.regressor_ = clone(self.regressor).fit(X, y, **options)
        self.classes_ = np.asarray(self.classes)
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
        return self.classes_[self._shares(X).argmax(axis=1)]

    def predict_proba(self, X):
        """Return the shares, those below zero as zero, so that they sum to one.

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
        return np.asarray(self.regressor_.predict(X))

    def __sklearn_tags__(self):
        """Tell scikit-learn that rows may be what the regressor takes."""
        tags = super().__sklearn_tags__()
        if hasattr(self.regressor, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.regressor).input_tags
        return tags
