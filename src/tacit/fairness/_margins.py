"""How sure a linear model is of each row, and how fast that changes with weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import checked_values
from tacit._validate import nonnegative
from tacit.data.alone import margins, pieces, plain_rows
from tacit.fairness._groups import column

__all__ = ["LinearModel", "Margins", "linear_margins", "read_model"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins of rows and the Lipschitz constants of these, one of each a row.

    Parameters
    ----------
    margins
        Score of the true label less the best score of another: above zero where the
        answer is right.
    lipschitz
        How far a margin can move when the weights move by one.
    """

    margins: Floats
    lipschitz: Floats


@dataclass(frozen=True, eq=False)
class LinearModel:
    """What is read of a linear classifier: weights (k, p), intercepts (k,), labels."""

    weights: Floats
    intercepts: Floats
    classes: tuple[Any, ...]
    bounds: Any = None

    @property
    def binary(self) -> bool:
        """Whether one vector of weights decides between two labels."""
        return len(self.weights) == 1

    @property
    def constant(self) -> float:
        """One where there is an intercept, zero where there is none."""
        return float(self.intercepts.any())

    def scores_and_squares(self, X: Any) -> tuple[Floats, Floats]:
        """Return the scores (n, k) and the squared norm of each row.

        Each is computed from its row alone, to the last digit: a row more must not
        change what is counted of another.
        """
        rows = plain_rows(checked_values(X, accept_sparse=True))
        if rows.shape[1] != self.weights.shape[1]:
            raise ValueError(
                f"X must have {self.weights.shape[1]} columns, as the model has, got "
                f"{rows.shape[1]}."
            )
        scores = np.empty((rows.shape[0], len(self.weights)))
        squares = np.empty(rows.shape[0])
        ones = np.ones((rows.shape[1], 1))
        for place, part in pieces(rows):
            within = part if self.bounds is None else self.bounds.clip(part)
            scores[place] = margins(within, self.weights.T) + self.intercepts
            squares[place] = margins(within**2, ones)[:, 0]
        return scores, squares

    def margins(self, scores: Floats, y: Any) -> Floats:
        """Return the margin of each row's label."""
        places = {label: place for place, label in enumerate(self.classes)}
        labels = column("y", y).tolist()
        if len(labels) != len(scores):
            raise ValueError("X and y must have as many rows as each other.")
        if not set(labels) <= set(places):
            raise ValueError("y must hold labels of the model only.")
        codes = np.array([places[label] for label in labels], dtype=np.intp)
        if self.binary:
            return np.where(codes == 1, scores[:, 0], -scores[:, 0])
        each = np.arange(len(scores))
        own, others = scores[each, codes], scores.copy()
        others[each, codes] = -np.inf
        return np.asarray(own - others.max(axis=1))


def read_model(model: Any) -> LinearModel:
    """Return the weights of a fitted linear classifier, or refuse another."""
    parts = [getattr(model, name, None) for name in ("coef_", "intercept_", "classes_")]
    if any(part is None for part in parts):
        raise ValueError(
            "model must be a fitted linear classifier with coef_, intercept_ and "
            f"classes_, got {type(model).__name__}."
        )
    weights = np.atleast_2d(np.asarray(parts[0], dtype=np.float64))
    intercepts = np.atleast_1d(np.asarray(parts[1], dtype=np.float64))
    intercepts = np.broadcast_to(intercepts, (len(weights),))
    classes = tuple(np.asarray(parts[2]).tolist())
    vectors = 1 if len(classes) == 2 and len(weights) == 1 else len(classes)
    if weights.ndim != 2 or len(weights) != vectors or len(classes) < 2:
        raise ValueError(
            "model must have one row of coef_ for two labels, or one for each label."
        )
    return LinearModel(weights, intercepts, classes, getattr(model, "bounds_", None))


def linear_margins(
    model: Any, X: Any, y: Any, *, constant: float | None = None, legacy: bool = False
) -> Margins:
    """Return the margins of a linear classifier and their Lipschitz constants.

    Parameters
    ----------
    model
        A fitted classifier with ``coef_``, ``intercept_`` and ``classes_``. Rows are
        cut to its ``bounds_`` where it has them, as in its predictions.
    X, y
        Rows and their labels.
    constant
        Value of the constant feature whose weight gives the intercept. None is one
        where the model has an intercept, as in scikit-learn, and zero where not.
    legacy
        Whether to use the looser constant of the publication, for comparison.

    Notes
    -----
    **Bound.** With ``x`` the row and its constant feature: ``|x|`` for two labels and
    one vector of weights, as the margin is plus or minus ``w x``; ``sqrt(2) |x|`` for
    one vector a label and distances in the Frobenius norm, by Cauchy and Schwarz, as
    two vectors enter a margin. Both are attained. The published constant is ``2 |x|``
    (Mangold 2023, Section 6.3).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.fairness import linear_margins
    >>> X, y = load_iris(return_X_y=True)
    >>> found = linear_margins(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> float((found.margins > 0).mean()) > 0.9
    True
    """
    read = read_model(model)
    constant = read.constant if constant is None else constant
    nonnegative(constant=constant)
    scores, squares = read.scores_and_squares(X)
    factor = 2.0 if legacy else 1.0 if read.binary else sqrt(2)
    lipschitz = factor * np.sqrt(squares + constant**2)
    return Margins(read.margins(scores, y), lipschitz)
