"""Curves against closed forms, quadrature and dp_accounting."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

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
from tacit.privacy.combined import FixedSizeSampled, OneOf, Parallel
from tacit.privacy.curve import (
    ORDERS,
    PrivacyCurve,
    TiltedProfile,
    renyi_delta,
    renyi_epsilon,
)
from tacit.privacy.deltas import gaussian_delta, gaussian_deltas
from tacit.privacy.events import L2LaplaceNoise, TiltedMinimum

REPLACE = Neighbors.REPLACE_ONE
ADD = Neighbors.ADD_OR_REMOVE_ONE

# every event that needs no sampling, for the shared properties
EVENTS = [
    GaussianNoise(3.0),
    LaplaceNoise(2.0),
    L2LaplaceNoise(2.0, 10),
    PureDP(0.7),
    ApproxDP(0.5, 1e-7),
    BoundedRange(0.4),
    TiltedMinimum(0.05, 4.0, 1),
    TiltedMinimum(0.05, 9.0, 9),
    Repeated(GaussianNoise(9.0), 5),
    Composed((TiltedMinimum(0.01, 5.0), GaussianNoise(50.0))),
    Composed((LaplaceNoise(3.0), GaussianNoise(3.0), PureDP(0.1))),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("neighbors", [REPLACE, ADD])
def test_epsilon_and_delta_are_inverse_and_fall(event, neighbors):
    curve = event.curve(neighbors)
    deltas = np.logspace(-9, -2, 8)
    epsilons = np.array([curve.epsilon(delta) for delta in deltas])
    assert (np.diff(epsilons[np.isfinite(epsilons)]) <= 1e-9).all()
    for delta, epsilon in zip(deltas, epsilons, strict=True):
        if np.isfinite(epsilon):
            assert curve.delta(epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_repeating_is_adding(event):
    one = event.curve(REPLACE)
    thrice, added = one * 3, one + one + one
    assert thrice.epsilon(1e-5) == pytest.approx(added.epsilon(1e-5), rel=1e-9)
    assert thrice.slack == pytest.approx(added.slack)
    assert thrice.epsilon(1e-5) >= one.epsilon(1e-5)


def test_adding_commutes_across_kinds():
    for first in EVENTS:
        for second in EVENTS:
            a = (first.curve(ADD) + second.curve(ADD)).delta(2.0)
            b = (second.curve(ADD) + first.curve(ADD)).delta(2.0)
            assert a == pytest.approx(b, rel=1e-12)


def test_hundred_composed_gaussians_are_one_gaussian():
    composed = Repeated(GaussianNoise(20.0), 100).curve(REPLACE)
    for delta in (1e-3, 1e-6, 1e-10):
        exact = GaussianNoise(2.0).curve(REPLACE).epsilon(delta)
        assert composed.epsilon(delta) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_gaussian_profile_is_the_hockey_stick_integral(mu, epsilon):
    def excess(x):
        ratio = stats.norm.pdf(x, mu) - np.exp(epsilon) * stats.norm.pdf(x)
        return max(ratio, 0.0)

    start = epsilon / mu + mu / 2  # where the integrand becomes positive
    truth = integrate.quad(excess, start, start + 12, epsabs=0, epsrel=1e-11)[0]
    assert gaussian_delta(epsilon, mu) == pytest.approx(truth, rel=1e-8, abs=1e-300)


def decimal_normal(x):
    """Return the normal distribution function at a Decimal, to 100 digits or more."""
    # every term of this series has the sign of x, so nothing cancels within it
    term = total = x
    n = 1
    while term and abs(term) > abs(total) * Decimal(10) ** -260:
        n += 2
        term = term * x * x / n
        total += term
    pi = Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230782"
    )
    return Decimal(1) / 2 + total * (-x * x / 2).exp() / (2 * pi).sqrt()


@pytest.mark.parametrize("epsilon", [1e-7, 1.6e-4, 1e-2, 1.0, 12.0])
@pytest.mark.parametrize("low", [-2.0, 0.3, 6.0, 12.0])
def test_gaussian_delta_has_the_stated_relative_error(epsilon, low):
    mu = float(np.hypot(low, np.sqrt(2 * epsilon)) - low)  # epsilon/mu - mu/2 = low
    with localcontext(prec=280):
        e, m = Decimal(epsilon), Decimal(mu)
        truth = decimal_normal(m / 2 - e / m)
        truth -= e.exp() * decimal_normal(-m / 2 - e / m)
        error = float(Decimal(gaussian_delta(epsilon, mu)) / truth - 1)
        # the same pair with its members exchanged
        exchanged = 1 - (-e).exp() * (1 - truth)
        other = float(Decimal(gaussian_delta(-epsilon, mu)) / exchanged - 1)
    assert abs(error) < 1e-11
    assert abs(other) < 1e-11


@pytest.mark.parametrize("mu", [0.0, 1e-8, 1e-3, 0.49, 0.5, 3.0, 1e4])
def test_one_gaussian_delta_is_that_of_many(mu):
    sizes = np.geomspace(1e-9, 700, 40)
    epsilons = np.concatenate([-sizes, [0.0], sizes])
    with np.errstate(over="ignore"):
        many = gaussian_deltas(epsilons, mu)
    one = [gaussian_delta(float(epsilon), mu) for epsilon in epsilons]
    np.testing.assert_allclose(one, many, rtol=1e-14, atol=1e-300)
    assert min(one) >= 0


@pytest.mark.parametrize("dim", [1, 2, 9, 18])
@pytest.mark.parametrize("extra", [0.0, 1e-5, 0.02, 5.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.5])
def test_tilted_profile_is_its_integral_and_errs_upwards(dim, extra, epsilon):
    # second way: a plain fine grid over the chi variable
    r = np.linspace(0, 18 + np.sqrt(dim), 1_000_001)
    rest = epsilon - 0.03 - 0.25**2 / 2 - 0.25 * r
    if extra == 0:
        spent = -np.expm1(np.minimum(rest, 0.0))
    else:
        m = np.sqrt(extra)
        upper = special.log_ndtr(m / 2 - rest / m)
        spent = np.exp(upper) * -np.expm1(
            rest + special.log_ndtr(-m / 2 - rest / m) - upper
        )
    truth = np.trapezoid(spent * stats.chi.pdf(r, dim), r)
    found = TiltedProfile(0.03, 0.25, dim, extra).delta(epsilon)
    assert found == pytest.approx(truth, rel=3e-7)
    assert found >= truth * (1 - 1e-8)


@pytest.mark.parametrize(("alpha", "dim"), [(1.5, 1), (8.0, 2), (30.0, 18)])
def test_tilted_renyi_curve_is_its_moment(alpha, dim):
    profile = TiltedProfile(0.1, 0.3, dim)
    s = (alpha - 1) * 0.3
    moment = integrate.quad(
        lambda r: np.exp(s * r) * stats.chi.pdf(r, dim), 0, 50, limit=500
    )[0]
    truth = 0.1 + 0.045 + np.log(moment) / (alpha - 1)
    assert profile.renyi(np.array([alpha]))[0] == pytest.approx(truth, rel=1e-6)


def test_one_tilt_with_one_direction_has_the_published_closed_form():
    # Redberg, Koskela and Wang 2023 for add/remove: twice the Gaussian profile
    curve = TiltedMinimum(0.1, 2.0).curve(ADD)
    for epsilon in (0.6, 1.0, 2.0):
        closed = 2 * gaussian_delta(epsilon - 0.1, 0.5)
        assert curve.exact.delta(epsilon) == pytest.approx(closed, rel=3e-7)


@pytest.mark.parametrize("multiplier", [0.5, 2.0, 10.0])
def test_laplace_agrees_with_numerical_composition(multiplier):
    curve = LaplaceNoise(multiplier).curve(ADD)
    assert curve.epsilon(0.0) == pytest.approx(1 / multiplier)
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_event.LaplaceDpEvent(multiplier), 30)
    composed = (curve * 30).epsilon(1e-6)
    truth = accountant.get_epsilon(1e-6)
    assert truth * (1 - 1e-4) <= composed <= truth * 1.001


@given(st.floats(0.01, 5.0), st.floats(1.1, 60.0))
def test_pure_renyi_bound_is_that_of_randomized_response(epsilon, alpha):
    p = special.expit(epsilon)
    moment = p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)
    truth = np.log(moment) / (alpha - 1)
    at = int(np.argmin(np.abs(ORDERS - alpha)))
    bound = PureDP(epsilon).curve(REPLACE).renyi
    below, above = bound[max(at - 1, 0)], bound[min(at + 1, len(bound) - 1)]
    assert below * (1 - 1e-9) <= truth <= above * (1 + 1e-9)


def test_theorems_of_the_form_epsilon_delta_come_back_unchanged():
    curve = ApproxDP(0.5, 1e-6).curve(REPLACE) * 3
    assert curve.epsilon(3e-6 * (1 + 1e-12)) <= 1.5
    assert curve.epsilon(2.9e-6) == np.inf
    assert curve.delta(1.5) == pytest.approx(3e-6)


def test_bounded_range_composes_better_than_pure():
    selection, pure = BoundedRange(0.1).curve(REPLACE), PureDP(0.1).curve(REPLACE)
    assert (selection * 100).epsilon(1e-6) < 0.62 * (pure * 100).epsilon(1e-6)
    assert selection.epsilon(0.0) == pure.epsilon(0.0) == pytest.approx(0.1)


@given(st.floats(1e-12, 0.1), st.floats(0.5, 50.0))
def test_renyi_conversions_are_inverse(delta, multiplier):
    renyi = GaussianNoise(multiplier).curve(REPLACE).renyi
    epsilon = renyi_epsilon(renyi, delta)
    assert renyi_delta(renyi, epsilon) <= delta * (1 + 1e-9)
    exact = GaussianNoise(multiplier).curve(REPLACE).exact
    assert exact.epsilon(delta) <= epsilon


@pytest.mark.parametrize(("multiplier", "rate", "count"), [(1.0, 0.02, 200)])
def test_poisson_sampling_agrees_with_dp_accounting(multiplier, rate, count):
    curve = Repeated(PoissonSampled(GaussianNoise(multiplier), rate), count).curve(ADD)
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(multiplier))
    accountant.compose(event, count)
    # both are rounded up, on different grids
    assert curve.epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-4)
    # the Renyi part alone is above, and not by much
    loose = renyi_epsilon(curve.renyi, 1e-6)
    assert curve.epsilon(1e-6) < loose < 1.3 * curve.epsilon(1e-6)
    with_gaussian = curve + GaussianNoise(5.0).curve(ADD)
    accountant.compose(dp_event.GaussianDpEvent(5.0))
    truth = accountant.get_epsilon(1e-6)
    assert with_gaussian.epsilon(1e-6) == pytest.approx(truth, rel=2e-4)


def test_central_limit_accounting_is_not_used():
    # a Gaussian limit under-reports here by a fifth (measured for a peer): the noise
    # it gives for epsilon 8 really costs more than 10
    event = Repeated(PoissonSampled(GaussianNoise(0.715), 0.0128), 1562)
    assert event.curve(ADD).epsilon(6.25e-10) > 10.0


def test_sampling_bounds_hold_under_one_relation_only():
    with pytest.raises(ValueError, match="FixedSizeSampled"):
        PoissonSampled(GaussianNoise(1.0), 0.1).curve(REPLACE)
    fixed = FixedSizeSampled(GaussianNoise(2.0), 50, 1000)
    with pytest.raises(ValueError, match="PoissonSampled"):
        fixed.curve(ADD)
    # one row is in the sample with probability 0.05
    found = fixed.curve(REPLACE).epsilon(1e-6)
    truth = 0.05 * gaussian_delta(np.log1p(np.expm1(found) / 0.05), 0.5)
    assert truth == pytest.approx(1e-6, rel=1e-6)
    whole = FixedSizeSampled(GaussianNoise(2.0), 1000, 1000).curve(REPLACE)
    all_rows = GaussianNoise(2.0).curve(REPLACE).epsilon(1e-6)
    assert whole.epsilon(1e-6) == pytest.approx(all_rows, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianNoise(0.0),
        lambda: LaplaceNoise(-1.0),
        lambda: PureDP(0.0),
        lambda: ApproxDP(1.0, 1.0),
        lambda: PoissonSampled(GaussianNoise(1.0), 0.0),
        lambda: PoissonSampled(LaplaceNoise(1.0), 0.1),
        lambda: FixedSizeSampled(TiltedMinimum(50.0, 10.0), 1, 100),
        lambda: FixedSizeSampled(GaussianNoise(1.0), 10, 9),
        lambda: Repeated(PureDP(1.0), 0),
        lambda: Composed(()),
        lambda: TiltedMinimum(-0.1, 1.0),
        lambda: TiltedMinimum(0.1, 1.0, 0),
    ],
)
def test_events_refuse_impossible_facts(make):
    with pytest.raises(ValueError, match="must"):
        make()


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-9])
def test_renyi_curves_do_not_cancel_for_small_epsilon(epsilon):
    # a mechanism this weak is Gaussian in the limit: half the squared loss an order
    for event, least in ((PureDP(epsilon), 0.999), (LaplaceNoise(1 / epsilon), 0.99)):
        renyi = event.curve(REPLACE).renyi
        small = 0.01 / epsilon > ORDERS
        assert (renyi[small] >= least * ORDERS[small] * epsilon**2 / 2 * 0.99).all()


@pytest.mark.parametrize("count", [np.int8(65), np.uint8(200), np.int16(200)])
@pytest.mark.parametrize("event", [PureDP(0.01), TiltedMinimum(0.01, 50.0)])
def test_a_narrow_count_repeats_as_often_as_it_says(event, count):
    twice = Repeated(event, 2).curve(REPLACE)
    narrow, plain = twice * count, twice * int(count)
    assert narrow.delta(0.5) == plain.delta(0.5) > 0
    assert narrow.epsilon(1e-6) == plain.epsilon(1e-6)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_narrow_arguments_are_not_rounded_down(kind):
    above = 1.0 + 2e-8
    assert PureDP(above).curve(REPLACE).delta(kind(1)) > 0
    delta = kind(1e-6)
    beyond = ApproxDP(1.0, float(delta) * (1 + 1e-9)).curve(REPLACE)
    assert beyond.epsilon(delta) == np.inf
    narrow = PrivacyCurve(np.full(ORDERS.shape, np.inf, dtype=kind), kind(0.001))
    total = sum([narrow] * 9999, narrow)
    assert total.epsilon(0.0) == pytest.approx(10_000 * float(kind(0.001)), rel=1e-9)


def test_a_curve_needs_a_bound_for_each_order():
    with pytest.raises(ValueError, match=r"one bound for each of the \d+ ORDERS"):
        PrivacyCurve(np.zeros(1))


def test_numbers_whose_square_underflows_are_rejected():
    for make in (GaussianNoise, LaplaceNoise, PureDP, BoundedRange):
        with pytest.raises(ValueError, match="from 1e-150 to 1e150"):
            make(1e162)
    with pytest.raises(ValueError, match="count must be at most"):
        Repeated(GaussianNoise(1.0), 10**308)
    with pytest.raises(ValueError, match="rank must be at most"):
        TiltedMinimum(0.0, 1.0, 10**10)


@pytest.mark.parametrize("multiplier", [1e-13, 1e-22, 1e-50, 1e-100])
def test_a_tilt_with_next_to_no_noise_has_no_small_epsilon(multiplier):
    curve = TiltedMinimum(1.0, multiplier).curve(REPLACE)
    assert curve.epsilon(1e-6) >= 1 / multiplier


def test_the_delta_below_a_pure_bound_is_that_of_a_certain_loss():
    assert PureDP(1.0).curve(REPLACE).delta(-5.0) >= -np.expm1(-5.0)


@pytest.mark.parametrize("kind", [Composed, OneOf, Parallel])
def test_events_do_not_change_after_they_were_made(kind):
    parts = [GaussianNoise(1.0)]
    event = kind(parts)
    parts.append(GaussianNoise(2.0))
    assert event.events == (GaussianNoise(1.0),)
