"""How teachers vote on a question, before there are teachers: a binomial model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binom

__all__ = ["Agreement", "Group", "VoteLaw", "agreement_groups"]

Array = NDArray[np.float64]

Group = tuple[float, float]
Agreement = float | Sequence[Group] | Callable[[float], float | Sequence[Group]]

# counts that are left out have less probability than this, on either side
NEGLIGIBLE = 1e-13
QUANTILES = (np.arange(32) + 0.5) / 32
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class VoteLaw:
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
    def counts(self) -> NDArray[np.int64]:
        """Numbers of votes for the most likely label that matter."""
        low, high = binom.ppf(
            [NEGLIGIBLE, 1 - NEGLIGIBLE], self.n_teachers, self.agreement
        )
        return np.arange(max(low, 0), high + 1).astype(np.int64)

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each of `counts`."""
        found = binom.pmf(self.counts, self.n_teachers, self.agreement)
        return found / found.sum()

    @cached_property
    def leads(self) -> NDArray[np.int64]:
        """Votes ahead of the largest other label, by count and quantile of the other.

        Below zero where another label is ahead.
        """
        mean, deviation = self._others(0.0)
        # with two classes the other has all votes that are left
        quantiles = QUANTILES if self.n_classes > 2 else np.array([0.5])
        places = ndtri(quantiles ** (1 / (self.n_classes - 1)))
        others = np.rint(mean[:, None] + deviation[:, None] * places)
        rest = self.n_teachers - self.counts
        most = np.clip(others, 0, rest[:, None])
        return self.counts[:, None] - most.astype(np.int64)

    @property
    def tops(self) -> NDArray[np.int64]:
        """Votes for the label with most of them, in the shape of `leads`."""
        return np.maximum(self.counts[:, None], self.counts[:, None] - self.leads)

    def right(self, scale: float) -> Array:
        """Return how likely each count wins, with Gaussian noise on all counts."""
        mean, deviation = self._others(scale)
        ahead = self.counts[:, None] + scale * NODES - mean[:, None]
        each = ndtr(ahead / deviation[:, None])
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


def agreement_groups(
    agreement: Agreement, rows: float, n_classes: int
) -> tuple[Group, ...]:
    """Return shares of the questions with the agreement on them, which are checked.

    What a function returns is raised to the agreement of guesses, one in ``n_classes``,
    since a learner with few rows guesses; a number below that is refused.
    """
    least = 1 / n_classes
    if callable(agreement):
        return tuple(
            (share, min(1.0, max(least, value)))
            for share, value in _pairs(agreement(rows))
        )
    groups = _pairs(agreement)
    if not all(least <= value <= 1 for _, value in groups):
        raise ValueError(
            f"agreement must be from {least:.3g}, one in n_classes, to 1, got "
            f"{agreement!r}."
        )
    return groups


def _pairs(agreement: float | Sequence[Group]) -> tuple[Group, ...]:
    """Return groups whose shares add up to one."""
    if isinstance(agreement, Real) and not isinstance(agreement, bool):
        return ((1.0, float(agreement)),)
    try:
        groups = tuple((float(share), float(value)) for share, value in agreement)
    except (TypeError, ValueError):
        groups = ()
    total = sum(share for share, _ in groups)
    if not groups or min(share for share, _ in groups) < 0 or abs(total - 1) > 1e-6:
        raise ValueError(
            "agreement must be a number, pairs (share of the questions, agreement) "
            "whose shares add up to 1, or a function of the rows of a teacher that "
            f"returns these, got {agreement!r}."
        )
    return groups
