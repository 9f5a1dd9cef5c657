import time
from dataclasses import dataclass
from math import log1p

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from tests.strategies import each_relation

from tacit.exceptions import PlanError
from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Budget,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    PoissonSampled,
    Repeated,
    calibrate,
    convolution,
)
from tacit.privacy.curve import ORDERS, ComposedProfile, PrivacyCurve
from tacit.privacy.events import TiltedMinimum
from tacit.privacy.losses import GaussianLoss

FAMILIES = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
    "steps": lambda noise: Repeated(GaussianNoise(noise), 50),
    "selection": lambda noise: Repeated(BoundedRange(1 / noise), 30),
    "tilt": lambda noise: TiltedMinimum(0.01, noise),
    "amp": lambda noise: Composed(
        (TiltedMinimum(0.01, noise, 9), GaussianNoise(20 * noise))
    ),
    "mixed": lambda noise: Composed((LaplaceNoise(noise), GaussianNoise(noise))),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@each_relation
def test_the_least_noise_that_fits(family, epsilon, neighbors):
    budget = Budget(epsilon, 1e-7, neighbors)
    noise = calibrate(FAMILIES[family], budget)
    assert FAMILIES[family](noise).curve(neighbors).delta(epsilon) <= 1e-7
    assert not FAMILIES[family](noise * 0.9995).curve(neighbors).fits(budget)


@pytest.mark.parametrize(
    ("epsilon", "ridge", "scale"), [(0.1, 50.0, 116.0), (1.0, 4.9, 12.6)]
)
def test_objective_perturbation_needs_the_known_noise(epsilon, ridge, scale):
    # logistic rows of norm one, replacement: sensitivity 2 and curvature 1/4
    budget = Budget(epsilon, 36_176**-2)
    noise = calibrate(lambda m: TiltedMinimum(log1p(0.25 / ridge), m), budget)
    assert 2 * noise == pytest.approx(scale, rel=0.01)
    plain = 2 * calibrate(GaussianNoise, budget)
    assert plain < 2 * noise


def test_gaussian_events_take_under_ten_milliseconds():
    times = []
    for _ in range(20):
        start = time.perf_counter()
        calibrate(GaussianNoise, Budget(1.0, 1e-9))
        times.append(time.perf_counter() - start)
    assert sorted(times)[10] < 0.010


@pytest.mark.parametrize(
    "steps",
    [
        lambda noise: Repeated(PoissonSampled(GaussianNoise(noise), 0.01), 100),
        lambda noise: Repeated(BoundedRange(1 / noise), 20),
        lambda noise: Composed((LaplaceNoise(noise), GaussianNoise(2 * noise))),
    ],
)
def test_composed_events_need_few_exact_evaluations(monkeypatch, steps):
    budget = Budget(1.0, 1e-7, Neighbors.ADD_OR_REMOVE_ONE)
    calls = []
    exact = convolution.Composition
    monkeypatch.setattr(
        convolution, "Composition", lambda *given: calls.append(given) or exact(*given)
    )
    convolution.composed.cache_clear()
    noise = calibrate(steps, budget)
    # plain bisection of a bracket of a factor two needs fourteen
    assert 1 <= len(calls) <= 9
    assert steps(noise).curve(budget.neighbors).fits(budget)
    assert not steps(noise * 0.9995).curve(budget.neighbors).fits(budget)


@pytest.mark.slow
def test_sampled_events_need_a_third_of_plain_bisection_or_less():
    budget = Budget(2.0, 6.25e-10, Neighbors.ADD_OR_REMOVE_ONE)

    def steps(noise):
        return Repeated(PoissonSampled(GaussianNoise(noise), 0.0128), 1562)

    def fits(noise):
        inner = dp_event.PoissonSampledDpEvent(0.0128, dp_event.GaussianDpEvent(noise))
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(dp_event.SelfComposedDpEvent(inner, 1562))
        return accountant.get_epsilon(budget.delta) <= budget.epsilon

    calibrate(steps, Budget(1.0, 1e-7, budget.neighbors))  # imports
    start = time.perf_counter()
    found = calibrate(steps, budget)
    ours_took = time.perf_counter() - start
    start = time.perf_counter()
    low, high = 1.0, 2.0
    while high > low * (1 + 1e-4):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fits(middle) else (middle, high)
    bisection_took = time.perf_counter() - start
    assert found == pytest.approx(high, rel=2e-4)
    assert steps(found).curve(budget.neighbors).fits(budget)
    assert bisection_took > 3 * ours_took


def test_a_budget_that_no_noise_fits_is_refused():
    with pytest.raises(PlanError, match="No noise makes this event fit"):
        calibrate(lambda noise: ApproxDP(1 / noise, 1e-3), Budget(1.0, 1e-6))
    with pytest.raises(PlanError, match="raise epsilon or delta"):
        calibrate(GaussianNoise, Budget(1.0, 0.0))


class JumpingProfile(ComposedProfile):
    """An epsilon that jumps over the budget, so that no line leads to it."""

    def epsilon(self, delta):
        return 2.0 if self.parts[0][0].mu_squared > 1 / 25 else 0.5


@dataclass(frozen=True)
class Jumping:
    noise: float

    def curve(self, neighbors):
        exact = JumpingProfile(((GaussianLoss(self.noise**-2), 1),))
        return PrivacyCurve(4 * ORDERS / self.noise**2, exact=exact)


def test_a_search_that_does_not_converge_still_returns_noise_that_fits():
    noise = calibrate(Jumping, Budget(1.0, 1e-6))
    assert Jumping(noise).curve(Budget(1.0).neighbors).exact.epsilon(1e-6) <= 1.0
