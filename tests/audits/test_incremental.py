"""Least squares on streams, attacked through what its sums release."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control
from tests.cases import Cases
from tests.stat import P_FAIL
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit.bounds import gaussian_bound
from tacit.convex import L2Ball, Squared
from tacit.data import RowBounds
from tacit.mechanisms.continual._base import to_vector
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.streaming import (
    GradientRegression,
    IncrementalLinearRegression,
    MomentRegression,
    ProjectedRegression,
)
from tacit.streaming._model import StreamTerms
from tacit.streaming.incremental._moments import row_moments

SHARED_CASES = Cases(
    audits="GradientRegression IncrementalLinearRegression MomentRegression "
    "ProjectedRegression"
)

BALL, P = L2Ball(1.0), 3


def with_noise(learner, part):
    """Return the learner with a part of the planned noise."""

    def less(mechanism):
        return replace(mechanism, multiplier=part * mechanism.multiplier)

    if hasattr(learner, "sums"):
        sums = replace(learner.sums, mechanism=less(learner.sums.mechanism))
        return replace(learner, sums=sums)
    return replace(
        learner,
        second_sums=less(learner.second_sums),
        first_sums=less(learner.first_sums),
    )


def worst_rows(learner, neighbors):
    """Two steps of one row that are furthest apart, or one row and none."""
    joint = hasattr(learner, "sums")
    cosine = min(1.0, learner.sums.weight**2 / 2) if joint else 0.5
    rows = np.array([[1.0, 0.0, 0.0], [cosine, sqrt(1 - cosine**2), 0.0]])
    if joint and learner.projection is not None:
        # rows whose images are such
        rows = rows[:, :2] @ np.linalg.pinv(learner.projection.matrix()).T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    first = rows[:1], np.array([1.0])
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return first, (np.zeros((0, P)), np.zeros(0))
    return first, (rows[1:], np.array([-1.0]))


def directions(learner, first, second):
    """How the sums of both steps differ, each in units of its noise."""
    if hasattr(learner, "sums"):
        sums = learner.sums
        if learner.projection is not None:
            matrix = learner.projection.matrix()
            first, second = (
                (learner.projection.rows(X, matrix, RowBounds()), y)
                for X, y in (first, second)
            )
        moved = sums.leaf(*first) - sums.leaf(*second)
        return [moved / sums.mechanism.scale(moved.size)]
    one, other = (row_moments(X, y, 1.0, 1.0) for X, y in (first, second))
    parts = (
        (learner.second_sums, to_vector(one.second - other.second)),
        (learner.first_sums, one.first - other.first),
    )
    return [moved / mechanism.scale(moved.size) for mechanism, moved in parts]


def lower_bound(method, budget, n_runs, seed, part):
    """Return the bound on epsilon from the releases of the first step."""
    problem = Problem(Squared(), RowBounds(), 1, P, regularizer=BALL)
    learner = with_noise(method.plan(problem, budget, StreamTerms(1)), part)
    pair = worst_rows(learner, budget.neighbors)
    along, rng = directions(learner, *pair), as_generator(seed)

    def score(step):
        with recording() as tape:
            learner.step(learner.init(), *step, rng)
        outputs = (np.ravel(release.output) for release in tape.releases)
        # in cells of the grid all noise has the same standard deviation
        return sum(float(a @ b) for a, b in zip(along, outputs, strict=True))

    scores = [np.array([score(step) for _ in range(n_runs)]) for step in pair]
    return gaussian_bound(*scores, delta=budget.delta, confidence=1 - P_FAIL)


def check(method, budget, n_runs, seed):
    planned, control = (
        lower_bound(method, budget, n_runs, seed, part) for part in (1.0, 0.5)
    )
    name = type(method).__name__
    assert_refutes_the_control(name, budget.epsilon, planned, control)


METHODS = {
    "moments": MomentRegression(),
    "squares": MomentRegression(squares=True),
    "gradients": GradientRegression(most_iterations=2),
    "projected": ProjectedRegression(n_components=2),
}


@pytest.mark.statistical
def test_half_the_noise_is_caught_quickly(seed):
    check(MomentRegression(), Budget(10.0, 1e-5), 400, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@each_relation
def test_claim_survives_and_half_the_noise_is_caught(method, neighbors, seed):
    check(method, Budget(4.0, 1e-3, neighbors), 3000, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_released_weights_keep_the_claim_too(seed):
    """End to end: rows of one step, and the weights that come of them."""
    budget = Budget(8.0, 1e-3)

    def weights(target, part, run):
        model = IncrementalLinearRegression(
            budget.epsilon,
            budget.delta,
            horizon=1,
            y_range=(-1, 1),
            fit_intercept=False,
            constraint=L2Ball(1e6),
            method=GradientRegression(most_iterations=2),
            random_state=run,
            x_norm=1.0,
        )
        planned = model._planned(1)
        learner = with_noise(planned.learner, part)
        # a seed of its own for each run and each side
        rng = as_generator(seed + 2 * run + (target > 0))
        leaf = np.ones((1, 1)), np.array([target])
        return float(learner.weights(learner.step(learner.init(), *leaf, rng))[0, 0])

    def bound(part):
        sides = [
            np.array([weights(target, part, run) for run in range(2000)])
            for target in (1.0, -1.0)
        ]
        return gaussian_bound(*sides, delta=budget.delta, confidence=1 - P_FAIL)

    assert_refutes_the_control(
        "IncrementalLinearRegression with GradientRegression, weights",
        budget.epsilon,
        bound(1.0),
        bound(0.5),
    )
