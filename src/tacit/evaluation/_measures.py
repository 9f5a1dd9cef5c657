"""What a row counts in a score: a number from zero to one, in whole parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import array_of, checked_shape, listed, numeric
from tacit._validate import public_range
from tacit.additive._model import AdditiveModel
from tacit.data.row_margins import margins, pieces, plain_rows
from tacit.linear_model._base import PrivateLinearModel, checked_features
from tacit.preprocessing._public import _as_table

__all__ = [
    "ACCURACY",
    "ERROR",
    "PARTS",
    "ROOT",
    "Measure",
    "answering",
    "last_step",
    "number_of_rows",
    "predictions",
    "without_warnings",
]

# What a row counts is an integer of these parts, so that sums are exact
PARTS = 2**20

ACCURACY = "accuracy"
ERROR = "mean absolute error"
ROOT = "root mean squared error"


@dataclass(frozen=True)
class Measure:
    """A score by its name, with the public range of targets where they are numbers.

    Errors beyond ``reach`` times the width of the range count as that much.
    """

    name: str
    ends: tuple[float, float] | None = None
    reach: float = 1.0

    @classmethod
    def of(cls, model: Any, name: str | None = None, reach: float = 1.0) -> Measure:
        """Return the measure of a model: the usual one, or one that suits its kind."""
        known = isinstance(model, BaseEstimator)
        right = known and bool(is_classifier(model))
        if not (right or (known and is_regressor(model))):
            raise ValueError(
                "model must be a fitted classifier or regressor, got "
                f"{type(model).__name__}."
            )
        if name is None:
            name = ACCURACY if right else ERROR
        if (name == ACCURACY) != right:
            wanted = "classifier" if name == ACCURACY else "regressor"
            raise ValueError(
                f"model must be a {wanted} for the {name}, got {type(model).__name__}."
            )
        if right:
            return cls(name)
        inner = last_step(getattr(model, "best_estimator_", model))
        return cls(name, public_range(getattr(inner, "y_range", None)), reach)

    @property
    def labels(self) -> bool:
        """Whether it counts right labels, of which more is better."""
        return self.ends is None

    def parts(self, predicted: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
        """Return what each row counts, from zero to ``PARTS``."""
        if self.ends is None:
            return _right(predicted, y)
        low, high = self.ends
        shown = np.clip(np.asarray(predicted, dtype=np.float64), low, high)
        # [score:parts] whole parts of the width, whose sums do not round
        share = np.abs(shown - np.clip(numeric(y), low, high)) / self._most
        # [score:nan] no answer is as wrong as any can be
        share = np.where(np.isnan(share), 1.0, np.clip(share, 0.0, 1.0))
        if self.name == ROOT:
            # [score:squares] of a part of the width, hence again at most one
            share = share**2
        found: NDArray[np.int64] = np.rint(share * PARTS).astype(np.int64)
        return found

    def in_units(self, mean: float) -> float:
        """Return the score whose rows count ``mean`` on average; it never falls."""
        if self.ends is None:
            return mean
        return (sqrt(mean) if self.name == ROOT else mean) * self._most

    @property
    def _most(self) -> float:
        """The largest error that counts."""
        low, high = (0.0, 1.0) if self.ends is None else self.ends
        return (high - low) * self.reach


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings about values, which could quote a row."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def answering(model: Any) -> Any:
    """Return the fitted model that answers, which a search keeps inside."""
    model = getattr(model, "best_estimator_", model)
    check_is_fitted(model)
    return model


def last_step(model: Any) -> Any:
    """Return the model at the end of a pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def number_of_rows(model: Any, X: Any, least: int) -> int:
    """Return how many rows there are, after rejecting fewer than ``least``."""
    if isinstance(model, AdditiveModel):
        return checked_shape(model, _as_table(X), fitting=False, least_rows=least)[0]
    if not isinstance(model, PrivateLinearModel):
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows < least:
            raise ValueError("X must hold at least one row to score on.")
        return int(n_rows)
    return checked_shape(model, X, fitting=False, least_rows=least, accept_sparse=True)[
        0
    ]


def predictions(model: Any, X: Any, n_rows: int) -> NDArray[Any]:
    """Return the predictions, each from its own row to the last digit."""
    if not isinstance(model, PrivateLinearModel):
        if n_rows == 0:  # which scikit-learn's models reject
            return np.empty(0)
        if isinstance(model, AdditiveModel):
            # in the words of its own errors, which quote no cell
            return np.asarray(model.predict(X))
        # in a list, one cell or answer of another kind must not change the others
        try:
            predicted = array_of(model.predict(listed(X)))
        except Exception:  # in words that may quote rows
            predicted = None
        if predicted is None:
            raise ValueError(
                "model must predict X, and its predict failed; call it on your rows to "
                "see why."
            )
        if predicted.size != n_rows:
            raise ValueError("model must predict one answer for each row.")
        return predicted.reshape(n_rows)
    X = plain_rows(checked_features(listed(X)))
    W = np.atleast_2d(model.coef_).T
    scores = np.empty((X.shape[0], W.shape[1]))
    for position, part in pieces(X):
        scores[position] = margins(model.bounds_.clip(part), W) + model.intercept_
    if not is_classifier(model):
        return scores[:, 0]
    one = scores.shape[1] == 1
    codes = (scores[:, 0] > 0).astype(int) if one else scores.argmax(axis=1)
    return np.asarray(model.classes_[codes])


def _right(predicted: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """Return all parts for each right label and none for each wrong one."""
    if predicted.dtype.kind == y.dtype.kind != "O":
        return np.where(predicted == y, PARTS, 0)
    # Python compares integers with floats without rounding, and strings with neither
    pairs = zip(predicted.tolist(), y.tolist(), strict=True)
    same = (PARTS * _is_same(answer, label) for answer, label in pairs)
    return np.fromiter(same, np.int64, len(y))


def _is_same(answer: Any, label: Any) -> bool:
    try:
        return bool(answer == label)
    except Exception:  # an object that cannot be compared is no label
        return False
