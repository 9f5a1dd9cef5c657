"""Base of the private additive models: one fit for one charge, and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    checked_shape,
    checked_targets,
    guaranteed_budget,
    planning_rows,
)
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import at_least
from tacit.additive._bins import Bins
from tacit.additive._columns import Codes, Column, codes_of, public_columns
from tacit.additive._pairs import chosen_pairs
from tacit.additive._plan import FARTHEST, AdditivePlan, Facts, planned_fit
from tacit.additive._terms import Term, main_term, term_features
from tacit.convex import Loss
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms.noise import check_noise
from tacit.preprocessing._columns import columns_of
from tacit.preprocessing._public import _as_table
from tacit.privacy import Ledger, Neighbors, PrivacyReport
from tacit.solvers import PreconditionedGD
from tacit.solvers._base import result_of

__all__ = ["AdditiveModel", "PairShape", "Shape", "Task", "shape_of_column"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """What a fit learns: its loss, the public facts and the targets of the rows.

    ``targets`` are -1 and 1 or codes of classes, or numbers in their own unit; none for
    a plan.
    """

    loss: Loss
    assumptions: tuple[str, ...]
    classes: NDArray[Any] | None = None
    y_range: tuple[float, float] | None = None
    targets: NDArray[Any] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Shape:
    """Shape function of one column: what each bin adds to the prediction.

    Parameters
    ----------
    column
        Name or position of the column.
    edges
        Lower ends of the bins of numbers, and the upper end of the last; None for
        categories.
    labels
        Categories, ``"(other)"`` and ``"(missing)"``; of numbers ``"(missing)"`` alone.
    values
        What each bin adds, with the bin of missing cells last. Classes have a column
        each where there are more than two.
    mass
        Fraction of the rows in each bin, with noise.
    """

    column: Any
    edges: Array | None
    labels: tuple[Any, ...]
    values: Array
    mass: Array


@dataclass(frozen=True, eq=False)
class PairShape:
    """What each pair of bins of two columns adds to the prediction.

    Parameters
    ----------
    columns
        Names or positions of the columns.
    values
        An axis for the bins of each column, and one for classes.
    """

    columns: tuple[Any, Any]
    values: Array


class AdditiveModel(ExplicitSeed, BaseEstimator):
    """Base of the additive classifier and regressor.

    A subclass describes what it learns in ``_task``. ``reads_cells`` says that columns
    are read as they are, with their public facts in ``ranges`` and ``categories``.
    """

    reads_cells = True

    epsilon: float
    delta: float | None
    ranges: Any
    categories: Any
    interactions: Any
    neighbors: str | Neighbors
    expected_rows: int | None
    noise: str
    random_state: RandomSource
    intercept_: Any
    shapes_: list[Shape]
    pairs_: list[PairShape]
    privacy_: PrivacyReport
    n_features_in_: int
    _columns: tuple[Column, ...]
    _bins: list[Bins]

    def _task(self, y: NDArray[Any] | None) -> Task:
        """Return what a fit learns, from parameters and targets."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, *, ledger: Ledger | None = None) -> Self:
        """Fit the shapes, charging the ledger first.

        Parameters
        ----------
        X
            Table with one row a person: a data frame, or rows of cells.
        y
            Labels or targets.
        ledger
            Ledger to charge; None creates one for this fit.
        """
        with all_or_nothing(self):
            X = _as_table(X)
            n_rows, _ = checked_shape(
                self, X, fitting=True, least_rows=2 if self._counted() else 0
            )
            y = checked_targets(y, n_rows, labels=is_classifier(self))
            columns = tuple(
                public_columns(self.ranges, self.categories, columns_of(self))
            )
            task = self._task(y)
            plan = self._planned(columns, task, n_rows)
            rng = noise_generator(self.random_state)
            release = Release(
                plan.event,
                plan.budget,
                type(self).__name__,
                plan.assumptions,
                seeded=is_seeded(self.random_state),
            )
            public_rows = n_rows if self._counted() else None
            found, self.privacy_ = charged_run(
                release,
                ledger,
                lambda codes: _run(plan, columns, codes, task, public_rows, rng),
                check=lambda: codes_of(X, columns),
            )
            self._columns = columns
            self._keep(found, task)
        return self

    def plan(self, n_rows: int, n_features: int | None = None) -> AdditivePlan:
        """Return what `fit` will do and spend on a table of this size; reads no row.

        Parameters
        ----------
        n_rows
            Number of rows, which is public or a guess.
        n_features
            Number of columns; None for those with an entry in ``ranges`` or
            ``categories``.
        """
        at_least(2 if self._counted() else 0, n_rows=n_rows)
        given = [self.ranges, self.categories]
        named = [
            name for facts in given if isinstance(facts, Mapping) for name in facts
        ]
        if n_features is not None:
            at_least(1, n_features=n_features)
        seen = columns_of(self) if hasattr(self, "n_features_in_") else []
        names: Sequence[Any] = named or range(n_features or 1)
        if n_features == len(seen) and set(named) <= set(seen):
            names = seen
        columns = tuple(public_columns(self.ranges, self.categories, names))
        return self._planned(columns, self._task(None), int(n_rows))

    def checked_cells(self, X: Any) -> tuple[tuple[Column, ...], Codes]:
        """Return the columns of a table to fit on, and the codes of its cells.

        What a fit would reject is rejected here.
        """
        X = _as_table(X)
        checked_shape(self, X, fitting=True, least_rows=0)
        columns = tuple(public_columns(self.ranges, self.categories, columns_of(self)))
        return columns, codes_of(X, columns)

    def released_arrays(self) -> list[Array]:
        """Return the released numbers that predictions are made of."""
        shapes = [shape.values for shape in self.shapes_]
        return [self.intercept_, *shapes, *(pair.values for pair in self.pairs_)]

    def _counted(self) -> bool:
        return Neighbors.of(self.neighbors) is Neighbors.REPLACE_ONE

    def _planned(
        self, columns: tuple[Column, ...], task: Task, n_rows: int
    ) -> AdditivePlan:
        """Return the plan, from public facts alone."""
        budget = guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows)
        check_noise(self.noise)
        names = [column.name for column in columns]
        interactions = chosen_pairs(self.interactions, names, len(names))
        facts = Facts(
            columns,
            planning_rows(budget, n_rows, self.expected_rows),
            task.loss,
            task.y_range,
            interactions,
            task.assumptions,
        )
        return planned_fit(facts, budget, self.noise)

    def _synthetic_cells(self, widths: Sequence[int]) -> dict[str, Any]:
        """Return what to change for numbers from -1 to 1 and codes of categories."""
        pairs = self.interactions
        most = len(widths) * (len(widths) - 1) // 2
        return {
            "ranges": [(-1.0, 1.0) if width == 1 else None for width in widths],
            "categories": [None if w == 1 else list(range(w)) for w in widths],
            # given pairs are of other columns
            "interactions": min(most, pairs if isinstance(pairs, int) else len(pairs)),
        }

    def _keep(self, found: Found, task: Task) -> None:
        """Set the fitted attributes: centered shapes, and the intercept."""
        self._bins = found.bins
        self.shapes_, intercept = [], found.intercept * found.unit + found.center
        for bins, values in zip(found.bins, found.values, strict=True):
            scaled = values * found.unit
            mean = bins.mass @ scaled / max(float(bins.mass.sum()), 1e-300)
            intercept = intercept + mean
            self.shapes_.append(shape_of_column(bins, scaled - mean))
        self.intercept_ = intercept
        names = [each.column.name for each in found.bins]
        self._pairs = [pair for pair, _ in found.pairs]
        self.pairs_ = [
            PairShape((names[j], names[k]), values * found.unit)
            for (j, k), values in found.pairs
        ]

    def _scores(self, X: Any) -> Array:
        """Return the margins of rows: the intercept and the shapes of their cells."""
        check_is_fitted(self)
        margins: Array = self.intercept_ + sum(self._contributions(X))
        return margins

    def _contributions(self, X: Any) -> list[Array]:
        check_is_fitted(self)
        X = _as_table(X)
        checked_shape(self, X, fitting=False)
        codes = codes_of(X, self._columns)
        of_rows = [bins.of(codes[:, k]) for k, bins in enumerate(self._bins)]
        mains = [
            shape.values[own] for shape, own in zip(self.shapes_, of_rows, strict=True)
        ]
        pairs = [
            pair.values[of_rows[j], of_rows[k]]
            for (j, k), pair in zip(self._pairs, self.pairs_, strict=True)
        ]
        return mains + pairs

    def contributions(self, X: Any) -> Array:
        """Return what each column and each pair adds to the margin of each row.

        The sum over them and ``intercept_`` is the margin. With more than two
        classes there is a last axis of them.
        """
        found = np.stack(self._contributions(X), axis=1)
        return found[..., 0] if found.shape[-1] == 1 else found

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn that cells may be categories or missing."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True, eq=False)
class Found:
    """What a fit released, in units of the targets: bins, shapes and an intercept."""

    bins: list[Bins]
    values: list[Array]
    intercept: Array
    center: float
    unit: float
    pairs: list[tuple[tuple[int, ...], Array]]


