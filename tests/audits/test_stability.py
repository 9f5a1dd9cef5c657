"""Votes, tested estimates and depth among models, attacked where the claim is tight."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs, event_bound
from tests.audits.verdict import check as check_parts
from tests.cases import Cases
from tests.stat import P_FAIL
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.audit.bounds import clopper_pearson_lower
from tacit.convex import Squared
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms import NO_ANSWER, StableRelease
from tacit.mechanisms.nested import NestedExponential
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem, TukeyRegression
from tacit.solvers import tukey_regression as module
from tacit.solvers._depth import depth_boxes
from tacit.solvers.tukey_regression import TukeyRegressionPlan
from tacit.stability import (
    BlockVote,
    ProposeTestRelease,
    StableValue,
    SubsampleVote,
)
from tacit.stability._stable import StableValuePlan
from tacit.stability._subsamples import SubsampleVotePlan
from tacit.stability._votes import BlockVotePlan

SHARED_CASES = Cases(
    audits="BlockVote ProposeTestRelease StableValue SubsampleVote TukeyRegression"
)


DELTA = 0.01


def lower_bound(first, second, delta):
    """Bound on epsilon from how often an event, fixed beforehand, was seen."""
    return event_bound(first.sum(), second.sum(), len(first), delta)


def check_events(name, claim, run, n_runs, seed, delta, least):
    """Attack the claim and half the noise; ``run(factor, side, rng)`` is one run."""
    found = []
    for factor in (1.0, 2.0):
        rng = as_generator(seed)
        hits = [
            np.array([run(factor, side, rng) for _ in range(n_runs)], dtype=float)
            for side in (0, 1)
        ]
        found.append(lower_bound(*hits, delta))
    assert_refutes_the_control(name, claim, *found, least=least)


def first_value(X, y):
    """The vote of a block: the value of its first row."""
    return float(X[0, 0]) if len(X) else None


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("rule", ["optimal", "laplace"])
def test_a_vote_of_blocks_keeps_its_claim(rule, seed):
    # three blocks of a row each, of which all and two say one
    sides = [np.ones((3, 1)), np.array([[1.0], [1.0], [0.0]])]
    procedure = BlockVote(first_value, rule=rule)

    def run(factor, side, rng):
        stable = StableRelease(2 * factor, DELTA, rule)
        plan = BlockVotePlan(3, True, stable)
        return procedure.run(plan, sides[side], None, rng) != NO_ANSWER

    check_events(f"BlockVote, {rule}", 2.0, run, 5000, seed, DELTA, least=0.4)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("rule", ["optimal", "laplace"])
def test_a_stable_value_keeps_its_claim(rule, seed):
    # rows count how far away another value is
    procedure = StableValue(lambda X, y: 1, lambda X, y: float(X.sum()), rule)

    def run(factor, side, rng):
        stable = StableRelease(2 * factor, DELTA, rule)
        # the distance at which half are told, and that of a neighbor
        half = next(d for d in range(99) if stable.release_probability(d) >= 0.5)
        X = np.ones((half - side, 1))
        return procedure.run(StableValuePlan(stable), X, None, rng) != NO_ANSWER

    check_events(f"StableValue, {rule}", 2.0, run, 5000, seed, DELTA, least=0.4)


def is_marked(X, y):
    """The vote of all rows together, which the marked row alone decides."""
    return int(np.any(X > 0.5))


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize("kind", ["blocks", "subsamples"])
def test_what_a_neighbor_lacks_is_told_with_probability_delta(kind, neighbors, seed):
    marked = np.r_[1.0, np.zeros(5)][:, None]
    other = np.zeros((6 - (neighbors is Neighbors.ADD_OR_REMOVE_ONE), 1))
    n = 5000

    def told(delta):
        stable = StableRelease(1.0, delta)
        if kind == "blocks":
            equal = neighbors is Neighbors.REPLACE_ONE
            plan = BlockVotePlan(1, equal, stable)
            procedure = BlockVote(is_marked)
        else:
            # a row is in both subsamples or in one or none: it may turn both
            plan = SubsampleVotePlan(2, 2**53 - 1, stable)
            procedure = SubsampleVote(is_marked)
        rng = as_generator(seed)
        runs = [
            sum(procedure.run(plan, X, None, rng) == 1 for _ in range(n))
            for X in (marked, other)
        ]
        assert runs[1] == 0
        return runs[0]

    honest, broken = told(DELTA), told(5 * DELTA)
    assert 0.2 * DELTA < clopper_pearson_lower(honest, n, P_FAIL) <= DELTA
    name = "BlockVote" if kind == "blocks" else "SubsampleVote"
    assert_refutes_the_control(
        f"{name}, {neighbors.name.lower()}, what a neighbor lacks",
        1.0,
        event_bound(honest, 0, n, DELTA),
        event_bound(broken, 0, n, DELTA),
        "five times the delta",
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_a_tested_estimate_keeps_its_claim(seed):
    def first(X, y):
        return X[0, 0]

    def lower(noise):
        procedure = ProposeTestRelease(first, lambda X, y: 1e6, 1.0, test_share=0.05)
        plan = procedure.plan(Budget(1.0, 1e-6), 3)
        wrong = replace(plan, multiplier=noise * plan.multiplier)
        return bound_of_runs(
            lambda X, seed: procedure.run(wrong, X, None, as_generator(seed)),
            [np.zeros((3, 1)), np.ones((3, 1))],
            4000,
            1e-6,
            seed,
            method="clopper-pearson",
        )

    check_parts("ProposeTestRelease", 1.0, lower, least=0.4)


# models on a grid of five by five points whose depths move by one in both directions
# at once, so that most of the claim is at stake
ENDS = 2
MODELS = np.array([[1, -2], [-2, -2], [-2, 2], [-1, -2], [-2, -2], [2, -2]])
CHANGED = np.array([[1, -2], [-2, -2], [-2, 2], [-1, -2], [2, 2], [2, -2]])


def rows_of(models):
    """One row for each model, whose least squares weights it is."""
    lengths = np.linalg.norm(models, axis=1)
    X = models / np.maximum(lengths, 1.0)[:, None]
    return bounded_rows(X, lengths / ENDS, RowBounds(1.0, y_range=(-2.0, 2.0)))


def law_of(models, derivative):
    points = np.array(list(product(range(-ENDS, ENDS + 1), repeat=2)))
    boxes = depth_boxes(models, ENDS)
    inside = (boxes.lows[:, None] <= points) & (points <= boxes.highs[:, None])
    weights = np.exp(derivative * inside.all(axis=2).sum(axis=0))
    return points, weights / weights.sum()


@pytest.mark.slow
@pytest.mark.statistical
def test_a_point_deep_among_models_keeps_its_claim(seed, monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", ENDS)
    points, first = law_of(MODELS, 1.0)
    _, second = law_of(CHANGED, 1.0)
    ratios = np.log(first / second)
    likelier = ratios > 0.99 * ratios.max()
    assert first[likelier].sum() > 0.15
    event = {tuple(point) for point in points[likelier]}
    rows = [rows_of(models) for models in (MODELS, CHANGED)]
    problem = Problem(Squared(), RowBounds(1.0, y_range=(-2.0, 2.0)), 6, 2)

    def run(factor, side, rng):
        choice = NestedExponential(2 * factor)
        plan = TukeyRegressionPlan(problem, 6, True, 1.0, 1e-9, choice)
        W = TukeyRegression().run(plan, rows[side], rng).coefficients
        return tuple(np.rint(W[:, 0] * ENDS).astype(int)) in event

    check_events("TukeyRegression", 2.0, run, 4000, seed, 0.0, least=0.45)
