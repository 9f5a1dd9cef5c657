"""Dominating pairs against their densities, and the constants of events."""

from math import exp, expm1, log, log1p, sqrt

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy import special, stats

from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    PoissonSampled,
    PureDP,
    Repeated,
)
from tacit.privacy.combined import FixedSizeSampled
from tacit.privacy.curve import MOST_LOSSES, ORDERS, TiltedProfile
from tacit.privacy.events import L2LaplaceNoise, TiltedMinimum
from tacit.privacy.losses import (
    FixedSizeLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonLoss,
    ResponseLoss,
    TiltedLoss,
)

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0])


GRID = np.linspace(-40.0, 40.0, 800_001)


def hockey_stick(first, second, epsilon):
    """Return the delta of two densities by integration."""
    return np.trapezoid(np.maximum(first(GRID) - exp(epsilon) * second(GRID), 0), GRID)


def normal(mu):
    return lambda x: np.exp(-((x - mu) ** 2) / 2) / sqrt(2 * np.pi)


def mixture(rate, mu):
    return lambda x: (1 - rate) * normal(0.0)(x) + rate * normal(mu)(x)


PAIRS = {
    "gaussian": (GaussianLoss(0.49), mixture(1.0, 0.7), normal(0.0)),
    "laplace": (
        LaplaceLoss(0.8),
        lambda x: 0.5 * np.exp(-abs(x - 0.8)),
        lambda x: 0.5 * np.exp(-abs(x)),
    ),
    "removed": (PoissonLoss(1.5, 0.1), mixture(0.1, 1.5), normal(0.0)),
    "added": (PoissonLoss(1.5, 0.1, True), normal(0.0), mixture(0.1, 1.5)),
    # one row of one is replaced by zero among zeros, and drawn with this rate
    "fixed size": (FixedSizeLoss(1.5, 0.1), mixture(0.1, 1.5), normal(0.0)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_delta_of_a_pair_is_its_hockey_stick(name):
    loss, first, second = PAIRS[name]
    for epsilon, found in zip(EPSILONS, loss.deltas(EPSILONS), strict=True):
        truth = hockey_stick(first, second, epsilon)
        assert found == pytest.approx(truth, rel=1e-6, abs=1e-8)


def test_exchanged_pair_of_a_fixed_size_sample_is_dominated():
    loss, first, second = PAIRS["fixed size"]
    for epsilon, found in zip(EPSILONS, loss.deltas(EPSILONS), strict=True):
        assert found >= hockey_stick(second, first, epsilon) - 1e-8
        # nor is a row easier to find that is replaced by its opposite
        half, other = mixture(0.1, 0.75), mixture(0.1, -0.75)
        assert found >= hockey_stick(half, other, epsilon) - 1e-8


@pytest.mark.parametrize(
    "loss",
    [
        GaussianLoss(0.25),
        LaplaceLoss(0.7),
        ResponseLoss(0.7),
        PoissonLoss(1.2, 0.05),
        PoissonLoss(1.2, 0.05, True),
        FixedSizeLoss(1.2, 0.05),
        TiltedLoss(0.03, 0.4, 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("step", [0.013, 0.2])
@pytest.mark.parametrize("tail", [1e-20, 1e-3])
def test_masses_on_a_grid_dominate_and_are_close(loss, step, tail):
    masses = loss.masses(step, tail)
    losses = masses.losses(step)
    assert masses.mass.sum() + masses.infinite == pytest.approx(1.0, abs=1e-9)
    for epsilon in (0.0, 0.1, 0.45):
        found = masses.mass @ np.maximum(-np.expm1(epsilon - losses), 0.0)
        if isinstance(loss, TiltedLoss):
            profile = TiltedProfile(loss.offset, loss.mu, loss.dim)
            truth = profile.delta(epsilon)
        else:
            truth = float(loss.deltas(np.array([epsilon]))[0])
        most = truth + 0.1 * step + tail
        assert truth * (1 - 2e-7) <= found + masses.infinite <= most


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
def test_pure_delta_is_that_of_randomized_response(epsilon):
    exact = PureDP(epsilon).curve(REPLACE).exact
    for e in np.array([0.0, 0.5, 0.9]) * epsilon:
        truth = (exp(epsilon) - exp(e)) / (1 + exp(epsilon))
        assert truth <= exact.delta(e) <= truth * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
def test_bounded_range_curve_is_never_below_its_mechanisms(epsilon):
    curve = BoundedRange(epsilon).curve(REPLACE)
    losses = np.linspace(0, epsilon, 401)[1:-1]
    up = (exp(epsilon) - np.exp(losses)) / expm1(epsilon)  # of the loss t, else t - eps
    for e in np.array([0.1, 0.5, 0.9]) * epsilon:
        low = (1 - up) * np.maximum(-np.expm1(e - losses + epsilon), 0.0)
        truth = np.max(up * np.maximum(-np.expm1(e - losses), 0.0) + low)
        assert truth * (1 - 1e-4) <= curve.exact.delta(e) <= truth * (1 + 1e-4)
    a = ORDERS[0.3 / epsilon > ORDERS][:, None]
    if len(a):
        moments = up * np.exp((a - 1) * losses)
        moments += (1 - up) * np.exp((a - 1) * (losses - epsilon))
        truth = np.max(np.log(moments) / (a - 1), axis=1)
        # as the conversion is loose by a few percent, the Renyi curve has its own test
        assert (curve.renyi[: len(a)] >= truth * (1 - 1e-9)).all()
        assert (curve.renyi[: len(a)] <= truth * 1.01).all()
    assert curve.pure == epsilon


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 40), (0.5, 7), (1.0, 150)])
def test_bounded_range_composition_is_near_that_of_one_fixed_mechanism(epsilon, count):
    curve = BoundedRange(epsilon).curve(REPLACE) * count
    losses = np.linspace(0.1, 0.98, 177) * epsilon
    up = (exp(epsilon) - np.exp(losses)) / expm1(epsilon)
    wins = np.arange(count + 1)[:, None]
    masses = stats.binom.pmf(wins, count, up)
    sums = count * (losses - epsilon) + wins * epsilon
    for delta in (1e-3, 1e-7):
        found = curve.exact.epsilon(delta)
        truth = np.max(np.sum(masses * np.maximum(-np.expm1(found - sums), 0), axis=0))
        # who may choose late does a little better, which costs up to five percent
        assert truth <= delta
        below = found * 0.95
        later = np.max(np.sum(masses * np.maximum(-np.expm1(below - sums), 0), axis=0))
        assert later > delta


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_bounded_range_composition_is_that_of_the_best_late_choices(epsilon):
    # by brute force over choices on a grid: a lower bound, and close
    n, count = 120, 3
    t = epsilon / n * np.arange(n + 1)
    up = (exp(epsilon) - np.exp(t)) / expm1(epsilon)
    epsilons = epsilon / n * np.arange(-count * n, count * n + 1)
    delta = np.maximum(-np.expm1(epsilons), 0.0)
    for _ in range(count):
        padded = np.concatenate([-np.expm1(epsilons[0] - t[:0:-1]), delta, np.zeros(n)])
        size = len(delta)
        delta = np.max(
            [
                up[i] * padded[n - i : n - i + size]
                + (1 - up[i]) * padded[2 * n - i : 2 * n - i + size]
                for i in range(n + 1)
            ],
            axis=0,
        )
    profile = (BoundedRange(epsilon).curve(REPLACE) * count).exact
    for at in range(count * n, 2 * count * n - 60, 40):
        assert delta[at] <= profile.delta(float(epsilons[at])) <= delta[at] * 1.02


def test_sampled_renyi_curves_are_those_of_dp_accounting():
    # a bound on fixed-size samples that is a little too small would not be seen
    event = dp_event.SampledWithoutReplacementDpEvent(
        1000, 50, dp_event.GaussianDpEvent(2.0)
    )
    orders = np.unique(np.ceil(ORDERS[ORDERS < 100]))[[0, 5, -1]]
    accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_ONE)
    accountant.compose(event)
    curve = FixedSizeSampled(GaussianNoise(2.0), 50, 1000).curve(REPLACE)
    for order, truth in zip(orders, accountant._rdp, strict=True):
        at = int(np.flatnonzero(np.ceil(ORDERS) == order)[0])
        assert curve.renyi[at] == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-4, 1e-7])
