"""Selectors for one block of rows; not private by themselves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import Lasso, lars_path
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit._random import Seed
from tacit._validate import at_least, positive

__all__ = ["BlockSelection", "HuberLassoSupport", "first_columns"]


@dataclass(frozen=True, eq=False)
class BlockSelection:
    """A selector of any kind, as a function of the rows of one block.

    ``selector`` is one of scikit-learn, cloned for each block; a function of features
    and targets that returns indices of columns or a mask; or None for `first_columns`,
    of which there are ``n_select`` then.
    """

    selector: Any
    n_select: int

    def __call__(self, X: Any, y: Any, random_state: int) -> tuple[int, ...]:
        if self.selector is None:
            found = first_columns(X, y, self.n_select)
        elif hasattr(self.selector, "get_support"):
            fresh = clone(self.selector)
            # a shared generator would pass information from one block to the next
            seeds = {
                name: Seed(random_state)
                for name in fresh.get_params()
                if name.split("__")[-1] == "random_state"
            }
            found = fresh.set_params(**seeds).fit(X, y).get_support()
        else:
            found = self.selector(X, y)
        return _positions(found, X.shape[1])


def first_columns(X: Any, y: Any, n_select: int) -> Any:
    """Return the columns that enter the lasso path first, after standardization.

    Notes
    -----
    **Bound.** The path is that of least angle regression, which is the lasso's as long
    as no column leaves it again (Efron, Hastie, Johnstone and Tibshirani 2004, Theorem
    1). It depends on the rows only, and fails where fewer columns enter.
    """
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    X = X - X.mean(axis=0)
    norms = np.sqrt((X**2).sum(axis=0))
    # what is left of a constant column after centering is round-off
    varied = np.flatnonzero(norms > 1e-10 * max(1.0, norms.max(initial=0.0)))
    y = np.asarray(y, dtype=np.float64)
    _, active, _ = lars_path(
        X[:, varied] / norms[varied], y - y.mean(), method="lar", max_iter=n_select
    )
    if len(active) < n_select:
        raise ValueError("Too few rows or varying columns to select so many.")
    return varied[np.asarray(active[:n_select], dtype=np.intp)]


def _positions(found: Any, n_features: int) -> tuple[int, ...]:
    """Return sorted indices of columns, from indices or a mask."""
    array = np.asarray(found)
    if array.dtype.kind == "b" and array.shape == (n_features,):
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError
    positions = sorted(
        {int(position) for position in array if isinstance(position, Integral)}
    )
    if positions and not 0 <= positions[0] <= positions[-1] < n_features:
        raise ValueError
    return tuple(positions)


# Alternations of a lasso and of the shift of large residuals
ROUNDS = 30
# Standard deviation of a normal distribution, in median absolute deviations
STDS = 1.4826


class HuberLassoSupport(SelectorMixin, BaseEstimator):
    """Selection of columns by a Lasso with Huber loss. Not private.

    The Huber loss limits the effect of outliers in the targets. It is for
    `BlockVoteSelector`, which makes any selector private.

    Parameters
    ----------
    n_features_to_select
        Maximum number of columns, those of largest weight.
    penalty
        Weight of the absolute weights, against the mean loss, for columns and targets
        that are standardized.
    threshold
        Residual beyond which the loss is linear, in standard deviations of the targets.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardized columns.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    A lasso alternates with a step that subtracts the excess of residuals over the
    threshold from the targets: both minimize one convex function [1]_. The number of
    alternations is fixed.

    References
    ----------
    .. [1] Y. She, A. Owen, "Outlier detection using nonconvex penalized regression",
       Journal of the American Statistical Association 106, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import Seed
    >>> from tacit.feature_selection import BlockVoteSelector, HuberLassoSupport
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> y[::50] = 1000.0
    >>> selector = BlockVoteSelector(
    ...     2.0,
    ...     n_features_to_select=2,
    ...     selector=HuberLassoSupport(2),
    ...     random_state=Seed(0),
    ... )
    >>> selector.fit(X, y).selection_
    (0, 3)
    """

    saved = True

    def __init__(
        self,
        n_features_to_select: int,
        *,
        penalty: float = 0.1,
        threshold: float = 1.35,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.penalty = penalty
        self.threshold = threshold

    def fit(self, X: Any, y: Any) -> Self:
        """Find the weights.

        Parameters
        ----------
        X
            Features.
        y
            Targets.
        """
        at_least(1, n_features_to_select=self.n_features_to_select)
        positive(penalty=self.penalty, threshold=self.threshold)
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        spread = X.std(axis=0)
        # what is left of a constant column after centering is round-off
        varied = spread > 1e-10 * np.abs(X).max(axis=0)
        X = (X - X.mean(axis=0)) / np.where(varied, spread, np.inf)
        y = y - np.median(y)
        y = y / (STDS * np.median(np.abs(y)) or y.std() or 1.0)
        lasso = Lasso(self.penalty, warm_start=True)
        beyond = y - np.clip(y, -self.threshold, self.threshold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for _ in range(ROUNDS):
                residuals = y - lasso.fit(X, y - beyond).predict(X)
                beyond = residuals - np.clip(residuals, -self.threshold, self.threshold)
        self.coef_ = lasso.coef_
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        largest = np.argsort(-np.abs(self.coef_), kind="stable")
        mask: NDArray[np.bool_] = np.zeros(self.n_features_in_, dtype=bool)
        mask[largest[: self.n_features_to_select]] = True
        mask &= self.coef_ != 0
        return mask
