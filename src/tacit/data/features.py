"""Public ranges of features, enforced by clipping entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data.bounds import TargetBounds, canonical

__all__ = ["FeatureBounds"]

Array = NDArray[np.float64]

# Sizes of a range: room is left for squares and quotients
NARROWEST, WIDEST = 1e-100, 1e100
# and its width over the larger end, below which entries are mostly round-off
LEAST_PART = 1e-9
NAME = "feature_bounds"


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
        for name in ("low", "high"):
            ends = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, tuple(ends.ravel().tolist()))
        low, high = self.ends
        if not len(low) == len(high) > 0:
            raise ValueError(
                "low and high must have one entry for each feature, got "
                f"{len(low)} and {len(high)}."
            )
        _check(low, high, "low and high")
        self._check_targets()

    def __repr__(self) -> str:
        return f"FeatureBounds({self.n_features} features)"

    @classmethod
    def of(
        cls, given: Any, columns: int | Sequence[Any], **fields: Any
    ) -> FeatureBounds:
        """Return the bounds that a person gave.

        Parameters
        ----------
        given
            One number, the largest absolute value of all features; a number for each;
            a pair for each, the lowest value and the highest; or a mapping of names to
            numbers or pairs.
        columns
            Names of the features, or how many there are.
        fields
            The other parameters of the class.
        """
        if given is None:
            raise ValueError(
                f"{NAME} must be given: the range of each feature, set without the "
                "data."
            )
        n_features = columns if isinstance(columns, int) else len(columns)
        if isinstance(given, Mapping):
            given = _of_each(given, columns)
        low, high = _ends(given, n_features)
        _check(low, high, NAME)
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
        self._refuse_width(X)
        low, high = self.ends
        if not sparse.issparse(X):
            return np.clip(np.asarray(X, dtype=np.float64), low, high)
        clipped = self._sparse_copy(X)
        places = clipped.indices
        np.clip(clipped.data, low[places], high[places], out=clipped.data)
        return clipped

    def to_unit(self, X: Any, out: Array | None = None) -> Any:
        """Return ``X`` with each range mapped to [-1, 1], dense or CSR as it was.

        Parameters
        ----------
        X
            Features in their own units.
        out
            Where to write a dense result.
        """
        self._refuse_width(X)
        low, high = self.ends
        if sparse.issparse(X):
            if self.centered:
                raise ValueError("Sparse rows cannot be centered; use centered=False.")
            units = self._sparse_copy(X)
            places = units.indices
            np.clip(units.data, low[places], high[places], out=units.data)
            units.data /= self.half_width[places]
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

    def refuse_without_zero(self) -> None:
        """Refuse ranges without 0, which sparse rows are full of."""
        low, high = self.ends
        if (low > 0).any() or (high < 0).any():
            raise ValueError(
                f"{NAME} must hold 0 in every range for sparse rows, whose entries "
                "are mostly 0; give such ranges, or dense rows."
            )

    def _sparse_copy(self, X: Any) -> Any:
        self.refuse_without_zero()
        X = canonical(X)
        copy = sparse.csr_array(X.astype(np.float64), copy=True)
        copy.has_canonical_format = True
        return copy

    def _refuse_width(self, X: Any) -> None:
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have {self.n_features} features, got {X.shape[1]}."
            )


def _of_each(given: Mapping[Any, Any], columns: int | Sequence[Any]) -> list[Any]:
    """Return what a mapping says of each named column, in their order."""
    if isinstance(columns, int):
        raise ValueError(
            f"{NAME} names features, and X has no names; give a list, or a DataFrame."
        )
    missing = [column for column in columns if column not in given]
    unknown = set(given) - set(columns)
    if missing or unknown:
        name, what = (missing[0], "no") if missing else (unknown.pop(), "an unknown")
        raise ValueError(
            f"{NAME} has {what} entry {name!r}; give one for each column of X."
        )
    return [given[column] for column in columns]


def _ends(given: Any, n_features: int) -> tuple[Array, Array]:
    """Return lowest and highest values from any of the forms they may have."""
    if isinstance(given, Real):
        given = [given] * n_features
    if not isinstance(given, np.ndarray):
        try:
            entries = list(given)
        except TypeError:
            entries = []
        # numbers and pairs side by side; text is no number, whatever numpy says
        pairs = [_pair(entry) for entry in entries] if len(entries) else None
        given = np.empty((0, 2)) if pairs is None else np.array(pairs, dtype=np.float64)
    if given.dtype.kind not in "fiu" or given.ndim not in (1, 2):
        raise ValueError(
            f"{NAME} must be a number, one number a feature, or one pair a feature."
        )
    found = given.astype(np.float64)
    if found.ndim == 1:
        found = np.column_stack([-found, found])
    if found.shape != (n_features, 2):
        raise ValueError(
            f"{NAME} must have one entry for each of the {n_features} features, got "
            f"{len(found)} entries."
        )
    return found[:, 0].copy(), found[:, 1].copy()


def _pair(entry: Any) -> tuple[float, float]:
    """Return the ends that a number or a pair stands for."""
    ends = (entry,) if isinstance(entry, Real) else entry
    try:
        ends = tuple(ends)
    except TypeError:
        ends = ()
    real = all(isinstance(e, Real) and not isinstance(e, bool | np.bool_) for e in ends)
    if len(ends) not in (1, 2) or not real:
        raise ValueError(
            f"{NAME} must be a number, one number a feature, or one pair a feature."
        )
    try:
        low, high = (-ends[0], ends[0]) if len(ends) == 1 else ends
        return float(low), float(high)
    except OverflowError:  # an integer beyond all floats
        return np.nan, np.nan


def _check(low: Array, high: Array, name: str) -> None:
    """Refuse ranges that are none."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(low), np.abs(high))
        # false also where one of them is no number
        sound = (low < high) & (size <= WIDEST)
    if not sound.all():
        raise ValueError(
            f"{name} must be finite and above zero, or pairs with the lower end first."
        )
    if not ((high - low > LEAST_PART * size) & (high - low >= NARROWEST)).all():
        raise ValueError(
            f"{name} must be ranges wider than round-off; leave constant features out."
        )
