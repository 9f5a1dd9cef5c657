"""Mechanisms that choose one of several candidates by a score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import plain, positive
from tacit.exceptions import PlanError
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.noise import GRID, ROUNDING, check_noise, finite_scores
from tacit.privacy import BoundedRange, Budget, Event, Neighbors, PureDP

__all__ = [
    "PARTS",
    "Exponential",
    "NoisyMax",
    "PermuteAndFlip",
    "check_choice_size",
    "rank_scores",
    "rank_sensitivity",
]

Array = NDArray[np.float64]

# scores further below the best, e^(-2^18) as likely, are raised to this
FLOOR = -(2**50)
# of one choice: with less, rounding to the grid would be visible
LEAST_EPSILON = 1e-8


@dataclass(frozen=True)
class _Selection(Drawable):
    """Choose the index of a large score, each score moving by at most ``sensitivity``.

    Parameters
    ----------
    epsilon
        Privacy parameter.
    sensitivity
        How far neighbors can move any one score.
    noise
        ``"grid"`` for exact integer draws, ``"float"`` for research.

    Notes
    -----
    Scores are clipped to [-1e300, 1e300], and NaN counts as the lowest of them, before
    anything is drawn: scores are private, and no score raises an exception.
    ``sensitivity`` must bound how far neighbors move the scores that are read so.
    """

    epsilon: float
    sensitivity: float
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least 1e-8, got {self.epsilon!r}.")
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return PureDP(self.epsilon)

    @abstractmethod
    def _choose(self, scores: Array, rng: Generator) -> int: ...

    def __call__(self, scores: Array, rng: Generator) -> int:
        scores = finite_scores(scores).ravel()
        if scores.size == 0:
            raise ValueError("scores is empty; at least one candidate is needed.")
        return int(
            release(
                type(self).__name__,
                value=scores,
                sensitivity=self.sensitivity,
                norm="linf",
                draw=lambda: self._choose(scores, rng),
            )
        )

    def _exponents(self, scores: Array) -> NDArray[np.int64]:
        """Return ``epsilon score / (2 sensitivity)`` below the best, in grid units."""
        # [selection:grid] what rounding the scores adds is kept back
        rate = (self.epsilon / 2 * GRID - ROUNDING) / self.sensitivity
        below = np.maximum(_below_best(scores, rate), FLOOR)
        return np.asarray(np.rint(below), dtype=np.int64)

    def _float_exponents(self, scores: Array) -> Array:
        """Return ``epsilon score / (2 sensitivity)`` below the best, in floats."""
        return _below_best(scores, self.epsilon / (2 * self.sensitivity))


def _below_best(scores: Array, rate: float) -> Array:
    """Return the scores less the best, times ``rate``."""
    # a warning would leak information about the scores
    with np.errstate(over="ignore"):
        return np.asarray((scores - scores.max()) * rate)


@dataclass(frozen=True)
class Exponential(_Selection):
    """The exponential mechanism, with weights ``exp(epsilon score / 2 sensitivity)``.

    Notes
    -----
    **Guarantee.** Bounded range with ``epsilon`` (Dong, Durfee and Rogers 2020, Lemma
    3.2), hence pure, and epsilon^2/8 concentrated. Drawn exactly by rejection;
    ``noise="float"`` takes the largest of the scores with Gumbel noise.
    """

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    def _choose(self, scores: Array, rng: Generator) -> int:
        if self.noise == "float":
            gumbel = draws.float_gumbel(scores.size, rng)
            return int(np.argmax(self._float_exponents(scores) + gumbel))
        return draws.exponential_index(self._exponents(scores), GRID, rng)


def check_choice_size(epsilon: float, budget: Budget, instead: str) -> None:
    """Reject a plan that leaves one choice less than the least epsilon."""
    if epsilon < LEAST_EPSILON:
        raise PlanError(
            f"epsilon={budget.epsilon:g} leaves less than 1e-8 for a choice; raise "
            f"epsilon or {instead}."
        )


@dataclass(frozen=True)
class PermuteAndFlip(_Selection):
    """Permute-and-flip: never worse than the exponential mechanism for one choice.

    Notes
    -----
    **Guarantee.** Pure privacy with ``epsilon`` (McKenna and Sheldon 2020, Theorem 1).
    Its composition is that of pure mechanisms: it does not have the bounded range.
    ``noise="float"`` uses exponential noise, which has the same distribution (Ding et
    al. 2021).
    """

    def _choose(self, scores: Array, rng: Generator) -> int:
        if self.noise == "float":
            waits = np.abs(draws.float_laplace(scores.size, rng))
            return int(np.argmax(self._float_exponents(scores) + waits))
        return draws.permute_and_flip_index(self._exponents(scores), GRID, rng)


@dataclass(frozen=True)
class NoisyMax(_Selection):
    """Report-noisy-max: the largest of the scores with Laplace noise.

    Notes
    -----
    **Guarantee.** Pure privacy with ``epsilon`` (Dwork and Roth 2014, Claim 3.9, with
    scale ``2 sensitivity / epsilon`` as scores need not be monotone). Kept for
    comparison: the two above choose better.
    """

    def _choose(self, scores: Array, rng: Generator) -> int:
        if self.noise == "float":
            laplace = draws.float_laplace(scores.size, rng)
            return int(np.argmax(self._float_exponents(scores) + laplace))
        # ties go to the first, which the shift argument of the proof allows
        waits = draws.discrete_laplace(scores.size, rng)
        return int(np.argmax(self._exponents(scores) + waits))


# Levels are integers of these parts of one, so that scores are exact
PARTS = 2**20


def rank_scores(counts: NDArray[np.int64], level: int) -> NDArray[np.float64]:
    """Return minus the rows that keep each grid point from being a quantile.

    Parameters
    ----------
    counts
        Rows at each grid point.
    level
        The quantile, in ``PARTS``.
    """
    # [quantiles:score] in whole parts of a row, which are exact as floats
    up_to = np.cumsum(counts)
    n = up_to[-1]
    too_high = PARTS * (up_to - counts) - level * n
    too_low = level * n - PARTS * up_to
    missed = np.maximum(np.maximum(too_high, too_low), 0)
    scores: NDArray[np.float64] = -missed.astype(np.float64) / PARTS
    return scores


def rank_sensitivity(level: int, neighbors: Neighbors) -> float:
    """Return how far neighbors can move the score of a grid point."""
    # [quantiles:sensitivity] a row moves from one side to the other, or to a side
    if neighbors is Neighbors.REPLACE_ONE:
        return 1.0
    return max(level, PARTS - level) / PARTS
