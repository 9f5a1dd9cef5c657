"""Compositions of sampled losses: finite, monotone, tight, and safe when truncated."""

from math import inf

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from tacit.privacy import (
    BoundedRange,
    Budget,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    PureDP,
    Repeated,
    convolution,
)
from tacit.privacy.curve import ComposedProfile
from tacit.privacy.deltas import gaussian_deltas
from tacit.privacy.losses import FixedSizeLoss, GaussianLoss, PoissonLoss
from tacit.solvers.noisy_sgd import Sampling, least_noise

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
MULTIPLIERS = (0.7, 0.8, 0.85, 0.9, 1.0, 1.3, 1.75, 2.5)


@pytest.mark.parametrize("kind", [PoissonLoss, FixedSizeLoss])
@pytest.mark.parametrize("rate", [0.001, 0.003, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("n_steps", [10, 200, 1000])
def test_epsilon_of_samples_is_finite_and_falls_with_the_noise(kind, rate, n_steps):
    found = [
        ComposedProfile(((kind(1 / multiplier, rate), n_steps),)).epsilon(1e-6)
        for multiplier in MULTIPLIERS
    ]
    assert found[0] < inf
    assert (np.diff(found) < 0).all()


# settings at which a window of Chernoff bounds far from the tilt is too wide to compute
@pytest.mark.parametrize(
    ("multiplier", "rate", "n_steps"),
    [(0.7, 0.001, 10), (1.0, 0.001, 200), (1.5, 0.02, 200), (1.2, 0.01, 300)],
)
def test_epsilon_of_samples_is_that_of_dp_accounting(multiplier, rate, n_steps):
    profile = ComposedProfile(((PoissonLoss(1 / multiplier, rate), n_steps),))

    def reference(pessimistic):
        one = pld.from_gaussian_mechanism(
            multiplier,
            pessimistic_estimate=pessimistic,
            sampling_prob=rate,
            value_discretization_interval=profile.epsilon(1e-6) / 1000,
            use_connect_dots=pessimistic,
        )
        return one.self_compose(n_steps)

    low, high = reference(pessimistic=False), reference(pessimistic=True)
    for delta in (1e-4, 1e-6, 1e-9):
        found = profile.epsilon(delta)
        assert low.get_epsilon_for_delta(delta) <= found
        assert found <= 1.01 * high.get_epsilon_for_delta(delta)


@pytest.mark.parametrize("width", [7.0, 10.0, 14.0])
def test_delta_of_a_truncated_window_is_not_below_the_truth(monkeypatch, width):
    # 25 losses that sum to a Gaussian one, whose upper end the window does not reach
    monkeypatch.setattr(convolution, "WIDEST", width)
    (total,) = convolution.Composition(((GaussianLoss(0.16), 25),))._sums
    epsilons = np.linspace(0.5, 12.0, 116)
    truth = gaussian_deltas(epsilons, 2.0)
    found = np.array([total.delta(epsilon) for epsilon in epsilons])
    assert (found >= truth).all()
    # and the window is a part of what it would have to be
    assert max(table.infinite for table in total._tables.values()) > 1e-9


def test_a_flatter_tilt_is_taken_where_no_window_is_long_enough():
    # the best tilt takes a window 150 wide, at a spacing of 1.5e-5
    found = ComposedProfile(((PoissonLoss(1 / 0.711, 4.478e-6), 105_809),))
    one = pld.from_gaussian_mechanism(
        0.711, sampling_prob=4.478e-6, value_discretization_interval=2e-5
    )
    reference = one.self_compose(105_809).get_epsilon_for_delta(6.1e-8)
    assert found.epsilon(6.1e-8) <= 1.01 * reference


def test_nothing_is_charged_above_the_largest_loss():
    # a row that is added has a loss of at most 0.01 in all, which tilts do not show
    loss = PoissonLoss(1 / 0.7, 0.001, added=True)
    (total, _) = convolution.Composition(((loss, 10),))._sums
    assert total.epsilon(1e-17) < inf


def test_window_of_samples_is_not_much_wider_than_it_has_to_be():
    # at the next tilt of the list nearly every step has a rare, large loss: bounded by
    # that tilt, the window has five times as many points
    (total, _) = convolution.Composition(((PoissonLoss(1 / 0.9, 0.02), 200),))._sums
    total.epsilon(1e-6)
    assert max(len(table.deltas) for table in total._tables.values()) < 1e5


def test_noise_of_samples_is_the_least():
    # it was twice as large where the composition at less noise was not finite
    sampling = Sampling(50_000, 1_000, 200, poisson=True)
    budget = Budget(4.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)
    assert least_noise(sampling, budget) == pytest.approx(0.7945, rel=2e-3)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("epsilon", [1e-5, 1e-9])
def test_a_tiny_pure_loss_costs_no_finer_grid(epsilon):
    curve = Composed((GaussianNoise(1.0), PureDP(epsilon))).curve(REPLACE)
    alone = GaussianNoise(1.0).curve(REPLACE).epsilon(1e-6)
    assert alone <= curve.exact.epsilon(1e-6) <= 1.001 * alone + epsilon


def test_a_window_that_is_too_short_gives_way_to_another():
    event = Composed(
        (
            Repeated(LaplaceNoise(10.807552594007474), 62990),
            Repeated(BoundedRange(0.0035050563946939484), 26),
            Repeated(BoundedRange(1.2640200492067725e-6), 397505),
        )
    )
    exact = event.curve(ADD).exact
    found = [exact.epsilon(delta) for delta in (1e-1, 1e-3, 1e-6, 1e-9, 1e-12)]
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()
