"""Values and estimates whose stability is tested before their release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import (
    PlainNumbers,
    at_least,
    fraction,
    if_given,
    one_of,
    plain,
    positive,
)
from tacit.exceptions import PlanError
from tacit.mechanisms import NO_ANSWER, NoAnswer, StableRelease
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.mechanisms.threshold import RULES
from tacit.privacy import Budget, Composed, Event, calibrate
from tacit.solvers._minimizers.noise_distributions import NoiseDistribution
from tacit.stability._base import check_function, require_some_delta
from tacit.stability._rows import isolated_call

__all__ = [
    "ProposeTestRelease",
    "ProposeTestReleasePlan",
    "StableValue",
    "StableValuePlan",
    "as_distance",
]


@dataclass(frozen=True)
class StableValuePlan:
    """The release, fixed without data."""

    stable: StableRelease

    @property
    def event(self) -> Event:
        return self.stable.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the distance moves by at most one between neighbors, and is zero where "
            "one of them has another value",
        )


@dataclass(frozen=True)
class StableValue:
    """Exact value of a function, released where a bound on its stability allows it.

    Parameters
    ----------
    function
        Maps features and targets to a value of any kind; where it fails, the value is
        None.
    distance
        Maps features and targets to a lower bound on the number of rows to change
        before some neighbor of the data has another value. Where it fails, or gives no
        finite number from zero on, it counts as zero.
    rule
        ``"optimal"`` or ``"laplace"``, as for `tacit.mechanisms.StableRelease`.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private, for the relation under which ``distance``
    moves by at most one between neighbors and is zero wherever a neighbor has another
    value (Smith and Thakurta 2013 [1]_, Proposition 2 and Definition 3). Whoever gives
    the distance has to prove both.

    References
    ----------
    .. [1] A. Smith, A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013.
    """

    function: Callable[..., Any]
    distance: Callable[..., Any]
    rule: str = "optimal"

    def __post_init__(self) -> None:
        check_function("function", self.function)
        check_function("distance", self.distance)
        one_of(RULES, rule=self.rule)

    def plan(self, budget: Budget, n_rows: int) -> StableValuePlan:
        """Set up the release; the number of rows is not used."""
        require_some_delta("StableValue", budget)
        at_least(1, n_rows=n_rows)
        return StableValuePlan(StableRelease(budget.epsilon, budget.delta, self.rule))

    def run(
        self, plan: StableValuePlan, X: Any, y: Any, rng: Generator
    ) -> Any | NoAnswer:
        """Return the value, or `NoAnswer`."""
        rows = np.arange(X.shape[0])
        value = isolated_call(self.function, X, y, rows)
        distance = as_distance(isolated_call(self.distance, X, y, rows))
        return plan.stable(value, distance, rng)


def as_distance(found: Any) -> float:
    """Return a distance as a float, and zero for anything that is not one."""
    if not isinstance(found, Real):
        return 0.0
    try:
        distance = float(found)
    except Exception:  # a number of a foreign class may fail in any way
        return 0.0
    return distance if isfinite(distance) and distance > 0 else 0.0


# Fraction of epsilon for the test where no distance is expected
HALF = 0.5
# Probability of no answer at the distance that is expected
REJECTED = 0.01
# Fraction of delta for the test: Gaussian noise needs the rest, L2-Laplace little
TEST_DELTA = {"gaussian": 0.5, "gamma": 0.99}


@dataclass(frozen=True)
class ProposeTestReleasePlan(PlainNumbers):
    """Test and noise, fixed without data."""

    stable: StableRelease
    distribution: NoiseDistribution
    multiplier: float
    sensitivity: float

    @property
    def event(self) -> Event:
        return Composed((self.stable.event, self.distribution.event(self.multiplier)))

    @property
    def scale(self) -> float:
        """Scale of the noise on each number."""
        return self.distribution.scale(self.multiplier, self.sensitivity)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the distance moves by at most one between neighbors, and is zero where "
            "one of them moves the estimate by more than the sensitivity",
            *noise_assumptions(self.distribution.noise),
        )


@dataclass(frozen=True)
class ProposeTestRelease:
    """Estimate with noise for a sensitivity that is tested on the data.

    Parameters
    ----------
    estimate
        Maps features and targets to ``size`` numbers; where it fails they are zero.
    distance
        Maps features and targets to a lower bound on the number of rows to change
        before a neighbor moves the estimate by more than ``sensitivity``. Where it
        fails, or gives no finite number from zero on, it counts as zero.
    sensitivity
        Proposed L2 distance by which neighbors move the estimate; public.
    size
        How many numbers the estimate has.
    test_share
        Fraction of epsilon for the test; None for the least at which
        ``likely_distance`` passes, or for one half without it.
    likely_distance
        Distance that usual data are expected to have; public.
    law
        ``"gaussian"``, or ``"gamma"`` for L2-Laplace noise; None for the one that
        has the smaller standard deviation.
    rule
        Of the test: ``"optimal"`` or ``"laplace"``.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The composition of the test and of the noise, for the relation under
    which ``distance`` moves by at most one between neighbors and is zero wherever a
    neighbor moves the estimate by more than the sensitivity (Dwork and Lei 2009 [1]_,
    Section 3.3). Whoever gives the distance has to prove both.

    References
    ----------
    .. [1] C. Dwork, J. Lei, "Differential privacy and robust statistics", STOC 2009.
    """

    estimate: Callable[..., Any]
    distance: Callable[..., Any]
    sensitivity: float
    size: int = 1
    test_share: float | None = None
    likely_distance: int | None = None
    law: str | None = None
    rule: str = "optimal"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_function("estimate", self.estimate)
        check_function("distance", self.distance)
        positive(sensitivity=self.sensitivity)
        at_least(1, size=self.size)
        if self.test_share is not None:
            fraction(test_share=self.test_share, closed=False)
        if_given(at_least, 1, likely_distance=self.likely_distance)
        one_of((*TEST_DELTA, None), law=self.law)
        one_of(RULES, rule=self.rule)
        check_noise(self.noise)

    def plan(self, budget: Budget, n_rows: int) -> ProposeTestReleasePlan:
        """Split the budget between test and noise; no row is used."""
        require_some_delta("ProposeTestRelease", budget)
        at_least(1, n_rows=n_rows)
        names = TEST_DELTA if self.law is None else (self.law,)
        plans = [self._plan(name, budget) for name in names]
        # noise too large for the grid is rejected here, not after the charge
        return min(plans, key=lambda plan: plan.distribution.std(plan.scale))

    def _plan(self, name: str, budget: Budget) -> ProposeTestReleasePlan:
        distribution = NoiseDistribution(name, self.size, self.noise)
        stable = self._test(TEST_DELTA[name] * budget.delta, budget)

        def event(multiplier: float) -> Event:
            return Composed((stable.event, distribution.event(multiplier)))

        return ProposeTestReleasePlan(
            stable, distribution, calibrate(event, budget), self.sensitivity
        )

    def _test(self, delta: float, budget: Budget) -> StableRelease:
        part = self.test_share
        if part is None and self.likely_distance is None:
            part = HALF
        if part is not None:
            return StableRelease(part * budget.epsilon, delta, self.rule)
        likely = float(self.likely_distance or 0)
        # in steps of a hundredth of epsilon, of which the noise needs one at least
        for percent in range(1, 100):
            test = StableRelease(percent / 100 * budget.epsilon, delta, self.rule)
            if test.release_probability(likely) >= 1 - REJECTED:
                return test
        raise PlanError(
            "The budget is too small for ProposeTestRelease with "
            f"likely_distance={self.likely_distance!r}; raise epsilon or delta, or "
            "give test_share."
        )

    def run(
        self, plan: ProposeTestReleasePlan, X: Any, y: Any, rng: Generator
    ) -> NDArray[np.float64] | NoAnswer:
        """Return the noisy estimate, or `NoAnswer`."""
        rows = np.arange(X.shape[0])
        distance = as_distance(isolated_call(self.distance, X, y, rows))
        # [propose:test] noise is drawn only if the test passes
        if isinstance(plan.stable(True, distance, rng), NoAnswer):
            return NO_ANSWER
        found = _numbers(
            isolated_call(self.estimate, X, y, rows), plan.distribution.size
        )
        mechanism = plan.distribution.mechanism(plan.multiplier, plan.sensitivity)
        return np.asarray(mechanism(found, rng), dtype=np.float64)


def _numbers(found: Any, size: int) -> NDArray[np.float64]:
    """Return an estimate as a vector, and zeros for anything else."""
    nothing = np.zeros(size)
    try:
        numbers = np.array(found, dtype=np.float64).reshape(-1)
    except Exception:  # an array of a foreign class may fail in any way
        return nothing
    if numbers.shape != (size,) or not np.isfinite(numbers).all():
        return nothing
    return numbers