def test_one_fixed_size_sample_has_the_exact_epsilon(delta):
    curve = FixedSizeSampled(GaussianNoise(1.0), 30, 1000).curve(REPLACE)
    epsilon = curve.epsilon(delta)
    inner = log1p(expm1(epsilon) / 0.03)
    truth = 0.03 * (special.ndtr(0.5 - inner) - exp(inner) * special.ndtr(-0.5 - inner))
    assert truth == pytest.approx(delta, rel=1e-6)


def test_laplace_curve_has_a_margin_for_its_grid():
    # the noise is drawn on a grid, with a curve barely above the continuous one
    t, a = 0.5, ORDERS[ORDERS < 50]
    moment = (a * np.exp((a - 1) * t) + (a - 1) * np.exp(-a * t)) / (2 * a - 1)
    curve = LaplaceNoise(2.0).curve(REPLACE)
    ratio = curve.renyi[: len(a)] / (np.log(moment) / (a - 1))
    assert ratio[a > 2] == pytest.approx(1 + 1e-8, abs=2e-10)
    # the same in delta, where the grid adds 2^-66 to the loss at most
    assert curve.exact.delta(0.5) == pytest.approx(0.25e-8, rel=1e-6)


def test_l2_laplace_carries_its_slack():
    curve = L2LaplaceNoise(2.0, 10).curve(REPLACE)
    assert curve.slack == pytest.approx((1 + exp(0.5)) * 10**1.5 * 2.0**-90, rel=1e-12)
    assert curve.epsilon(0.0) == np.inf


