"""Sparse vector, and the release of stable values."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, exp, floor, frexp, log, log10
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from tacit._release import release
from tacit._validate import at_least, fraction, one_of, plain, positive, shown
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.noise import (
    GRID,
    MOST_SCORE,
    check_noise,
    enlarged,
    finite_scores,
    to_cells,
)
from tacit.privacy import ApproxDP, Event, PureDP, Repeated

__all__ = [
    "NO_ANSWER",
    "AboveThreshold",
    "AboveThresholdState",
    "BestRelease",
    "NoAnswer",
    "StableRelease",
]

Value = TypeVar("Value")


@dataclass(frozen=True)
class AboveThresholdState:
    """State of a sparse vector. Private: do not publish."""

    _private_threshold: int | float = field(repr=False)
    n_positives: int


@dataclass(frozen=True)
class AboveThreshold(Drawable):
    """Sparse vector technique: queries of a stream that exceed a noisy threshold.

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
    Theorem 2). Negative answers cost no budget. Only the answers are released, never a
    noisy value, and the proof shifts integers, so it holds on the grid.
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
                f"AboveThreshold has given all the {self.n_positives} positive answers "
                "that it was planned for; plan a new one."
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
    """The result where an answer would leak information of a row; it is falsy."""

    def __bool__(self) -> bool:
        return False


NO_ANSWER = NoAnswer()

RULES = ("optimal", "laplace")


@dataclass(frozen=True)
class StableRelease(Drawable):
    """Release of the exact value where no neighbor could have changed it.

    Parameters
    ----------
    epsilon
        Privacy of the test.
    delta
        Probability of releasing a value that a neighbor does not have.
    rule
        ``"optimal"`` releases with the largest probability that privacy allows at an
        integer distance; ``"laplace"`` compares a noisy distance with a threshold.
    noise
        ``"grid"`` or ``"float"``, for the rule with noise; the other is always exact.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private when the distance given moves by at most
    one between neighbors and is zero whenever some neighbor has another value (Smith
    and Thakurta 2013, Proposition 2). The optimal rule is that of Desfontaines, Voss,
    Gipson and Mandayam (2022, Theorem 1), drawn exactly. The threshold of the other,
    ``log(1 / (2 delta)) / epsilon``, uses the exact tail of the Laplace distribution.
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
        """Threshold of the distance with Laplace noise."""
        # [stable:threshold]
        return max(0.0, -log(2 * self.delta)) * self._scale

    def release_probability(self, distance: float) -> float:
        """Return the probability that a value at this distance is released; public."""
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
        """Return the least integer distance released except with this probability."""
        fraction(failure=failure, closed=False)
        low, high = -1, 1
        while self.release_probability(high) < 1 - failure:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            released = self.release_probability(middle) >= 1 - failure
            low, high = (low, middle) if released else (middle, high)
        return high

    def __call__(
        self, value: Value, distance: float, rng: Generator
    ) -> Value | NoAnswer:
        """Return ``value`` or `NoAnswer`.

        ``distance`` is the number of rows to change before some neighbor of the data
        has another value. Negative numbers and NaN count as zero.
        """
        at = _counted(distance)

        def draw() -> bool:
            if self.rule == "optimal":
                # rounded down, distances move by at most one still
                best = BestRelease(self.epsilon, self.delta)
                return draws.bernoulli(best.cells(floor(at)), best.n_words, rng)
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
        # a cell more, which exceeds the rounding of the threshold
        return self._cells(self.threshold) + 1


def _counted(distance: float) -> float:
    """Return the distance clipped to a float >= 0, which moves no two further apart."""
    # in this order, as an integer may be beyond all floats
    return float(min(distance, MOST_DISTANCE)) if distance > 0 else 0.0


# Beyond this epsilon no more is released: e^700 is about the largest double
MOST_EPSILON = 700.0
# The part of delta reserved for rounding is 2 to minus this
KEPT_BITS = 40
# Decimal digits beyond those of the numbers that enter
GUARD_DIGITS = 40
# Distances from here on count as this one
MOST_DISTANCE = 2**60


@dataclass(frozen=True)
class BestRelease:
    """The release probabilities of the optimal rule, for one epsilon and delta.

    Notes
    -----
    **Guarantee.** With p(0) = delta and ``p(d + 1) = min(e^epsilon p(d) + delta, 1 -
    e^-epsilon (1 - p(d) - delta), 1)``, no rule that is (epsilon, delta)-private
    releases more often at any distance (Desfontaines, Voss, Gipson and Mandayam 2022,
    Theorem 1).
    """

    epsilon: float
    delta: float

    @property
    def n_words(self) -> int:
        """Words of 64 bits in a uniform draw: cells are that fine."""
        # [stable:cells] an error of two cells, times e^epsilon + 1, is within what is
        # kept back of delta
        bits = KEPT_BITS + 3 + ceil(1.4427 * self._epsilon + 1) - frexp(self.delta)[1]
        return -(-(bits + 2) // 64)

    @property
    def _epsilon(self) -> float:
        return min(self.epsilon, MOST_EPSILON)

    def cells(self, distance: int) -> int:
        """Return the probability at a distance, in cells of ``2**(-64 n_words)``."""
        whole = 1 << (64 * self.n_words)
        with localcontext(self._context()):
            return min(whole, int(self._probability(distance) * whole))

    def __call__(self, distance: int) -> float:
        """Return the probability of release at a distance."""
        return float(Fraction(self.cells(distance), 1 << (64 * self.n_words)))

    def _context(self) -> Context:
        # exponents are large enough for any power that is met
        digits = 20 * self.n_words + GUARD_DIGITS
        digits += 2 * ceil(max(0.0, -log10(self._epsilon)))
        return Context(prec=digits, Emax=10**15, Emin=-(10**15))

    def _probability(self, distance: int) -> Decimal:
        one, epsilon = Decimal(1), Decimal(self._epsilon)
        # [stable:recursion] what is kept back of delta pays for rounding
        delta = Decimal(self.delta) * (1 - Decimal(2) ** -KEPT_BITS)
        growth = epsilon.exp()

        def rising(d: int) -> Decimal:
            # p(d + 1) = growth p(d) + delta, from p(0) = delta
            return delta * (((d + 1) * epsilon).exp() - 1) / (growth - 1)

        # the second term is the least of the three once p passes this
        bend = (1 - delta) / (1 + growth)
        last = (bend * (growth - 1) / delta + 1).ln() / epsilon - 1
        last_rising = max(0, int(last.to_integral_value(rounding="ROUND_FLOOR")) + 1)
        if distance <= last_rising:
            return min(one, rising(distance))
        steps = distance - last_rising
        shrunk = (-steps * epsilon).exp()
        rejected = shrunk * (1 - rising(last_rising))
        rejected -= delta * (1 - shrunk) / (growth - 1)
        return min(one, one - rejected)
