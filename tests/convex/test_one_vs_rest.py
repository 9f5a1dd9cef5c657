"""One against the rest, as a joint loss."""

from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tacit.convex import (
    HuberizedHinge,
    Logistic,
    Objective,
    OneVsRest,
    Softmax,
    Squared,
    minimize,
)
from tacit.data import RowBounds
from tacit.data.rows import ArrayRows

K = 3
LOSSES = [Logistic(), Logistic(cap=0.5), HuberizedHinge()]


def problem(rng, n=80, p=4):
    X = RowBounds().clip(rng.standard_normal((n, p)))
    return X, (X @ rng.standard_normal((p, K))).argmax(axis=1)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_joint_minimum_is_that_of_each_class_alone(loss, rng):
    X, y = problem(rng)
    settings = {"tolerance": 1e-9, "x_norm": 1.0, "y_range": (-1.0, 1.0)}
    joint = minimize(Objective(OneVsRest(loss, K), 0.5), ArrayRows(X, y), **settings).W
    for c in range(K):
        labels = np.where(y == c, 1.0, -1.0)
        separate = minimize(Objective(loss, 0.5), ArrayRows(X, labels), **settings).W
        assert_allclose(joint[:, [c]], separate, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_joint_slope_costs_the_root_of_the_number_of_classes(loss):
    joint = OneVsRest(loss, 25)
    separate = loss.max_derivative(1.0, (-1.0, 1.0))
    assert joint.max_derivative(1.0, (-1.0, 1.0)) == sqrt(25) * separate
    assert joint.max_trace() == 25 * joint.max_curvature()


def test_probabilities_sum_to_one_even_where_every_class_is_unlikely():
    loss = OneVsRest(Logistic(), K)
    Z = np.array([[0.0, 0.0, 0.0], [9.0, -9.0, -9.0], [-1e5, -1e5, -1e5]])
    P = loss.probability(Z)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(P[[0, 2]], 1 / K)
    assert_array_equal(P[1].argmax(), 0)
    with pytest.raises(ValueError, match="Logistic"):
        OneVsRest(HuberizedHinge(), K).probability(Z)


@pytest.mark.parametrize("loss", [Squared(), Softmax(3), None, "logistic"], ids=repr)
def test_only_binary_losses_are_taken(loss):
    with pytest.raises(ValueError, match="loss must be"):
        OneVsRest(loss, K)
