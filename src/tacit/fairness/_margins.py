"""Margins of rows under a linear model, and their Lipschitz constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import checked_values
from tacit._random import as_generator
from tacit._validate import nonnegative
from tacit.data.row_margins import margins, pieces, plain_rows
from tacit.fairness._groups import column, distinct

__all__ = ["Codes", "LinearModel", "Margins", "linear_margins", "read_model"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# Synthetic rows whose predictions are compared with their scores, and the relative
# difference of the two best scores below which rounding may decide
CHECKED = 200
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins of rows and their Lipschitz constants.

    Parameters
    ----------
    margins
        Score of the true label less the best score of another: above zero where the
        answer is right.
    lipschitz
        How far a margin can move when the weights move by one.
    right
        Whether the answer is right, ties decided as in predictions: the first of the
        labels with the best score.
    """

    margins: Floats
    lipschitz: Floats
    right: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear classifier: weights (k, p), intercepts (k,) and labels.

    ``constant`` is the value of the constant feature whose weight gives the intercept,
    zero for none.
    """

    weights: Floats
    intercepts: Floats
    classes: tuple[Any, ...]
    constant: float
    bounds: Any = None

    @property
    def binary(self) -> bool:
        """Whether one vector of weights decides between two labels."""
        return len(self.weights) == 1

    def distance(self, other: LinearModel) -> float:
        """Return the distance of all weights, intercepts included."""
        weights = np.linalg.norm(self.weights - other.weights)
        return float(
            np.hypot(weights, np.linalg.norm(self.intercepts - other.intercepts))
        )

    def scores_and_norms(self, X: Any, constant: float) -> tuple[Floats, Floats]:
        """Return the scores (n, k) and the norm of each row with its constant feature.

        Each is computed from its row only, bit for bit: another row must not change
        how this one is counted.
        """
        rows = plain_rows(checked_values(X, accept_sparse=True))
        if rows.shape[1] != self.weights.shape[1]:
            raise ValueError(
                f"X must have {self.weights.shape[1]} columns, as the model has, got "
                f"{rows.shape[1]}."
            )
        scores = np.empty((rows.shape[0], len(self.weights)))
        norms = np.empty(rows.shape[0])
        for position, part in pieces(rows):
            within = part if self.bounds is None else self.bounds.clip(part)
            # what is too large for a float is rejected with the margins
            with np.errstate(over="ignore", invalid="ignore"):
                scores[position] = margins(within, self.weights.T) + self.intercepts
                norms[position] = _norms(within, constant)
        return scores, norms

    def codes(self, y: Any, n_rows: int) -> Codes:
        """Return the index of each row's label."""
        positions = {label: position for position, label in enumerate(self.classes)}
        labels = column("y", y).tolist()
        if len(labels) != n_rows:
            raise ValueError("X and y must have as many rows as each other.")
        if not distinct("y", labels) <= set(positions):
            raise ValueError("y must contain labels of the model only.")
        return np.array([positions[label] for label in labels], dtype=np.intp)

    def answers(self, scores: Floats) -> Codes:
        """Return the index of the predicted label."""
        # [fairness:answers] the first of the best, as scikit-learn decides ties
        return (scores[:, 0] > 0).astype(np.intp) if self.binary else scores.argmax(1)

    def judged(self, scores: Floats, norms: Floats, codes: Codes) -> Margins:
        """Return the margins of labels, and how far weights can move them."""
        if self.binary:
            rho = np.where(codes == 1, scores[:, 0], -scores[:, 0])
        else:
            each = np.arange(len(scores))
            own, others = scores[each, codes], scores.copy()
            others[each, codes] = -np.inf
            with np.errstate(over="ignore", invalid="ignore"):
                rho = np.asarray(own - others.max(axis=1))
        factor = 1.0 if self.binary else sqrt(2)
        return Margins(rho, factor * norms, self.answers(scores) == codes)


