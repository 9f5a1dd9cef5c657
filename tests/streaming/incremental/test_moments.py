"""What one row can do to the moments of its step."""

import numpy as np
import pytest

from tacit.mechanisms.continual._base import to_vector
from tacit.privacy import Neighbors
from tacit.streaming.incremental._moments import (
    FULL_WEIGHT,
    MomentSums,
    best_weight,
    joint_sensitivity,
    row_moments,
    row_norm,
)

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
HALF = np.sqrt(0.5)


def sums(p, weight, squares=False):
    """Sums without a mechanism, as only the moments of a step are looked at."""
    return MomentSums(None, 2.0, 3.0, p, weight, squares)


def leaf(rows, targets, weight, squares=False):
    X, y = 2.0 * np.atleast_2d(rows), 3.0 * np.atleast_1d(targets)
    return sums(X.shape[1], weight, squares).leaf(X, y)


def furthest(moments):
    """Largest distance of moments over a fine grid of pairs of rows in the plane."""
    angles, lengths = np.linspace(0, np.pi, 61), (0.0, 0.3, 0.6, 0.8, 1.0)
    points = np.array(
        [
            moments(np.array([[r * np.cos(t), r * np.sin(t)]]), np.array([y]))
            for t in angles
            for r in lengths
            for y in (-1.0, 0.0, 0.5, 1.0)
        ]
    )
    squares = (points**2).sum(axis=1)
    return np.sqrt((squares[:, None] + squares - 2 * points @ points.T).max())


@pytest.mark.parametrize(
    ("weight", "squared"), [(1.0, 4.5), (HALF, 3.125), (FULL_WEIGHT, 8.0), (2.0, 16.0)]
)
def test_joint_sensitivity_is_the_largest_distance(weight, squared):
    claimed = joint_sensitivity(weight, False, REPLACE)
    assert claimed**2 == pytest.approx(squared, rel=1e-12)
    found = furthest(lambda x, y: leaf(x, y, weight))
    assert 0.999 * claimed < found <= claimed * (1 + 1e-12)


def test_squared_targets_are_free_at_the_full_weight():
    claimed = joint_sensitivity(FULL_WEIGHT, True, REPLACE)
    found = furthest(lambda x, y: leaf(x, y, FULL_WEIGHT, True))
    assert 0.999 * claimed < found <= claimed * (1 + 1e-12)


def test_either_sum_alone_moves_as_far_as_is_known():
    second = furthest(lambda x, y: np.outer(x, x).ravel())
    first = furthest(lambda x, y: x[0] * y)
    assert second == pytest.approx(np.sqrt(2), rel=1e-3)
    assert first == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("squares", [False, True])
def test_a_row_more_moves_the_sum_by_the_norm_of_its_moments(squares, rng):
    weight = FULL_WEIGHT if squares else 0.8
    x = rng.standard_normal(3)
    moved = np.linalg.norm(leaf(x / np.linalg.norm(x), -1.0, weight, squares))
    assert moved == pytest.approx(joint_sensitivity(weight, squares, ADD))
    assert moved == pytest.approx(row_norm(weight, squares))


def test_one_of_many_rows_moves_its_step_within_the_sensitivity(rng):
    X = rng.standard_normal((200, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.uniform(-1, 1, 200)
    before = leaf(X, y, 0.7)
    for _ in range(50):
        other_X, other_y = X.copy(), y.copy()
        x = rng.standard_normal(4)
        other_X[17], other_y[17] = x / np.linalg.norm(x), rng.choice([-1.0, 1.0])
        moved = np.linalg.norm(leaf(other_X, other_y, 0.7) - before)
        assert moved <= joint_sensitivity(0.7, False, REPLACE)


def test_moments_come_back_from_their_vector(rng):
    X, y = rng.standard_normal((50, 3)), rng.uniform(-3, 3, 50)
    of = sums(3, FULL_WEIGHT, squares=True)
    back, direct = of.moments(of.leaf(X, y)), row_moments(X, y, 2.0, 3.0)
    assert np.allclose(back.second, X.T @ X / 4)
    assert np.allclose(back.first, X.T @ y / 6)
    assert back.total == pytest.approx((y @ y) / 9)
    assert np.allclose(direct.second, back.second)
    assert np.linalg.norm(to_vector(back.second)) == pytest.approx(
        np.linalg.norm(back.second)
    )


def test_targets_beyond_the_bound_count_as_the_bound():
    assert row_moments(np.ones((1, 1)), np.array([1e9]), 2.0, 3.0).first == 0.5


def test_weight_suits_the_radius():
    assert best_weight(1.0, REPLACE) == pytest.approx(HALF, rel=0.05)
    assert best_weight(100.0, REPLACE) < 0.3 < best_weight(1.0, REPLACE)
    assert best_weight(0.01, REPLACE) > 1.0
    for neighbors in Neighbors:
        chosen = best_weight(1.0, neighbors)
        cost = [
            joint_sensitivity(c, False, neighbors) * (2 + 1 / c)
            for c in (chosen, 0.7 * chosen, 1.4 * chosen)
        ]
        assert cost[0] == min(cost)
