"""What every additive mechanism guarantees, over MECHANISMS."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.cases import Cases, cases
from tests.stat import P_FAIL, assert_detects, assert_follows, assert_probability

from tacit._random import as_generator
from tacit.audit import precision_attack, replay
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, L2Laplace, Laplace
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.mechanisms.noise import GRID, ROUNDING, enlarged, on_grid, to_cells
from tacit.privacy import Neighbors

MULTIPLIER, SENSITIVITY = 2.0, 3.0


@dataclass(frozen=True)
class Subject:
    """A mechanism, and how to get independent outputs of one number from it."""

    kind: type
    noise: str
    distribution: Any  # of the noise, at scale one
    n: int = 40_000
    norm: str = "l2"
    control: float = 1.1  # factor by which a wrong scale is off

    def __str__(self):
        return f"{self.kind.__name__}-{self.noise}"

    def make(self, multiplier=MULTIPLIER, sensitivity=SENSITIVITY, size=1):
        extra = {"size": size} if self.kind is L2Laplace else {}
        return self.kind(multiplier, sensitivity, noise=self.noise, **extra)

    def scale(self, mechanism, size=1):
        """Scale of the noise when the mechanism is given ``size`` free numbers."""
        if self.kind is L2Laplace:
            return mechanism.scale()
        if self.kind is SymmetricGaussian:
            vector = Gaussian(
                mechanism.multiplier, mechanism.sensitivity, mechanism.noise
            )
            return vector.scale(size) * (1 + 1e-15)  # room for the root of two
        return mechanism.scale(size)

    def shaped(self, numbers):
        """The numbers as a value that the mechanism takes, each protected alone."""
        if self.kind is not SymmetricGaussian:
            return np.array(numbers, dtype=np.float64)
        return np.diag(np.asarray(numbers, dtype=np.float64))

    def outputs(self, mechanism, value, n, rng):
        """Independent outputs, and the scale of their noise."""
        if self.kind is L2Laplace:
            draws = [mechanism(np.array([value]), rng)[0] for _ in range(n)]
            return np.array(draws), self.scale(mechanism)
        if self.kind is SymmetricGaussian:
            side = int(sqrt(2 * n)) + 1
            upper = np.triu_indices(side)
            noisy = mechanism(np.full((side, side), value), rng)[upper] - value
            noisy *= np.where(upper[0] == upper[1], 1.0, sqrt(2.0))
            return value + noisy, self.scale(mechanism, len(noisy))
        return mechanism(np.full(n, value), rng), self.scale(mechanism, n)


# Each with the distribution of its noise at scale one, the number of draws, the norm,
# and the factor by which the scale of the control is off
SHARED_CASES = Cases(
    mechanisms=[
        (Gaussian, stats.norm, 40_000, "l2", 1.1),
        (Laplace, stats.laplace, 40_000, "l1", 1.1),
        # in one dimension, one call a draw
        (L2Laplace, stats.laplace, 8_000, "l2", 1.2),
        (SymmetricGaussian, stats.norm, 40_000, "l2", 1.1),
    ]
)
MECHANISMS = [
    Subject(kind, noise, *facts)
    for kind, *facts in cases("mechanisms")
    for noise in ("grid", "float")
]
GRID_MECHANISMS = [s for s in MECHANISMS if s.noise == "grid"]
VALUE = 0.7

every = pytest.mark.parametrize("subject", MECHANISMS, ids=str)
every_grid = pytest.mark.parametrize("subject", GRID_MECHANISMS, ids=str)


@cache
def standard_noise(subject, seed):
    """Noise in units of its scale."""
    rng = as_generator(seed)
    out, scale = subject.outputs(subject.make(), VALUE, subject.n, rng)
    return (out - VALUE) / scale


def folded(distribution, wrong=1.0):
    return lambda x: 2 * distribution.cdf(np.asarray(x) / wrong) - 1


@every
@pytest.mark.statistical
def test_the_noise_follows_its_law(subject, seed):
    sizes = np.abs(standard_noise(subject, seed))
    assert_follows(sizes, folded(subject.distribution))
    for wrong in (1 / subject.control, subject.control):
        assert_detects(sizes, folded(subject.distribution, wrong))


@every
@pytest.mark.statistical
def test_the_noise_is_centered_on_the_value(subject, seed):
    noise = standard_noise(subject, seed)
    assert_probability(int(np.sum(noise > 0)), len(noise), 0.5)
    with pytest.raises(AssertionError):
        assert_probability(int(np.sum(noise > 0.1)), len(noise), 0.5)


@every
@pytest.mark.statistical
def test_calls_are_independent(subject, seed):
    if subject.kind is L2Laplace:
        noise = standard_noise(subject, seed)
        first, second = noise[0::2], noise[1::2]
    else:
        rng, mechanism = as_generator(seed), subject.make()
        first, second = (
            subject.outputs(mechanism, VALUE, 5000, rng)[0] for _ in range(2)
        )
    limit = stats.norm.isf(P_FAIL / 2) / sqrt(len(first))
    assert abs(np.corrcoef(first, second)[0, 1]) < limit
    # control: a fifth of the second call's noise taken over from the first
    mixed = sqrt(0.96) * (second - second.mean()) + 0.2 * (first - first.mean())
    assert abs(np.corrcoef(first, mixed)[0, 1]) > limit


@every
def test_a_seed_fixes_the_noise(subject):
    value = subject.shaped([VALUE])
    mechanism = subject.make()
    first, again, other = (mechanism(value, as_generator(s)) for s in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.any(first == other)
    rng = as_generator(3)
    mechanism(value, rng)
    assert not np.any(mechanism(value, rng) == first)


@every
def test_the_shape_is_kept_and_the_value_left_alone(subject):
    rng = as_generator(0)
    shapes = [(), (1,), (4,), (2, 3), (2, 1, 2), (0,), (0, 3)]
    if subject.kind is SymmetricGaussian:
        shapes = [(1, 1), (3, 3), (0, 0)]
    if subject.kind is L2Laplace:
        shapes = [s for s in shapes if 0 not in s]
    for shape in shapes:
        value = np.full(shape, VALUE)
        out = subject.make(size=value.size)(value, rng)
        assert np.shape(out) == shape
        assert np.asarray(out).dtype == np.float64
        assert np.all(value == VALUE)


def divergence(distribution, shift, epsilons):
    """Delta at each epsilon of a distribution and its translation, by quadrature."""
    x = np.linspace(-25, 25 + shift, 200_001)
    ours, other = distribution.pdf(x), distribution.pdf(x - shift)
    deltas = []
    for epsilon in epsilons:
        gaps = [ours - np.exp(epsilon) * other, other - np.exp(epsilon) * ours]
        deltas += [max(np.trapezoid(np.maximum(gap, 0), x) for gap in gaps)]
    return np.array(deltas)


@every
@pytest.mark.parametrize("multiplier", [0.4, 2.0])
def test_the_curve_is_nowhere_below_the_integrated_divergence(subject, multiplier):
    mechanism = subject.make(multiplier)
    epsilons = np.linspace(0, 2.5 / multiplier, 8)
    scale = subject.scale(mechanism)
    moved = SENSITIVITY + (ROUNDING * scale / GRID if subject.noise == "grid" else 0)
    truth = divergence(subject.distribution, moved / scale, epsilons)
    wrong = divergence(subject.distribution, 2 * moved / scale, epsilons)
    for neighbors in Neighbors:
        curve = mechanism.curve(neighbors)
        claimed = np.array([curve.delta(e) for e in epsilons])
        assert np.all(claimed >= truth - 1e-7)
        # half the noise would be noticed
        assert np.any(claimed < wrong - 1e-3)
        if subject.distribution is stats.norm:
            assert np.allclose(claimed, truth, atol=1e-7)


@every
@pytest.mark.parametrize("size", [1, 5])
def test_what_is_released_goes_over_the_tape(subject, size):
    mechanism = subject.make(size=size)
    numbers = np.linspace(-1, 1, size)
    shift = np.zeros(size)
    shift[0] = SENSITIVITY
    if subject.norm == "l1":
        shift = np.full(size, SENSITIVITY / size)
    elif subject.kind is not SymmetricGaussian:
        shift = np.full(size, SENSITIVITY / sqrt(size))

    def train(numbers):
        return mechanism(subject.shaped(numbers), as_generator(1))

    report = replay(train, (numbers,), (numbers + shift,))
    assert report.ok, str(report)
    assert [e.norm for e in report.entries] == [subject.norm]
    assert report.entries[0].moved == pytest.approx(SENSITIVITY)
    assert report.entries[0].sensitivity == SENSITIVITY
    doubled = replay(train, (numbers,), (numbers + 2 * shift,))
    assert ["declared sensitivity" in v for v in doubled.violations] == [True]

    def leaky(numbers):
        return train(numbers) + 1e-12 * numbers.sum()

    assert not replay(leaky, (numbers,), (numbers + shift,)).ok


BAD_NUMBERS = [0, -1.0, np.nan, np.inf, "1", None, True]


@every
@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["multiplier", "sensitivity"])
def test_bad_numbers_are_refused_in_one_sentence(subject, name, bad):
    with pytest.raises(ValueError, match=f"^{name} must") as caught:
        subject.make(**{name: bad})
    assert_one_sentence(caught.value)


@every
def test_an_unknown_noise_is_refused(subject):
    with pytest.raises(ValueError, match=r"^noise must be .*'exact'") as caught:
        Subject(subject.kind, "exact", subject.distribution).make()
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_a_vector_without_numbers_is_refused(size):
    with pytest.raises(ValueError, match=r"^size must") as caught:
        L2Laplace(1.0, 1.0, size)
    assert_one_sentence(caught.value)


def assert_one_sentence(error):
    text = str(error)
    assert text.endswith(".")
    assert ". " not in text
    assert "\n" not in text


@every_grid
def test_noise_too_coarse_for_the_grid_is_refused(subject):
    with pytest.raises(PlanError, match="too large for the grid"):
        subject.make(multiplier=2.0**33)(subject.shaped([0.0]), as_generator(0))
    free = Subject(subject.kind, "float", subject.distribution).make(multiplier=2.0**33)
    assert np.all(np.isfinite(free(subject.shaped([0.0]), as_generator(0))))


@every_grid
@pytest.mark.parametrize("value", [0.0, VALUE, -1e6])
def test_outputs_are_multiples_of_a_cell_fixed_by_public_facts(subject, value, seed):
    # the same cell for every value and every seed: parameters and size decide
    mechanism = subject.make(size=3)
    numbers = value * np.array([1.0, 0.3, -2.0])
    cell = subject.scale(mechanism, 3 if subject.kind is not SymmetricGaussian else 6)
    cell /= GRID
    out = mechanism(subject.shaped(numbers), as_generator(seed))
    out = np.diag(out) if subject.kind is SymmetricGaussian else out
    assert np.array_equal(np.rint(out / cell) * cell, out)
    # control: most floats are not on that grid
    assert not np.array_equal(np.rint((out * 1.1) / cell) * cell, out * 1.1)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 10**6).map(np.sqrt))
def test_the_enlarged_scale_solves_its_equation(multiplier, sensitivity, ones):
    if multiplier * ROUNDING * ones / GRID > 0.5:
        with pytest.raises(PlanError):
            enlarged(multiplier, sensitivity, ones)
        return
    scale = Fraction(enlarged(multiplier, sensitivity, ones))
    more = Fraction(ROUNDING) * Fraction(float(ones)) * scale / GRID
    right = Fraction(multiplier) * (Fraction(sensitivity) + more)
    assert abs(scale / right - 1) < Fraction(1, 10**15)
    assert scale >= Fraction(multiplier) * Fraction(sensitivity) * (
        1 - Fraction(1, 2**52)
    )


@every_grid
def test_the_scale_grows_with_the_size_as_documented(subject):
    for size in (1, 10, 1000):
        mechanism = subject.make(size=size)
        ones = size if subject.norm == "l1" else sqrt(size)
        expected = enlarged(MULTIPLIER, SENSITIVITY, ones)
        assert subject.scale(mechanism, size) == pytest.approx(expected, rel=2e-15)
        assert expected > MULTIPLIER * SENSITIVITY
    exact = Subject(subject.kind, "float", subject.distribution)
    plain = MULTIPLIER * SENSITIVITY
    assert exact.scale(exact.make()) == pytest.approx(plain, rel=2e-15)


def rounding_excess(round_to_cells, magnitude, seed, size=20, n=40):
    """Most cells by which rounding adds to a move of one sensitivity, over sqrt(size).

    Exact: floats are taken as the rational numbers that they are.
    """
    rng = as_generator(seed)
    scale = enlarged(1.0, SENSITIVITY, sqrt(size))
    cell = Fraction(scale / GRID)
    worst = 0.0
    for _ in range(n):
        value = magnitude * scale * rng.uniform(-1, 1, size)
        way = rng.standard_normal(size)
        other = value + way * (SENSITIVITY / np.linalg.norm(way))
        before, after = (round_to_cells(v, scale).tolist() for v in (value, other))
        gaps = [Fraction(b) - Fraction(a) for a, b in zip(value, other, strict=True)]
        cells = [b - a for a, b in zip(before, after, strict=True)]
        extra = [float(c - g / cell) for c, g in zip(cells, gaps, strict=True)]
        worst = max(worst, float(np.linalg.norm(extra)) / sqrt(size))
    return worst


@pytest.mark.parametrize("exponent", [0, 10, 18, 20, 25, 40, 60])
def test_rounding_moves_neighbors_apart_by_what_is_accounted_for(exponent, seed):
    assert rounding_excess(to_cells, 2.0**exponent, seed) <= ROUNDING


def test_rounding_by_a_product_of_floats_would_be_noticed(seed):
    def naive(value, scale):
        return np.array([int(c) for c in np.rint(value * (GRID / scale))], dtype=object)

    assert rounding_excess(naive, 2.0**40, seed) > ROUNDING


@every_grid
@pytest.mark.parametrize("scales", [2.0**19, 2.0**25, -(2.0**25)])
def test_large_values_get_the_same_noise(subject, scales):
    mechanism = subject.make(size=1)
    unit = subject.scale(mechanism)
    for seed in range(20):
        small = mechanism(subject.shaped([0.0]), as_generator(seed)).ravel()
        value = subject.shaped([scales * unit])
        large = (mechanism(value, as_generator(seed)) - value).ravel()
        # the last place of the large output
        assert np.allclose(large, small, atol=2 * np.spacing(2.0**25) * unit, rtol=0)


@every_grid
@pytest.mark.parametrize("huge", [1e18, -1e18, 1e200, 1e300])
def test_huge_values_do_not_overflow(subject, huge):
    mechanism = subject.make(size=1)
    for value in (subject.shaped([huge]), subject.shaped([huge]).reshape(())):
        if subject.kind is SymmetricGaussian:
            value = value.reshape(1, 1)
        out = mechanism(value * subject.scale(mechanism), as_generator(0))
        assert np.shape(out) == value.shape
        assert np.allclose(out, value * subject.scale(mechanism), rtol=1e-15)


def test_a_huge_value_gives_the_noise_of_a_small_one_in_cells():
    noise = np.array([-(2**40), 0, 3, 2**40])
    value = np.array([1e18, 1.0, -1e18, 1e30])
    cells = to_cells(value, 1.0)
    assert cells.tolist() == [int(v) * GRID for v in value]
    expected = [
        float(int(v) * GRID + e) / GRID
        for v, e in zip(value, noise.tolist(), strict=True)
    ]
    assert on_grid(value, 1.0, noise).tolist() == expected


@every
def test_the_last_digits_betray_floats_and_not_the_grid(subject, seed):
    mechanism, rng = subject.make(1.0, 1.0), as_generator(seed)
    if subject.kind is SymmetricGaussian:
        n = 1000

        def release(values):
            return np.diag(mechanism(np.diag(values), rng))
    else:
        n = 1500 if subject.kind is L2Laplace else 20_000

        def release(values):
            return subject.outputs(mechanism, values[0], n, rng)[0]

    attack = precision_attack(release, n=n)
    assert attack.conclusive
    assert attack.broken == (subject.noise == "float")


def test_values_are_rounded_to_the_nearest_cell():
    values = np.array([0.4, 0.6, -0.4, -0.6, 1e6 + 0.6])
    expected = [0, 1, 0, -1, 1_000_001]
    assert to_cells(values, float(GRID)).tolist() == expected
    # above the reach of floats too
    assert to_cells(values + 2.0**60, float(GRID)).tolist()[0] == 2**60