def _norms(X: Floats, constant: float) -> Floats:
    """Return the norms of rows with a constant feature, each from its row only."""
    # in units of the largest entry, so that no square is too large for a float
    size = np.maximum(np.abs(X).max(axis=1, initial=0.0), constant)
    unit = np.where(size > 0, size, 1.0)
    ones = np.ones((X.shape[1], 1))
    squares = margins((X / unit[:, None]) ** 2, ones)[:, 0] + (constant / unit) ** 2
    return np.asarray(unit * np.sqrt(squares))


def read_model(model: Any) -> LinearModel:
    """Return the weights of a fitted linear classifier, or reject another."""
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
    read = LinearModel(
        weights,
        intercepts,
        classes,
        _constant(model, intercepts),
        getattr(model, "bounds_", None),
    )
    _check_predictions(model, read)
    return read


def _constant(model: Any, intercepts: Floats) -> float:
    """Return the constant feature of a model: its own, or one for an intercept."""
    own, bounds = getattr(model, "_intercept", None), getattr(model, "bounds_", None)
    if callable(own) and hasattr(bounds, "x_norm"):
        return float(own(bounds) or 0.0)
    fitted = getattr(model, "fit_intercept", None)
    return float(intercepts.any() if fitted is None else bool(fitted))


def _check_predictions(model: Any, read: LinearModel) -> None:
    """Reject a model that does not predict the label of the best score.

    With three labels, one vector for each pair has the shape of one for each label.
    The check uses synthetic rows, so that it leaks nothing about those given.
    """
    if not hasattr(model, "predict"):
        return
    rows = as_generator(0).normal(size=(CHECKED, read.weights.shape[1]))
    # half of them as large as it takes to outweigh the intercepts
    sizes = np.linalg.norm(read.weights), np.linalg.norm(read.intercepts)
    if min(sizes) > 0:
        rows[::2] *= sizes[1] / sizes[0]
    scores, _ = read.scores_and_norms(rows, 0.0)
    with catch_warnings():
        simplefilter("ignore")  # these rows have no names of columns
        predicted = np.asarray(model.predict(rows)).tolist()
    best = np.sort(np.hstack([scores, -scores] if read.binary else [scores]), axis=1)
    clear = best[:, -1] - best[:, -2] > ROUNDING * np.abs(best).max(axis=1)
    answers = [read.classes[code] for code in read.answers(scores)]
    if any(np.array([a != b for a, b in zip(answers, predicted, strict=True)]) & clear):
        raise ValueError(
            "model must predict the label with the best of the scores that coef_ and "
            f"intercept_ give, which {type(model).__name__} does not."
        )


def linear_margins(
    model: Any, X: Any, y: Any, *, constant: float | None = None
) -> Margins:
    """Return the margins of a linear classifier and their Lipschitz constants.

    Parameters
    ----------
    model
        A fitted classifier with ``coef_``, ``intercept_`` and ``classes_``. Rows are
        clipped to its ``bounds_`` where it has them, as in its predictions.
    X, y
        Rows and their labels.
    constant
        Value of the constant feature whose weight gives the intercept. None is that of
        the model: of the fit for one of this library, else one where the model has an
        intercept, as in scikit-learn, and zero where not.

    Notes
    -----
    **Bound.** With ``x`` the row and its constant feature: ``|x|`` for two labels and
    one vector of weights, as the margin is plus or minus ``w x``; ``sqrt(2) |x|`` for
    one vector a label and distances in the Frobenius norm, by Cauchy and Schwarz, as
    two vectors enter a margin. Both are attained. The published constant is ``2 |x|``
    (Mangold 2023, Section 6.3).

    A model that does not predict the label with the best score is rejected, as
    one with a vector for each pair of labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.fairness import linear_margins
    >>> X, y = load_iris(return_X_y=True)
    >>> found = linear_margins(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> float(found.right.mean()) > 0.9
    True
    """
    read = read_model(model)
    constant = read.constant if constant is None else constant
    nonnegative(constant=constant)
    scores, norms = read.scores_and_norms(X, constant)
    return read.judged(scores, norms, read.codes(y, len(scores)))
