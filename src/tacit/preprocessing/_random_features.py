"""Random features whose structure is drawn without data, which costs no privacy."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from tacit._estimators import Saved, all_or_nothing, checked_shape, checked_values
from tacit._random import RandomSource, public_generator
from tacit.mechanisms.noise import float_normal
from tacit.mechanisms.subsets import random_blocks
from tacit.preprocessing._bounded import BoundedOutput
from tacit.preprocessing._columns import (
    Ranges,
    columns_of,
    public_fill,
    public_ranges,
    stretched,
)
from tacit.preprocessing._parameters import (
    checked_integer,
    checked_number,
    checked_truth,
)

__all__ = ["RandomFourierFeatures", "RandomPartitionTrees"]

Floats = NDArray[np.float64]

# Rows are read in blocks of about this many entries, which stay in the cache
BLOCK_ENTRIES = 2**15
MOST_COMPONENTS, MOST_TREES, MOST_DEPTH = 2**16, 2**12, 12
# Numbers that a structure may consist of
MOST_NUMBERS = 2**24
# Largest and smallest length scale: features are constant, or noise, long before
LEAST_SCALE, MOST_SCALE = 1e-6, 1e6
# Entries are this much smaller than exact, so that rounding never exceeds norm 1
WITHIN = {np.dtype(np.float64): 1 - 2.0**-48, np.dtype(np.float32): 1 - 2.0**-22}
# No normal number that can be drawn is further than this from zero
MOST_NORMAL = 40.0
# Equally likely split points of a cell, within the middle half of it
SPLITS = 2**20


# deep: TransformerMixin and BaseEstimator are those of scikit-learn
class DrawnFeatures(BoundedOutput, TransformerMixin, BaseEstimator):
    """Features of single rows by a public structure that is drawn without data."""

    saved: ClassVar[Saved]

    ranges: Any
    missing: Any
    random_state: RandomSource
    ranges_: Ranges
    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the names and the number of the columns, and draw the structure."""
        with all_or_nothing(self):
            checked_shape(self, X, fitting=True, least_rows=0)
            columns = columns_of(self)
            self.ranges_ = public_ranges(self.ranges, columns)
            self._fill = public_fill(self.missing, columns)
            self._draw()
            # exact, as WITHIN leaves room for rounding
            self.x_norm_ = self.x_max_ = 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each row, whose norm is 1 up to rounding."""
        check_is_fitted(self)
        n_rows, n_columns = checked_shape(self, X, fitting=False, least_rows=0)
        X = checked_values(X, allow_missing=self._fill is not None)
        found = self._empty(n_rows, X.dtype)
        step = max(1, BLOCK_ENTRIES // max(n_columns, found.shape[1]))
        for start in range(0, n_rows, step):
            block = X[start : start + step].astype(np.float64)
            found[start : start + step] = self._features(block, X.dtype)
        return self._finished(found, X.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each feature."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(self._names(), dtype=object)

    def _empty(self, n_rows: int, dtype: Any) -> NDArray[Any]:
        return np.empty((n_rows, self._n_features_out), dtype=dtype)

    def _finished(self, found: NDArray[Any], dtype: Any) -> Any:
        return found

    @property
    @abstractmethod
    def _n_features_out(self) -> int: ...

    @abstractmethod
    def _draw(self) -> None:
        """Check the parameters and draw the structure."""

    @abstractmethod
    def _features(self, block: Floats, dtype: Any) -> NDArray[Any]:
        """Return the features of some rows, missing values not yet filled.

        They are computed entry by entry and not as a product of matrices, whose
        rounding may depend on how many rows there are.
        """

    @abstractmethod
    def _names(self) -> list[str]: ...

    @abstractmethod
    def _restored(self, arrays: dict[str, Floats]) -> bool:
        """Replace what was drawn by saved arrays; False if they cannot be drawn."""

    def _require_room(self, numbers: int) -> None:
        if numbers > MOST_NUMBERS:
            raise ValueError(
                f"{type(self).__name__} would draw {numbers} numbers for these columns "
                f"and parameters; at most {MOST_NUMBERS} are supported."
            )

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn what is accepted and kept."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RandomFourierFeatures(DrawnFeatures):
    """Cosines and sines of random projections, which approximate a Gaussian kernel.

    A linear model of them learns smooth interactions of columns.

    Parameters
    ----------
    ranges
        Lowest and highest value of each column: a mapping from the name of a column
        to a pair, a sequence of one pair a column, or one pair for all columns. Values
        outside are clipped. Must not be read off the data.
    n_components
        Number of projections, each of which gives two features: a cosine and a sine.
    length_scale
        Distance over which the kernel decreases, in widths of the ranges: values of a
        row are divided by the width of their range. None for ``0.2 * sqrt(p)`` with
        ``p`` columns.
    missing
        Public value that stands in for missing ones, in the unit of the column: one
        number, or a mapping or sequence as for ``ranges``. None rejects them.
    random_state
        Seed of the projections, which are public: no privacy depends on it. None for
        other projections in each fit.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, n_components)
        Projections: turns of the angle for each width of the range.
    ranges_ : tuple of pairs
        Range of each column.
    x_norm_ : float
        Public bound on the Euclidean norm of a transformed row, 1.0. All rows have this
        norm up to rounding.
    x_max_ : float
        Public bound on the absolute value of an entry of a transformed row.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    **Guarantee.** Nothing is released: ``fit`` reads the names and the number of
    columns and no value, and each transformed row depends on that row alone. There is
    no ``privacy_``, no ledger and no cost. The structure is public and drawn without
    data, so it may be published with its seed.

    The inner product of two rows approximates ``exp(-d^2 / (2 length_scale^2))`` of
    their distance ``d`` [1]_. More components approximate it better, but a private
    model has noise in the weight of each.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random features for large-scale kernel machines",
       NeurIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import RandomFourierFeatures
    >>> features = RandomFourierFeatures(ranges=[(18, 98), (0, 80)], n_components=4)
    >>> found = features.fit_transform([[58.0, 20.0], [120.0, 80.0]])
    >>> np.linalg.norm(found, axis=1).round(12)
    array([1., 1.])
    """

    saved = Saved("drawn_step", arrays=("frequencies",), private=False)

    def __init__(
        self,
        ranges: Any,
        n_components: int = 128,
        *,
        length_scale: float | None = None,
        missing: Any = None,
        random_state: RandomSource = 0,
    ) -> None:
        self.ranges = ranges
        self.n_components = n_components
        self.length_scale = length_scale
        self.missing = missing
        self.random_state = random_state

    @property
    def _n_features_out(self) -> int:
        return 2 * int(self.frequencies_.shape[1])

    def _draw(self) -> None:
        count = checked_integer(self.n_components, "n_components", 1, MOST_COMPONENTS)
        shape = self.n_features_in_, count
        self._require_room(count * self.n_features_in_)
        scale = default_length_scale(shape[0])
        if self.length_scale is not None:
            words = f"None or a number from {LEAST_SCALE:g} to {MOST_SCALE:g}"
            scale = checked_number(
                self.length_scale,
                "length_scale",
                words,
                lambda found: LEAST_SCALE <= found <= MOST_SCALE,
            )
        rng = public_generator(self.random_state, type(self).__name__, *shape)
        normal = float_normal(shape, rng)
        self.frequencies_ = normal / (2 * np.pi * scale)

    def _features(self, block: Floats, dtype: Any) -> NDArray[Any]:
        lows, highs = np.array(self.ranges_).T
        units = stretched(block, lows, highs, (-0.5, 0.5), self._fill)
        count = self.frequencies_.shape[1]
        turns = np.zeros((len(units), count))
        for column, frequencies in zip(units.T, self.frequencies_, strict=True):
            turns += column[:, None] * frequencies
        turns -= np.rint(turns)  # cosines of large angles are slow
        turns *= 2 * np.pi
        pair = np.hstack([np.cos(turns), np.sin(turns)])
        pair *= WITHIN[dtype] / sqrt(count)
        return pair

    def _names(self) -> list[str]:
        count = self.frequencies_.shape[1]
        return [f"{name}{i}" for name in ("cos", "sin") for i in range(count)]

    def _restored(self, arrays: dict[str, Floats]) -> bool:
        self.frequencies_ = arrays["frequencies"]
        largest = float(np.abs(self.frequencies_).max())
        return largest <= MOST_NORMAL / LEAST_SCALE


def default_length_scale(n_columns: int) -> float:
    """Return the default length scale, in widths of the ranges.

    This and the other defaults were chosen on the synthetic tables of
    ``python -m benchmarks.random_features --sweep``.
    """
    return 0.2 * sqrt(n_columns)


class RandomPartitionTrees(DrawnFeatures):
    """Leaves of random trees, which divide the ranges into cells.

    A linear model of them learns interactions of columns, steps and thresholds: it is a
    forest whose trees are drawn without data, and whose leaf values are learned.

    Parameters
    ----------
    ranges
        Lowest and highest value of each column: a mapping from the name of a column
        to a pair, a sequence of one pair a column, or one pair for all columns. Values
        outside belong to the cell at that end. Must not be read off the data.
    n_trees
        Number of trees. Each row is in one leaf of each.
    depth
        Number of splits between the root and each leaf: a tree has ``2 ** depth``
        leaves.
    missing
        Public value that stands in for missing ones, in the unit of the column: one
        number, or a mapping or sequence as for ``ranges``. None rejects them.
    sparse_output
        Whether to return CSR rows, with one entry a tree.
    random_state
        Seed of the trees, which are public: no privacy depends on it. None for other
        trees in each fit.

    Attributes
    ----------
    split_columns_ : ndarray of shape (n_trees, 2 ** depth - 1)
        Position of the column of each split; the splits below split ``i`` are
        ``2 * i + 1`` and ``2 * i + 2``.
    split_points_ : ndarray of shape (n_trees, 2 ** depth - 1)
        Largest value of that column on the first side of each split.
    ranges_ : tuple of pairs
        Range of each column.
    x_norm_ : float
        Public bound on the Euclidean norm of a transformed row, 1.0. All rows have this
        norm up to rounding.
    x_max_ : float
        Public bound on the absolute value of an entry of a transformed row.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    **Guarantee.** Nothing is released: ``fit`` reads the names and the number of
    columns and no value, and each transformed row depends on that row alone. There is
    no ``privacy_``, no ledger and no cost. The trees are public and drawn without data,
    so they may be published with their seed.

    Each split takes a column at random, and a point at random in the middle half of its
    cell, as in purely random forests [1]_. A leaf without rows costs nothing but noise
    in a weight that no row uses.

    References
    ----------
    .. [1] P. Geurts, D. Ernst, L. Wehenkel, "Extremely randomized trees", Machine
       Learning 63, 2006.

    Examples
    --------
    >>> from tacit.preprocessing import RandomPartitionTrees
    >>> trees = RandomPartitionTrees(ranges=[(18, 98), (0, 80)], n_trees=4, depth=2)
    >>> found = trees.fit_transform([[58.0, 20.0], [120.0, 80.0]])
    >>> found.shape, (found > 0).sum(axis=1).tolist()
    ((2, 16), [4, 4])
    """

    saved = Saved("drawn_step", arrays=("split_columns", "split_points"), private=False)

    def __init__(
        self,
        ranges: Any,
        n_trees: int = 30,
        depth: int = 4,
        *,
        missing: Any = None,
        sparse_output: bool = False,
        random_state: RandomSource = 0,
    ) -> None:
        self.ranges = ranges
        self.n_trees = n_trees
        self.depth = depth
        self.missing = missing
        self.sparse_output = sparse_output
        self.random_state = random_state

    @property
    def _n_leaves(self) -> int:
        return int(self.split_columns_.shape[1]) + 1

    @property
    def _n_features_out(self) -> int:
        return len(self.split_columns_) * self._n_leaves

    def _draw(self) -> None:
        n_trees = checked_integer(self.n_trees, "n_trees", 1, MOST_TREES)
        depth = checked_integer(self.depth, "depth", 1, MOST_DEPTH)
        self._sparse_output = checked_truth(self.sparse_output, "sparse_output")
        p, shape = self.n_features_in_, (n_trees, 2**depth - 1)
        self._require_room(n_trees * 2**depth * p)
        rng = public_generator(self.random_state, type(self).__name__, *shape, p)
        size = n_trees * shape[1]
        self.split_columns_ = random_blocks(size, p, rng).reshape(shape)
        cells = random_blocks(size, SPLITS, rng).reshape(shape)
        parts = 0.25 + (cells + 0.5) / (2 * SPLITS)
        self.split_points_ = _split_points(self.split_columns_, parts, self.ranges_)

    def _empty(self, n_rows: int, dtype: Any) -> NDArray[Any]:
        if not self._sparse_output:
            return super()._empty(n_rows, dtype)
        return np.empty((n_rows, len(self.split_columns_)), dtype=np.int64)

    def _features(self, block: Floats, dtype: Any) -> NDArray[Any]:
        if self._fill is not None:
            block = np.where(np.isnan(block), self._fill, block)
        n_trees, n_leaves = len(self.split_columns_), self._n_leaves
        trees, rows = np.arange(n_trees), np.arange(len(block))[:, None]
        found = np.zeros((len(block), n_trees), dtype=np.int64)
        while n_leaves > 1:
            values = block[rows, self.split_columns_[trees, found]]
            found = 2 * found + 1 + (values > self.split_points_[trees, found])
            n_leaves //= 2
        # leaves come after the splits, and trees side by side
        found += trees * self._n_leaves - self.split_columns_.shape[1]
        if self._sparse_output:
            return found
        dense = np.zeros((len(block), self._n_features_out), dtype=dtype)
        dense[rows, found] = WITHIN[dtype] / sqrt(n_trees)
        return dense

    def _finished(self, found: NDArray[Any], dtype: Any) -> Any:
        if not self._sparse_output:
            return found
        n_rows, n_trees = found.shape
        return sparse.csr_matrix(
            (
                np.full(found.size, WITHIN[dtype] / sqrt(n_trees), dtype=dtype),
                found.ravel(),
                np.arange(0, found.size + 1, n_trees),
            ),
            shape=(n_rows, self._n_features_out),
        )

    def _names(self) -> list[str]:
        return [
            f"tree{tree}_leaf{leaf}"
            for tree in range(len(self.split_columns_))
            for leaf in range(self._n_leaves)
        ]

    def _restored(self, arrays: dict[str, Floats]) -> bool:
        columns, points = arrays["split_columns"], arrays["split_points"]
        known = (columns == np.rint(columns)) & (columns >= 0)
        if not (known & (columns < self.n_features_in_)).all():
            return False
        self.split_columns_ = columns.astype(np.int64)
        self.split_points_ = points
        lows, highs = np.array(self.ranges_).T[:, self.split_columns_]
        return bool(((lows <= points) & (points <= highs)).all())


def _split_points(columns: NDArray[Any], parts: Floats, ranges: Ranges) -> Floats:
    """Return the point of each split, at a part of the width of its cell."""
    n_trees, n_splits = columns.shape
    lows, highs = np.array(ranges).T
    trees = np.arange(n_trees)[:, None]
    # ends of the cells of one level, by tree, cell and column
    first = np.broadcast_to(lows, (n_trees, 1, len(lows))).copy()
    last = np.broadcast_to(highs, (n_trees, 1, len(lows))).copy()
    points = np.empty(columns.shape)
    start, size = 0, 1
    while start < n_splits:
        level, cells = slice(start, start + size), np.arange(size)
        at = trees, cells, columns[:, level]
        found = first[at] + parts[:, level] * (last[at] - first[at])
        points[:, level] = np.clip(found, first[at], last[at])  # rounding is within
        first, last = np.repeat(first, 2, axis=1), np.repeat(last, 2, axis=1)
        last[trees, 2 * cells, columns[:, level]] = points[:, level]
        first[trees, 2 * cells + 1, columns[:, level]] = points[:, level]
        start, size = start + size, 2 * size
    return points
