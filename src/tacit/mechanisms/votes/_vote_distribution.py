"""How teachers vote on a question, before there are teachers: a binomial model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri, xlog1py, xlogy

__all__ = ["Distributions", "Told", "VoteDistribution"]

Array = NDArray[np.float64]

# counts that are left out have less probability than this, each
NEGLIGIBLE = 1e-15
QUANTILES = (np.arange(32) + 0.5) / 32
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Told:
    """What happens to one question.

    Parameters
    ----------
    answered
        Probability of an answer.
    right
        Probability that it is answered with the label most teachers are expected to
        give.
    """

    answered: float
    right: float

    @property
    def accuracy(self) -> float:
        """Probability that an answer is right; zero if there is none."""
        return self.right / self.answered if self.answered > 0 else 0.0


@dataclass(frozen=True)
class VoteDistribution:
    """Independent votes on one question.

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
        odds = xlogy(counts, self.agreement) + xlog1py(n - counts, -self.agreement)
        found = np.exp(ways + odds)
        kept = found > NEGLIGIBLE
        return counts[kept], found[kept] / found[kept].sum()

    @property
    def counts(self) -> NDArray[np.int64]:
        """Numbers of votes for the most likely label that matter."""
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
        """Return mean and deviation of votes for one other label, with noise."""
        rest = (self.n_teachers - self.counts).astype(np.float64)
        each = rest / (self.n_classes - 1)
        # differences of multinomial counts vary as if counts were Poisson
        own = each if self.n_classes > 2 else np.zeros_like(each)
        return each, np.sqrt(own + scale**2)


# Shares of the questions, each with the law of the votes on them
Distributions = tuple[tuple[float, VoteDistribution], ...]
