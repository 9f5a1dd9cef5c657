"""Classifiers from regressors of vote fractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

__all__ = ["VoteClassifier", "offsets"]

# Iterations for the offsets; each is one pass over the predicted vote fractions
ITERATIONS = 100

Array = NDArray[np.float64]


class VoteClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by the largest predicted fraction of the votes.

    Parameters
    ----------
    regressor
        A regressor that takes several targets; it is cloned.
    classes
        Labels, in the order of the columns of the vote fractions.
    balance
        Fraction of the offsets that is added, from 0 to 1.

    Attributes
    ----------
    classes_
        Labels.
    offsets_
        Offset of each predicted fraction, added before the largest is taken.
    regressor_
        The fitted regressor.

    Notes
    -----
    **Guarantee.** Post-processing of public rows and released votes, which costs no
    budget.

    A regressor that smooths strongly predicts nearly the same for all rows, and the
    class with most votes in total would win everywhere. Offsets correct this: with them
    each class is predicted as often as it is voted for on average, as in the class mass
    normalization of Zhu, Ghahramani and Lafferty (2003 [1]_). That average is noisy
    too, and is shrunk by as much as noise explains (James and Stein 1961 [2]_). Where
    teachers often disagree, a rare class has more votes than it wins; a lower
    ``balance`` is better then.

    References
    ----------
    .. [1] X. Zhu, Z. Ghahramani, J. Lafferty, "Semi-supervised learning using Gaussian
       fields and harmonic functions", ICML 2003.
    .. [2] W. James, C. Stein, "Estimation with quadratic loss", Berkeley Symposium
       1961.
    """

    def __init__(
        self,
        regressor: Any,
        classes: Sequence[Any] | NDArray[Any],
        balance: float = 0.5,
    ) -> None:
        self.regressor = regressor
        self.classes = classes
        self.balance = balance

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X
            Public rows.
        y
            Fractions of the votes, one column per class.
        sample_weight
            Weight of each row, for regressors that take one; None for equal weights.
        """
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_ = clone(self.regressor).fit(X, y, **options)
        self.classes_ = np.asarray(self.classes)
        self.offsets_ = np.zeros(len(self.classes_))
        if self.balance:
            smooth = self._fractions(X)
            self.offsets_ = self.balance * offsets(smooth, np.asarray(y), sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.regressor_, name):
                setattr(self, name, getattr(self.regressor_, name))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label with the largest fraction.

        Parameters
        ----------
        X
            Any rows.
        """
        fractions = self._fractions(X)  # first, as it checks that there was a fit
        labels: NDArray[Any] = self.classes_[fractions.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return fractions with offsets, clipped at zero and scaled to sum to one.

        Parameters
        ----------
        X
            Any rows.
        """
        fractions = np.maximum(self._fractions(X), 0.0)
        totals = fractions.sum(axis=1, keepdims=True)
        even = np.full_like(fractions, 1 / fractions.shape[1])
        return np.where(totals > 0, fractions / np.where(totals > 0, totals, 1.0), even)

    def _fractions(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self.regressor_.predict(X)) + self.offsets_

    def __sklearn_tags__(self) -> Tags:
        """Accept the same rows as the regressor."""
        tags = super().__sklearn_tags__()
        if hasattr(self.regressor, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.regressor).input_tags
        return tags


def offsets(smooth: Array, fractions: Array, weights: Any) -> Array:
    """Return offsets by which each class wins as often as it is voted for on average.

    Parameters
    ----------
    smooth
        Predicted fractions.
    fractions
        Noisy fractions that the regressor learned.
    weights
        Weight of each row, or None.
    """
    n_rows, n_classes = smooth.shape
    weights = np.ones(n_rows) if weights is None else np.asarray(weights)
    weights = weights / weights.sum()
    noise = (weights**2) @ ((fractions - smooth) ** 2).sum(axis=1)
    wanted = np.maximum(weights @ fractions, 0.0)
    now = _won(smooth)
    if not wanted.any():
        return np.zeros(n_classes)
    away = wanted / wanted.sum() - now
    apart = (away**2).sum()
    goal = now + away * max(0.0, 1 - noise / apart if apart else 0.0)
    added, step = np.zeros(n_classes), smooth.std()
    for turn in range(ITERATIONS):
        added += step * (goal - _won(smooth + added)) / (1 + turn / 10)
    return added


def _won(fractions: Array) -> Array:
    """Return how often each class has the largest fraction."""
    won = np.bincount(fractions.argmax(axis=1), minlength=fractions.shape[1])
    return won / len(fractions)
