"""Coordinate descent on neighbors: what is released moves no further than declared."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.solvers.running import coefficients, replayed
from tests.solvers.test_coordinate_descent import (
    BUDGET,
    LOSSES,
    each_loss,
    each_relation,
    layouts,
    problem_of,
)
from tests.strategies import adversarial_pairs, neighboring_data

from tacit.audit import assert_replays, replay
from tacit.convex import Huber, Logistic, Squared
from tacit.data.rows import ArrayRows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import CoordinateDescent
from tacit.solvers.coordinate_descent import CoordinatePasses


@each_loss
@each_relation
@pytest.mark.parametrize("epsilon", [0.5, 1e3])
def test_neighbors_stay_within_the_declared_sensitivity(loss, neighbors, epsilon, seed):
    solver = CoordinateDescent(3, smoothness="private", step=1.0)
    plan = solver.plan(problem_of(loss, 5, 2), Budget(epsilon, 1e-3, neighbors))
    for pair in adversarial_pairs(loss, neighbors):
        report = replayed(solver, plan, pair, seed=seed)
        assert [entry.label for entry in report.entries] == [
            "DiscreteGaussian",
            "CoordinateSums",
        ]


@each_relation
@layouts
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(neighbors, layout, data):
    loss = data.draw(st.sampled_from(LOSSES))
    solver = CoordinateDescent(
        2,
        clip=data.draw(st.sampled_from([1e-3, 1.0, 1e3])),
        smoothness=data.draw(st.sampled_from(["private", "public"])),
        n_restarts=data.draw(st.sampled_from([1, 2])),
        average=data.draw(st.booleans()),
        order="uniform",
    )
    plan = solver.plan(problem_of(loss, 6, 2), Budget(2.0, 1e-3, neighbors))
    pair = data.draw(neighboring_data(loss, neighbors))
    replayed(solver, plan, pair, layout=layout)


@each_relation
@pytest.mark.parametrize("loss", [Logistic(cap=0.5), Squared()], ids=repr)
def test_half_the_sensitivity_is_reported(neighbors, loss, seed):
    solver = CoordinateDescent(3, clip=0.5, smoothness="public", step=1e-6)
    plan = solver.plan(problem_of(loss, 5, 2), Budget(50.0, 1e-3, neighbors))
    pairs = list(adversarial_pairs(loss, neighbors))
    assert all(replayed(solver, plan, pair, replay).ok for pair in pairs)
    broken = replace(plan, sensitivity=plan.sensitivity / 2)
    found = [
        sentence
        for pair in pairs
        for sentence in replayed(solver, broken, pair, replay).violations
    ]
    # twice as many units, of which twice as many move
    assert plan.mechanism.units <= broken.mechanism.units / 2 + 1
    assert any("over the declared sensitivity" in sentence for sentence in found)


def test_weights_that_read_the_rows_are_reported(monkeypatch):
    solver = CoordinateDescent(3, smoothness="public")
    plan = solver.plan(problem_of(Logistic(), 5, 2), BUDGET)
    pair = next(iter(adversarial_pairs(Logistic(), Neighbors.REPLACE_ONE)))
    assert replayed(solver, plan, pair, replay).ok

    def peeking(update_all, released):
        return update_all.sums(released)[-2:] * 1e-9

    monkeypatch.setattr(CoordinatePasses, "weights", peeking)
    assert not replayed(solver, plan, pair, replay).ok


@each_relation
def test_rows_beyond_the_bounds_move_no_sum_further(neighbors):
    # what a row adds is clipped whatever its entries are, so a missing clip leaks
    # nothing
    solver = CoordinateDescent(3, smoothness="private", n_restarts=3)
    plan = solver.plan(problem_of(Huber(), 5, 2), Budget(5.0, 1e-3, neighbors))
    for pair in adversarial_pairs(Huber(), neighbors, x_norm=1e6):
        first, second = (ArrayRows(*side) for side in (pair.first, pair.second))
        assert_replays(
            lambda rows: coefficients(solver, plan, rows, 0),
            (first,),
            (second,),
        )
