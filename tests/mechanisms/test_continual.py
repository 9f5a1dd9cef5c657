"""Contract, distribution and privacy of all sums of streams, by linear algebra."""

from fractions import Fraction
from functools import partial
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from tacit._random import as_generator, spawn
from tacit._release import recording
from tacit._state import dumped, loaded
from tacit.audit import replay
from tacit.mechanisms import Gaussian
from tacit.mechanisms import noise as draws
from tacit.mechanisms.continual import (
    GrowingSum,
    WindowSum,
    prefix_sums,
)
from tacit.mechanisms.continual._base import as_cells, side_by_side
from tacit.mechanisms.continual._growing import SUMS
from tacit.mechanisms.noise import GRID, to_cells
from tacit.privacy import GaussianNoise, Neighbors

KINDS = SUMS  # by name
WINDOW = 5


def endless(make):
    """Take a horizon and leave it aside, as endless sums have none."""
    return lambda horizon, *args: make(*args)


ALL = {
    **KINDS,
    "growing blt": endless(partial(GrowingSum, first=3, growth=2)),
    "growing tree": endless(partial(GrowingSum, kind="tree", first=2, growth=3)),
    "window": endless(partial(WindowSum, WINDOW)),
}
noises = pytest.mark.parametrize("noise", ["grid", "float"])
bounded = pytest.mark.parametrize("kind", KINDS)
every = pytest.mark.parametrize("kind", ALL)


def make(kind, horizon, multiplier=1.0, sensitivity=1.0, noise="grid"):
    return ALL[kind](horizon, multiplier, sensitivity, noise)


def exact_sums(kind, elements):
    sums = np.cumsum(elements, axis=0)
    if kind == "window":
        sums[WINDOW:] -= np.cumsum(elements, axis=0)[:-WINDOW]
    return sums


def one_by_one(mechanism, elements, rng, state=None):
    state = mechanism.init(np.shape(elements[0])) if state is None else state
    sums = []
    for element in elements:
        state, total = mechanism.step(state, element, rng)
        sums.append(total)
    return state, np.array(sums)


@noises
@every
def test_sums_are_exact_without_noise_to_speak_of(kind, noise):
    # noise is switched off by a tiny multiplier, not by a back door
    mechanism = make(kind, 200, 1e-7, noise=noise)
    elements = as_generator(0).uniform(-1, 1, (200, 2, 3))
    rng = as_generator(1)
    state, first = mechanism.steps(mechanism.init((2, 3)), elements[:97], rng)
    state, second = one_by_one(mechanism, elements[97:103], rng, state)
    state, third = mechanism.steps(state, elements[103:], rng)
    sums = np.concatenate([first, second, third])
    assert sums.shape == (200, 2, 3)
    assert np.allclose(sums, exact_sums(kind, elements), atol=2e-5)
    assert state.n_steps == 200
    assert state.shape == (2, 3)


@pytest.mark.parametrize("kind", ["square_root", "blt"])
def test_the_noise_covers_what_rounding_adds_to_the_sensitivity(kind):
    horizon, size, multiplier = 1000, 3, 2.0
    mechanism = make(kind, horizon, multiplier)
    scale = mechanism.scale(size)
    # two streams, each off in every number of every step
    apart = 2 * mechanism._rounding() * sqrt(horizon * size) * scale / GRID
    assert scale >= multiplier * (mechanism.column_norm + apart)


@every
def test_a_block_does_what_single_steps_do(kind, monkeypatch):
    """With the same noise: the draws of a block are others than those of steps."""
    waiting = as_generator(0).integers(-(2**34), 2**34, (600, 3))

    def served(start):
        position = [start]

        def draw(shape, rng):
            n = 1 if len(shape) == 1 else shape[0]
            position[0] += n
            return waiting[position[0] - n : position[0]].reshape(shape).copy()

        return draw

    mechanism = make(kind, 140)
    elements = as_generator(1).uniform(-1, 1, (140, 3))
    monkeypatch.setattr(draws, "rounded_normal", served(0))
    _, sums = one_by_one(mechanism, elements, as_generator(0))
    monkeypatch.setattr(
        "tacit.mechanisms.continual._base.side_by_side",
        lambda n, size, rng: draws.rounded_normal((n, size), rng),
    )
    monkeypatch.setattr(draws, "rounded_normal", served(0))
    again, blocks = mechanism.steps(
        mechanism.init((3,)), elements[:77], as_generator(0)
    )
    _, rest = mechanism.steps(again, elements[77:], as_generator(0))
    assert np.array_equal(np.concatenate([blocks, rest]), sums)


def test_two_threads_draw_what_one_would():
    found = side_by_side(101, 7, as_generator(3))
    first, second = spawn(as_generator(3), 2)
    expected = (
        draws.rounded_normal((51, 7), first),
        draws.rounded_normal((50, 7), second),
    )
    assert np.array_equal(found, np.concatenate(expected))


