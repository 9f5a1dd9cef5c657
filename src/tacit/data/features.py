"""Public ranges of features, enforced by clipping entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data.bounds import TargetBounds, canonical

__all__ = ["FeatureBounds", "columns_with_bounds"]

Array = NDArray[np.float64]
# Names of features, or how many there are
Columns = int | Sequence[Any]

# Sizes of a range: room is left for squares and quotients
NARROWEST, WIDEST = 1e-100, 1e100
# and its width over the larger end, below which entries are mostly round-off
LEAST_PART = 1e-9
NAME = "feature_bounds"
FORMS = (
    f"{NAME} must be a number, one number a feature, one pair a feature, or a dict "
    "from names to numbers or pairs."
)
# Names that a message lists
MOST_NAMED = 5


@dataclass(frozen=True, repr=False)
class FeatureBounds(TargetBounds):
    """The public range of each feature, whatever the data.

    Parameters
    ----------
    low
        Lowest value of each feature.
    high
        Highest value of each feature.
    centered
        Whether `to_unit` moves the middle of each range to zero. Rows stay sparse, and
        a model without an intercept stays one, only where it does not.
    y_range
        Lowest and highest target of a regression.
    classes
        Public labels of a classification, or None.

    Notes
    -----
    **Bound.** After `clip` every entry is within its range, and after `to_unit` within
    [-1, 1]: both end with a cut that compares and does not compute, so that the bound
    holds for the numbers as they are stored. Entries inside are clipped to themselves,
    bit for bit.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    centered: bool = True
    y_range: tuple[float, float] = (-1.0, 1.0)
    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        self._check_targets()
        for name in ("low", "high"):
            ends = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, tuple(ends.ravel().tolist()))
        low, high = self.ends
        if not len(low) == len(high) > 0:
            raise ValueError(
                "low and high must have one entry for each feature, got "
                f"{len(low)} and {len(high)}."
            )
        _check(low, high, lambda j: f"low[{j}], high[{j}]")

    def __repr__(self) -> str:
        return f"FeatureBounds({self.n_features} features)"

    @classmethod
    def of(cls, given: Any, columns: Columns, **fields: Any) -> FeatureBounds:
        """Return the bounds that a person gave.

        ``given`` is one number, the largest absolute value of all features; a number
        for each; a pair for each, the lowest value and the highest; or a mapping of
        names to numbers or pairs. A tuple of two numbers is one pair for all features,
        and is rejected where there are two features, as it might be a number for each.
        ``columns`` are the names of the features, or how many there are; ``fields`` the
        other parameters of the class.
        """
        if given is None:
            raise ValueError(
                f"{NAME} must be given: the range of each feature, set without the "
                "data."
            )
        if isinstance(given, Mapping):
            given = _of_each(given, columns)
        low, high = _ends(given, columns).T
        _check(low, high, lambda j: _entry(j, columns))
        return cls(tuple(low.tolist()), tuple(high.tolist()), **fields)

    @property
    def norm(self) -> str:
        """``"linf"``, as entries are bounded one by one."""
        return "linf"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.low)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Lowest and highest values as vectors."""
        return np.array(self.low), np.array(self.high)

    @cached_property
    def center(self) -> Array:
        """Value of each feature that `to_unit` maps to zero."""
        low, high = self.ends
        middle: Array = low / 2 + high / 2 if self.centered else np.zeros(len(low))
        return middle

    @cached_property
    def half_width(self) -> Array:
        """What one unit of `to_unit` is, for each feature."""
        low, high = self.ends
        half: Array = np.maximum(high - self.center, self.center - low)
        return half

    def clip(self, X: Any) -> Any:
        """Return ``X`` in float64, dense or CSR as it was, every entry in its range."""
        self._check_width(X)
        low, high = self.ends
        if not sparse.issparse(X):
            return np.clip(np.asarray(X, dtype=np.float64), low, high)
        clipped = self._sparse_copy(X)
        positions = clipped.indices
        np.clip(clipped.data, low[positions], high[positions], out=clipped.data)
        return clipped

    def to_unit(self, X: Any, out: Array | None = None) -> Any:
        """Return ``X`` with each range mapped to [-1, 1], dense or CSR as it was.

        A dense result is written to ``out`` where it is given.
        """
        self._check_width(X)
        low, high = self.ends
        if sparse.issparse(X):
            if self.centered:
                raise ValueError("Sparse rows cannot be centered; use centered=False.")
            units = self._sparse_copy(X)
            positions = units.indices
            np.clip(units.data, low[positions], high[positions], out=units.data)
            units.data /= self.half_width[positions]
            np.clip(units.data, -1.0, 1.0, out=units.data)
            return units
        moved = np.empty(X.shape) if out is None else out
        moved[...] = X  # first, as float32 would round the ends
        np.clip(moved, low, high, out=moved)
        moved -= self.center
        moved /= self.half_width
        # quotients may round up to more than one
        np.clip(moved, -1.0, 1.0, out=moved)
        return moved

    def from_unit(self, units: Any) -> Any:
        """Return what `to_unit` made these of, but for last digits and what it cut."""
        self._check_width(units)
        if sparse.issparse(units):
            X = self._sparse_copy(units)
            X.data *= self.half_width[X.indices]
            return self.clip(X)
        return self.clip(units * self.half_width + self.center)

    def require_zero(self) -> None:
        """Reject ranges without 0, which sparse rows are full of."""
        low, high = self.ends
        if (low > 0).any() or (high < 0).any():
            raise ValueError(
                f"{NAME} must hold 0 in every range for sparse rows, whose entries "
                "are mostly 0; give such ranges, or dense rows."
            )

    def _sparse_copy(self, X: Any) -> Any:
        self.require_zero()
        X = canonical(X)
        copy = sparse.csr_array(X.astype(np.float64), copy=True)
        copy.has_canonical_format = True
        return copy

    def _check_width(self, X: Any) -> None:
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have {self.n_features} features, got {X.shape[1]}."
            )


def _of_each(given: Mapping[Any, Any], columns: Columns) -> list[Any]:
    """Return what a mapping says of each named column, in their order."""
    if isinstance(columns, int):
        raise ValueError(
            f"{NAME} names features, and X has no names; give a list, or a DataFrame."
        )
    missing = [column for column in columns if column not in given]
    named = set(columns)
    unknown = [name for name in given if name not in named]
    for names, what in ((missing, "no entry"), (unknown, "an unknown entry")):
        if names:
            raise ValueError(
                f"{NAME} has {what} {_some(names)}; give one for each column of X."
            )
    return [given[column] for column in columns]


def _some(names: Sequence[Any]) -> str:
    """Return the first few names as text."""
    listed = ", ".join(map(repr, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    return f"{listed} and {more} more" if more > 0 else listed


def _ends(given: Any, columns: Columns) -> Array:
    """Return a pair for each feature, from any of the forms they may have."""
    n_features = _count(columns)
    if _is_number(given):
        return _of_all(given, n_features)
    if isinstance(given, tuple) and len(given) == 2 and all(map(_is_number, given)):
        if n_features == 2:
            ends = ", ".join(f"{end:.15g}" for end in _pair(given) or ())
            raise ValueError(
                f"{NAME}=({ends}) may mean one pair or two largest values; write "
                f"[({ends}), ({ends})] for the pair, or [{ends}] for one value each."
            )
        return _of_all(given, n_features)
    if isinstance(given, str | bytes) or not np.iterable(given):
        raise ValueError(FORMS)
    if isinstance(given, np.ndarray):
        if given.dtype.kind not in "fiu" or given.ndim not in (1, 2):
            raise ValueError(FORMS)
        found = given.astype(np.float64)
        if found.ndim == 1:
            found = np.column_stack([-found, found])
    else:
        # numbers and pairs side by side; text is no number, whatever numpy says
        pairs = [_pair(entry) for entry in given]
        for position, pair in enumerate(pairs):
            if pair is None:
                raise ValueError(
                    f"{_entry(position, columns)} must be a number or a pair of "
                    "numbers."
                )
        found = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    if found.shape != (n_features, 2):
        raise ValueError(
            f"{NAME} must have one entry for each of the {n_features} features, got "
            f"{len(found)} entries."
        )
    return found


def _of_all(given: Any, n_features: int) -> Array:
    """Return one number or pair for every feature."""
    ends: Array = np.array(_pair(given), dtype=np.float64)
    _check(ends[:1], ends[1:], lambda _: NAME)
    return np.tile(ends, (n_features, 1))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _pair(entry: Any) -> tuple[float, float] | None:
    """Return the ends that a number or a pair stands for; None for what is neither."""
    try:
        ends = (entry,) if isinstance(entry, Real) else tuple(entry)
    except TypeError:
        return None
    if len(ends) not in (1, 2) or not all(map(_is_number, ends)):
        return None
    try:
        low, high = (-ends[0], ends[0]) if len(ends) == 1 else ends
        return float(low), float(high)
    except OverflowError:  # an integer beyond all floats
        return np.nan, np.nan


def _count(columns: Columns) -> int:
    return columns if isinstance(columns, int) else len(columns)


def _entry(position: int, columns: Columns) -> str:
    """Return what an entry is called: by the name of its column, or by its index."""
    if isinstance(columns, int) or position >= len(columns):
        return f"{NAME}[{position}]"
    return f"{NAME}[{columns[position]!r}]"


def _check(low: Array, high: Array, name: Callable[[int], str]) -> None:
    """Reject invalid ranges, and name the first."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(low), np.abs(high))
        # false also where one of them is no number
        sound = (low < high) & (size <= WIDEST)
        wide = (high - low > LEAST_PART * size) & (high - low >= NARROWEST)
    for right, words in (
        (sound, "must be finite and above zero, or a pair with the lower end first"),
        (wide, "must be a range wider than round-off; leave constant features out"),
    ):
        if not right.all():
            position = int(np.argmin(right))
            raise ValueError(f"{name(position)} {words}.")


def columns_with_bounds(estimator: Any, n_features: int) -> int | list[Any]:
    """Return the names of the features, or their number if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == n_features:
        return list(names)
    bounds = estimator.feature_bounds
    if isinstance(bounds, Mapping) and not hasattr(estimator, "n_features_in_"):
        # a plan before any fit: the columns are those with bounds
        if len(bounds) == n_features:
            return list(bounds)
        raise ValueError(
            f"feature_bounds has {len(bounds)} entries, and the plan is for "
            f"{n_features} features; give one for each."
        )
    return n_features
