"""Private additive classifier and regressor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import Saved, labels_found, numeric
from tacit._random import RandomSource
from tacit._validate import at_least, positive, public_range
from tacit.additive._model import AdditiveModel, Task
from tacit.additive._plan import regression_loss
from tacit.additive._tables import ScoringTable, scoring_table
from tacit.convex import Logistic, Softmax
from tacit.data import RowBounds
from tacit.data.bounds import sorted_classes
from tacit.preprocessing._columns import checked_pair
from tacit.privacy import Neighbors

__all__ = ["AdditiveClassifier", "AdditiveRegressor"]

Array = NDArray[np.float64]

RANGED = "cells are clipped to the ranges (chosen without looking at the data)"
LABELS_FROM_ROWS = "the set of labels is public (taken from y; give classes=)"
# Names of the fitted state, as plain data and as arrays
STATE = ("starts", "pairs", "banded", "edits")
ARRAYS = (
    *("intercept", "values", "position", "mass"),
    *("pair_values", "std", "edit_values"),
)


class AdditiveClassifier(ClassifierMixin, AdditiveModel):
    """Differentially private additive classifier (generalized additive model).

    A shape function for each column, released together for one charge: what an
    explainable boosting machine fits, with noise. Numbers get private bins, and shapes
    are smooth in them; categories get a value each, and so do missing cells. Nothing
    has to be scaled, encoded or tuned.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one.
    ranges
        Lowest and highest value of each column of numbers: a mapping from the name of
        a column to a pair, a sequence with a pair or None a column, or one pair for
        all. Must not be read off the data; numbers outside are clipped.
    categories
        Public categories of all other columns: a mapping from names to lists, or a
        sequence with a list or None a column. Cells that are not listed share a level.
    classes
        Public labels. None takes them from ``y``, which makes the set of labels an
        assumption of the guarantee.
    interactions
        Number of pairs of columns that are chosen privately and fitted too, or a list
        of pairs of names, which are public then. 0 for none.
    monotone
        Columns of numbers whose shapes must not fall, 1, or rise, -1: a mapping from
        names to 1 or -1. Such columns are in no pair.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets steps and never the privacy.
        None for the number of rows where it is public, and otherwise one over the root
        of delta.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    shapes_ : list of Shape
        Shape function of each column, with mean zero over its bins.
    pairs_ : list of PairShape
        What each pair of columns adds.
    importances_ : dict
        Mean absolute contribution of each column and pair, largest first.
    edits_ : list of Edit
        Shapes that `set_shape` replaced, with their values before and after.
    intercept_ : ndarray of shape (1 or n_classes,)
        Margins of a row whose shapes add nothing.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors: counts
    of bins and a preconditioned descent are Gaussian mechanisms, composed exactly; see
    the page on additive models. Shapes, and all that is computed from them, are
    post-processing.

    Examples
    --------
    >>> from tacit.additive import AdditiveClassifier
    >>> X = [[30.0, "owner"], [60.0, "tenant"]] * 500
    >>> y = [0, 1] * 500
    >>> model = AdditiveClassifier(
    ...     epsilon=1.0,
    ...     ranges={0: (18, 98)},
    ...     categories={1: ["owner", "tenant"]},
    ...     classes=[0, 1],
    ... )
    >>> model.fit(X, y).predict([[58.0, "tenant"]])
    array([1])
    """

    model_name = "additive"
    saved = Saved("additive", (*STATE, "classes"), ARRAYS)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        ranges: Any = None,
        categories: Any = None,
        classes: Any = None,
        interactions: Any = 0,
        monotone: Any = None,
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.ranges = ranges
        self.categories = categories
        self.classes = classes
        self.interactions = interactions
        self.monotone = monotone
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state

    def _task(self, y: NDArray[Any] | None) -> Task:
        taken: tuple[str, ...] = ()
        if self.classes is not None:
            classes = sorted_classes(self.classes)
        elif y is not None:
            classes, taken = labels_found(y), (LABELS_FROM_ROWS,)
        else:
            raise ValueError("classes must be given for a plan, which sees no labels.")
        two = len(classes) == 2
        task = Task(
            Logistic() if two else Softmax(len(classes)),
            (RANGED, *taken),
            classes=classes,
        )
        if y is None:
            return task
        codes = RowBounds(classes=tuple(classes.tolist())).codes(y)
        return replace(task, targets=2.0 * codes - 1.0 if two else codes)

    def _keep(self, found: Any, task: Task) -> None:
        super()._keep(found, task)
        assert task.classes is not None  # a classifier has them
        self.classes_ = task.classes

    def _explained(self, parts: Array, label: Any) -> tuple[int, str]:
        classes = self.classes_.tolist()
        if parts.shape[1] == 1:
            if label not in (None, classes[1]):
                raise ValueError(
                    f"label must be None or {classes[1]!r}, whose log-odds are "
                    f"explained, got {label!r}."
                )
            return 0, f"log-odds of {classes[1]}"
        if label is None:
            output = int((self.intercept_ + parts.sum(axis=0)).argmax())
        elif label in classes:
            output = classes.index(label)
        else:
            raise ValueError(f"label must be one of the classes, got {label!r}.")
        return output, f"margin of {classes[output]}"

    def scoring_table(self, points: float = 20.0, cells: int = 8) -> ScoringTable:
        """Return a scorecard: integer points for each bin, as banks use them.

        Parameters
        ----------
        points
            Points that double the odds of the second class.
        cells
            Most intervals of a column of numbers; each is a run of bins.
        """
        check_is_fitted(self)
        positive(points=points)
        at_least(1, cells=cells)
        if len(self.classes_) != 2:
            raise ValueError("a scoring table needs two classes.")
        if self.pairs_:
            raise ValueError(
                "a scoring table has no pairs; fit with interactions=0 for one."
            )
        intercept = float(np.ravel(self.intercept_)[0])
        label = str(self.classes_[1])
        return scoring_table(self.shapes_, intercept, points, cells, label)

    def decision_function(self, X: Any) -> Array:
        """Return the margins of rows: one for two classes, and one each for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely label of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        probabilities: Array = special.softmax(scores, axis=1)
        return probabilities


