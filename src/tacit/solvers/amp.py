"""Approximate minima perturbation: objective perturbation with room for round-off."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.data import Rows
from tacit.mechanisms import Gaussian
from tacit.mechanisms.grid import check_noise
from tacit.mechanisms.noise import GRID
from tacit.privacy import Budget, Composed, Event, GaussianNoise, calibrate
from tacit.solvers._base import Problem, noise_assumptions
from tacit.solvers._rules import gradient_tolerance
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbationPlan,
    choose_ridge,
    tilted_minimum,
)

__all__ = ["AMP", "AMPPlan"]

# The final noise is this many times weaker in privacy than the tilt, which costs the
# tilt about one part in a thousand.
OUTPUT_RATIO = 20.0


@dataclass(frozen=True)
class AMPPlan:
    """A tilt, the gradient norm to reach, and the noise that covers what is left."""

    tilted: ObjectivePerturbationPlan
    output_multiplier: float

    @property
    def gradient_tolerance(self) -> float:
        """Gradient norm that the minimizer certifies."""
        return self.tilted.gradient_tolerance

    @property
    def assumptions(self) -> tuple[str, ...]:
        return noise_assumptions(self.tilted.noise)

    @property
    def event(self) -> Event:
        return Composed((self.tilted.event, GaussianNoise(self.output_multiplier)))

    @property
    def output_sensitivity(self) -> float:
        """Distance between two points that each meet the gradient tolerance."""
        cell = self.tilted.multiplier * self.tilted.sensitivity / GRID
        # the drawn tilt is off the exact one by at most a cell a coordinate
        tolerance = self.gradient_tolerance + sqrt(self.tilted.problem.size) * cell
        # [amp:output] each side may be off by tolerance / ridge, hence twice
        return 2 * tolerance / self.tilted.ridge

    @property
    def mechanism(self) -> Gaussian:
        """What draws the final noise."""
        return Gaussian(
            self.output_multiplier, self.output_sensitivity, self.tilted.noise
        )


@dataclass(frozen=True)
class AMP:
    """Minimize a tilted objective approximately, then add a little noise.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the rule, which sees public facts only.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private in floating point: the exact minimizer has
    the loss of `tacit.privacy.TiltedMinimum`; given it, the computed point is within
    ``tolerance / ridge`` of it, so Gaussian noise on twice that makes the two outputs
    alike [1]_, with the factor two that the published Lemma 4.3.3 lacks. The gradient
    norm is certified, round-off included, and never loosened.

    References
    ----------
    .. [1] Iyengar, Near, Song, Thakkar, Thakurta and Wang, "Towards practical
       differentially private convex optimization", IEEE S&P 2019, Theorem 1.
    """

    ridge: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        check_noise(self.noise)

    def plan(self, problem: Problem, budget: Budget) -> AMPPlan:
        """Choose the ridge, then the least tilt that fits with the final noise."""
        sensitivity = problem.sensitivity(budget.neighbors)
        ridge = choose_ridge(problem, budget, self.ridge)
        tolerance = gradient_tolerance(problem, budget.neighbors, sensitivity)

        def planned(multiplier: float) -> AMPPlan:
            tilted = ObjectivePerturbationPlan(
                problem, ridge, multiplier, sensitivity, tolerance, self.noise
            )
            return AMPPlan(tilted, OUTPUT_RATIO * multiplier)

        plan = planned(calibrate(lambda noise: planned(noise).event, budget))
        # noise too large for the grid is refused here, not after the charge
        plan.tilted.mechanism.scale(problem.size)
        plan.mechanism.scale(problem.size)
        return plan

    def run(self, plan: AMPPlan, rows: Rows, rng: Generator) -> NDArray[np.float64]:
        """Draw the tilt once, minimize to the tolerance, add the final noise."""
        W = tilted_minimum(plan.tilted, rows, rng)
        return plan.mechanism(W, rng)
