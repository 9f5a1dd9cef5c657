"""The matrices behind intervals, against a second way to the same numbers."""

import numpy as np
import pytest
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.convex import Huber, HuberizedHinge, Logistic, Objective, Softmax, Squared
from tacit.data import RowBounds
from tacit.data.row_margins import margins
from tacit.data.rows import ArrayRows
from tacit.evaluation._curvature import SecondOrder, plan_curvature
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem

LOSSES = [
    Logistic(),
    Logistic(cap=0.5),
    Softmax(3),
    HuberizedHinge(),
    Huber(),
    Squared(),
]


def targets_of(loss, n, rng):
    if isinstance(loss, Softmax):
        return rng.integers(0, loss.n_classes, n)
    if isinstance(loss, Squared | Huber):
        return rng.uniform(-1, 1, n)
    return np.where(rng.random(n) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_sums_are_the_hessian_and_the_squared_gradients(loss):
    rng = as_generator(0)
    X, W = rng.uniform(-1, 1, (60, 3)), rng.standard_normal((3, loss.n_outputs))
    y = targets_of(loss, 60, rng)
    H, G = ArrayRows(X, y).sum(SecondOrder(loss, W, True))
    np.testing.assert_allclose(
        H, Objective(loss, 0.0).hessian(ArrayRows(X, y), W), atol=1e-12
    )
    each = [
        np.outer(x, s).ravel()
        for x, s in zip(X, loss.derivative(y, X @ W), strict=True)
    ]
    np.testing.assert_allclose(G, sum(np.outer(g, g) for g in each), atol=1e-12)


@each_relation
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_row_moves_the_matrices_by_more_than_declared(loss, neighbors):
    rng = as_generator(1)
    problem = Problem(loss, RowBounds(2.0), 100, 3)
    largest = np.zeros(2)
    for _ in range(60):
        W = rng.standard_normal((3, loss.n_outputs)) * rng.choice([0.01, 0.3, 3.0])
        plan = plan_curvature(
            problem, W, Budget(1.0, 1e-6, neighbors), with_hessian=True
        )
        directions = rng.standard_normal((2, 3))
        X = 2.0 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        # one of them where the margin is largest
        X[0] = 2.0 * W[:, 0] / np.linalg.norm(W[:, 0])
        y = targets_of(loss, 2, rng)
        first = SecondOrder(loss, W, True)(X[:1], y[:1])
        second = SecondOrder(loss, W, True)(X[1:], y[1:])
        if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
            second = [0.0, 0.0]
        moved = [np.linalg.norm(a - b) for a, b in zip(first, second, strict=True)]
        declared = [plan.hessian.sensitivity, plan.gradients.sensitivity]
        largest = np.maximum(largest, np.divide(moved, declared))
    assert largest.max() <= 1
    # half of the bound would not hold
    assert largest.min() > 0.5


def test_margins_of_a_row_do_not_depend_on_other_rows():
    rng = as_generator(2)
    X, W = rng.standard_normal((200, 37)), rng.standard_normal((37, 3))
    np.testing.assert_allclose(margins(X, W), X @ W, atol=1e-12)
    for cut in (1, 2, 3, 8, 13):
        np.testing.assert_array_equal(margins(X, W)[cut:], margins(X[cut:], W))
