"""Margins of classes: the labels and the probabilities that they stand for.

A model of two classes has one margin a row, positive for the second; of more classes,
one for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.convex import OneVsRest

__all__ = ["class_margins", "class_probabilities", "likeliest_labels"]

Array = NDArray[np.float64]


def class_margins(scores: Array) -> Array:
    """Return the columns of scores as margins, a single column as a vector."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def likeliest_labels(margins: Array, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the most likely label of each row."""
    one = margins.ndim == 1
    codes = (margins > 0).astype(int) if one else margins.argmax(axis=1)
    labels: NDArray[Any] = classes[codes]
    return labels


def class_probabilities(margins: Array, loss: Any) -> Array:
    """Return the probability of each class for each row, under a logistic loss."""
    found: Array
    if margins.ndim == 1:
        ends = [loss.probability(-margins), loss.probability(margins)]
        found = np.column_stack(ends)
    elif isinstance(loss, OneVsRest):
        found = loss.probability(margins)
    else:
        found = special.softmax(margins, axis=1)
    return found
