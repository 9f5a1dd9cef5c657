"""The plan of adaptive moments: budget fractions and noise of its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from tacit.mechanisms import Gaussian
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.privacy import Composed, Event, GaussianNoise, Neighbors
from tacit.solvers._base import Problem, SolverPlan

__all__ = [
    "CONSTANT",
    "COUNT_WEIGHT",
    "NORM_WEIGHT",
    "SECOND_FIRST",
    "SECOND_LAST",
    "AdaptiveMomentsPlan",
    "crowd",
    "split",
]

# Fractions of the squared privacy parameter that is left after the sums: of the
# spreads, where second moments follow and where they do not, and of the first moments
# where there are two; of what is left then, of the length of a direction and of a step
# on it
SPREAD_FRACTION, SMALL_SPREAD_FRACTION, FIRST_FRACTION = 0.125, 0.07, 0.25
LENGTH_FRACTION, STEP_FRACTION = 0.05, 0.15
# and of the second moments among all moments, the first and the last time
SECOND_FIRST, SECOND_LAST = 0.5, 0.3
# Weight of the count beside rows of norm one, of their norm beside absolute features,
# and of the constant in the pull
COUNT_WEIGHT, NORM_WEIGHT, CONSTANT = 0.5, 0.5, 0.7
# Number of steps where no moments are released
STEPS = 100

# From this crowd on down rows are clipped further out where there are moments, by this
# power of it, as there is less noise to save
NEAR, GROWTH = 0.1, 0.2


def crowd(problem: Problem, level: float) -> float:
    """Return about how noisy second moments are, for rows even in all directions."""
    return float(problem.n_columns**1.5 * level / 2)


# wide: one field for each number that a run needs
@dataclass(frozen=True)
class AdaptiveMomentsPlan(SolverPlan):
    """Budget fractions and noise of all releases, fixed without data.

    ``level`` is the noise on the mean of numbers up to one. The sensitivities are those
    of the sums, of absolute features and targets, of second moments and of products
    with residuals, for rows and residuals within one.
    """

    problem: Problem
    neighbors: Neighbors
    moments: str
    level: float
    multiplier: float
    center_fraction: float
    target_weight: float
    sum_sensitivity: float
    spread_sensitivity: float
    target_sensitivity: float
    second_sensitivity: float
    pull_sensitivity: float
    noise: str = "grid"

    @property
    def rest(self) -> float:
        """Share that is left after the sums."""
        return 1 - self.center_fraction

    @property
    def spread_fraction(self) -> float:
        """Fraction of the spreads of features, and again of targets."""
        second = self.moments in ("once", "twice")
        fraction = SPREAD_FRACTION if second else SMALL_SPREAD_FRACTION
        return fraction * self.rest / 2

    @property
    def first_fraction(self) -> float:
        """Fraction of the first of two releases of moments."""
        return FIRST_FRACTION * self.rest if self.moments == "twice" else 0.0

    @property
    def last_fraction(self) -> float:
        """Fraction for the last moments, for all steps, or for a pull and its step."""
        return self.rest - 2 * self.spread_fraction - self.first_fraction

    @property
    def line_fractions(self) -> tuple[float, float, float]:
        """Fractions for a pull, the length of its direction and a step along it."""
        length, step = (
            LENGTH_FRACTION * self.last_fraction,
            STEP_FRACTION * self.last_fraction,
        )
        return self.last_fraction - length - step, length, step

    @property
    def step_fractions(self) -> tuple[float, ...]:
        """Fractions of the steps."""
        return (self.last_fraction / STEPS,) * STEPS

    @property
    def growth(self) -> float:
        """How much further out than usual rows and residuals are clipped."""
        crowded = crowd(self.problem, self.level)
        return float(max(1.0, NEAR / max(crowded, 1e-100)) ** GROWTH)

    def sums(self) -> Gaussian:
        """Return what releases the sums."""
        return self._gaussian(self.center_fraction, self.sum_sensitivity)

    def spreads(self, fraction: float) -> Gaussian:
        """Return what releases absolute features."""
        return self._gaussian(fraction, self.spread_sensitivity)

    def target_spread(self) -> Gaussian:
        """Return what releases absolute targets."""
        return self._gaussian(self.spread_fraction, self.target_sensitivity)

    def pull(self, fraction: float) -> Gaussian:
        """Return what releases products of features and residuals."""
        return self._gaussian(fraction, self.pull_sensitivity)

    def second(self, fraction: float) -> SymmetricGaussian:
        """Return what releases products of features."""
        multiplier = self.multiplier / sqrt(fraction)
        return SymmetricGaussian(multiplier, self.second_sensitivity, self.noise)

    def _gaussian(self, fraction: float, sensitivity: float) -> Gaussian:
        return Gaussian(self.multiplier / sqrt(fraction), sensitivity, self.noise)

    @property
    def fractions(self) -> tuple[float, ...]:
        """Parts of the squared privacy parameter, in the order of the releases."""
        sums = (self.center_fraction,) if self.center_fraction > 0 else ()
        before = (*sums, self.spread_fraction, self.spread_fraction)
        if self.moments == "twice":
            before = (*before, *split(self.first_fraction, SECOND_FIRST))
        if self.moments == "steps":
            return (*before, *self.step_fractions)
        if self.moments != "never":
            return (*before, *split(self.last_fraction, SECOND_LAST))
        pull, length, step = self.line_fractions
        return (*before, pull, length, *split(step, SECOND_LAST))

    @property
    def event(self) -> Event:
        # [adaptive-moments:fractions] the squared parameters of Gaussian mechanisms add
        # up
        return Composed(
            tuple(
                GaussianNoise(self.multiplier / sqrt(part)) for part in self.fractions
            )
        )


def split(fraction: float, second: float) -> tuple[float, float]:
    """Return the fractions of the pull and of the second moments."""
    return (1 - second) * fraction, second * fraction
