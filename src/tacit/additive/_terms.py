"""Terms of an additive model: the features of a row in one column or in two.

A column of numbers has cosines of the position of its bin, the slower with the larger
weight. So the noise of a fit is mostly in slow waves, and shapes with many bins are no
noisier than a straight line. Features are centered by the released counts of bins: what
all rows share would only add to their norm, and so to the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.additive._bins import Bins

__all__ = [
    "ROW_NORM",
    "Term",
    "Waves",
    "main_terms",
    "pair_factor",
    "ranges_of",
    "shapes_of",
    "usual_waves",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Waves:
    """Cosines of a column of numbers, of which the k-th has weight ``k ** -decay``."""

    count: int
    decay: float


# Cosines of classifiers and regressors where the noise is NOISE, and the power of the
# noise with which they become fewer; by benchmarks/additive/fit_rule.py
CLASSIFIER_WAVES, REGRESSOR_WAVES, WAVES_POWER = Waves(21, 0.6), Waves(13, 0.9), 0.3
NOISE, FEWEST_WAVES, MOST_WAVES = 0.001, 8, 32
# Beyond so many columns, cosines become fewer in proportion: all of them together have
# the noise. By benchmarks/additive/fit_rule.py
MANY_COLUMNS = 16
# Cosines of each column of a pair, and the most categories that one has there
PAIR_WAVES, PAIR_CATEGORIES = Waves(3, 1.0), 8
# The features of a row are scaled, by released counts, to a mean squared norm of one
# over ROOM, and clipped to ROW_NORM in gradients and moments; by
# benchmarks/additive/fit_rule.py
ROW_NORM, ROOM = 1.0, 0.8
# Features of a column are divided by this power of their mean square, which enlarges
# columns that differ in few rows, such as amounts that most rows lack: these rows carry
# most of the information. By benchmarks/additive/fit_rule.py
SPREAD_POWER = 0.25
# A column counts as spread by at least this much, as counts of one that is nearly
# constant are mostly noise
LEAST_SPREAD = 0.02


def usual_waves(noise: float, n_columns: int, *, regression: bool) -> Waves:
    """Return the cosines of a column of numbers: more where noise is low.

    ``noise`` is that of one release of the mean of rows of norm one.
    """
    noise *= sqrt(n_columns)
    usual = REGRESSOR_WAVES if regression else CLASSIFIER_WAVES
    count = usual.count * float((NOISE / noise) ** WAVES_POWER)
    count = round(min(count, MOST_WAVES) * min(1.0, MANY_COLUMNS / n_columns))
    return replace(usual, count=max(count, FEWEST_WAVES))


@dataclass(frozen=True, eq=False)
class Term:
    """Features of one column, or products of features of two.

    Parameters
    ----------
    columns
        Positions of the columns.
    factors
        Features of each bin, one matrix per column.
    """

    columns: tuple[int, ...]
    factors: tuple[Array, ...]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(np.prod([factor.shape[1] for factor in self.factors]))

    def features(self, bins: NDArray[np.intp]) -> Array:
        """Return the features of rows, given the bins of all columns."""
        parts = (
            factor[bins[:, column]]
            for column, factor in zip(self.columns, self.factors, strict=True)
        )
        return reduce(_products, parts)

    def shape(self, weights: Array) -> Array:
        """Return what the term adds to margins: an axis per column, and one of margins.

        ``weights`` are those of its features, with a column for each margin.
        """
        sizes = [factor.shape[1] for factor in self.factors]
        values = weights.reshape(*sizes, weights.shape[1])
        for axis, factor in enumerate(self.factors):
            values = np.moveaxis(np.tensordot(factor, values, (1, axis)), 0, axis)
        return np.asarray(values, dtype=np.float64)


def _products(first: Array, second: Array) -> Array:
    # the number of products is stated, as it cannot be inferred without rows
    shape = len(first), first.shape[1] * second.shape[1]
    return (first[:, :, None] * second[:, None, :]).reshape(shape)


def ranges_of(terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Return where the weights of each term begin and end."""
    ends = np.cumsum([0, *(term.n_features for term in terms)]).tolist()
    return list(pairwise(ends))


def shapes_of(terms: Sequence[Term], weights: Array) -> list[Array]:
    """Return what each bin of each term adds to the margins."""
    return [
        term.shape(weights[start:end])
        for term, (start, end) in zip(terms, ranges_of(terms), strict=True)
    ]


def main_terms(bins: Sequence[Bins], waves: Waves) -> list[Term]:
    """Return the term of each column, with features of usual norm together."""
    factors, spread = [], 0.0
    for each in bins:
        fractions = each.fractions
        factor = _factor(each, waves)
        factor = factor - fractions @ factor
        own = max(float(fractions @ (factor**2).sum(axis=1)), LEAST_SPREAD)
        factors.append(factor / own**SPREAD_POWER)
        spread += own ** (1 - 2 * SPREAD_POWER)
    scale = ROW_NORM / np.sqrt(ROOM * spread)
    return [Term((k,), (scale * factor,)) for k, factor in enumerate(factors)]


def _factor(bins: Bins, waves: Waves) -> Array:
    """Return the features of each bin of a column; a missing cell has its own."""
    if not bins.column.is_numeric:
        return np.eye(bins.n_bins)
    factor = np.zeros((bins.n_bins, waves.count + 1))
    factor[:-1, :-1] = _cosines(bins, waves)
    factor[-1, -1] = 1.0
    return factor


def pair_factor(bins: Bins) -> Array:
    """Return the few features that a column has in pairs."""
    if bins.column.is_numeric:
        factor = np.zeros((bins.n_bins, PAIR_WAVES.count))
        factor[:-1] = _cosines(bins, PAIR_WAVES)
        return factor
    largest = np.argsort(-bins.mass, kind="stable")[:PAIR_CATEGORIES]
    return np.eye(bins.n_bins)[:, np.sort(largest)]


def _cosines(bins: Bins, waves: Waves) -> Array:
    """Return cosines at the bins, such that the squares of weights sum to one."""
    rates = np.arange(1, waves.count + 1)
    weights = np.float64(1.0) / rates**waves.decay
    cosines = np.cos(np.pi * np.outer(bins.position, rates))
    found: Array = cosines * (weights / np.linalg.norm(weights))
    return found
