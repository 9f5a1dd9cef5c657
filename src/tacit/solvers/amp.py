"""Approximate minima perturbation: objective perturbation with room for round-off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import plain
from tacit.convex import GroupL1, L2Ball
from tacit.convex._protocols import is_set
from tacit.convex.regularizers import makes_zeros
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, L2Laplace, Laplace
from tacit.mechanisms.noise import GRID, check_noise
from tacit.privacy import Budget, Composed, Event, calibrate
from tacit.solvers._base import (
    MinimumNoise,
    Problem,
    Result,
    Solver,
    plan_assumptions,
)
from tacit.solvers._gradients.descent import gradient_unit
from tacit.solvers._published import AMPSplit, check_saveable, check_width
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbation,
    ObjectivePerturbationPlan,
    check_choices,
    tilted_minimum,
)

__all__ = ["AMP", "AMPPlan", "CoveredTilt", "allowed", "output_ratio"]

# The final noise is this many times weaker in privacy than the tilt. Squares add for
# the Gaussian distribution, so it costs the tilt about one part in a thousand; epsilons
# add for the others, which costs one in a hundred.
OUTPUT_RATIO = 20.0
PURE_OUTPUT_RATIO = 100.0
# Most final noise on a margin where a penalty makes zeros, and the largest ridge, in
# units of the curvature of all rows, that is taken for it
MOST_OUTPUT = 0.05
MOST_RIDGE = 0.01


def output_ratio(distribution: str) -> float:
    """Return how many times weaker in privacy the final noise is than the tilt."""
    return OUTPUT_RATIO if distribution == "gaussian" else PURE_OUTPUT_RATIO


@dataclass(frozen=True)
class CoveredTilt:
    """A tilt, the gradient norm to reach, and the noise that covers what is left."""

    tilted: ObjectivePerturbationPlan
    output_multiplier: float

    def __post_init__(self) -> None:
        plain(self)

    @property
    def gradient_tolerance(self) -> float:
        """Gradient norm that the minimizer certifies."""
        return self.tilted.gradient_tolerance

    @property
    def assumptions(self) -> tuple[str, ...]:
        return plan_assumptions(self.tilted.problem, self.tilted.noise)

    @property
    def event(self) -> Event:
        output = self.tilted.noise_distribution.event(self.output_multiplier)
        return Composed((self.tilted.event, output))

    @property
    def output_sensitivity(self) -> float:
        """Distance between two points that each meet the gradient tolerance."""
        # the drawn tilt is off the exact one by at most a cell a coordinate
        cell = self.tilted.scale() / GRID
        tolerance = self.gradient_tolerance + sqrt(self.tilted.problem.size) * cell
        # [amp:output] each side may be off by tolerance / ridge, hence twice
        return 2 * tolerance / self.tilted.ridge

    @property
    def mechanism(self) -> Gaussian | L2Laplace | Laplace:
        """What draws the final noise."""
        distribution = self.tilted.noise_distribution
        return distribution.mechanism(self.output_multiplier, self.output_sensitivity)

    def output_scale(self) -> float:
        """Return the scale of the final noise, or reject what the grid cannot hold."""
        distribution = self.tilted.noise_distribution
        return distribution.scale(self.output_multiplier, self.output_sensitivity)


@dataclass(frozen=True)
class AMPPlan(CoveredTilt):
    """A tilt, the gradient norm to reach, and the noise that covers what is left.

    A type of its own, as intervals have no theory for tilts in a set.
    """

    def minimum_noise(self) -> MinimumNoise | None:
        """Return the noise that intervals of the weights rest on."""
        tilt = self.tilted.minimum_noise()
        return None if tilt is None else replace(tilt, weights=self.output_scale())


@dataclass(frozen=True)
class AMP(Solver[AMPPlan]):
    """Approximate minima perturbation: a tilted objective, then a little noise.

    Parameters
    ----------
    ridge
        Ridge penalty in sum units; None for the rule, which sees public facts only.
    law
        Distribution of the tilt and of the final noise: ``"gaussian"``, or ``"gamma"``
        or ``"laplace"``, which bound the loss itself. None is Gaussian, or Laplace for
        a budget with delta zero.
    accounting
        ``"tight"``, or ``"paper"`` for the ridge and noise of [2]_.
    weight_norm
        Public bound on the norm of the best weights, from which the ridge follows in
        any dimension; Gaussian noise and no other penalty only.
    output_share
        Part of the budget for the final noise in [2]_; None for its hyperparameter-free
        choice.
    tilt_share
        Part of the rest of epsilon for the tilt in [2]_, the determinant taking what is
        left; None for its hyperparameter-free choice.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private in floating point: the exact minimizer has
    the loss of `TiltedMinimum`, or a pure one for the other
    distributions; given it, the computed point is within ``tolerance / ridge`` of it,
    so noise on twice that makes the two outputs alike [1]_, with the factor two that
    the published Lemma 4.3.3 lacks. The gradient norm is certified, round-off included,
    and never loosened.

    After the final noise the weights are moved back into the set, where there is one.
    Where the penalty makes zeros, weights within reach of the final noise are set to
    zero, as nothing but noise is left of them. Both use what is released already.

    References
    ----------
    .. [1] Iyengar, Near, Song, Thakkar, Thakurta and Wang, "Towards practical
       differentially private convex optimization", IEEE S&P 2019, Theorem 1.
    .. [2] Thakkar, "Advances in privacy-preserving machine learning", dissertation,
       Boston University, 2019, Algorithm 1 and Section 4.6.
    """

    saved = True
    name = "amp"
    ball = L2Ball

    ridge: float | None = None
    law: str | None = None
    accounting: str = "tight"
    weight_norm: float | None = None
    output_share: float | None = None
    tilt_share: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        check_choices(self.ridge, self.weight_norm, self.law, self.accounting)
        fractions = self.output_share is not None or self.tilt_share is not None
        if fractions and self.accounting != "paper":
            raise ValueError(
                "output_share and tilt_share are for accounting='paper'; the tight "
                "accounting divides no budget."
            )

    @property
    def _objective(self) -> ObjectivePerturbation:
        return ObjectivePerturbation(
            ridge=self.ridge,
            law=self.law,
            weight_norm=self.weight_norm,
            noise=self.noise,
        )

    def plan(self, problem: Problem, budget: Budget) -> AMPPlan:
        """Choose the ridge, then the least tilt that fits with the final noise."""
        if self.accounting == "paper":
            plan = self._published(problem, budget)
        else:
            plan = self._tight(problem, budget)
            while self.ridge is None and (ridge := wanted_ridge(plan)) is not None:
                problem = replace(problem, ridge=ridge)
                plan = self._tight(problem, budget)
        # noise too large for the grid is rejected here, not after the charge
        plan.output_scale()
        return plan

    def _tight(self, problem: Problem, budget: Budget) -> AMPPlan:
        """Return the plan with the least tilt that fits with the final noise."""
        tilted = self._objective.with_ridge(problem, budget)

        def planned(multiplier: float) -> AMPPlan:
            tilt = tilted(multiplier)
            return AMPPlan(tilt, output_ratio(tilt.law) * multiplier)

        return planned(calibrate(lambda noise: planned(noise).event, budget))

    def _published(self, problem: Problem, budget: Budget) -> AMPPlan:
        """Return the plan with published constants, where they keep the budget."""
        check_width(problem)
        if budget.delta == 0 or self.law not in (None, "gaussian"):
            raise PlanError(
                "The published constants are for Gaussian noise and delta > 0; use "
                "accounting='tight'."
            )
        split = AMPSplit.of(problem, budget, self.output_share, self.tilt_share)
        planned = self._objective.with_ridge(problem, budget, split.ridge(problem))
        tilt = planned(split.multiplier)
        # the published gradient norm, where float64 can certify it
        tolerance = max(1 / problem.n_rows, tilt.gradient_tolerance)
        tilt = replace(tilt, gradient_tolerance=tolerance)
        plan = AMPPlan(tilt, split.output_multiplier)
        check_saveable(plan.event, budget)
        return plan

    def run(self, plan: AMPPlan, rows: Rows, rng: Generator) -> Result:
        """Draw the tilt once, minimize to the tolerance, add the final noise."""
        W = tilted_minimum(plan.tilted, rows, rng)
        noisy = plan.mechanism(W, rng)
        reach = plan.tilted.noise_distribution.furthest(plan.output_scale())
        return Result(allowed(plan.tilted.problem, noisy, reach))


def wanted_ridge(plan: AMPPlan) -> float | None:
    """Return a larger ridge, where it costs less accuracy than the final noise does.

    The final noise is in proportion to the tolerance over the ridge, and round-off sets
    a floor to the tolerance. A ridge that vanished with the noise of a large budget
    would therefore leave final noise that does not vanish.
    """
    problem, ridge = plan.tilted.problem, plan.tilted.ridge
    final_noise = plan.output_scale() * problem.bounds.x_norm  # on a margin
    curved = problem.n_rows * problem.smoothness
    # how far the ridge moves a margin of the usual size, for rows that spread evenly
    # over all directions; ten times as much for those that do not
    usual = gradient_unit(problem) / problem.bounds.x_norm
    moved = 10 * usual * ridge * problem.size / curved
    if final_noise > 1.01 * moved:
        return ridge * sqrt(final_noise / moved)  # where both are the same
    sparse = makes_zeros(problem.regularizer) or isinstance(
        problem.regularizer, GroupL1
    )
    # weights below the final noise are set to zero
    loud = sparse and final_noise > MOST_OUTPUT
    return 2 * ridge if loud and ridge < MOST_RIDGE * curved else None


def allowed(
    problem: Problem, noisy: NDArray[np.float64], reach: float
) -> NDArray[np.float64]:
    """Return weights in the domain of the regularizer, from noisy ones.

    ``reach`` is what the noise on a weight hardly ever passes: below it a weight may as
    well have been zero before.
    """
    regularizer = problem.regularizer
    if is_set(regularizer):
        return regularizer.prox(noisy, 1.0)
    if isinstance(regularizer, GroupL1):
        kept = np.linalg.norm(noisy, axis=1) > sqrt(noisy.shape[1]) * reach
        return np.where(kept[:, None], noisy, 0.0)
    if makes_zeros(regularizer):
        return np.where(np.abs(noisy) > reach, noisy, 0.0)
    return noisy
