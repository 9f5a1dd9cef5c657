"""Predictions of a teacher as votes; whatever is none is the public default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import listed
from tacit._suppress_output import attempt

__all__ = ["ClassVoting", "NumberVoting", "Voting"]

NUMBERS, TEXTS = "biuf", "U"
# Places of classes are kept in 16 bits
MOST_CLASSES = 2**15


class Voting:
    """What teachers vote on. A vote is a function of one prediction alone.

    Notes
    -----
    **Guarantee.** `cast` neither raises nor warns, whatever was predicted: what a
    learner makes of its rows may be anything, and must not be told in another way
    than by its votes.
    """

    dtype: type
    default: int | float

    def cast(self, predictions: Any, n: int) -> NDArray[Any]:
        """Return n votes; the default for each prediction that is none.

        Parameters
        ----------
        predictions
            What a teacher said of n questions, or None where it failed.
        n
            Number of questions.
        """
        votes = attempt(self._cast, predictions, n)
        return self.abstained(n) if votes is None else votes

    def abstained(self, n: int) -> NDArray[Any]:
        """Return the votes of a teacher that has nothing to say."""
        return np.full(n, self.default, dtype=self.dtype)

    def _cast(self, predictions: Any, n: int) -> NDArray[Any]:
        raise NotImplementedError


class ClassVoting(Voting):
    """Votes for one of public classes, by its place among them.

    Parameters
    ----------
    classes
        Public labels; the first is the default.
    """

    dtype = np.int16
    default = 0

    def __init__(self, classes: Sequence[Any] | NDArray[Any]) -> None:
        found = np.asarray(classes)
        self.classes = tuple(found.reshape(-1).tolist())
        self._positions = {
            label: position for position, label in enumerate(self.classes)
        }
        n_labels = len(self._positions)
        if found.shape != (n_labels,) or not 0 < n_labels <= MOST_CLASSES:
            raise ValueError(
                f"classes must be 1 to {MOST_CLASSES} labels that differ from each "
                "other."
            )
        self._order = np.argsort(found, kind="stable").astype(self.dtype)
        self._sorted = found[self._order]

    def _cast(self, predictions: Any, n: int) -> NDArray[np.int16]:
        labels = _one_each(predictions, n)
        kinds = {labels.dtype.kind, self._sorted.dtype.kind}
        if kinds <= set(NUMBERS) or kinds <= set(TEXTS):
            near = np.searchsorted(self._sorted, labels).clip(max=len(self.classes) - 1)
            found = self._sorted[near] == labels
            return np.where(found, self._order[near], self.dtype(self.default))
        return np.array([self._position(label) for label in labels], dtype=self.dtype)

    def _position(self, label: Any) -> int:
        try:
            return self._positions.get(label, self.default)
        except TypeError:  # what has no hash is no label
            return self.default


class NumberVoting(Voting):
    """Votes for numbers in a public range; the default is its middle.

    Parameters
    ----------
    low, high
        Ends of the range; numbers outside count as the nearer end.
    """

    dtype = np.float64

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = float(low), float(high)
        self.default = self.low / 2 + self.high / 2

    def _cast(self, predictions: Any, n: int) -> NDArray[np.float64]:
        numbers = _one_each(predictions, n)
        if numbers.dtype.kind not in NUMBERS:
            numbers = np.array([_number(value) for value in numbers], dtype=np.float64)
        numbers = numbers.astype(np.float64)
        votes = numbers.clip(self.low, self.high)
        return np.where(np.isnan(numbers), self.default, votes)


def _one_each(predictions: Any, n: int) -> NDArray[Any]:
    """Return n predictions as an array, or raise."""
    found = np.asarray(listed(predictions))
    # some learners predict one column
    if found.shape == (n, 1):
        found = found[:, 0]
    if found.shape != (n,):
        raise ValueError
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan
