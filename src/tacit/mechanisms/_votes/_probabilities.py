"""Probabilities of votes and of the Laplace noise on them, before any data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri, xlog1py, xlogy

__all__ = [
    "Distributions",
    "Outcome",
    "VoteDistribution",
    "difference_tail",
    "laplace_tail",
    "tail_point",
    "tail_points",
]

Array = NDArray[np.float64]

# counts that are left out have less probability than this, each
NEGLIGIBLE = 1e-15
QUANTILES = (np.arange(32) + 0.5) / 32
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Outcome:
    """Expected outcome of one query.

    Parameters
    ----------
    answered
        Probability of an answer.
    right
        Probability that it is answered with the label that is most likely for a
        teacher.
    """

    answered: float
    right: float

    @property
    def accuracy(self) -> float:
        """Probability that an answer is right; zero without answers."""
        return self.right / self.answered if self.answered > 0 else 0.0


@dataclass(frozen=True)
class VoteDistribution:
    """Independent votes on one query.

    Parameters
    ----------
    n_teachers
        Number of votes.
    agreement
        Probability that a teacher gives the label that is most likely.
    n_classes
        Number of labels; the others are equally likely.

    Notes
    -----
    **Bound.** Votes for the most likely label are binomial. Those for each other label
    are taken as independent and normal given that number, with the multinomial mean,
    and a variance that gives their differences the multinomial one. With two classes
    nothing is approximated.
    """

    n_teachers: int
    agreement: float
    n_classes: int

    @cached_property
    def _matter(self) -> tuple[NDArray[np.int64], Array]:
        n, counts = self.n_teachers, np.arange(self.n_teachers + 1, dtype=np.int64)
        ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
        each = xlogy(counts, self.agreement) + xlog1py(n - counts, -self.agreement)
        found = np.exp(ways + each)
        kept = found > NEGLIGIBLE
        return counts[kept], found[kept] / found[kept].sum()

    @property
    def counts(self) -> NDArray[np.int64]:
        """Numbers of votes for the most likely label, without negligible ones."""
        return self._matter[0]

    @property
    def probabilities(self) -> Array:
        """Probability of each of `counts`."""
        return self._matter[1]

    @cached_property
    def leads(self) -> NDArray[np.int64]:
        """Votes ahead of the largest other label, by count and quantile of the other.

        Below zero where another label is ahead.
        """
        mean, std = self._others(0.0)
        # with two classes the other has all votes that are left
        quantiles = QUANTILES if self.n_classes > 2 else np.array([0.5])
        positions = ndtri(quantiles ** (1 / (self.n_classes - 1)))
        others = np.rint(mean[:, None] + std[:, None] * positions)
        rest = self.n_teachers - self.counts
        most: NDArray[np.int64] = np.clip(others, 0, rest[:, None]).astype(np.int64)
        return np.asarray(self.counts[:, None] - most)

    @property
    def tops(self) -> NDArray[np.int64]:
        """Votes for the label with most of them, in the shape of `leads`."""
        first = self.counts[:, None]
        return np.asarray(np.maximum(first, first - self.leads))

    def right(self, scale: float) -> Array:
        """Return how likely each count wins, with Gaussian noise on all counts."""
        mean, std = self._others(scale)
        ahead = self.counts[:, None] + scale * NODES - mean[:, None]
        each = ndtr(ahead / std[:, None])
        return np.asarray(each ** (self.n_classes - 1) @ WEIGHTS)

    def expected(self, values: Array) -> float:
        """Return the mean of something that depends on the count, or on the lead."""
        if values.ndim == 2:
            values = values.mean(axis=1)
        return float(self.probabilities @ values)

    def _others(self, scale: float) -> tuple[Array, Array]:
        """Return mean and standard deviation of noisy votes for one other label."""
        rest = (self.n_teachers - self.counts).astype(np.float64)
        each = rest / (self.n_classes - 1)
        # differences of multinomial counts vary as if counts were Poisson
        own = each if self.n_classes > 2 else np.zeros_like(each)
        return each, np.sqrt(own + scale**2)


# Fractions of the queries, each with the distribution of the votes on them
Distributions = tuple[tuple[float, VoteDistribution], ...]


# more than the round-off of a tail, and far less than a cell of any grid
MARGIN = 1e-12


def difference_tail(at: float, first: float, second: float) -> float:
    """Return the probability that Laplace noise passes another by more than ``at``.

    Parameters
    ----------
    at
        Level, of either sign.
    first
        Scale of the one.
    second
        Scale of the other.

    Notes
    -----
    **Bound.** For scales p > q and a level w from zero on the probability is
    ``(p^2 exp(-w/p) - q^2 exp(-w/q)) / (2 (p^2 - q^2))``, by integration of the
    product of the densities. It is written so that nothing cancels where they are
    equal, when it is ``exp(-w/p) (2 + w/p) / 4``.
    """
    if at < 0:
        return 1.0 - difference_tail(-at, first, second)
    p, q = max(first, second), min(first, second)
    x = at * (p - q) / (p * q)
    part = -expm1(-x) / x if x > 1e-12 else 1.0
    return exp(-at / p) * (0.5 + at * q / (2 * p * (p + q)) * part)


def tail_point(probability: float, first: float, second: float) -> float:
    """Return a level that is passed with at most this probability; zero from 1/2 on.

    Notes
    -----
    **Bound.** The log of the tail is concave, so each step of Newton's method ends at
    or above the root; a relative `MARGIN` covers its round-off.
    """
    if probability >= 0.5:
        return 0.0
    scales = np.array([max(first, second)]), np.array([min(first, second)])
    at = float(tail_points(log(probability), *scales)[0]) * (1 + MARGIN)
    while difference_tail(at, first, second) * (1 + MARGIN) > probability:
        at *= 1 + MARGIN
    return at


def tail_points(log_probability: float, first: Array, second: Array) -> Array:
    """Return `tail_point` for many pairs of scales, without its margin."""
    p, q = np.maximum(first, second), np.minimum(first, second)
    at = np.zeros_like(p)
    rate = (p - q) / (p * q)
    weight = q / (2 * p * (p + q))
    for _ in range(60):
        x = rate * at
        small = x < 1e-12
        safe = np.where(small, 1.0, x)
        part = np.where(small, 1.0, -np.expm1(-safe) / safe)
        inside = 0.5 + at * weight * part
        derivative = -1 / p + weight * np.exp(-x) / inside
        step = (log_probability + at / p - np.log(inside)) / derivative
        at = np.maximum(at + step, 0.0)
        if np.all(np.abs(step) <= 1e-14 * at):
            break
    return at


def laplace_tail(at: Array) -> Array:
    """Return the probabilities that Laplace noise of scale one passes these levels."""
    below = np.exp(-np.abs(at)) / 2
    return np.where(at > 0, below, 1 - below)