def _run(
    plan: AdditivePlan,
    columns: Sequence[Column],
    codes: Codes,
    task: Task,
    n_rows: int | None,
    rng: np.random.Generator,
) -> Found:
    """Release bins, units and weights, one after the other."""
    bins, total = plan.bins.run(codes, columns, n_rows, rng)
    center, unit, y = 0.0, 1.0, task.targets
    if plan.targets is not None:
        center, unit = plan.targets.run(y, total, rng)
        y = np.clip((y - center) / unit, -FARTHEST, FARTHEST)
    terms = [main_term(k, each) for k, each in enumerate(bins)]
    of_rows = np.column_stack([each.of(codes[:, k]) for k, each in enumerate(bins)])
    constant = plan.descent.problem.constant
    bounds = RowBounds(plan.x_norm, y_range=plan.descent.problem.bounds.y_range)
    rows = bounded_rows(term_features(terms, of_rows), y, bounds, constant)
    shape = plan.descent.problem.shape
    W = result_of(PreconditionedGD(), plan.descent, rows, rng, shape).coefficients
    values, intercept = _values(terms, W[:-1]), W[-1] * float(constant or 0.0)
    pairs: list[tuple[tuple[int, ...], Array]] = []
    if plan.pairs is not None:
        margins = intercept + sum(each[of_rows[:, k]] for k, each in enumerate(values))
        shifted = np.column_stack([y, margins])
        pairs = [
            (term.columns, term.shape(weights))
            for term, weights in plan.pairs.run(bins, of_rows, shifted, rng)
        ]
    return Found(bins, values, intercept, center, unit, pairs)


def _values(terms: Sequence[Term], weights: Array) -> list[Array]:
    ends = np.cumsum([term.n_features for term in terms])
    parts = np.split(weights, ends[:-1])
    return [term.shape(part) for term, part in zip(terms, parts, strict=True)]


def shape_of_column(bins: Bins, values: Array) -> Shape:
    """Return the shape function of a column, given what each of its bins adds."""
    column = bins.column
    if column.is_numeric:
        edges = np.array([column.edge(int(cell)) for cell in bins.starts])
        edges = np.append(edges, column.high)
        return Shape(column.name, edges, ("(missing)",), values, bins.mass)
    labels = (*(column.categories or ()), "(other)", "(missing)")
    return Shape(column.name, None, labels, values, bins.mass)
