"""Sums of streams without an end: epochs, blocks, and what they cost."""

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.mechanisms.continual import (
    BLTSum,
    GrowingSum,
    TreeSum,
    WindowSum,
    prefix_sums,
)
from tacit.mechanisms.continual._growing import SUMS, _added, _joined
from tacit.mechanisms.continual._square_root import SquareRootSum
from tacit.mechanisms.continual._trees import HonakerTree
from tacit.mechanisms.noise import GRID


def test_epochs_grow_by_the_factor_up_to_the_longest():
    assert [GrowingSum(1.0, 1.0).length(e) for e in range(4)] == [16, 256, 4096, 65536]
    assert [GrowingSum(1.0, 1.0, growth=2).length(e) for e in range(3)] == [16, 32, 64]
    assert GrowingSum(1.0, 1.0).length(10**6) == 2**26
    assert GrowingSum(1.0, 1.0, growth=1).length(10**6) == 16


def test_the_parts_of_an_epoch_add_up_to_the_event():
    for total_fraction in (None, 0.01, 0.5, 0.9):
        mechanism = GrowingSum(1.5, 1.0, total_fraction=total_fraction)
        parts = mechanism.inner(2).multiplier, mechanism.total().multiplier
        spent = sum(1 / part**2 for part in parts)
        assert spent <= 1 / 1.5**2
        assert spent == pytest.approx(1 / 1.5**2, rel=1e-10)


def test_a_kind_that_declares_no_fraction_has_the_usual_one(monkeypatch):
    monkeypatch.setitem(SUMS, "mine", SquareRootSum)
    mechanism = prefix_sums("mine", None, 1.0, 1.0)
    assert isinstance(mechanism.inner(0), SquareRootSum)
    parts = mechanism.total().multiplier, mechanism.inner(0).multiplier
    assert parts == pytest.approx((2.0, 2 / 3**0.5))


@pytest.mark.parametrize("exponent", [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
def test_an_unknown_end_costs_at_most_the_factor_that_is_stated(exponent):
    t = 2**exponent
    known = BLTSum(t, 1.0, 1.0).std_at(t, 1)
    assert GrowingSum(1.0, 1.0).std_at(t, 1) <= 1.65 * known


def test_the_default_growth_and_share_are_better_than_doubling():
    steps = 2 ** np.arange(4, 21)
    known = np.array([BLTSum(int(t), 1.0, 1.0).std_at(int(t), 1) for t in steps])

    def worst(**parameters):
        mechanism = GrowingSum(1.0, 1.0, **parameters)
        return max([mechanism.std_at(int(t), 1) for t in steps] / known)

    assert worst() < worst(growth=2) < 1.8
    assert worst() < min(worst(total_fraction=0.1), worst(total_fraction=0.5))


def test_the_variance_is_that_of_totals_and_of_the_epoch_under_way():
    mechanism = GrowingSum(
        1.0, 1.0, "float", kind="tree", first=1, growth=2, total_fraction=0.5
    )
    # step 2^K - 1 + s is step s of epoch K, whose tree has K + 1 levels
    for epoch, s in ((0, 1), (1, 1), (3, 5), (6, 63)):
        t = 2**epoch - 1 + s
        expected = 2 * (epoch + (epoch + 1) * s.bit_count())
        assert mechanism.std_at(t, 1) ** 2 == pytest.approx(expected)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_the_total_of_an_epoch_is_carried_with_its_noise(noise, seed):
    mechanism = GrowingSum(2.0, 1.0, noise, kind="tree", first=4, growth=2)
    size = 2000
    state = mechanism.init((size,))
    state, _ = mechanism.steps(state, np.zeros((4, size)), as_generator(seed))
    assert state.epoch == 1
    # the exact total is zero: what is carried is noise only. The ratio is off by more
    # than 10% with chance below 1e-9; half of the noise would be off by 50%
    ratio = state.carried.std() / mechanism.total().scale(size)
    assert abs(ratio - 1) < 0.1


def test_totals_have_room_beyond_64_bits():
    total = np.zeros((2, 2), dtype=np.int64)
    rows = np.array([[2**62, -(2**62)]] * 7 + [[5, -3]])
    for _ in range(5):
        total = _added(total, rows)
    exact = [35 * 2**62 + 25, -35 * 2**62 - 15]
    assert [int(high) * GRID + int(low) for high, low in total.T] == exact
    assert _joined(total).tolist() == [float(e) for e in exact]


@pytest.mark.parametrize(
    "bad",
    [
        {"total_fraction": 0.0},
        {"total_fraction": 1.0},
        {"kind": "root"},
        {"first": 0},
        {"growth": 0},
    ],
)
def test_bad_epochs_are_refused(bad):
    with pytest.raises(ValueError, match=rf"^{next(iter(bad))} must .*\.$"):
        GrowingSum(1.0, 1.0, **bad)


@pytest.mark.parametrize("window", [1, 2, 7, 64])
def test_the_window_has_the_deviation_of_two_blocks(window):
    mechanism = WindowSum(window, 1.5, 2.0)
    inner = BLTSum(window, 1.5, 2.0)
    later = [mechanism.std_at(window + s, 3) for s in range(1, window + 1)]
    assert np.allclose(mechanism.std(3), later, rtol=1e-9)
    first = [mechanism.std_at(s, 3) for s in range(1, window + 1)]
    assert np.allclose(first, inner.std(3))
    # at the end of a block the window is the block
    assert later[-1] == pytest.approx(first[-1])
    assert max(later) <= 2 * max(first)


def test_a_window_of_one_has_fresh_noise_alone():
    mechanism = WindowSum(1, 1.0, 1.0, "float")
    assert [mechanism.std_at(t, 1) for t in (1, 2, 30)] == pytest.approx([1.0] * 3)


def test_the_noise_of_a_window_does_not_grow_with_the_stream():
    mechanism = WindowSum(50, 1.0, 1.0)
    rng, state = as_generator(0), mechanism.init((500,))
    for _ in range(20):
        state, sums = mechanism.steps(state, np.zeros((100, 500)), rng)
    ratio = sums[-1].std() / mechanism.std_at(2000, 500)
    assert ratio == pytest.approx(1.0, abs=0.2)
    kept = sum(len(part) for part in state.now)
    assert len(state.before) == 50
    assert kept < 50


def test_a_bad_window_is_refused():
    with pytest.raises(ValueError, match=r"^window must .*\.$"):
        WindowSum(0, 1.0, 1.0)


@pytest.mark.parametrize("exponent", [10, 14, 16, 20])
def test_honakers_tree_has_the_expected_errors(exponent):
    expected = {10: 7.99, 14: 10.82, 16: 12.23, 20: 15.06}[exponent]
    t = 2**exponent
    mechanism = HonakerTree(t, 1.0, 1.0)
    assert mechanism.std_at(t - 1, 1) == pytest.approx(expected, rel=1e-3)
    assert mechanism.std_at(t - 1, 1) < TreeSum(t, 1.0, 1.0).std_at(t - 1, 1)


def test_honakers_tree_keeps_two_arrays_a_level():
    mechanism = HonakerTree(1000, 1.0, 1.0)
    state, _ = mechanism.steps(mechanism.init((3,)), np.ones((100, 3)), as_generator(0))
    stored = state._private_exact, state._private_estimates
    assert [part.shape for part in stored] == [(10, 3), (10, 3)]
