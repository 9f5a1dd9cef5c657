"""The one path from rows to a private transformer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, Generic, Protocol, Self, TypeVar

from numpy.random import Generator
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    checked_shape,
    checked_values,
    guaranteed_budget,
)
from tacit._random import is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import at_least
from tacit.data.bounds import canonical
from tacit.data.declared import DeclaredBounds
from tacit.mechanisms.noise import check_noise
from tacit.preprocessing._bounded import BoundedOutput
from tacit.preprocessing._columns import (
    Ranges,
    columns_of,
    norm_bound,
    public_ranges,
    require_zero,
)
from tacit.preprocessing._parameters import checked_budget_numbers
from tacit.privacy import Budget, Event, Ledger, Neighbors, PrivacyReport

__all__ = ["PrivateTransformer"]


class TransformerPlan(Protocol):
    """Noise of a transformer, fixed without data."""

    @property
    def ranges(self) -> Ranges: ...

    @property
    def event(self) -> Event: ...

    @property
    def assumptions(self) -> tuple[str, ...]: ...


P = TypeVar("P", bound=TransformerPlan)


class PrivateTransformer(
    BoundedOutput,
    OneToOneFeatureMixin,
    TransformerMixin,
    ExplicitSeed,
    BaseEstimator,
    Generic[P],
):
    """A fit that plans without data, charges, and then learns.

    A subclass plans without data in ``_plan``, where it keeps its parameters as plain
    numbers, and keeps what it released in ``_learn``, which sees the plan and the rows.
    """

    epsilon: float
    delta: float | None
    ranges: Any
    neighbors: str | Neighbors
    noise: str
    random_state: Any
    ranges_: Ranges
    privacy_: PrivacyReport

    def fit(self, X: Any, y: Any = None, *, ledger: Ledger | None = None) -> Self:
        """Learn from the rows, charging the ledger first.

        Parameters
        ----------
        X
            Values, one row a person; dense, unless the class says otherwise.
        y
            Not used.
        ledger
            Ledger to charge; None creates one for this fit.
        """
        with all_or_nothing(self):
            return self._fit(X, ledger)

    def _fit(self, X: Any, ledger: Ledger | None) -> Self:
        taken = self._takes_sparse(X, fitting=True)
        n_rows, _ = checked_shape(
            self, X, fitting=True, least_rows=self._least_rows(), accept_sparse=taken
        )
        ranges = public_ranges(self.ranges, columns_of(self))
        if sparse.issparse(X):
            require_zero(ranges)
        budget, plan = self._planned(ranges, n_rows)
        rng = noise_generator(self.random_state)
        release = Release(
            plan.event,
            budget,
            type(self).__name__,
            (
                "values are clipped to the ranges (chosen without looking at the data)",
                *plan.assumptions,
            ),
            seeded=is_seeded(self.random_state),
        )
        _, self.privacy_ = charged_run(
            release,
            ledger,
            lambda X: self._learn(plan, X, rng),
            check=lambda: canonical(checked_values(X, accept_sparse=taken)),
        )
        self.ranges_ = ranges
        return self

    def plan(self, n_rows: int, n_features: int) -> P:
        """Return what `fit` will do and spend on rows of this shape; reads no row.

        Parameters
        ----------
        n_rows
            Number of rows, which is public or a guess.
        n_features
            Number of columns.
        """
        at_least(self._least_rows(), n_rows=n_rows)
        at_least(1, n_features=n_features)
        names = getattr(self, "feature_names_in_", None)
        if names is None and isinstance(self.ranges, Mapping):
            names = self.ranges  # the columns will be those that have ranges
        columns = range(n_features) if names is None else list(names)
        # what is kept of the parameters for `transform` stays that of the last fit
        return copy(self)._planned(public_ranges(self.ranges, columns), int(n_rows))[1]

    def _output_bounds(self, n_columns: int) -> DeclaredBounds:
        """Return the bounds of transformed rows, which hold whatever is learned."""
        largest = self._largest_entry()
        return DeclaredBounds(
            norm_bound(n_columns, largest), largest, type(self).__name__
        )

    def _least_rows(self) -> int:
        """Return the fewest rows to learn from: any number where it is private."""
        return 2 if Neighbors.of(self.neighbors) is Neighbors.REPLACE_ONE else 0

    def _planned(self, ranges: Ranges, n_rows: int) -> tuple[Budget, P]:
        """Return the budget and the plan, from public facts alone."""
        epsilon, delta = checked_budget_numbers(self.epsilon, self.delta)
        budget = guaranteed_budget(epsilon, delta, self.neighbors, n_rows)
        check_noise(self.noise)
        return budget, self._plan(ranges, budget, n_rows)

    def _checked(self, X: Any) -> Any:
        """Return the values of rows to transform."""
        check_is_fitted(self)
        taken = self._takes_sparse(X, fitting=False)
        checked_shape(self, X, fitting=False, least_rows=0, accept_sparse=taken)
        if sparse.issparse(X):
            require_zero(self.ranges_)
        return canonical(checked_values(X, accept_sparse=taken))

    def _takes_sparse(self, X: Any, *, fitting: bool) -> bool:
        """Return whether sparse rows are taken, or say how they would be."""
        return False

    @abstractmethod
    def _largest_entry(self) -> float:
        """Return the bound on entries of transformed rows, by the parameters."""

    @abstractmethod
    def _plan(self, ranges: Ranges, budget: Budget, n_rows: int) -> P: ...

    @abstractmethod
    def _learn(self, plan: P, X: Any, rng: Generator) -> None: ...

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn that single precision is kept."""
        tags: Tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
