"""Prefix sums of a stream: distribution, cost, and privacy by linear algebra."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import replay
from tacit.mechanisms import noise as draws
from tacit.mechanisms.continual import TreeSum
from tacit.mechanisms.noise import GRID, ROUNDING
from tacit.privacy import GaussianNoise

HORIZONS = [1, 2, 3, 7, 8, 13, 16]

kinds = pytest.mark.parametrize("noise", ["grid", "float"])
horizons = pytest.mark.parametrize("horizon", HORIZONS)


def prefix_sums(mechanism, elements, rng):
    state, sums = mechanism.init(np.shape(elements[0])), []
    for element in elements:
        state, total = mechanism.step(state, element, rng)
        sums.append(total)
    return np.array(sums)


@kinds
def test_sums_are_exact_without_noise_to_speak_of(noise):
    # noise is switched off by a tiny multiplier, not by a back door
    mechanism = TreeSum(13, 1e-7, 1.0, noise)
    elements = as_generator(0).uniform(-1, 1, (13, 2, 3))
    sums = prefix_sums(mechanism, elements, as_generator(1))
    assert sums.shape == (13, 2, 3)
    assert np.allclose(sums, np.cumsum(elements, axis=0), atol=1e-5)


@kinds
@pytest.mark.statistical
def test_noise_has_one_node_for_each_binary_digit(noise, seed):
    n, horizon = 20_000, 13
    mechanism = TreeSum(horizon, 1.5, 2.0, noise)
    elements = np.repeat(np.linspace(-3, 5, horizon)[:, None], n, axis=1)
    sums = prefix_sums(mechanism, elements, as_generator(seed))
    errors = sums - np.cumsum(elements, axis=0)
    for t in range(1, horizon + 1):
        distribution = stats.norm(0, sqrt(t.bit_count()) * mechanism.scale(n))
        assert_follows(errors[t - 1], distribution.cdf)
        variance = np.var(errors[t - 1]) / mechanism.scale(n) ** 2
        assert variance == pytest.approx(t.bit_count(), rel=0.07)
    # controls: a scale that is a tenth off, a center that is a tenth of it off
    wide = stats.halfnorm(0, 1.1 * mechanism.scale(n))
    moved = stats.norm(0.1 * mechanism.scale(n), mechanism.scale(n))
    assert_detects(np.abs(errors[0]), wide.cdf)
    assert_detects(errors[0], moved.cdf)


@horizons
def test_levels_are_the_digits_of_the_horizon(horizon):
    assert TreeSum(horizon, 1.0, 1.0).levels == len(f"{horizon:b}")


@kinds
def test_the_state_holds_two_arrays_a_level(noise):
    mechanism, rng = TreeSum(1000, 1.0, 1.0, noise), as_generator(0)
    state = mechanism.init((3,))
    for _ in range(100):
        state, _ = mechanism.step(state, np.ones(3), rng)
        stored = state._private_exact, state._private_noisy
        assert [part.shape for part in stored] == [(10, 3), (10, 3)]
    assert state.n_steps == 100


@kinds
def test_a_step_leaves_the_earlier_state_alone(noise):
    mechanism = TreeSum(8, 1.0, 1.0, noise)
    state = mechanism.init(())
    for _ in range(5):
        before = state._private_exact.copy(), state._private_noisy.copy()
        first, total = mechanism.step(state, 1.0, as_generator(1))
        again, same = mechanism.step(state, 1.0, as_generator(1))
        assert total == same
        assert np.array_equal(first._private_noisy, again._private_noisy)
        assert np.array_equal(before[0], state._private_exact)
        assert np.array_equal(before[1], state._private_noisy)
        state = first


@kinds
@horizons
def test_a_step_beyond_the_horizon_is_refused(noise, horizon):
    mechanism, rng = TreeSum(horizon, 1.0, 1.0, noise), as_generator(0)
    state = mechanism.init(())
    for _ in range(horizon):
        state, _ = mechanism.step(state, 0.0, rng)
    message = f"planned for {horizon} steps and cannot take step {horizon + 1}"
    with pytest.raises(ValueError, match=message):
        mechanism.step(state, 0.0, rng)


def node_matrix(mechanism, monkeypatch):
    """Which elements enter each node, as released to the tape without noise."""
    n = mechanism.horizon
    monkeypatch.setattr(draws, "float_normal", lambda shape, rng: np.zeros(shape))
    with recording() as tape:
        sums = prefix_sums(mechanism, np.eye(n), as_generator(0))
    assert np.array_equal(sums, np.tril(np.ones((n, n))))
    return np.concatenate([release.output for release in tape.releases])


def noise_matrix(mechanism, monkeypatch):
    """Which draws, in units of the scale, enter each output."""
    n, unit = mechanism.horizon, iter(np.eye(mechanism.horizon))
    monkeypatch.setattr(draws, "float_normal", lambda shape, rng: next(unit)[None])
    sums = prefix_sums(mechanism, np.zeros((n, n)), as_generator(0))
    return sums / mechanism.scale(n)


@horizons
def test_all_outputs_are_one_gaussian_mechanism(horizon, monkeypatch):
    mechanism = TreeSum(horizon, 1.5, 2.0, "float")
    nodes = node_matrix(mechanism, monkeypatch)
    mixing = noise_matrix(mechanism, monkeypatch)
    assert np.array_equal(np.diag(mixing), np.ones(horizon))
    assert list(mixing.sum(axis=1)) == [t.bit_count() for t in range(1, horizon + 1)]
    # outputs are an invertible image of the noisy nodes, so the nodes are all there is
    total = np.tril(np.ones((horizon, horizon)))
    assert np.allclose(mixing @ nodes, total)
    assert np.linalg.matrix_rank(mixing) == horizon
    # distance of neighbors in the metric of the noise, for each element
    covariance = mechanism.scale(1) ** 2 * mixing @ mixing.T
    moved = 2.0 * total
    distances = np.sqrt(np.diag(moved.T @ np.linalg.solve(covariance, moved)))
    norms = np.linalg.norm(nodes, axis=0)
    assert norms.max() == pytest.approx(sqrt(mechanism.levels))
    assert np.allclose(distances, 2.0 * norms / mechanism.scale(1))
    assert distances.max() == pytest.approx(1 / mechanism.multiplier)
    # control: noise for one level fewer would not do
    if mechanism.levels > 1:
        fewer = mechanism.scale(1) * sqrt(1 - 1 / mechanism.levels)
        assert (2.0 * norms / fewer).max() > 1.001 / mechanism.multiplier


@pytest.mark.parametrize("horizon", [100, 1024])
def test_each_step_makes_one_node_and_the_first_element_is_in_most(
    horizon, monkeypatch
):
    nodes = node_matrix(TreeSum(horizon, 1.0, 1.0, "float"), monkeypatch)
    assert nodes.shape == (horizon, horizon)
    entered = nodes.sum(axis=0)
    assert entered[0] == entered.max() == horizon.bit_length()
    if horizon == 1024:
        assert entered.mean() == pytest.approx(6.0, abs=0.01)


@pytest.mark.statistical
def test_sums_share_the_noise_of_the_nodes_they_share(seed):
    horizon, n = 13, 40_000
    mechanism = TreeSum(horizon, 1.0, 1.0)
    _, sums = mechanism.steps(
        mechanism.init((n,)), np.zeros((horizon, n)), as_generator(seed)
    )
    found = sums @ sums.T / n / mechanism.scale(n) ** 2
    # the node of digit i of t ends at t without its lower digits
    nodes = [
        {(t >> i << i, i) for i in range(4) if t >> i & 1}
        for t in range(1, horizon + 1)
    ]
    shared = np.array([[len(a & b) for b in nodes] for a in nodes])
    assert np.allclose(found, shared, atol=0.1)


@kinds
def test_the_scale_pays_for_levels_and_rounding(noise):
    mechanism = TreeSum(100, 1.5, 2.0, noise)
    scale = mechanism.scale(9)
    rounding = 3 * ROUNDING * scale / GRID if noise == "grid" else 0.0
    assert scale == pytest.approx(1.5 * sqrt(7) * (2.0 + rounding), rel=1e-14)
    assert mechanism.event == GaussianNoise(1.5)


def test_grid_outputs_are_multiples_of_the_cell():
    mechanism = TreeSum(13, 1.0, 1.0)
    elements = as_generator(0).uniform(-1, 1, (13, 4))
    sums = prefix_sums(mechanism, elements, as_generator(0))
    cell = mechanism.scale(4) / GRID
    assert np.array_equal(np.rint(sums / cell) * cell, sums)


@pytest.mark.parametrize("huge", [1e12, 1e300, np.inf])
def test_huge_elements_do_not_overflow(huge):
    mechanism = TreeSum(16, 1.0, 1.0)
    sums = prefix_sums(mechanism, np.full((16, 2), huge), as_generator(0))
    assert np.all(np.isfinite(sums))
    assert np.all(np.diff(sums[:, 0]) > 0)


@kinds
def test_elements_go_over_the_tape(noise):
    mechanism = TreeSum(13, 1.0, 2.0, noise)

    def train(elements):
        return prefix_sums(mechanism, elements, as_generator(0))

    elements = as_generator(0).uniform(-1, 1, (13, 4))
    for position in range(13):
        other = elements.copy()
        other[position] += 1.0  # two in L2
        report = replay(train, (elements,), (other,))
        assert report.ok, str(report)
        assert [e.moved > 0 for e in report.entries].index(True) == position
        other[position] += 1.0
        assert not replay(train, (elements,), (other,)).ok


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("horizon", 0),
        ("horizon", 2.5),
        ("multiplier", 0.0),
        ("multiplier", np.inf),
        ("sensitivity", -1.0),
        ("noise", "exact"),
    ],
)
def test_bad_parameters_are_rejected(name, bad):
    good = {"horizon": 4, "multiplier": 1.0, "sensitivity": 1.0}
    with pytest.raises(ValueError, match=rf"^{name} must .*\.$"):
        TreeSum(**{**good, name: bad})
