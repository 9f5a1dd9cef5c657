"""Base of the private additive models: one fit for one charge, and shapes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from tacit._execution import progress
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run, noise_warning
from tacit._validate import at_least
from tacit.additive._bins import Bins
from tacit.additive._columns import Codes, Column, codes_of, public_columns
from tacit.additive._pairs import chosen_pairs
from tacit.additive._plan import AdditivePlan, Facts, planned_fit
from tacit.additive._run import Found, Task, run
from tacit.additive._shapes import (
    Edit,
    PairShape,
    Shape,
    edited_values,
    shape_of_column,
    with_monotone,
)
from tacit.additive._tables import (
    Contribution,
    Explanation,
    importances,
    one_row,
    shape_facts,
    shape_table,
)
from tacit.exceptions import NoiseWarning
from tacit.mechanisms.noise import check_noise
from tacit.preprocessing._columns import columns_of
from tacit.preprocessing._parameters import is_list, is_several, shown
from tacit.preprocessing._public import _as_table
from tacit.privacy import Ledger, Neighbors, PrivacyReport

__all__ = ["AdditiveModel", "PairShape", "Shape", "Task", "shape_of_column"]

Array = NDArray[np.float64]


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
    monotone: Any
    neighbors: str | Neighbors
    expected_rows: int | None
    noise: str
    random_state: RandomSource
    intercept_: Any
    shapes_: list[Shape]
    pairs_: list[PairShape]
    edits_: list[Edit]
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
            task = self._task(y)
            columns = self._public_columns(columns_of(self), task)
            plan = self._planned(columns, task, n_rows)
            rng = noise_generator(self.random_state)
            hidden = noise_warning(plan.assumptions)
            if hidden is not None:
                warnings.warn(hidden, NoiseWarning, stacklevel=2)
            release = Release(
                plan.event,
                plan.budget,
                type(self).__name__,
                plan.assumptions,
                seeded=is_seeded(self.random_state),
            )
            public_rows = n_rows if self._counted() else None

            def fitted(codes: Codes) -> Found:
                # a plan that fits synthetic rows shows its own progress
                with progress(False):
                    return run(plan, columns, codes, task, public_rows, rng)

            found, self.privacy_ = charged_run(
                release,
                ledger,
                fitted,
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
        if n_features is not None:
            at_least(1, n_features=n_features)
        names = self._planned_names(n_features)
        task = self._task(None)
        columns = self._public_columns(names, task)
        return self._planned(columns, task, int(n_rows))

    def _planned_names(self, n_features: int | None) -> Sequence[Any]:
        """Return the names, or else the positions, of the columns to plan for."""
        given = [self.ranges, self.categories]
        named = [
            name for facts in given if isinstance(facts, Mapping) for name in facts
        ]
        seen = columns_of(self) if hasattr(self, "n_features_in_") else []
        if n_features == len(seen) and set(named) <= set(seen):
            return seen
        # one entry a column; a pair of numbers is one range for all columns
        lists = [each for each in given if is_list(each) and any(map(is_several, each))]
        known: Sequence[Any] = range(len(lists[0])) if lists else named
        for_rest = is_list(self.ranges) and not lists
        if n_features is None and (for_rest or not known):
            raise ValueError(
                "n_features must be given where ranges and categories do not have an "
                "entry for each column."
            )
        if known and not for_rest and n_features not in (None, len(known)):
            raise ValueError(
                f"n_features must be {len(known)} or None, as ranges and categories "
                f"have the columns {shown(list(known))}, got {n_features}."
            )
        return range(n_features or 0) if for_rest or not known else known

    def checked_cells(self, X: Any) -> tuple[tuple[Column, ...], Codes]:
        """Return the columns of a table to fit on, and the codes of its cells.

        What a fit would reject is rejected here.
        """
        X = _as_table(X)
        checked_shape(self, X, fitting=True, least_rows=0)
        columns = self._public_columns(columns_of(self), self._task(None))
        return columns, codes_of(X, columns)

    def released_arrays(self) -> list[Array]:
        """Return the released numbers that predictions are made of."""
        shapes = [shape.values for shape in self.shapes_]
        return [self.intercept_, *shapes, *(pair.values for pair in self.pairs_)]

    def _public_columns(self, names: Sequence[Any], task: Task) -> tuple[Column, ...]:
        """Return the public facts about all columns, checked."""
        columns = public_columns(self.ranges, self.categories, names)
        pairs = chosen_pairs(self.interactions, names, len(names))
        return with_monotone(self.monotone, columns, pairs, task.loss.n_outputs)

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
        pairs, most = self.interactions, len(widths) * (len(widths) - 1) // 2
        if is_list(pairs):  # they are of other columns
            pairs = len(pairs)
        if isinstance(pairs, int | np.integer):
            pairs = min(most, pairs)
        return {
            "ranges": [(-1.0, 1.0) if width == 1 else None for width in widths],
            "categories": [None if w == 1 else list(range(w)) for w in widths],
            "interactions": pairs,
            "monotone": None,
        }

    def _keep(self, found: Found, task: Task) -> None:
        """Set the fitted attributes: centered shapes, and the intercept."""
        self._bins, self.edits_ = found.bins, []
        self.shapes_, intercept = [], found.intercept * found.unit + found.center
        for k, (bins, values) in enumerate(zip(found.bins, found.values, strict=True)):
            std = None if found.std is None else found.std[k] * found.unit
            scaled = values * found.unit
            mean = bins.mass @ scaled / max(float(bins.mass.sum()), 1e-300)
            intercept = intercept + mean
            self.shapes_.append(shape_of_column(bins, scaled - mean, std))
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

    def _bins_of(self, X: Any) -> list[NDArray[np.intp]]:
        """Return the bin of each row in each column."""
        check_is_fitted(self)
        X = _as_table(X)
        checked_shape(self, X, fitting=False)
        codes = codes_of(X, self._columns)
        return [bins.of(codes[:, k]) for k, bins in enumerate(self._bins)]

    def _contributions(self, X: Any) -> list[Array]:
        return self._added(self._bins_of(X))

    def _added(self, of_rows: Sequence[NDArray[np.intp]]) -> list[Array]:
        """Return what columns and pairs add, given the bin of each row in each."""
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

    @property
    def importances_(self) -> dict[Any, float]:
        """Mean absolute contribution of each column and each pair, largest first.

        Over the released masses of bins, not over rows, so that nothing is charged.
        """
        check_is_fitted(self)
        return importances(self.shapes_, self.pairs_, self._pairs)

    def shape_table(self, column: Any) -> dict[str, NDArray[Any]]:
        """Return the bins of a column: low, high, label, value, std and mass.

        Parameters
        ----------
        column
            Name or position of the column.
        """
        return shape_table(self.shapes_[self._position(column)])

    def shape_facts(self) -> dict[str, Any]:
        """Return the shapes as plain data, for the entry ``shapes`` of a report."""
        check_is_fitted(self)
        edited = [edit.column for edit in self.edits_]
        return shape_facts(self.shapes_, self.importances_, self.intercept_, edited)

    def set_shape(self, column: Any, values: Any) -> Self:
        """Replace the values of the bins of a column, by hand.

        The guarantee does not change, as no row is read. ``edits_`` and the notes of
        ``privacy_`` record the edit. The intercept stays.

        Parameters
        ----------
        column
            Name or position of the column.
        values
            What each bin adds, in the order of `shape_table`; or, of a column of
            numbers, a function of an array of midpoints of bins, after which missing
            cells keep their value.
        """
        k = self._position(column)
        shape = self.shapes_[k]
        after = edited_values(shape, values)
        self.edits_ = [*self.edits_, Edit(shape.column, shape.values, after)]
        self.shapes_ = list(self.shapes_)
        self.shapes_[k] = replace(shape, values=after, std=None)
        note = f"the shape of column {shape.column!r} was set by hand after the fit"
        if note not in self.privacy_.notes:
            notes = (*self.privacy_.notes, note)
            self.privacy_ = replace(self.privacy_, notes=notes)
        return self

    def explain(self, row: Any, label: Any = None) -> Explanation:
        """Return the margin of one row as a sum of what its cells add.

        Parameters
        ----------
        row
            Cells of one row in the order of the columns, or a data frame with one row.
        label
            Class whose margin is explained, where there are more than two; None for
            the predicted one.
        """
        check_is_fitted(self)
        table = one_row(row, [shape.column for shape in self.shapes_])
        codes = codes_of(table, self._columns)
        bins = [each.of(codes[:, k]) for k, each in enumerate(self._bins)]
        parts = np.stack(self._added(bins), axis=1)[0]
        output, words = self._explained(parts, label)
        names = [str(shape.column) for shape in self.shapes_]
        cells = [
            s.bin_labels[own[0]] for s, own in zip(self.shapes_, bins, strict=True)
        ]
        for j, k in self._pairs:
            names.append(f"{names[j]} and {names[k]}")
            cells.append(f"{cells[j]}, {cells[k]}")
        adds = parts[:, output].tolist()
        found = list(map(Contribution, names, cells, adds))
        found.sort(key=lambda each: -abs(each.value))
        intercept = float(np.ravel(self.intercept_)[output])
        return Explanation(intercept + sum(adds), intercept, tuple(found), words)

    def _explained(self, parts: Array, label: Any) -> tuple[int, str]:
        """Return the position and the name of the margin that is explained."""
        raise NotImplementedError

    def _position(self, column: Any) -> int:
        """Return the position of a column that is named, or given by its position."""
        check_is_fitted(self)
        names = [shape.column for shape in self.shapes_]
        if column not in names:
            raise ValueError(
                f"column must be one of the columns of the fit, got {column!r}."
            )
        return names.index(column)

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn that cells may be categories or missing."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
