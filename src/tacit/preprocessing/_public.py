"""Scaling and encoding by public facts, which costs no privacy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from tacit._estimators import Saved, all_or_nothing, checked_shape, checked_values
from tacit.data.bounds import canonical
from tacit.preprocessing._bounded import BoundedOutput
from tacit.preprocessing._columns import (
    checked_pair,
    columns_of,
    of_each_column,
    public_fill,
    public_ranges,
    stretched,
    zero_stays,
)
from tacit.preprocessing._parameters import (
    checked_truth,
    is_list,
    is_missing,
    is_several,
    shown,
)

__all__ = ["PublicOneHot", "PublicScaler"]


class PublicScaler(
    BoundedOutput, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    """Min-max scaling of columns from public ranges to a public target range.

    Values outside the range are clipped to it.

    Parameters
    ----------
    ranges
        Lowest and highest value of each column: a mapping from the name of a column
        to a pair, a sequence of one pair a column, or one pair for all columns. A
        mapping may name more columns than there are. Must not be read off the data.
    target
        Range of the result.
    missing
        Public value that stands in for missing ones, in the unit of the column: one
        number, or a mapping or sequence as for ``ranges``. None rejects them.

    Attributes
    ----------
    ranges_ : tuple of pairs
        Range of each column.
    x_norm_ : float
        Public bound on the Euclidean norm of a transformed row.
    x_max_ : float
        Public bound on the absolute value of an entry of a transformed row.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    **Guarantee.** Nothing is released: ``fit`` reads the names and the number of
    columns and no value, and each transformed row depends on that row alone. So there
    is no ``privacy_``, no ledger and no cost, and what a private model guarantees for
    its rows holds for the rows before scaling as well.

    Sparse rows stay sparse where zero becomes zero in every column, and are rejected
    elsewhere.

    Examples
    --------
    >>> from tacit.preprocessing import PublicScaler
    >>> scaler = PublicScaler(ranges=[(18, 98), (0, 80)])
    >>> scaler.fit_transform([[58.0, 20.0], [120.0, 80.0]])
    array([[ 0. , -0.5],
           [ 1. ,  1. ]])
    >>> round(scaler.x_norm_, 3)
    1.414
    """

    saved = Saved("public_step", private=False)

    def __init__(
        self, ranges: Any, target: Any = (-1.0, 1.0), *, missing: Any = None
    ) -> None:
        self.ranges = ranges
        self.target = target
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the names and the number of the columns, and nothing else."""
        with all_or_nothing(self):
            # in a private pipeline, an error here would show that there are no rows
            checked_shape(self, X, fitting=True, least_rows=0, accept_sparse=True)
            columns = columns_of(self)
            ranges = public_ranges(self.ranges, columns)
            target = checked_pair(self.target, "target")
            self._fill, self._target = public_fill(self.missing, columns), target
            self.ranges_ = ranges
            self._bound_entries(len(columns), max(map(abs, target)))
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows in the target range.

        They keep the precision they came in where it can hold that range.
        """
        check_is_fitted(self)
        checked_shape(self, X, fitting=False, least_rows=0, accept_sparse=True)
        if sparse.issparse(X) and not zero_stays(self.ranges_, self._target):
            raise ValueError(
                "PublicScaler keeps sparse X sparse only where zero becomes zero; "
                "give such ranges and target, or call X.toarray() first."
            )
        filled = self._fill is not None
        X = checked_values(X, accept_sparse=True, allow_missing=filled)
        lows, highs = np.array(self.ranges_).T
        return stretched(canonical(X), lows, highs, self._target, self._fill)

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn what is accepted and kept."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PublicOneHot(BoundedOutput, TransformerMixin, BaseEstimator):
    """One-hot encoding of public categories, with one column for all others.

    Parameters
    ----------
    categories
        Public categories of each column: a mapping from the name of a column to its
        categories, a sequence of one list a column, or one list for all columns. A
        mapping may name more columns than there are. Must not be read off the data.
    other
        Name of the indicator of all other values, missing ones included. Where it is
        a category itself, they join it. None gives them no indicator at all.
    sparse_output
        Whether to return CSR rows.

    Attributes
    ----------
    categories_ : list of lists
        Categories of each column, ``other`` included, in the order of the indicators.
    x_norm_ : float
        Public bound on the Euclidean norm of a transformed row: the root of the
        number of columns.
    x_max_ : float
        Public bound on the absolute value of an entry of a transformed row.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    **Guarantee.** Nothing is released: ``fit`` reads the names and the number of
    columns and no value, and each transformed row depends on that row alone. There is
    no ``privacy_``, no ledger and no cost. A value that is not listed does not raise,
    since that would reveal the rows.

    Examples
    --------
    >>> from tacit.preprocessing import PublicOneHot
    >>> encoder = PublicOneHot([["owner", "tenant"]])
    >>> encoder.fit_transform([["tenant"], ["squatter"]])
    array([[0., 1., 0.],
           [0., 0., 1.]])
    >>> list(encoder.get_feature_names_out(["housing"]))
    ['housing=owner', 'housing=tenant', 'housing=other']
    """

    saved = Saved("public_step", private=False)

    def __init__(
        self, categories: Any, other: Any = "other", *, sparse_output: bool = False
    ) -> None:
        self.categories = categories
        self.other = other
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the names and the number of the columns, and nothing else."""
        with all_or_nothing(self):
            checked_shape(self, _as_table(X), fitting=True, least_rows=0)
            self._sparse_output = checked_truth(self.sparse_output, "sparse_output")
            self.categories_ = self._public_categories(columns_of(self))
            self._check_distinct_names()
            self._elsewhere = [
                -1 if self.other is None else categories.index(self.other)
                for categories in self.categories_
            ]
            # one indicator a column, at most
            self._bound_entries(self.n_features_in_, 1.0)
        return self

    def transform(self, X: Any) -> Any:
        """Return the indicators, column by column."""
        check_is_fitted(self)
        X = _as_table(X)
        n_rows, _ = checked_shape(self, X, fitting=False, least_rows=0)
        table = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
        table = X.iloc if hasattr(X, "iloc") else np.asarray(table)
        starts = np.cumsum([0, *map(len, self.categories_)])
        listed_rows, listed_positions = [], []
        for column, categories in enumerate(self.categories_):
            codes = _codes(
                table[:, column].tolist(), categories, self._elsewhere[column]
            )
            listed = np.flatnonzero(codes >= 0)
            listed_rows.append(listed)
            listed_positions.append(starts[column] + codes[listed])
        rows = np.concatenate(listed_rows)
        positions = np.concatenate(listed_positions)
        if self._sparse_output:
            shape = (n_rows, int(starts[-1]))
            return sparse.csr_matrix(
                (np.ones(len(rows)), (rows, positions)), shape=shape
            )
        found = np.zeros((n_rows, int(starts[-1])))
        found[rows, positions] = 1.0
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return names of the form ``column=category``."""
        check_is_fitted(self)
        columns = _check_feature_names_in(self, input_features)
        return np.array(
            [
                f"{column}={category}"
                for column, categories in zip(columns, self.categories_, strict=True)
                for category in categories
            ],
            dtype=object,
        )

    def _public_categories(self, columns: Sequence[Any]) -> list[list[Any]]:
        given = self.categories
        listed = is_list(given)
        if not (isinstance(given, Mapping) or listed):
            raise ValueError(
                "categories must map columns to lists, give a list a column or one "
                f"list for all, got {type(given).__name__}."
            )
        if listed and len(given) and not is_several(given[0]):
            given = [given] * len(columns)
        self._check_other()
        found = []
        lists = of_each_column(given, columns, "categories", "list of categories")
        for column, given in zip(columns, lists, strict=True):
            try:
                categories = [] if isinstance(given, str) else list(given)
                distinct = len(set(categories)) == len(categories) > 0
            except TypeError:
                distinct = False
            if not distinct:
                raise ValueError(
                    f"categories of column {column!r} must be a list of distinct "
                    "values, at least one."
                )
            if any(map(is_missing, categories)):
                raise ValueError(
                    f"categories of column {column!r} must not hold missing "
                    "values; leave them out and use `other`, which counts them."
                )
            if self.other is not None and self.other not in categories:
                categories.append(self.other)
            found.append(categories)
        return found

    def _check_other(self) -> None:
        try:
            hash(self.other)
            usable = self.other is None or not is_missing(self.other)
        except TypeError:
            usable = False
        if not usable:
            raise ValueError(
                "other must be None or one name that is not missing, got "
                f"{shown(self.other)}."
            )

    def _check_distinct_names(self) -> None:
        seen: set[str] = set()
        for name in self.get_feature_names_out():
            if name in seen:
                raise ValueError(
                    f"categories must give each indicator a name of its own, and two "
                    f"would be {name!r}; leave one out or rename it."
                )
            seen.add(name)

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn what is accepted and kept."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _as_table(X: Any) -> Any:
    """Return a list of rows as a table of the very cells, whatever they are.

    Left to numpy, numbers beside text would become text, and lists more dimensions.
    """
    if hasattr(X, "shape") or not is_list(X) or not any(map(is_list, X)):
        return X
    if any(getattr(row, "ndim", 1) != 1 for row in X):
        return X
    if not all(map(is_list, X)) or len(set(map(len, X))) > 1:
        raise ValueError(
            "X must have 2 dimensions: one list a row, and all of one length."
        )
    table = np.empty((len(X), len(X[0])), dtype=object)
    for i, row in enumerate(X):
        for j, cell in enumerate(row):
            table[i, j] = cell
    return table


def _codes(
    values: Sequence[Any], categories: Iterable[Any], elsewhere: int
) -> NDArray[np.int64]:
    """Return the position of each value among the categories, or ``elsewhere``."""
    position = {category: code for code, category in enumerate(categories)}

    def code(value: Any) -> int:
        try:
            return position.get(value, elsewhere)
        except TypeError:  # a value without a hash is listed nowhere
            return elsewhere

    return np.fromiter(map(code, values), dtype=np.int64, count=len(values))
