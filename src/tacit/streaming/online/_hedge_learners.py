"""Learners of Hedge: an expert drawn after each step, or weights of all experts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf, isfinite, log
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._state import kept
from tacit._validate import PlainNumbers, at_least, plain
from tacit.mechanisms import Exponential
from tacit.mechanisms.continual import BLTSum
from tacit.mechanisms.noise import noise_assumptions
from tacit.privacy import Event, GaussianNoise, Repeated

__all__ = ["UNITS", "Experts", "SampledHedge", "WeightedHedge"]

Array = NDArray[np.float64]

# Half of the range of a cost, as an integer: sums of them have no round-off
UNITS = 2**20
# Sums beyond are clipped, so that they are exact as floats too
MOST_SUM = 2**52


@dataclass(frozen=True)
class Experts:
    """Number of experts, and the public range of their costs.

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
        """Logarithm of the number of experts, or of two for a single one."""
        return log(max(2, self.n_experts))

    def centered(self, costs: Any) -> Array:
        """Return costs from -1 to 1; a missing one is the highest.

        Parameters
        ----------
        costs
            Costs of all experts for each row, in the units of ``cost_range``.
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
    """Released noisy sums of costs, and the state of their mechanism."""

    noisy: Array
    _private_sums: Any = field(repr=False)


@dataclass(frozen=True)
class SampledHedge(PlainNumbers):
    """Learner that draws an expert every ``hold`` steps, last after the last step.

    Parameters
    ----------
    experts
        Number of experts and range of costs.
    horizon
        Number of steps.
    hold
        Steps for which a drawn expert remains.
    temperature
        Cost at which an expert becomes e times less likely.
    epsilon
        Bounded range of one draw.
    sensitivity
        Sensitivity of each sum of costs, in halves of the range of a cost.
    regret_bound
        Bound on the expected regret after the horizon; several rows of a step are
        taken as independent and identically distributed.
    least
        Lowest temperature that the budget allows.
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
    least: float
    noise: str = "grid"

    @property
    def mechanism(self) -> Exponential:
        """Mechanism that draws an expert."""
        return Exponential(self.epsilon, self.sensitivity * UNITS, self.noise)

    @property
    def n_draws(self) -> int:
        """Number of draws; the costs of the first step enter all of them."""
        # [hedge:draws]
        return ceil(self.horizon / self.hold)

    @property
    def event(self) -> Event:
        return Repeated(self.mechanism.event, self.n_draws)

    @property
    def assumptions(self) -> tuple[str, ...]:
        assumptions = noise_assumptions(self.noise)
        if self.temperature > self.least:
            assumptions += (
                "more budget would not help: the temperature is that of learning",
            )
        return assumptions

    def init(self) -> SampledState:
        """Return the state before the first step."""
        return SampledState(0, None, np.zeros(self.experts.n_experts, dtype=np.int64))

    def step(
        self, state: SampledState, X: Array, y: NDArray[Any], rng: Generator
    ) -> SampledState:
        """Add the costs of one step, from -1 to 1, and draw if a draw is due."""
        n_steps = state.n_steps + 1
        if n_steps > self.horizon:
            raise ValueError(
                f"Hedge was planned for {self.horizon} steps and cannot take step "
                f"{n_steps}; plan a longer horizon."
            )
        costs, expert = state._private_costs + integer_costs(X), state.expert
        if (self.horizon - n_steps) % self.hold == 0:
            # [hedge:cut] a clipped sum moves no further, and is exact as a float
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
class WeightedHedge(PlainNumbers):
    """Learner that releases weights of all experts after every step.

    Parameters
    ----------
    experts
        Number of experts and range of costs.
    horizon
        Number of steps.
    multiplier
        Noise multiplier of the whole stream of sums of costs.
    temperature
        Cost at which the weight of an expert falls by a factor of e.
    sensitivity
        L2 sensitivity of the costs of all experts, in halves of the range.
    regret_bound
        Bound on the expected regret after the horizon; several rows of a step are
        taken as independent and identically distributed.
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
    def mechanism(self) -> BLTSum:
        """Mechanism of the noisy sums of costs."""
        return BLTSum(self.horizon, self.multiplier, self.sensitivity, self.noise)

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
        costs = integer_costs(X).astype(np.float64)
        sums, noisy = self.mechanism.step(state._private_sums, costs, rng)
        return WeightedState(noisy, sums)

    def weights(self, state: WeightedState) -> Array:
        """Return weights that sum to one."""
        unit = self.experts.width / 2 / UNITS
        gains = -(state.noisy - state.noisy.min()) * (unit / self.temperature)
        odds = np.exp(gains)
        weights: Array = (odds / odds.sum())[:, None]
        return weights


def integer_costs(X: Array) -> NDArray[np.int64]:
    """Return sums over rows of costs, clipped to [-1, 1], in integer units.

    A missing cost is the highest.
    """
    values = np.asarray(X, dtype=np.float64)
    # [hedge:whole] each row is rounded by itself and remains within its range
    clipped = np.clip(np.where(np.isnan(values), 1.0, values), -1.0, 1.0)
    units = np.rint(clipped * UNITS).astype(np.int64)
    total: NDArray[np.int64] = units.sum(axis=0)
    return total
