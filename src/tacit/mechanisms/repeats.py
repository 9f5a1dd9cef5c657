"""The random number of runs of a private search, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from tacit._validate import plain
from tacit.privacy import Event, PureDP
from tacit.privacy.combined import RepeatAndSelect, mean_repeats

__all__ = ["RandomRepeats"]

WORD = 64


@dataclass(frozen=True)
class RandomRepeats:
    """A number of runs with the truncated negative binomial distribution.

    The best of this many runs costs little more than one of them, as long as the number
    stays secret.

    Parameters
    ----------
    eta
        Shape, above -1: 1 is the geometric distribution, 0 the logarithmic one.
    gamma
        Probability of stopping, between 0 and 1.

    Notes
    -----
    **Guarantee.** `RepeatAndSelect` of one run. The distribution
    (Papernot and Steinke 2022, Definition 1) is drawn exactly for the very numbers of
    the event: fractions are compared with uniform integers. It has no largest value,
    since a cap would be another distribution; beyond its mean it falls like ``(1 -
    gamma)^k``.

    References
    ----------
    .. [1] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential
       privacy", ICLR 2022.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        plain(self)
        self.event(PureDP(1.0))  # which checks the parameters

    def event(self, one: Event) -> RepeatAndSelect:
        """Return the event of the best of this many runs of ``one``."""
        return RepeatAndSelect(one, self.eta, self.gamma)

    @property
    def mean(self) -> float:
        """Expected number of runs."""
        return mean_repeats(self.eta, self.gamma)

    def __call__(self, rng: Generator) -> int:
        """Return the number of runs, at least one. Private: do not publish."""
        eta, more = Fraction(self.eta), 1 - Fraction(self.gamma)
        if eta <= 1:
            # [repeat:draw] weights (1 - gamma)^k (1 + eta)...(k - 1 + eta) / k!
            while True:
                k = 1 + _geometric(more, rng)
                if _accepted(k, 1, eta, rng):
                    return k
        whole, rest = int(eta), eta - int(eta)
        while True:
            # [repeat:sum] shapes add up; only a sum of zero is drawn again
            k = sum(_geometric(more, rng) for _ in range(whole))
            k += _below_geometric(more, rest, rng) if rest else 0
            if k:
                return k


def _below_geometric(more: Fraction, eta: Fraction, rng: Generator) -> int:
    """Return k >= 0 with weight ``more^k eta (1 + eta)...(k - 1 + eta) / k!``."""
    while True:
        k = _geometric(more, rng)
        if _accepted(k, 0, eta, rng):
            return k


def _accepted(k: int, first: int, eta: Fraction, rng: Generator) -> bool:
    """Return True with the product of (j + eta) / (j + 1) over first <= j < k."""
    return all(_coin((j + eta) / (j + 1), rng) for j in range(first, k))


def _geometric(more: Fraction, rng: Generator) -> int:
    """Return the number of successes with probability ``more`` before a failure."""
    k = 0
    while _coin(more, rng):
        k += 1
    return k


def _coin(probability: Fraction, rng: Generator) -> bool:
    """Return True with this probability, by comparison with a uniform number.

    The number is read word by word, until its digits differ from the probability's.
    """
    top, bottom = probability.numerator, probability.denominator
    while True:
        digit, top = divmod(top << WORD, bottom)
        word = int(rng.integers(0, 2**WORD, dtype=np.uint64))
        if word != digit:
            return word < digit
        if top == 0:
            return False