@noises
@every
def test_a_state_that_was_written_goes_on_as_if_it_were_not(kind, noise):
    mechanism = make(kind, 200, noise=noise)
    elements = as_generator(0).uniform(-1, 1, (200, 3))
    for split in (1, 4, 64, 128, 131):
        state, _ = mechanism.steps(
            mechanism.init((3,)), elements[:split], as_generator(1)
        )
        read = loaded(dumped(state))
        _, sums = mechanism.steps(state, elements[split:], as_generator(2))
        _, again = mechanism.steps(read, elements[split:], as_generator(2))
        assert np.array_equal(sums, again)
        assert type(read) is type(state)


@every
def test_a_step_leaves_the_earlier_state_alone(kind):
    mechanism = make(kind, 200)
    state = mechanism.init((2,))
    for n in (1, 3, 60, 1, 70):
        before = dumped(state)
        first, sums = mechanism.steps(state, np.ones((n, 2)), as_generator(1))
        again, same = mechanism.steps(state, np.ones((n, 2)), as_generator(1))
        assert np.array_equal(sums, same)
        assert dumped(first) == dumped(again)
        assert dumped(state) == before
        state = first


@noises
@bounded
@pytest.mark.parametrize("horizon", [1, 2, 70])
def test_a_step_beyond_the_horizon_is_refused_and_changes_nothing(kind, noise, horizon):
    mechanism, rng = make(kind, horizon, noise=noise), as_generator(0)
    state, _ = mechanism.steps(mechanism.init((2,)), np.ones((horizon, 2)), rng)
    before = dumped(state)
    message = f"planned for {horizon} steps and cannot take step {horizon + 1}"
    with pytest.raises(ValueError, match=message):
        mechanism.step(state, np.ones(2), rng)
    with pytest.raises(ValueError, match=message):
        mechanism.steps(state, np.ones((3, 2)), rng)
    # a block that starts within the horizon is rejected as a whole
    with pytest.raises(ValueError, match=message):
        mechanism.steps(mechanism.init((2,)), np.ones((horizon + 1, 2)), rng)
    assert dumped(state) == before


@every
def test_an_element_of_another_shape_is_refused(kind):
    mechanism, rng = make(kind, 4), as_generator(0)
    state = mechanism.init((2,))
    message = r"elements of shape \(2,\), got one of shape"
    for wrong in (1.0, np.ones(3), np.ones((2, 2))):
        with pytest.raises(ValueError, match=message):
            mechanism.step(state, wrong, rng)
    for wrong in (1.0, np.ones(3), np.ones((2, 3))):
        with pytest.raises(ValueError, match=message):
            mechanism.steps(state, wrong, rng)


@every
def test_an_empty_block_changes_nothing(kind):
    mechanism = make(kind, 4)
    state = mechanism.init((2,))
    after, sums = mechanism.steps(state, np.ones((0, 2)), as_generator(0))
    assert sums.shape == (0, 2)
    assert dumped(after) == dumped(state)


@noises
@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_no_element_raises_or_warns(kind, noise, bad):
    mechanism, rng = make(kind, 100, noise=noise), as_generator(0)
    state, sums = mechanism.steps(mechanism.init((2,)), np.full((50, 2), bad), rng)
    state, total = mechanism.step(state, np.array([bad, 1.0]), rng)
    assert np.isfinite(sums).all()
    assert np.isfinite(total).all()
    if np.isnan(bad):
        assert np.abs(sums).max() < 60  # as if it were zero


@bounded
def test_elements_are_cut_to_the_largest(kind):
    mechanism = KINDS[kind](10, 1e-6, 1.0, "grid", 2.0)
    values = np.array([[5.0, -0.5], [-3.0, 2.0]])
    _, sums = mechanism.steps(mechanism.init((2,)), values, as_generator(0))
    assert np.allclose(sums, [[2.0, -0.5], [0.0, 1.5]], atol=1e-4)


@every
def test_the_event_is_one_gaussian_mechanism(kind):
    assert make(kind, 10, 1.5).event == GaussianNoise(1.5)


@noises
@every
@pytest.mark.statistical
def test_the_deviation_is_that_of_the_sums(kind, noise, seed):
    n, horizon = 4000, 70
    mechanism = make(kind, horizon, 1.5, 2.0, noise)
    elements = np.repeat(np.linspace(-3, 5, horizon)[:, None], n, axis=1)
    _, sums = mechanism.steps(mechanism.init((n,)), elements, as_generator(seed))
    errors = sums - exact_sums(kind, elements)
    claimed = np.array([mechanism.std_at(t, n) for t in range(1, horizon + 1)])
    ratio = np.square(errors / claimed[:, None]).sum(axis=1)
    # each row is chi squared with n degrees; all rows within one in a million
    low, high = stats.chi2(n).ppf([1e-6 / horizon, 1 - 1e-6 / horizon])
    assert ratio.min() > low
    assert ratio.max() < high
    # control: a tenth more noise somewhere would be seen
    assert 1.1**2 * ratio.max() > high


