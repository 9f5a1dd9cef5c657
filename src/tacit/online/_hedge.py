"""Private Hedge: follow the experts that erred least, for a whole stream of costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, inf, isfinite, log, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import at_least, one_of, plain, positive
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential
from tacit.mechanisms.continual import prefix_sums
from tacit.mechanisms.grid import check_noise, noise_assumptions
from tacit.mechanisms.selection import refuse_small_choice
from tacit.privacy import (
    BoundedRange,
    Budget,
    Event,
    GaussianNoise,
    Repeated,
    calibrate,
)
from tacit.streams import StreamTerms

__all__ = ["Experts", "Hedge", "SampledHedge", "WeightedHedge"]

Array = NDArray[np.float64]

# Half of the range of a cost, in whole numbers: sums of them have no round-off
UNITS = 2**20
# Sums beyond are cut, so that they are exact as floats too
MOST_SUM = 2**52
# Draws that a report may list
MOST_DRAWS = 10**6


@dataclass(frozen=True)
class Experts:
    """How many experts there are, and what one of them can cost.

    Parameters
    ----------
    n_experts
        Number of experts.
    cost_range
        Lowest and highest cost of an expert on one row, public.
    """

    n_experts: int
    cost_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_experts=self.n_experts)
        try:
            low, high = map(float, self.cost_range)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not (isfinite(low) and isfinite(high) and 0 < high - low < inf):
            raise ValueError(
                "cost_range must be two finite numbers, the lower first, got "
                f"{self.cost_range!r}."
            )
        object.__setattr__(self, "cost_range", (low, high))

    @property
    def width(self) -> float:
        """Highest less lowest cost."""
        return self.cost_range[1] - self.cost_range[0]

    @property
    def log_experts(self) -> float:
        """Logarithm of the number of experts, of two where there is but one."""
        return log(max(2, self.n_experts))

    def centered(self, costs: Any) -> Array:
        """Return costs from -1 to 1; what is no number costs the most.

        Parameters
        ----------
        costs
            One row of costs a row, in the units of ``cost_range``.
        """
        low, high = self.cost_range
        values = np.asarray(costs, dtype=np.float64)
        values = np.clip(np.where(np.isnan(values), high, values), low, high)
        return np.clip((values - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0)


@kept
@dataclass(frozen=True)
class SampledState:
    """Exact sums of costs, and the expert drawn last, if any."""

    n_steps: int
    expert: int | None
    _private_costs: NDArray[np.int64] = field(repr=False)


@kept
@dataclass(frozen=True)
class WeightedState:
    """Sums of costs with noise, which were released, and what makes them."""

    noisy: Array
    _private_sums: Any = field(repr=False)


@dataclass(frozen=True)
class SampledHedge:
    """Draw an expert every ``hold`` steps, the last time after the last step.

    Parameters
    ----------
    experts
        Who is drawn.
    horizon
        Steps in all.
    hold
        Steps for which a drawn expert stays.
    temperature
        Costs by which an expert becomes e times less likely.
    epsilon
        Bounded range of one draw.
    sensitivity
        How far neighbors move any sum of costs, in halves of the range of a cost.
    regret_bound
        Bound on the expected regret after the horizon.
    noise
        ``"grid"`` or ``"float"``.
    """

    experts: Experts
    horizon: int
    hold: int
    temperature: float
    epsilon: float
    sensitivity: int
    regret_bound: float
    noise: str = "grid"

    @property
    def mechanism(self) -> Exponential:
        """What draws an expert."""
        return Exponential(self.epsilon, self.sensitivity * UNITS, self.noise)

    @property
    def n_draws(self) -> int:
        """Draws in all; the costs of the first step enter every one of them."""
        # [hedge:draws]
        return ceil(self.horizon / self.hold)

    @property
    def event(self) -> Event:
        return Repeated(self.mechanism.event, self.n_draws)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    def init(self) -> SampledState:
        """Return the state before the first step."""
        return SampledState(0, None, np.zeros(self.experts.n_experts, dtype=np.int64))

    def step(
        self, state: SampledState, X: Array, y: NDArray[Any], rng: Generator
    ) -> SampledState:
        """Add the costs of one step, from -1 to 1, and draw where it is time to."""
        costs, expert = state._private_costs + whole_costs(X), state.expert
        n_steps = state.n_steps + 1
        if (self.horizon - n_steps) % self.hold == 0:
            # [hedge:cut] a sum that is cut moves no further, and is exact as a float
            scores = -np.clip(costs, -MOST_SUM, MOST_SUM).astype(np.float64)
            expert = self.mechanism(scores, rng)
        return SampledState(n_steps, expert, costs)

    def weights(self, state: SampledState) -> Array:
        """Return one for the expert drawn last, and equal weights before a draw."""
        p = self.experts.n_experts
        if state.expert is None:
            return np.full((p, 1), 1 / p)
        return np.eye(1, p, state.expert).T


@dataclass(frozen=True)
class WeightedHedge:
    """Release the weights of all experts after every step.

    Parameters
    ----------
    experts
        Who is weighted.
    horizon
        Steps in all.
    multiplier
        Noise of the whole stream of sums of costs.
    temperature
        Costs by which an expert weighs e times less.
    sensitivity
        How far neighbors move the costs of all experts in L2, in halves of the range.
    regret_bound
        Bound on the expected regret after the horizon.
    noise
        ``"grid"`` or ``"float"``.
    """

    experts: Experts
    horizon: int
    multiplier: float
    temperature: float
    sensitivity: float
    regret_bound: float
    noise: str = "grid"

    @cached_property
    def mechanism(self) -> Any:
        """What sums costs with noise."""
        return prefix_sums(
            "blt",
            self.horizon,
            self.multiplier,
            self.sensitivity,
            self.noise,
        )

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.noise)

    def init(self) -> WeightedState:
        """Return the state before the first step."""
        shape = (self.experts.n_experts,)
        return WeightedState(np.zeros(shape), self.mechanism.init(shape))

    def step(
        self, state: WeightedState, X: Array, y: NDArray[Any], rng: Generator
    ) -> WeightedState:
        """Add the costs of one step, from -1 to 1, with noise."""
        costs = whole_costs(X).astype(np.float64)
        sums, noisy = self.mechanism.step(state._private_sums, costs, rng)
        return WeightedState(noisy, sums)

    def weights(self, state: WeightedState) -> Array:
        """Return the weights, which sum to one."""
        unit = self.experts.width / 2 / UNITS
        gains = -(state.noisy - state.noisy.min()) * (unit / self.temperature)
        odds = np.exp(gains)
        return (odds / odds.sum())[:, None]


@dataclass(frozen=True)
class Hedge:
    """Hedge over experts for costs in a public range, with all plays released.

    Each step brings costs of all experts, one vector a row. After it an expert is
    drawn, or weights are released, with odds ``exp(-costs so far / temperature)``.

    Parameters
    ----------
    play
        ``"sample"`` to draw one expert by the exponential mechanism, ``"weights"`` for
        weights from sums of costs with Gaussian noise, ``"auto"`` for the one with the
        smaller bound on the regret.
    hold
        Steps for which a drawn expert stays, on a public schedule: fewer draws need
        less noise. None for the number with the smallest bound. One is for adversaries
        who see an expert before they choose the next costs.
    temperature
        Costs by which the odds of an expert fall by a factor of e; a draw takes more
        where privacy needs it. None for the one with the smallest bound.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** A row moves the costs of all experts within a range w of ``h`` times
    the width of the cost range, where h is 2 for replacement of a row and 1 for its
    addition. A draw has a bounded range of w / temperature, and the first row enters
    every draw: they are composed adaptively (Cesar and Rogers 2021, Lemma 3.4 and
    Section 4). Weights are a function of prefix sums with Gaussian noise.

    **Bound.** With T steps of cost range r and p experts the expected regret is at
    most ``temperature log p + hold T r^2 / (8 temperature)`` for draws and
    ``temperature log p + (T r^2 / 4 + d^2) / (2 temperature)`` for weights, with d the
    deviation of the last sum. Costs must be fixed beforehand; with ``hold=1`` those of
    draws may depend on earlier draws. The published temperature [1]_ is too small for
    an epsilon of 9 and more, and the published regret lacks a factor of the root of
    log p: see the page on Hedge.

    References
    ----------
    .. [1] P. Jain, A. Thakurta, "(Near) dimension independent risk bounds for
       differentially private learning", ICML 2014, Section 5.2.
    """

    play: str = "auto"
    hold: int | None = None
    temperature: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        one_of(("auto", "sample", "weights"), play=self.play)
        if self.hold is not None:
            at_least(1, hold=self.hold)
        if self.temperature is not None:
            positive(temperature=self.temperature)
        check_noise(self.noise)

    def plan(
        self, problem: Experts, budget: Budget, terms: StreamTerms
    ) -> SampledHedge | WeightedHedge:
        """Choose play, schedule and temperature from public facts."""
        if self.play == "weights":
            return self._weighted(problem, budget, terms)
        sampled = self._sampled(problem, budget, terms)
        if self.play == "sample" or budget.delta == 0:
            return sampled
        weighted = self._weighted(problem, budget, terms)
        return min(weighted, sampled, key=lambda learner: learner.regret_bound)

    def _sampled(
        self, experts: Experts, budget: Budget, terms: StreamTerms
    ) -> SampledHedge:
        least = ceil(terms.horizon / MOST_DRAWS)
        if self.hold is not None:
            if self.hold < least:
                raise PlanError(
                    f"hold must be at least {least} for horizon={terms.horizon}, got "
                    f"{self.hold}."
                )
            holds = [min(self.hold, terms.horizon)]
        else:
            holds = [least]
            while 2 * holds[-1] <= terms.horizon:
                holds.append(2 * holds[-1])
        plans = [self._held(hold, experts, budget, terms) for hold in holds]
        best = min(plans, key=lambda plan: plan.regret_bound)
        refuse_small_choice(best.epsilon, budget, "take a shorter horizon")
        return best

    def _held(
        self, hold: int, experts: Experts, budget: Budget, terms: StreamTerms
    ) -> SampledHedge:
        rows_moved = budget.neighbors.rows_changed * terms.rows_per_person
        # [hedge:range] a row's costs are within the width of each other
        moved = rows_moved * experts.width
        n_draws = ceil(terms.horizon / hold)
        least = moved * calibrate(
            lambda noise: Repeated(BoundedRange(1 / noise), n_draws), budget
        )
        steps = experts.width * terms.rows_per_step
        log_p, T = experts.log_experts, terms.horizon
        # what is drawn after the last step is played after the horizon
        wanted = self.temperature or steps * sqrt(hold * (T - 1) / (8 * log_p))
        temperature = max(least, wanted)
        # [hedge:regret]
        bound = temperature * log_p + T / hold * _slip(hold * steps, temperature)
        return SampledHedge(
            experts,
            terms.horizon,
            hold,
            temperature,
            moved / temperature,
            rows_moved,
            bound,
            self.noise,
        )

    def _weighted(
        self, experts: Experts, budget: Budget, terms: StreamTerms
    ) -> WeightedHedge:
        if budget.delta == 0:
            raise PlanError(
                "play='weights' adds Gaussian noise and needs delta > 0, got delta=0; "
                "give delta, or use play='sample'."
            )
        p, T = experts.n_experts, terms.horizon
        rows_moved = budget.neighbors.rows_changed * terms.rows_per_person
        # [hedge:vector] each of p costs moves by at most half the range a row
        length = nextafter(sqrt(p), inf) * UNITS
        planned = WeightedHedge(
            experts,
            T,
            multiplier=calibrate(GaussianNoise, budget),
            temperature=1.0,
            sensitivity=rows_moved * length,
            regret_bound=inf,
            noise=self.noise,
        )
        unit = experts.width / 2 / UNITS
        deviation = planned.mechanism.deviation_at(T, p) * unit
        steps = experts.width * terms.rows_per_step
        # [hedge:noisy-regret] noise of the last sum counts like so much cost
        spread = ((T - 1) * steps**2 / 4 + deviation**2) / 2
        temperature = self.temperature or sqrt(spread / experts.log_experts)
        bound = (
            temperature * experts.log_experts
            + T * _slip(steps, temperature)
            + deviation**2 / (2 * temperature)
        )
        return replace(planned, temperature=temperature, regret_bound=bound)


def whole_costs(X: Array) -> NDArray[np.int64]:
    """Return the sum over rows of costs from -1 to 1, in whole units."""
    # [hedge:whole] each row is rounded by itself and stays within its range
    units = np.rint(np.asarray(X, dtype=np.float64) * UNITS).astype(np.int64)
    total: NDArray[np.int64] = units.sum(axis=0)
    return total


def _slip(width: float, temperature: float) -> float:
    """Return how much a play can cost more than that of one who sees the costs."""
    return min(width, width**2 / (8 * temperature))