def test_two_rows_change_under_replacement_and_double_the_rank():
    for rank in (1, 3):
        replaced = TiltedMinimum(0.05, 4.0, rank).curve(REPLACE)
        added = TiltedMinimum(0.05, 4.0, 2 * rank).curve(ADD)
        assert replaced.exact == added.exact == TiltedProfile(0.05, 0.25, 2 * rank)
        assert np.array_equal(replaced.renyi, added.renyi)


@pytest.mark.parametrize(
    "events",
    [
        (PureDP(0.1), LaplaceNoise(2.0), GaussianNoise(3.0)),
        (GaussianNoise(3.0), TiltedMinimum(0.05, 4.0), ApproxDP(0.5, 1e-7)),
        (ApproxDP(0.5, 1e-7), ApproxDP(0.1, 3e-7), BoundedRange(0.9)),
    ],
)
def test_composition_counts_each_of_its_events(events):
    curve = Composed(events).curve(REPLACE)
    parts = [event.curve(REPLACE) for event in events]
    assert curve.renyi == pytest.approx(sum(part.renyi for part in parts))
    assert curve.pure == sum(part.pure for part in parts)
    assert curve.slack == pytest.approx(sum(part.slack for part in parts))
    for i in range(len(events)):
        less = Composed(events[:i] + events[i + 1 :]).curve(REPLACE)
        assert curve.exact.epsilon(1e-3) > 1.01 * less.exact.epsilon(1e-3)


def test_failures_of_several_events_are_those_of_independent_coins():
    curve = Repeated(ApproxDP(0.1, 0.2), 3).curve(REPLACE)
    assert curve.slack == pytest.approx(1 - 0.8**3)
    # Kairouz, Oh and Viswanath 2017, Theorem 3.3
    p = special.expit(0.1)
    wins = np.arange(4)
    masses = stats.binom.pmf(wins, 3, p)
    inside = masses @ np.maximum(-np.expm1(0.15 - 0.1 * (2 * wins - 3)), 0.0)
    truth = 1 - 0.8**3 * (1 - inside)
    assert curve.delta(0.15) == pytest.approx(truth, rel=1e-5)


def test_very_many_different_losses_fall_back_on_renyi_curves():
    events = tuple(LaplaceNoise(50.0 + i) for i in range(MOST_LOSSES + 1))
    curve = Composed(events).curve(REPLACE)
    assert curve.exact is None
    assert 0 < curve.epsilon(1e-6) < curve.pure
    assert Composed(events[1:]).curve(REPLACE).exact is not None


def test_compositions_of_weak_and_of_strong_events_have_bounds():
    weak = Repeated(LaplaceNoise(1e7), 10).curve(REPLACE)
    assert 0 <= weak.epsilon(1e-9) <= 1e-6
    strong = Repeated(GaussianNoise(0.01), 3).curve(REPLACE) + PureDP(200.0).curve(ADD)
    assert strong.epsilon(1e-6) > 1e4
    mixed = Composed((PoissonSampled(GaussianNoise(0.05), 0.5), PureDP(1.0))).curve(ADD)
    assert 100 < mixed.epsilon(1e-6) < 1000
    one = sqrt(2 * log(1.25e6)) / 3
    assert GaussianNoise(3.0).curve(REPLACE).epsilon(1e-6) < one


# Steps on samples that are rare: their loss is next to nothing, or large with a small
# probability. Tilts that show the large ones are too steep or too flat for the others
RARE = {
    # the loss of an added row has a narrow support
    "few steps, narrow support": ([(0.973, 0.0046, 3)], 7e-8),
    # a tilted sum is near zero or near a thousand, and no grid holds both
    "many steps, little noise": ([(0.508, 1.5e-5, 144)], 5e-8),
    "steps of two kinds": ([(0.844, 1.74e-3, 825), (6.48, 0.49, 31)], 8e-10),
    "frequent steps, little noise": ([(0.391, 0.0756, 558)], 1e-11),
}


@pytest.mark.parametrize("name", RARE)
def test_rare_losses_are_composed_within_one_percent_of_dp_accounting(name):
    steps, delta = RARE[name]
    events, theirs = [], None
    for noise, rate, count in steps:
        step = PoissonSampled(GaussianNoise(noise), rate)
        events.append(Repeated(step, count))
        one = privacy_loss_distribution.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            value_discretization_interval=5e-4,
            log_mass_truncation_bound=-60,
        ).self_compose(count)
        theirs = one if theirs is None else theirs.compose(one)
    exact = theirs.get_epsilon_for_delta(delta)  # rounded up by less than 0.1%
    found = Composed(tuple(events)).curve(ADD).epsilon(delta)
    assert 0.999 * exact <= found <= 1.01 * exact