@noises
@bounded
@pytest.mark.parametrize("horizon", [1, 2, 3, 100, 257])
def test_the_deviation_of_all_steps_is_that_of_each(kind, noise, horizon):
    mechanism = make(kind, horizon, 1.5, 2.0, noise)
    each = [mechanism.std_at(t, 9) for t in range(1, horizon + 1)]
    assert np.allclose(mechanism.std(9), each, rtol=1e-12)
    assert mechanism.std(9).shape == (horizon,)


def outputs_of_draws(mechanism, n_steps, monkeypatch):
    """Which draws, in units of one, enter each output; each draw is a coordinate."""
    n_draws = 3 * n_steps + 8
    position = [0]

    def unit(shape, rng):
        rows = np.eye(n_draws)
        start, position[0] = (
            position[0],
            position[0] + (1 if len(shape) == 1 else shape[0]),
        )
        return rows[start : position[0]].reshape(shape)

    monkeypatch.setattr(draws, "float_normal", unit)
    return one_by_one(mechanism, np.zeros((n_steps, n_draws)), as_generator(0))[1]


def distances_of_neighbors(kind, mechanism, n_steps, monkeypatch):
    """How far outputs move in the metric of their noise, for each element."""
    mixing = outputs_of_draws(mechanism, n_steps, monkeypatch)
    covariance = mixing @ mixing.T
    moved = mechanism.sensitivity * exact_sums(kind, np.eye(n_steps))
    solved = np.linalg.solve(covariance, moved)
    return np.sqrt(np.einsum("ti,ti->i", moved, solved))


@every
@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 8, 13, 21])
def test_all_outputs_are_as_private_as_the_event(kind, n_steps, monkeypatch):
    mechanism = make(kind, n_steps, 1.5, 2.0, "float")
    distances = distances_of_neighbors(kind, mechanism, n_steps, monkeypatch)
    assert distances.max() <= (1 + 1e-9) / 1.5
    if kind in ("tree", "square_root", "blt"):
        assert distances.max() == pytest.approx(1 / 1.5, rel=1e-6)
    # the exact delta of these outputs, against that of the event
    for epsilon in (0.1, 1.0, 3.0):
        mu = distances.max()
        delta = stats.norm.cdf(mu / 2 - epsilon / mu)
        delta -= exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        claimed = mechanism.curve(Neighbors.REPLACE_ONE).delta(epsilon)
        assert delta <= claimed * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["growing blt", "growing tree"])
def test_totals_without_a_share_of_the_privacy_would_be_noticed(kind, monkeypatch):
    mechanism = make(kind, 21, 1.5, 2.0, "float")
    monkeypatch.setattr(
        GrowingSum, "total", lambda self: Gaussian(self.multiplier, 2.0, "float")
    )
    distances = distances_of_neighbors(kind, mechanism, 21, monkeypatch)
    assert distances.max() > 1.1 / 1.5


def neighbors(n_steps, position, rng):
    """Two streams that differ at one place, by two in L2."""
    elements = 10 * rng.standard_normal((n_steps, 4))
    change = rng.standard_normal(4)
    other = elements.copy()
    other[position] += 2.0 * change / np.linalg.norm(change)
    return elements, other


def moved_by_neighbors(mechanism, elements, other, parts):
    """L2 distance of all that is released without noise, given the same outputs."""

    def train(values):
        state, rng, sums = mechanism.init(values[0].shape), as_generator(0), []
        for part in np.split(values, parts):
            state, found = mechanism.steps(state, part, rng)
            sums.append(found)
        return np.concatenate(sums)

    report = replay(train, (elements,), (other,))
    assert report.ok, str(report)
    return sqrt(sum(entry.moved**2 for entry in report.entries))


@noises
@pytest.mark.parametrize("kind", ["blt", "square_root"])
def test_neighbors_move_releases_by_the_column_norm_and_no_more(kind, noise, seed):
    horizon, rng = 150, as_generator(seed)
    mechanism = make(kind, horizon, 1.5, 2.0, noise)
    allowed = mechanism.scale(4) / mechanism.multiplier
    found = []
    for position in (0, 0, 1, 70, 149):
        elements, other = neighbors(horizon, position, rng)
        parts = sorted(rng.integers(1, horizon, 5))
        found.append(moved_by_neighbors(mechanism, elements, other, parts))
    assert max(found) <= allowed * (1 + 1e-9)
    assert max(found) >= 0.99 * 2.0 * mechanism.column_norm
    # control: half of the noise would not do
    assert max(found) > 1.9 * allowed / 2


