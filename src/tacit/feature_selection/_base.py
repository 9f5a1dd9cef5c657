"""Base class of the private feature selectors."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    checked_shape,
    checked_targets,
    checked_values,
    guaranteed_budget,
    listed,
    numeric,
    planning_rows,
)
from tacit._random import is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import PlainNumbers, at_least, public_range
from tacit.data.bounds import canonical, sorted_classes
from tacit.data.declared import declared_like
from tacit.data.features import FeatureBounds, columns_with_bounds
from tacit.mechanisms import NoAnswer
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, Ledger, Neighbors

__all__ = ["LABELED", "RANGED", "PlannedSelection", "PrivateSelector", "two_labels"]

Mask = NDArray[np.bool_]

# Assumptions in reports
RANGED = "features are clipped to their ranges (chosen without looking at the data)"
LABELED = "the two labels are public"


class SelectionPlan(Protocol):
    """Noise and steps of a selector."""

    @property
    def event(self) -> Event: ...

    @property
    def assumptions(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class PlannedSelection(PlainNumbers):
    """Plan of a selector: ranges, noise and cost, fixed before any row is read.

    Parameters
    ----------
    budget
        Guarantee of the fit.
    n_rows
        Number of rows planned for: public, or a public guess.
    features
        Ranges that entries are clipped to, and targets; None without bounds.
    plan
        Noise and steps of the selector.
    assumptions
        Assumptions of the guarantee, as sentences.
    """

    budget: Budget
    n_rows: int
    features: FeatureBounds | None
    plan: SelectionPlan
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """Event that the ledger is charged."""
        return self.plan.event


class PrivateSelector(SelectorMixin, ExplicitSeed, BaseEstimator):
    """Base class of private selectors of columns.

    A subclass plans without data in `plan_selection` and selects in `select`, which
    gets the plan and the rows, but no budget. Rows are clipped to their public ranges,
    where there are any, and these are mapped to [-1, 1] unless ``own_units`` is set.
    """

    # the value of ``selector=`` for this class
    name: str
    # defaults for selectors without these parameters
    classes: Sequence[Any] | NDArray[Any] | None = None
    expected_rows: int | None = None
    fallback: str | Sequence[int | str] | None = None
    noise: str = "grid"
    # name of the method for `rows_for_support`; None if it has none
    method: str | None = None
    # whether `select` takes CSR rows, which are not centered
    takes_sparse = False
    # whether `select` gets features and targets in their own units
    own_units = False

    @abstractmethod
    def plan_selection(
        self, budget: Budget, n_rows: int, n_features: int
    ) -> SelectionPlan:
        """Return noise and steps, with ``event`` and ``assumptions``; reads no row.

        ``n_rows`` is the public number of rows, or a guess.
        """

    @abstractmethod
    def select(
        self, plan: Any, X: Any, y: Any, rng: Generator
    ) -> tuple[int, ...] | NoAnswer:
        """Return the indices of the selected columns in order, or `NoAnswer`.

        `fit` checks and charges before. Features are within their public ranges and may
        be overwritten, targets likewise; ``rng`` is the source of all noise.
        """

    def fit(self, X: Any, y: Any, *, ledger: Ledger | None = None) -> Self:
        """Select columns, charging the ledger first.

        Parameters
        ----------
        X
            Features, one row per person.
        y
            Targets or labels.
        ledger
            Ledger to charge; None creates one for this fit.
        """
        with all_or_nothing(self):
            return self._fit(X, y, ledger)

    def _fit(self, X: Any, y: Any, ledger: Ledger | None) -> Self:
        X = listed(X)
        n_rows, n_features = checked_shape(
            self,
            X,
            fitting=True,
            least_rows=2 if self._has_public_row_count() else 0,
            accept_sparse=self.takes_sparse,
        )
        y = checked_targets(y, n_rows, labels=self.classes is not None)
        planned = self._planned(n_rows, n_features, sparse=hasattr(X, "tocsr"))
        y = self._prepared_targets(y, planned.features)
        fallback = self._fallback_mask(n_features)
        rng = noise_generator(self.random_state)
        release = Release(
            planned.event,
            planned.budget,
            type(self).__name__,
            planned.assumptions,
            seeded=is_seeded(self.random_state),
        )

        def run(X: Any) -> tuple[int, ...] | NoAnswer:
            X = self._prepared_features(X, planned.features)
            return self.select(planned.plan, X, y, rng)

        selection, self.privacy_ = charged_run(
            release,
            ledger,
            run,
            check=lambda: canonical(checked_values(X, accept_sparse=self.takes_sparse)),
        )
        self._keep(selection, n_features, fallback)
        return self

    def plan(
        self, n_rows: int, n_features: int, *, sparse: bool = False
    ) -> PlannedSelection:
        """Return what `fit` will do and spend on rows of this shape; reads no row.

        Parameters
        ----------
        n_rows
            Number of rows, which is public or a guess.
        n_features
            Number of columns.
        sparse
            Whether rows will be a sparse matrix.
        """
        at_least(1, n_features=n_features)
        at_least(2 if self._has_public_row_count() else 0, n_rows=n_rows)
        return self._planned(int(n_rows), int(n_features), sparse=sparse)

    def _planned(
        self, n_rows: int, n_features: int, *, sparse: bool
    ) -> PlannedSelection:
        check_noise(self.noise)
        at_least(1, n_features_to_select=self.n_features_to_select)
        if self.n_features_to_select > n_features:
            raise ValueError(
                f"n_features_to_select must be at most the {n_features} feature(s) of "
                f"X, got {self.n_features_to_select!r}."
            )
        features = self._features(n_features, sparse)
        budget = guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows)
        planned_rows = planning_rows(budget, n_rows, self.expected_rows)
        plan = self.plan_selection(budget, planned_rows, n_features)
        assumptions = (*self._range_assumptions(features), *plan.assumptions)
        return PlannedSelection(budget, planned_rows, features, plan, assumptions)

    def transform(self, X: Any) -> Any:
        """Return the selected columns.

        Parameters
        ----------
        X
            Rows with the columns of the fit.
        """
        check_is_fitted(self)
        n_rows, _ = checked_shape(
            self, X, fitting=False, least_rows=0, accept_sparse=True
        )
        if n_rows > 0:
            return declared_like(super().transform(X), X)
        # scikit-learn rejects a table without rows, and a charge may lie behind
        kept = self.get_support(indices=True)
        found = X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]
        return declared_like(found, X)

    def _has_public_row_count(self) -> bool:
        """Return whether the number of rows is public."""
        return Neighbors.of(self.neighbors) is Neighbors.REPLACE_ONE

    def _features(self, n_features: int, sparse: bool) -> FeatureBounds | None:
        """Return the public ranges of features and targets, where there are any."""
        features = FeatureBounds.of(
            self.feature_bounds,
            columns_with_bounds(self, n_features),
            centered=not sparse,
            **self._public_targets(),
        )
        if sparse:
            features.require_zero()
        return features

    def _public_targets(self) -> dict[str, tuple[Any, ...]]:
        """Return the public labels or range of the targets, by parameter name."""
        if self.classes is None:
            return {"y_range": public_range(self.y_range)}
        if self.y_range is not None:
            raise ValueError(
                "y_range must be None where classes is given; give one of them."
            )
        return {"classes": two_labels(self.classes)}

    def _prepared_targets(self, y: NDArray[Any], features: FeatureBounds | None) -> Any:
        """Return targets with their range mapped to [-1, 1]."""
        assert features is not None  # selectors without ranges override this
        if features.classes is not None:
            return 2.0 * features.codes(y) - 1.0
        low, high = features.y_range
        middle = low / 2 + high / 2
        moved = (np.clip(numeric(y), low, high) - middle) / (high / 2 - low / 2)
        return np.clip(moved, -1.0, 1.0)  # quotients may round up to more than one

    def _prepared_features(self, X: Any, features: FeatureBounds | None) -> Any:
        """Return features with their ranges mapped to [-1, 1]."""
        assert features is not None
        return features.to_unit(X)

    def _range_assumptions(self, features: FeatureBounds | None) -> tuple[str, ...]:
        """Return assumptions on the ranges of features and targets."""
        assert features is not None
        if features.classes is not None:
            return (RANGED, LABELED)
        low, high = features.y_range
        return (RANGED, f"targets are clipped to [{low:g}, {high:g}]")

    def _keep(
        self,
        selection: tuple[int, ...] | NoAnswer,
        n_features: int,
        fallback: Mask | None,
    ) -> None:
        """Set the attributes that are released."""
        self.selection_ = selection
        self.released_ = not isinstance(selection, NoAnswer)
        self.support_: Mask | None = None
        if not isinstance(selection, NoAnswer):
            self.support_ = np.zeros(n_features, dtype=bool)
            self.support_[list(selection)] = True
        self._fallback = fallback

    def _fallback_mask(self, n_features: int) -> Mask | None:
        """Return the mask of the fallback columns; None without a fallback."""
        fallback = self.fallback
        if fallback is None:
            return None
        mask = np.zeros(n_features, dtype=bool)
        text = isinstance(fallback, str)
        if text and fallback == "all":
            mask[:] = True
            return mask
        if text or not np.iterable(fallback):
            given = repr(fallback) if text else type(fallback).__name__
            raise ValueError(
                f"fallback must be None, 'all' or a list of columns, got {given}."
            )
        names = list(getattr(self, "feature_names_in_", ()))
        for column in fallback:
            if isinstance(column, str) and column in names:
                mask[names.index(column)] = True
            elif (
                isinstance(column, Integral)
                and not isinstance(column, bool)
                and 0 <= column < n_features
            ):
                mask[column] = True
            else:
                raise ValueError(
                    "fallback must list columns of X by name or by index from 0 to "
                    f"{n_features - 1}, got {column!r}."
                )
        return mask

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "released_")
        if self.support_ is not None and self.support_.any():
            return self.support_
        if self._fallback is None:
            found = "selected no column" if self.released_ else "gave no answer"
            raise ValueError(
                f"{type(self).__name__} {found}, so there is no selection; set "
                "fallback to 'all' or to a list of columns."
            )
        return self._fallback

    def _transform(self, X: Any) -> Any:
        with warnings.catch_warnings():
            # the caller chose a fallback without columns
            warnings.filterwarnings("ignore", message="No features were selected")
            return super()._transform(X)

    def __sklearn_tags__(self) -> Tags:
        """Declare the rows and targets that are accepted."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.takes_sparse
        return tags


def two_labels(classes: Any) -> tuple[Any, ...]:
    """Return two public labels, sorted."""
    labels = sorted_classes(classes)
    if len(labels) != 2:
        raise ValueError("classes must name 2 labels, none of them missing.")
    return tuple(labels.tolist())
