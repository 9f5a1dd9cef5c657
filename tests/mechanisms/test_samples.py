"""Exact draws of many indices."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit.audit import replay
from tacit.mechanisms.noise import GRID
from tacit.mechanisms.samples import SampleIndices, _cumulative, _resolve
from tacit.privacy import BoundedRange, Neighbors, PureDP, Repeated

REPLACE = Neighbors.REPLACE_ONE


def probabilities(log_weights):
    weights = np.exp(log_weights - np.max(log_weights))
    return weights / weights.sum()


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_counts_follow_the_weights(noise, seed):
    log_weights = np.array([0.0, -0.5, 1.0, -3.0, -5.0])
    counts = SampleIndices(0.1, 200_000, noise=noise)(log_weights, as_generator(seed))
    assert counts.sum() == 200_000
    assert_counts_follow(counts, probabilities(log_weights))
    assert_counts_detect(counts, probabilities(1.05 * log_weights))


@pytest.mark.parametrize("bits", [64, 128, 192])
def test_cumulative_probabilities_are_within_two_units(bits):
    gaps = [0, 1, GRID // 3, 7 * GRID + 5, 60 * GRID, 2**50, 12345]
    with localcontext() as context:
        context.prec = 120
        weights = [(Decimal(-g) / GRID).exp() for g in gaps]
        sums = np.cumsum(np.array(weights, dtype=object))
        exact = [s / sums[-1] * 2**bits for s in sums]
        off = [abs(e - f) for e, f in zip(exact, _cumulative(gaps, bits), strict=True)]
    assert max(off) < 2


def test_a_word_on_an_edge_is_decided_by_more_words(seed):
    gaps = [0, 0]  # the edge is exactly one half
    rng = as_generator(seed)
    assert _resolve(2**63 - 1, gaps, rng) == 0
    assert _resolve(2**63, gaps, rng) == 1
    third = [0, round(GRID * np.log(2))]  # an edge between words
    word = _cumulative(third, 64)[0]
    assert {_resolve(word, third, as_generator(s)) for s in range(40)} == {0, 1}


def test_weights_too_small_to_be_seen_do_not_overflow(seed):
    counts = SampleIndices(1.0, 1000)(np.array([0.0, -1e5]), as_generator(seed))
    np.testing.assert_array_equal(counts, [1000, 0])
    counts = SampleIndices(1.0, 1000)(np.array([-1e300, 0.0]), as_generator(seed))
    np.testing.assert_array_equal(counts, [0, 1000])


def test_one_candidate_is_always_drawn(seed):
    assert SampleIndices(1.0, 3)(np.zeros(1), as_generator(seed)).tolist() == [3]


def test_event_counts_every_draw_and_the_grid():
    cells = 3 / GRID
    assert SampleIndices(0.5, 7).event == Repeated(PureDP(0.5 + cells), 7)
    ranged = SampleIndices(0.5, 7, bounded_range=True)
    assert ranged.event == Repeated(BoundedRange(0.5 + cells), 7)
    assert ranged.curve(REPLACE).epsilon(1e-6) < SampleIndices(0.5, 7).curve(
        REPLACE
    ).epsilon(1e-6)


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize("bounded_range", [True, False])
def test_log_odds_that_move_too_far_are_reported(bounded_range, size, seed):
    mechanism = SampleIndices(0.2, 5, bounded_range)
    base = np.linspace(0.0, 1.0, size)

    def train(moved):
        weights = base.copy()
        weights[-1] += moved
        return mechanism(weights, as_generator(seed))

    assert replay(train, (0.0,), (0.19,)).ok
    # of 300 probabilities none moves by more than the one that was pushed
    assert not replay(train, (0.0,), (0.5,)).ok


def test_what_makes_no_sense_is_refused(seed):
    with pytest.raises(ValueError, match="at least one candidate"):
        SampleIndices(1.0, 1)(np.zeros(0), as_generator(seed))
    with pytest.raises(ValueError, match="n_samples"):
        SampleIndices(1.0, 0)
    with pytest.raises(ValueError, match="sensitivity"):
        SampleIndices(0.0, 1)