@pytest.mark.parametrize("kind", ["tree", "honaker"])
def test_neighbors_move_nodes_by_the_root_of_the_levels_and_no_more(
    kind, seed, monkeypatch
):
    monkeypatch.setattr(
        "tacit.mechanisms.continual._base.side_by_side",
        lambda n, size, rng: np.zeros((n, size), dtype=np.int64),
    )
    horizon, rng = 150, as_generator(seed)
    mechanism = make(kind, horizon, 1.5, 2.0)
    cell = mechanism.scale(4) / 2**32
    found = []
    for position in (0, 0, 1, 70, 149):
        elements, other = neighbors(horizon, position, rng)
        nodes = [released_nodes(mechanism, values) for values in (elements, other)]
        found.append(np.linalg.norm((nodes[1] - nodes[0]) * cell))
    allowed = mechanism.scale(4) / mechanism.multiplier
    assert max(found) <= allowed * (1 + 1e-9)
    assert max(found) >= 0.99 * 2.0 * sqrt(mechanism.levels)


def released_nodes(mechanism, values):
    with recording() as tape:
        mechanism.steps(mechanism.init(values[0].shape), values, as_generator(0))
    return tape.releases[0].output


@noises
@every
def test_elements_reach_outputs_over_the_tape_alone(kind, noise):
    mechanism = make(kind, 21, 1.0, 2.0, noise)

    def train(elements):
        return one_by_one(mechanism, elements, as_generator(0))[1]

    elements = as_generator(0).uniform(-1, 1, (21, 4))
    for position in (0, 5, 20):
        other = elements.copy()
        other[position] += 1.0  # two in L2
        report = replay(train, (elements,), (other,))
        assert report.ok, str(report)
        other[position] += 8.0
        assert not replay(train, (elements,), (other,)).ok
        report = replay(train, (elements,), (other,), redraw=True)
        assert not any("result" in sentence for sentence in report.violations)


@every
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("multiplier", 0.0),
        ("multiplier", np.inf),
        ("sensitivity", -1.0),
        ("noise", "exact"),
        ("largest", 0.0),
    ],
)
def test_bad_parameters_are_rejected(kind, name, bad):
    good = {"multiplier": 1.0, "sensitivity": 1.0, "noise": "grid", "largest": None}
    with pytest.raises(ValueError, match=rf"^{name} must .*\.$"):
        ALL[kind](4, *{**good, name: bad}.values())


@bounded
def test_prefix_sums_makes_each_kind_by_its_name(kind):
    assert prefix_sums(kind, 10, 1.5, 2.0) == KINDS[kind](10, 1.5, 2.0)
    found = prefix_sums(kind, 10, 1.5, 2.0, "float", 3.0)
    assert found == KINDS[kind](10, 1.5, 2.0, "float", 3.0)
    assert prefix_sums(kind, None, 1.5, 2.0) == GrowingSum(1.5, 2.0, kind=kind)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"^name must be 'blt', .* got 'trees'\.$"):
        prefix_sums("trees", 10, 1.0, 1.0)


@pytest.mark.parametrize("horizon", [10, None])
def test_a_step_without_a_generator_is_one_sentence(horizon):
    total = prefix_sums("blt", horizon, 1.0, 1.0)
    with pytest.raises(TypeError, match=r"^rng must be .*as_generator\(None\), got "):
        total.step(total.init((1,)), np.zeros(1), None)
    week = WindowSum(7, 1.0, 1.0)
    with pytest.raises(TypeError, match=r"^rng must be .*as_generator\(None\), got "):
        week.steps(week.init((1,)), np.zeros((2, 1)), 0)


def near_half_cells(cell, n, rng):
    """Return numbers whose cells are others in exact arithmetic than in floats."""
    found = []
    while len(found) < n:
        value = float(np.floor(rng.uniform(2**50, 2**51 - 2)) + 0.5) * cell
        if round(Fraction(value) / Fraction(cell)) != np.rint(value / cell):
            found.append(value)
    return np.array(found)


def test_a_large_number_changes_the_cells_of_no_other(seed):
    # by its place, and by that of a column in its own row
    cell, edge = 0.3, 2.0**51 * 0.3
    values = near_half_cells(cell, 30, as_generator(seed)).reshape(15, 2)
    small, large = values.copy(), values.copy()
    small[7, 1], large[7, 1] = edge - 0.4, edge + 0.4
    first, second = (as_cells(v, cell, 1e20, "grid") for v in (small, large))
    others = np.ones(values.shape, dtype=bool)
    others[7, 1] = False
    assert (first == second)[others].all()
    assert second[7, 1] == round(Fraction(large[7, 1]) / Fraction(cell))
    # exact arithmetic for all of them would have changed all of them
    whole = to_cells(large, cell * GRID)
    assert (whole != first)[others].all()
