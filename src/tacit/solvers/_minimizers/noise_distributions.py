"""Gaussian, gamma and Laplace noise on a vector."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt

from tacit._validate import PlainNumbers, plain
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, L2Laplace, Laplace
from tacit.privacy import ApproxDP, Budget, Event, PureDP
from tacit.privacy.events import TiltedMinimum
from tacit.solvers._base import Problem, plan_assumptions

__all__ = ["DISTRIBUTIONS", "NoiseDistribution", "PlannedNoise", "choose_distribution"]

DISTRIBUTIONS = ("gaussian", "gamma", "laplace")
# Probability that some coordinate of the noise exceeds `NoiseDistribution.furthest`
RARELY = 1e-4


@dataclass(frozen=True)
class NoiseDistribution(PlainNumbers):
    """Noise on a vector of ``size`` numbers, in units of its L2 sensitivity.

    ``name`` is ``"gaussian"``; ``"gamma"``, of density proportional to ``exp(-|b|_2)``;
    or ``"laplace"``, to ``exp(-|b|_1)``. The last two bound the loss itself.
    """

    name: str
    size: int
    noise: str = "grid"

    def mechanism(
        self, multiplier: float, sensitivity: float
    ) -> Gaussian | L2Laplace | Laplace:
        """Return what draws the noise that hides a shift of this L2 norm."""
        if self.name == "gaussian":
            return Gaussian(multiplier, sensitivity, self.noise)
        if self.name == "gamma":
            return L2Laplace(multiplier, sensitivity, self.size, self.noise)
        # [noise:l1] the L1 norm is at most this many times the L2 norm; the root and
        # two products round by three units at most
        in_l1 = sqrt(self.size) * sensitivity * (1 + 1e-12)
        return Laplace(multiplier, in_l1, self.noise)

    def scale(self, multiplier: float, sensitivity: float) -> float:
        """Return the scale of the noise, or reject what the grid cannot hold."""
        mechanism = self.mechanism(multiplier, sensitivity)
        if isinstance(mechanism, L2Laplace):
            return mechanism.scale()
        return mechanism.scale(self.size)

    def event(self, multiplier: float) -> Event:
        """Return the event of adding the noise to a vector."""
        if self.name == "gamma" and self.noise == "float":
            return PureDP(1 / multiplier)
        return self.mechanism(multiplier, 1.0).event

    def tilted(self, offset: float, multiplier: float, rank: int) -> Event:
        """Return the event of the exact minimizer with the noise as its tilt."""
        if self.name == "gaussian":
            return TiltedMinimum(offset, multiplier, rank)
        # [tilted:pure] one loss that is at most this sum: not two mechanisms, whose
        # composition would guarantee less at a delta above zero
        epsilon = offset + 1 / multiplier
        if self.name == "laplace" or self.noise == "float":
            return PureDP(epsilon)
        return ApproxDP(epsilon, _gamma_slack(epsilon, self.size))

    def std(self, multiplier: float) -> float:
        """Return the standard deviation of the noise in any one direction."""
        if self.name == "gaussian":
            return multiplier
        if self.name == "gamma":
            return multiplier * sqrt(self.size + 1)
        return multiplier * sqrt(2 * self.size)

    def norm(self, multiplier: float) -> float:
        """Return a bound that the norm of the noise practically never exceeds."""
        root = sqrt(self.size)
        if self.name == "gaussian":
            return multiplier * (root + 10)
        if self.name == "gamma":
            return multiplier * (self.size + 10 * root + 50)
        return multiplier * root * (sqrt(2) * root + 50)

    def furthest(self, scale: float) -> float:
        """Return a bound on all coordinates of noise of this scale.

        By a union bound, some coordinate exceeds it with probability at most `RARELY`.
        A coordinate of gamma noise is a normal times the norm of ``size + 1`` others.
        """
        tail = log(2 * self.size / RARELY)
        if self.name == "laplace":
            return scale * tail
        if self.name == "gaussian":
            return scale * sqrt(2 * tail)
        return scale * sqrt(2 * tail) * (sqrt(self.size + 1) + sqrt(2 * tail))


class PlannedNoise:
    """Base class of plans with one release and noise of one of the distributions."""

    problem: Problem
    multiplier: float
    sensitivity: float
    noise: str
    law: str

    def __post_init__(self) -> None:
        plain(self)

    @property
    def noise_distribution(self) -> NoiseDistribution:
        """The distribution of the noise."""
        return NoiseDistribution(self.law, self.problem.size, self.noise)

    @property
    def mechanism(self) -> Gaussian | L2Laplace | Laplace:
        """What draws the noise."""
        return self.noise_distribution.mechanism(self.multiplier, self.sensitivity)

    def scale(self) -> float:
        """Return the scale of the noise, or reject what the grid cannot hold."""
        return self.noise_distribution.scale(self.multiplier, self.sensitivity)

    @property
    def event(self) -> Event:
        return self.noise_distribution.event(self.multiplier)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return plan_assumptions(self.problem, self.noise)


def _gamma_slack(epsilon: float, size: int) -> float:
    """Return the delta that sampling gamma noise to within 2^-90 costs.

    The same bound as in `L2LaplaceNoise`.
    """
    slack = (1 + exp(min(epsilon, 600.0))) * size * sqrt(size) * 2.0**-90
    return min(slack, 0.5)


def choose_distribution(
    name: str | None, budget: Budget, size: int, noise: str
) -> NoiseDistribution:
    """Return the given or default distribution, if the budget admits it."""
    usual = "laplace" if budget.delta == 0 else "gaussian"
    chosen = NoiseDistribution(usual if name is None else name, size, noise)
    if chosen.name == "gaussian" and budget.delta == 0:
        raise PlanError(
            "Gaussian noise needs delta > 0; give a delta, or use law='laplace'."
        )
    drawn = chosen.name == "gamma" and noise == "grid"
    if drawn and 2 * _gamma_slack(budget.epsilon, size) > budget.delta:
        raise PlanError(
            "Gamma noise is sampled approximately, which needs a delta of "
            f"{2 * _gamma_slack(budget.epsilon, size):.1g}; give such a delta, or use "
            "law='laplace', which needs no delta."
        )
    return chosen
