"""Bounds on the best attacker, against closed forms and against simulation."""

import numpy as np
import pytest
from scipy import stats

from tacit.privacy import (
    ApproxDP,
    Budget,
    GaussianNoise,
    LaplaceNoise,
    Ledger,
    PoissonSampled,
    PureDP,
    Repeated,
    TradeOff,
)
from tacit.privacy.attacker import curve_of
from tacit.privacy.events import TiltedMinimum

RATES = np.array([0.0, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
def test_gaussian_noise_has_the_gaussian_roc(mu):
    bound = TradeOff.of(GaussianNoise(1 / mu))
    exact = stats.norm.cdf(stats.norm.ppf(RATES) + mu)
    assert np.all(bound.power(RATES) >= exact - 1e-9)  # an upper bound
    np.testing.assert_allclose(bound.power(RATES), exact, atol=2e-3)
    assert bound.accuracy() == pytest.approx(stats.norm.cdf(mu / 2), abs=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-5), (3.0, 0.01)])
def test_one_point_gives_the_polygon_of_kairouz_oh_and_viswanath(epsilon, delta):
    bound = TradeOff.of(Budget(epsilon, delta))
    misses = np.maximum.reduce(
        [
            np.zeros_like(RATES),
            1 - delta - np.exp(epsilon) * RATES,
            np.exp(-epsilon) * (1 - delta - RATES),
        ]
    )
    np.testing.assert_allclose(bound.power(RATES), 1 - misses, atol=1e-5)
    right = (np.exp(epsilon) + delta) / (1 + np.exp(epsilon))
    assert bound.accuracy() == pytest.approx(right, abs=1e-5)


def test_randomized_response_attains_the_bounds():
    # answers truly with odds e: no attacker does better than believing it
    truth = np.e / (1 + np.e)
    bound = TradeOff.of(PureDP(1.0))
    assert bound.accuracy() == pytest.approx(truth, abs=1e-9)
    assert float(bound.power(1 - truth)) == pytest.approx(truth, abs=1e-9)
    assert bound.posterior(1e-6) == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize("chance", [0.2, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("prior", [0.5, 0.01])
def test_belief_beyond_the_bound_is_as_rare_as_stated(chance, prior):
    mu = 0.7
    bound = TradeOff.of(GaussianNoise(1 / mu))
    sure = bound.posterior(chance, prior)
    loss = np.log(sure / (1 - sure)) - np.log(prior / (1 - prior))
    # with the row, the loss is normal with mean mu^2 / 2 and standard deviation mu
    exact = stats.norm.sf((loss - mu**2 / 2) / mu)
    assert exact <= chance * (1 + 1e-6)
    assert exact >= chance / 30  # and the bound is not idle
    assert bound.chance_above(sure, prior) == pytest.approx(chance, rel=1e-3)


def test_precision_is_bayes_rule():
    bound = TradeOff.of(GaussianNoise(2.0))
    power = bound.power(0.01)
    assert bound.precision(0.01) == pytest.approx(power / (power + 0.01))
    rare = 0.1 * power / (0.1 * power + 0.9 * 0.01)
    assert bound.precision(0.01, prior=0.1) == pytest.approx(rare)


@pytest.mark.parametrize(
    ("event", "neighbors"),
    [
        (LaplaceNoise(0.5), "replace_one"),
        (TiltedMinimum(0.1, 5.0, 2), "replace_one"),
        (ApproxDP(1.0, 0.2), "replace_one"),
        (ApproxDP(0.5, 0.7), "replace_one"),
        (Repeated(PoissonSampled(GaussianNoise(2.0), 0.01), 5), "add_or_remove_one"),
        (PureDP(1e-9), "replace_one"),
        (PureDP(1e4), "replace_one"),
        (GaussianNoise(1e-3), "replace_one"),
    ],
)
def test_every_event_gives_a_curve_between_luck_and_certainty(event, neighbors):
    bound = TradeOff.of(event, neighbors)
    power = bound.power(RATES)
    assert np.all(power >= RATES - 1e-12)
    assert np.all(power <= 1)
    assert np.all(np.diff(power) >= -1e-12)
    assert 0.5 <= bound.accuracy() <= 1
    assert 0.5 <= bound.posterior(1e-3) <= 1


def test_more_noise_leaves_less_to_the_attacker():
    powers = [TradeOff.of(GaussianNoise(m)).power(0.01) for m in (0.5, 1.0, 2.0, 4.0)]
    assert np.all(np.diff(powers) < 0)


def test_a_ledger_promises_its_budget_and_a_report_its_charges():
    ledger = Ledger(Budget(2.0, 1e-5))
    empty = ledger.report()
    ledger.charge(GaussianNoise(10.0), "one")
    ledger.charge(GaussianNoise(10.0), "two")
    whole, spent = curve_of(ledger), curve_of(ledger.report())
    assert whole.delta(2.0) == pytest.approx(1e-5)
    assert spent.gaussian == pytest.approx(2 / 100)
    assert curve_of(empty).delta(2.0) == pytest.approx(1e-5)


def test_what_has_no_curve_is_refused():
    with pytest.raises(TypeError, match="first argument must be a PrivacyReport"):
        TradeOff.of(3.0)
    with pytest.raises(ValueError, match="false_positives must lie between 0 and 1"):
        TradeOff.of(PureDP(1.0)).power(1.5)
    with pytest.raises(ValueError, match="chance must be"):
        TradeOff.of(PureDP(1.0)).posterior(0.0)
