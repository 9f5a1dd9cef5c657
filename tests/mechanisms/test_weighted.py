"""The sampler over many scores: exact probabilities, exact updates, exact privacy."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.mechanisms import Exponential
from tacit.mechanisms.noise import GRID
from tacit.mechanisms.weighted import (
    LARGEST_EXPONENT,
    ONE,
    WeightedSampler,
    grid_rate,
    power_of_half,
)
from tacit.privacy import BoundedRange

EPSILON, SENSITIVITY, LARGEST = 1.5, 0.5, 1e4
signs = pytest.mark.parametrize("both_signs", [False, True])


def make(scores, both_signs=False, epsilon=EPSILON):
    scores = np.asarray(scores, dtype=np.float64)
    return WeightedSampler(epsilon, SENSITIVITY, LARGEST, scores, both_signs=both_signs)


def slots(sampler):
    """Return for each entry the slot it stands in."""
    slot = np.empty(len(sampler._order), dtype=int)
    for s in range(len(sampler._start) - 1):
        slot[sampler._order[sampler._start[s] : sampler._start[s + 1]]] = s
    return slot


def structure_distribution(sampler):
    """Return the exact probabilities of every index, read off slots and acceptances."""
    unit, weights = 1 << sampler.bits, []
    for sign in (1, -1) if sampler.both_signs else (1,):
        for entry, slot in enumerate(slots(sampler)):
            exponent = sign * int(sampler._private_exponents[entry])
            gap = ((sampler._base + int(slot)) << sampler.bits) - exponent
            assert gap >= 0
            accepted = Fraction(power_of_half(gap % unit, sampler.bits), ONE)
            weights.append(2 ** int(slot) * accepted / 2 ** (gap // unit))
    total = sum(weights)
    return [weight / total for weight in weights]


def softmax(exponents, bits):
    logits = np.array(exponents, dtype=np.longdouble) * np.log(np.longdouble(2))
    logits /= 2**bits
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def check_sorted(sampler):
    n = len(sampler._order)
    np.testing.assert_array_equal(sampler._order[sampler._position], np.arange(n))
    assert sampler._start[0] == 0
    assert sampler._start[-1] == n
    size = np.abs if sampler.both_signs else np.array
    level = size(sampler._private_exponents) >> sampler.bits
    assert (level - sampler._base < len(sampler._start) - 2).all()
    np.testing.assert_array_equal(
        slots(sampler), np.maximum(level - sampler._base + 1, 0)
    )


def test_powers_of_half_are_right_to_180_bits():
    for bits, units in [(32, 0), (32, 1), (32, 2**32 - 1), (32, 2**31), (8, 77)]:
        # raised to the power that makes the exponent whole, by repeated squaring
        power = Fraction(power_of_half(units, bits), ONE)
        assert power <= 1
        scale = 1 << 400
        value = int(power * scale)
        for _ in range(bits):
            value = value * value // scale
            if value == 0:
                break
        if bits == 8:
            error = abs(Fraction(value, scale) * 2**units - 1)
            assert error < Fraction(1, 2**170)
    half_root = Fraction(power_of_half(2**31, 32), ONE)
    assert abs(half_root**2 * 2 - 1) < Fraction(1, 2**185)
    assert power_of_half(0, 32) == ONE


@signs
@settings(max_examples=30, deadline=None)
@given(scores=hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-90, 90)))
def test_structure_has_the_odds_of_the_rounded_scores(both_signs, scores):
    sampler = make(scores, both_signs)
    check_sorted(sampler)
    exponents = sampler._private_exponents
    np.testing.assert_allclose(
        exponents / 2.0**sampler.bits,
        EPSILON * scores / (2 * SENSITIVITY * log(2)),
        atol=1e-6,
        rtol=1e-6,
    )
    signed = np.concatenate([exponents, -exponents]) if both_signs else exponents
    distribution = np.array([float(p) for p in structure_distribution(sampler)])
    np.testing.assert_allclose(distribution, softmax(signed, sampler.bits), rtol=1e-12)


@signs
@pytest.mark.parametrize("spread", [1.0, 100.0, 5000.0])
def test_updates_leave_what_a_fresh_structure_has(both_signs, spread, seed):
    rng = as_generator(seed)
    scores = spread * rng.normal(size=40)
    sampler = make(scores, both_signs)
    for _ in range(1500):
        changed = rng.choice(40, size=rng.integers(1, 5), replace=False)
        step = rng.choice([0.01, 1.0, spread])
        scores[changed] = 0.99 * scores[changed] + step * rng.normal(size=len(changed))
        sampler.update(changed.astype(np.int32), scores[changed])
    check_sorted(sampler)
    fresh = make(scores, both_signs)
    np.testing.assert_array_equal(sampler._private_exponents, fresh._private_exponents)
    if spread == 1.0:  # elsewhere the fractions are long
        assert structure_distribution(sampler) == structure_distribution(fresh)


def test_a_fall_of_the_best_rebuilds_and_a_rise_moves_the_window():
    sampler = make(np.r_[1000.0, np.zeros(9)])
    assert sampler._start[1] == 9  # far below all levels
    sampler.update(np.array([0], dtype=np.int32), np.array([-5.0]))
    check_sorted(sampler)
    assert sampler._start[1] == 0
    sampler.update(np.array([3], dtype=np.int32), np.array([2000.0]))
    check_sorted(sampler)
    assert sampler._start[1] == 9
    assert {sampler._draw(as_generator(s)) for s in range(20)} == {3}


@pytest.mark.statistical
@signs
def test_frequencies_are_those_of_the_dense_mechanism(both_signs, seed):
    scores = np.array([0.0, -0.7, 1.0, 1.0, -2.0])
    rng = as_generator(seed)
    sampler = make(np.zeros(5), both_signs)
    sampler.update(np.arange(5, dtype=np.int32), scores)
    choices = [sampler(rng, lambda: scores) for _ in range(5000)]
    all_scores = np.concatenate([scores, -scores]) if both_signs else scores
    counts = np.bincount(choices, minlength=len(all_scores))
    dense = Exponential(EPSILON, SENSITIVITY)._exponents(all_scores) / GRID
    distribution = np.exp(dense) / np.exp(dense).sum()
    assert_counts_follow(counts, distribution)
    for wrong in (0.7, 1.4):
        other = np.exp(wrong * dense) / np.exp(wrong * dense).sum()
        assert_counts_detect(counts, other)


@pytest.mark.statistical
def test_candidates_below_all_levels_keep_their_odds(seed):
    # two of them tower over the rest only until they come down
    rng, scores = as_generator(seed), np.array([300.0, 0.0, -1.0, 0.5])
    sampler = make(scores)
    sampler._start[:] = 4
    sampler._start[0] = 0  # all in slot 0, as if the window were far above
    sampler._private_exponents[0] = 0
    sampler._base = 3
    counts = np.bincount([sampler._draw(rng) for _ in range(3000)], minlength=4)
    distribution = np.array([float(p) for p in structure_distribution(sampler)])
    np.testing.assert_allclose(
        distribution, softmax(sampler._private_exponents, sampler.bits), rtol=1e-12
    )
    assert_counts_follow(counts, distribution)
    assert_counts_detect(counts, np.full(4, 0.25))


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(1e-8, 1e6),
    sensitivity=st.floats(1e-6, 1e6),
    rows=st.floats(1.0, 2.0**31),
    share=st.floats(0.0, 1.0),
)
def test_rounded_exponents_move_by_half_of_epsilon_at_most(
    epsilon, sensitivity, rows, share
):
    largest = rows * sensitivity
    sampler = WeightedSampler(
        epsilon, sensitivity, largest, np.array([share * largest])
    )
    moved = share * largest - sensitivity
    exponent = int(sampler._private_exponents[0])
    other = int(sampler._exponents(np.array([moved]))[0])
    # exactly as far as the two floats are apart
    apart = (Fraction(share * largest) - Fraction(moved)) / Fraction(sensitivity)
    allowed = Fraction(epsilon) * max(apart, 1) / 2 * 2**sampler.bits
    assert (exponent - other) * Fraction(log(2)) <= allowed
    assert abs(exponent) <= LARGEST_EXPONENT
    assert 0 <= sampler.bits <= 32


def test_rate_is_rounded_down_and_keeps_rounding_back():
    for epsilon in (1e-8, 0.3, 50.0, 1e9):
        bits, rate = grid_rate(epsilon, SENSITIVITY, LARGEST)
        assert rate * SENSITIVITY + 1.5 <= epsilon / (2 * log(2)) * 2.0**bits
    with pytest.raises(ValueError, match="too small for the grid"):
        grid_rate(1e-12, 1.0, 1.0)


def test_draws_are_recorded_with_all_scores_and_played_back(seed):
    scores = np.array([0.5, -1.0, 2.0])

    def run():
        sampler = make(scores, both_signs=True)
        return sampler(as_generator(seed), lambda: np.concatenate([scores, -scores]))

    with recording() as tape:
        drawn = run()
    (released,) = tape.releases
    assert (released.label, released.norm, released.shape) == (
        "Exponential",
        "linf",
        (6,),
    )
    assert released.sensitivity == SENSITIVITY
    with replaying(tape):
        assert run() == drawn
    assert make(scores).event == BoundedRange(EPSILON)


def test_same_seed_same_draws(seed):
    first, again = (
        [make(np.zeros(50), True)._draw(as_generator(s)) for s in range(seed, seed + 9)]
        for _ in range(2)
    )
    assert first == again
    assert len(set(first)) > 1


def test_bad_parameters_are_rejected():
    with pytest.raises(ValueError, match="epsilon"):
        make([0.0], epsilon=0.0)
    with pytest.raises(ValueError, match="scores must have 1 to 2"):
        make([])
