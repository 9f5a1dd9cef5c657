"""Private Hedge on a stream of costs: the method, its plans and regret bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, log, nextafter, sqrt

from tacit._validate import at_least, one_of, plain, positive
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.mechanisms.selection import check_choice_size
from tacit.privacy import BoundedRange, Budget, GaussianNoise, Repeated, calibrate
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._hedge_learners import (
    UNITS,
    Experts,
    SampledHedge,
    WeightedHedge,
)

__all__ = ["Hedge"]

# Largest number of draws in a report
MOST_DRAWS = 10**6


@dataclass(frozen=True)
class Hedge:
    """Hedge over experts for costs in a public range, with all plays released.

    Each step has the costs of all experts, one vector per row. After it an expert is
    drawn, or weights are released, with odds ``exp(-costs so far / temperature)``.

    Parameters
    ----------
    play
        ``"sample"`` to draw one expert by the exponential mechanism, ``"weights"`` for
        weights from sums of costs with Gaussian noise, ``"auto"`` for the one with the
        smaller bound on the regret.
    hold
        Steps for which a drawn expert remains, on a public schedule: fewer draws need
        less noise. None for the number with the smallest bound. One is for adversaries
        who see an expert before they choose the next costs.
    temperature
        Cost at which the odds of an expert fall by a factor of e; a draw takes more
        where privacy requires it. None for the one with the smallest bound.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** A row moves the costs of all experts within a range w of ``h`` times
    the width of the cost range, where h is 2 for replacement of a row and 1 for its
    addition. A draw has a bounded range of w / temperature, and the first row enters
    every draw: they are composed adaptively (Cesar and Rogers 2021, Lemma 3.4 and
    Section 4). Weights are a function of prefix sums with Gaussian noise.

    **Bound.** With T steps of one row, cost range r and p experts the expected regret
    is at most ``temperature log p + hold T r^2 / (8 temperature)`` for draws and
    ``temperature log p + (T r^2 / 4 + d^2) / (2 temperature)`` for weights, with d the
    standard deviation of the last sum. Costs must be fixed beforehand; with ``hold=1``
    those of draws may depend on earlier draws. Several rows of a step are taken as
    independent and identically distributed: the temperature is
    ``r sqrt(n / (2 log p))`` for n rows, or what privacy requires, and the bound has
    the rows of a step once, not as a factor. For other rows it is valid with the
    factor. The published temperature [1]_ is too small for an
    epsilon of 9 and more, and the published regret lacks a factor of the root of log p:
    see the page on Hedge.

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
        return weighted if weighted.regret_bound <= sampled.regret_bound else sampled

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
        plans = [self._drawn_every(hold, experts, budget, terms) for hold in holds]
        best = min(plans, key=lambda plan: plan.regret_bound)
        check_choice_size(best.epsilon, budget, "take a shorter horizon")
        return best

    def _drawn_every(
        self, hold: int, experts: Experts, budget: Budget, terms: StreamTerms
    ) -> SampledHedge:
        rows_moved = budget.neighbors.rows_changed * terms.rows_per_person
        # [hedge:range] a row's costs are within the width of each other
        moved = rows_moved * experts.width
        n_draws = ceil(terms.horizon / hold)
        least = moved * calibrate(
            lambda noise: Repeated(BoundedRange(1 / noise), n_draws), budget
        )
        width, log_p, T = experts.width, experts.log_experts, terms.horizon
        # the expert drawn after the last step is played after the horizon
        if terms.rows_per_step == 1:
            best = width * sqrt(hold * (T - 1) / (8 * log_p))
        else:
            best = width * sqrt(_played(terms) / (2 * log_p))
        temperature = max(least, self.temperature or best)
        if terms.rows_per_step == 1:
            # [hedge:regret]
            bound = temperature * log_p + T / hold * _slip(hold * width, temperature)
        else:
            bound = _even_regret(experts, terms, hold, temperature, 0.0)
        return SampledHedge(
            experts,
            terms.horizon,
            hold,
            temperature,
            moved / temperature,
            rows_moved,
            bound,
            least,
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
        # [hedge:vector] each of p costs moves by at most half the range per row
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
        std = planned.mechanism.std_at(T, p) * unit
        width = experts.width
        # [hedge:noisy-regret] noise of the last sum counts as cost
        if terms.rows_per_step == 1:
            spread = ((T - 1) * width**2 / 4 + std**2) / 2
        else:
            spread = _played(terms) * width**2 / 2 + std**2
        temperature = self.temperature or sqrt(spread / experts.log_experts)
        if terms.rows_per_step == 1:
            bound = temperature * experts.log_experts
            bound += T * _slip(width, temperature) + std**2 / (2 * temperature)
        else:
            bound = _even_regret(experts, terms, 1, temperature, std)
        return replace(planned, temperature=temperature, regret_bound=bound)


def _played(terms: StreamTerms) -> int:
    """Return the number of rows before the last step, which is played after them."""
    return (terms.horizon - 1) * terms.rows_per_step


def _even_regret(
    experts: Experts,
    terms: StreamTerms,
    hold: int,
    temperature: float,
    std: float,
) -> float:
    """Return the bound on the regret for independent, identically distributed rows."""
    width, T = experts.width, terms.horizon
    # steps before a play that has seen as many steps as it lasts
    late = (hold + T % hold) * terms.rows_per_step * width
    kept = temperature * experts.log_experts + std**2 / temperature
    # [hedge:even-regret]
    return (
        late + kept * (1 + log(T / hold)) + terms.n_rows * width**2 / (2 * temperature)
    )


def _slip(width: float, temperature: float) -> float:
    """Return the largest excess cost of a play over one that sees the costs."""
    return min(width, width**2 / (8 * temperature))
