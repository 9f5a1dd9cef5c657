"""What the private linear models share."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit._estimators import all_or_nothing, promised_budget
from tacit.data import RowBounds
from tacit.data.bounds import canonical
from tacit.linear_model._erm import private_erm
from tacit.privacy import Ledger, Neighbors
from tacit.solvers import INTERCEPT_SHARE

__all__ = ["PrivateLinearModel", "validated"]


def validated(estimator, X, y="no_validation"):
    """Return features, and targets when given, as scikit-learn checks them.

    What scikit-learn says of flat, complex or text input quotes the input, so those
    are refused here, in words that do not.
    """
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) == 1:
        raise ValueError(
            "X must have 2 dimensions, got 1. Reshape your data to one row a person."
        )
    for name, values in (("X", X), ("y", y)):
        if getattr(getattr(values, "dtype", None), "kind", None) == "c":
            raise ValueError(
                f"Complex data not supported: {name} must hold real numbers."
            )
    fitting = not isinstance(y, str)
    if sparse.issparse(X) and X.dtype.kind in "fiub":
        X = canonical(X.astype(np.float64))  # entries stored twice may add up to inf
    try:
        return validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if fitting else 1,
            reset=fitting,
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
    raise ValueError("X must hold numbers only; encode text before the fit.")


class PrivateLinearModel(BaseEstimator):
    """A fit that happens as a whole or not at all, and predictions of bounded rows."""

    def fit(self, X, y, *, ledger: Ledger | None = None):
        """Fit the model, charging the ledger first.

        Parameters
        ----------
        X
            Features, dense or CSR, one row a person.
        y
            Labels or targets.
        ledger
            Account of the data set to charge; None opens one for this fit alone.
        """
        with all_or_nothing(self):
            return self._fit(X, y, ledger)

    def _bounds(self, **facts) -> RowBounds:
        """Return the public bounds of a row, with what is known of the targets."""
        norm = getattr(self, "bound_norm_", self.bound_norm)
        if norm not in ("l2", "linf"):
            raise ValueError(f"bound_norm must be 'l2' or 'linf', got {norm!r}.")
        return RowBounds(self.x_norm, norm, **facts)

    def _intercept(self, bounds: RowBounds) -> float | None:
        """Return the value of the constant feature, or None."""
        if not self.fit_intercept:
            return None
        # entry by entry, a constant as large as the bound costs nothing
        return bounds.x_norm * (INTERCEPT_SHARE if bounds.norm == "l2" else 1.0)

    def _minimize(
        self, X, y, *, loss, bounds, intercept, ridge, regularizer, ledger, assumptions
    ):
        """Set ``loss_`` and ``privacy_``; return weights (p, k) and intercepts (k,)."""
        budget = promised_budget(self.epsilon, self.delta, self.neighbors, X.shape[0])
        size = "norm" if bounds.norm == "l2" else "largest entry"
        found = [
            f"rows are shortened to {size} {bounds.x_norm:g}, set without the data"
        ]
        if budget.neighbors is Neighbors.REPLACE_ONE:
            found.append("the number of rows is public")
        W, self.loss_, self.privacy_ = private_erm(
            X,
            y,
            loss=loss,
            bounds=bounds,
            intercept=intercept,
            ridge=ridge,
            regularizer=regularizer,
            solver=self.solver,
            noise=self.noise,
            budget=budget,
            ledger=ledger,
            expected_rows=self.expected_rows,
            random_state=self.random_state,
            verbose=self.verbose,
            label=type(self).__name__,
            assumptions=(*found, *assumptions),
        )
        if intercept is None:
            return W, np.zeros(W.shape[1])
        return W[:-1], W[-1] * intercept

    def _scores(self, X):
        """Return the margins of rows within the bounds."""
        check_is_fitted(self)
        X = validated(self, X)
        return self._bounds().clip(X) @ self.coef_.T + self.intercept_

    def __sklearn_tags__(self):
        """Tell scikit-learn that sparse rows are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
