"""Points drawn from nested boxes, against the distribution point by point."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product
from math import exp

import numpy as np
import pytest
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit.audit import replay
from tacit.mechanisms.nested import NestedBoxes, NestedExponential
from tacit.privacy import BoundedRange

BOXES = NestedBoxes(
    np.array([[-2, -1], [-1, -1], [0, -1], [0, 0]]),
    np.array([[2, 1], [2, 1], [1, 1], [0, 0]]),
)
POINTS = [np.array(point) for point in product(range(-2, 3), range(-1, 2))]


def test_volumes_and_depths_are_counts():
    depths = [BOXES.depth(point) for point in POINTS]
    assert BOXES.volumes() == [sum(d > i for d in depths) for i in range(4)]
    assert BOXES.depth(np.array([3, 0])) == 0
    assert BOXES.within(2).volumes() == BOXES.volumes()[2:]


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 39.0, 1e5])
def test_no_weight_is_further_from_the_next_than_the_factor(epsilon):
    weights = NestedExponential(epsilon).weights(300)
    with localcontext(prec=80):
        factor = Fraction((Decimal(min(epsilon, 40.0)) / 2).exp())
    for a, b in pairwise(weights):
        assert a <= b <= a * factor
        assert b >= a * factor * (1 - Fraction(1, 10**15))
    assert sum(NestedExponential(epsilon).steps(300)) == weights[-1]


def distribution(boxes, epsilon):
    chances = np.array([exp(epsilon / 2 * boxes.depth(point)) for point in POINTS])
    return chances / chances.sum()


@pytest.mark.statistical
def test_points_are_drawn_by_their_depth(seed):
    mechanism, rng = NestedExponential(2.0), as_generator(seed)
    positions = {tuple(point): i for i, point in enumerate(POINTS)}
    counts = np.zeros(len(POINTS))
    for _ in range(4000):
        counts[positions[tuple(mechanism(BOXES, rng))]] += 1
    assert_counts_follow(counts, distribution(BOXES, 2.0))
    assert_counts_detect(counts, distribution(BOXES, 3.0))


def test_a_change_of_one_in_every_depth_is_within_the_claim():
    # every point of the first is at most one box deeper or shallower in the second
    other = NestedBoxes(
        np.array([[-2, -1], [-2, -1], [0, -1], [1, 0]]),
        np.array([[2, 1], [2, 1], [2, 1], [1, 0]]),
    )
    for point in POINTS:
        assert abs(BOXES.depth(point) - other.depth(point)) <= 1
    ratios = np.log(distribution(BOXES, 1.0) / distribution(other, 1.0))
    assert np.abs(ratios).max() <= 1.0
    assert np.ptp(ratios) <= 1.0 + 1e-12  # bounded range
    assert (
        np.abs(np.log(distribution(BOXES, 2.5) / distribution(other, 2.5))).max() > 1.0
    )
    assert NestedExponential(1.0).event == BoundedRange(1.0)


def test_a_replay_sees_the_depth():
    def train(boxes):
        return NestedExponential(1.0)(boxes, as_generator(0))

    deep = NestedBoxes(
        np.repeat(BOXES.lows[:1], 4, 0), np.repeat(BOXES.highs[:1], 4, 0)
    )
    assert replay(train, (BOXES,), (BOXES,)).ok
    assert not replay(train, (BOXES.within(2),), (deep,)).ok


def test_huge_boxes_are_drawn_from_exactly():
    low, high = np.full((2, 300), -(2**14)), np.full((2, 300), 2**14)
    low[1], high[1] = 5, 5
    boxes = NestedBoxes(low, high)
    assert boxes.volumes() == [(2**15 + 1) ** 300, 1]
    # one point beats all others only when a box more is worth their number
    assert np.ptp(NestedExponential(1.0)(boxes, as_generator(0))) > 0


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, "1"])
def test_bad_parameters_are_rejected(bad):
    with pytest.raises(ValueError, match="epsilon must be"):
        NestedExponential(bad)