class AdditiveRegressor(RegressorMixin, AdditiveModel):
    """Differentially private additive regression (generalized additive model).

    A shape function for each column, released together for one charge; see
    `AdditiveClassifier`. The center and the spread of the targets are released first,
    so that a wide ``y_range`` costs little.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one.
    ranges
        Lowest and highest value of each column of numbers: a mapping from the name of
        a column to a pair, a sequence with a pair or None a column, or one pair for
        all. Must not be read off the data; numbers outside are clipped.
    categories
        Public categories of all other columns: a mapping from names to lists, or a
        sequence with a list or None a column. Cells that are not listed share a level.
    y_range
        Lowest and highest target, public and required. Targets outside are clipped.
    interactions
        Number of pairs of columns that are chosen privately and fitted too, or a list
        of pairs of names, which are public then. 0 for none.
    monotone
        Columns of numbers whose shapes must not fall, 1, or rise, -1: a mapping from
        names to 1 or -1. Such columns are in no pair.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets steps and never the privacy.
        None for the number of rows where it is public, and otherwise one over the root
        of delta.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    shapes_ : list of Shape
        Shape function of each column, with mean zero over its bins.
    pairs_ : list of PairShape
        What each pair of columns adds.
    importances_ : dict
        Mean absolute contribution of each column and pair, largest first.
    edits_ : list of Edit
        Shapes that `set_shape` replaced, with their values before and after.
    intercept_ : ndarray of shape (1,)
        Prediction for a row whose shapes add nothing.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors: counts
    of bins, sums of targets and a preconditioned descent are Gaussian mechanisms,
    composed exactly; see the page on additive models.

    Examples
    --------
    >>> from tacit.additive import AdditiveRegressor
    >>> X = [[k / 1000] for k in range(1000)]
    >>> y = [(k / 1000) ** 2 for k in range(1000)]
    >>> model = AdditiveRegressor(4.0, ranges=(0, 1), y_range=(0, 1))
    >>> bool(abs(model.fit(X, y).predict([[1.0]])[0] - 1.0) < 0.3)
    True
    """

    model_name = "additive"
    saved = Saved("additive", STATE, ARRAYS)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        ranges: Any = None,
        categories: Any = None,
        y_range: tuple[float, float] | None = None,
        interactions: Any = 0,
        monotone: Any = None,
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.ranges = ranges
        self.categories = categories
        self.y_range = y_range
        self.interactions = interactions
        self.monotone = monotone
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state

    def _task(self, y: NDArray[Any] | None) -> Task:
        low, high = checked_pair(public_range(self.y_range), "y_range")
        words = f"targets are clipped to [{low:g}, {high:g}]"
        task = Task(regression_loss(), (RANGED, words), y_range=(low, high))
        return task if y is None else replace(task, targets=numeric(y))

    def _explained(self, parts: Array, label: Any) -> tuple[int, str]:
        if label is not None:
            raise ValueError("a regression has no labels; leave label out.")
        return 0, "prediction before it is clipped to y_range"

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row, within ``y_range``."""
        return np.clip(self._scores(X)[:, 0], *public_range(self.y_range))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; on few rows a small budget predicts little."""
        tags: Tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
