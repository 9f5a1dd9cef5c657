"""Mechanisms that test before they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, floor, log
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from tacit._release_log import release
from tacit._validate import at_least, fraction, one_of, plain, positive, shown
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms._stable_distribution import MOST_DISTANCE, BestRelease
from tacit.mechanisms.grid import (
    MOST_SCORE,
    check_noise,
    enlarged,
    finite_scores,
    to_cells,
)
from tacit.mechanisms.noise import GRID
from tacit.privacy import ApproxDP, Event, PureDP, Repeated

__all__ = [
    "NO_ANSWER",
    "AboveThreshold",
    "AboveThresholdState",
    "NoAnswer",
    "StableRelease",
]

Value = TypeVar("Value")


@dataclass(frozen=True)
class AboveThresholdState:
    """Where a sparse vector stands. Private: do not publish."""

    _private_threshold: int | float = field(repr=False)
    n_positives: int


@dataclass(frozen=True)
class AboveThreshold(Drawable):
    """Sparse vector: which queries of a stream are above a threshold.

    Parameters
    ----------
    epsilon
        Cost of each stretch of queries up to and including a positive answer.
    threshold
        Public level to compare with.
    sensitivity
        How far neighbors can move any one query.
    n_positives
        Positive answers after which the stream ends; all are charged at the start.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Each stretch is pure with ``epsilon``: the threshold gets Laplace
    noise of scale 2 sensitivity / epsilon, drawn anew after every positive answer, and
    each query gets twice that (Dwork and Roth 2014, Theorem 3.23; Lyu, Su and Li 2017,
    Theorem 2). Negative answers are free. Only the answers are released, never a noisy
    value, and the proof shifts integers, so it holds on the grid.
    """

    epsilon: float
    threshold: float
    sensitivity: float = 1.0
    n_positives: int = 1
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        at_least(1, n_positives=self.n_positives)
        if not abs(self.threshold) <= MOST_SCORE:
            raise ValueError(
                "threshold must be between -1e300 and 1e300, got "
                f"{shown(self.threshold)}."
            )
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return Repeated(PureDP(self.epsilon), self.n_positives)

    def _scale(self) -> float:
        # [threshold:scale] the query is rounded, hence more sensitive
        return enlarged(2 / self.epsilon, self.sensitivity, 1.0)

    def _cells(self, value: float) -> int | float:
        if self.noise == "float":
            return value
        return int(to_cells(np.array([value]), self._scale())[0])

    def _noise(self, times: int, rng: Generator) -> int | float:
        if self.noise == "float":
            scale = 2 * self.sensitivity / self.epsilon
            return times * scale * float(draws.float_laplace(1, rng)[0])
        return int(draws.discrete_laplace(1, rng, scale=times * GRID)[0])

    def init(self, rng: Generator) -> AboveThresholdState:
        """Return the state before the first query."""
        return AboveThresholdState(self._cells(self.threshold) + self._noise(1, rng), 0)

    def step(
        self, state: AboveThresholdState, value: float, rng: Generator
    ) -> tuple[AboveThresholdState, bool]:
        """Answer one query, which may depend on all earlier answers.

        Values are clipped to [-1e300, 1e300], and NaN counts as the lowest.
        """
        value = float(finite_scores(value))
        if state.n_positives >= self.n_positives:
            raise ValueError(
                f"AboveThreshold was planned for {self.n_positives} positive answers, "
                "all given; plan a new one."
            )

        def draw() -> bool:
            noisy = self._cells(value) + self._noise(2, rng)
            return noisy >= state._private_threshold

        above = bool(
            release(
                "AboveThreshold",
                value=np.array([value], dtype=np.float64),
                sensitivity=self.sensitivity,
                norm="linf",
                draw=draw,
            )
        )
        if not above:
            return state, False
        fresh = self._cells(self.threshold) + self._noise(1, rng)
        return AboveThresholdState(fresh, state.n_positives + 1), True


@dataclass(frozen=True)
class NoAnswer:
    """What is released where an answer would tell of a row; it counts as false."""

    def __bool__(self) -> bool:
        return False


NO_ANSWER = NoAnswer()

RULES = ("optimal", "laplace")


@dataclass(frozen=True)
class StableRelease(Drawable):
    """Release a value as it is when no neighbor could have changed it.

    Parameters
    ----------
    epsilon
        Privacy of the test.
    delta
        Probability of releasing a value that a neighbor does not share.
    rule
        ``"optimal"`` releases with the largest probability that privacy allows at a
        whole distance; ``"laplace"`` compares a noisy distance with a threshold.
    noise
        ``"grid"`` or ``"float"``, for the rule with noise; the other is always exact.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private when the distance given moves by at most
    one between neighbors and is zero whenever some neighbor has another value (Smith
    and Thakurta 2013, Proposition 2). The optimal rule is that of Desfontaines, Voss,
    Gipson and Mandayam (2022, Theorem 1), drawn exactly. The threshold of the other,
    ``log(1 / (2 delta)) / epsilon``, uses the exact tail of the Laplace law.
    """

    epsilon: float
    delta: float
    rule: str = "optimal"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(epsilon=self.epsilon)
        fraction(delta=self.delta, closed=False)
        one_of(RULES, rule=self.rule)
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def _scale(self) -> float:
        return enlarged(1 / self.epsilon, 1.0, 1.0)

    @property
    def threshold(self) -> float:
        """Distance that must be passed, after Laplace noise."""
        # [stable:threshold]
        return max(0.0, -log(2 * self.delta)) * self._scale

    def release_probability(self, distance: float) -> float:
        """Return how likely a value at this distance is released; public."""
        at = _counted(distance)
        if self.rule == "optimal":
            return BestRelease(self.epsilon, self.delta)(floor(at))
        if self.noise == "float":
            ahead = (at - self.threshold) / self._scale
            return 1 - exp(-ahead) / 2 if ahead > 0 else exp(ahead) / 2
        needed = (self._limit() - self._cells(at) + 1) / GRID
        # the tail of whole noise, which is at least one cell when it must be positive
        if needed > 0:
            return exp(-needed) / (1 + exp(-1 / GRID))
        return 1 - exp(needed - 1 / GRID) / (1 + exp(-1 / GRID))

    def distance_needed(self, failure: float) -> int:
        """Return the least whole distance that is released but for this probability."""
        fraction(failure=failure, closed=False)
        low, high = -1, 1
        while self.release_probability(high) < 1 - failure:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            told = self.release_probability(middle) >= 1 - failure
            low, high = (low, middle) if told else (middle, high)
        return high

    def __call__(
        self, value: Value, distance: float, rng: Generator
    ) -> Value | NoAnswer:
        """Return ``value`` or `NoAnswer`.

        ``distance`` is the number of rows to change before some neighbor of the data
        has another value. One that is below zero or no number counts as zero.
        """
        at = _counted(distance)

        def draw() -> bool:
            if self.rule == "optimal":
                # rounded down, distances move by at most one still
                law = BestRelease(self.epsilon, self.delta)
                return draws.bernoulli(law.cells(floor(at)), law.n_words, rng)
            if self.noise == "float":
                noisy = at + self._scale * float(draws.float_laplace(1, rng)[0])
                return noisy > self.threshold
            noise = int(draws.discrete_laplace(1, rng)[0])
            return self._cells(at) + noise > self._limit()

        passed = release(
            "StableRelease",
            value=np.array([at], dtype=np.float64),
            sensitivity=1.0,
            norm="linf",
            draw=draw,
        )
        return value if passed else NO_ANSWER

    def _cells(self, distance: float) -> int:
        return int(to_cells(np.array([distance], dtype=np.float64), self._scale)[0])

    def _limit(self) -> int:
        # a cell more makes up for rounding the threshold
        return self._cells(self.threshold) + 1


def _counted(distance: float) -> float:
    """Return the distance as a number from zero on; this moves none further apart."""
    # in this order, as an integer may be beyond all floats
    return float(min(distance, MOST_DISTANCE)) if distance > 0 else 0.0
