"""Greedy descent attacked where a row votes for one coordinate and against all others.

The score of the first coordinate rises by as much as declared while the others fall by
as much, so that how often it is chosen first reveals most of what a choice can reveal.
Updates are attacked along one coordinate, whose noisy sums move as far as declared.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs, event_bound
from tests.cases import Cases
from tests.solvers.test_greedy_coordinate_descent import less_noise

from tacit._random import as_generator
from tacit.convex import HuberizedHinge
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.solvers.greedy_coordinate_descent import GreedyCoordinateDescent

SHARED_CASES = Cases(audits="GreedyCoordinateDescent")

BOUNDS = RowBounds(norm="linf")
REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE


def sides(neighbors, layout, n_features):
    """Return rows of which one differs, besides some that both sides have."""
    vote = np.full((1, n_features), -1.0)
    vote[0, 0] = 1.0
    # both pull all coordinates alike, so that scores can fall as well as rise
    both = np.ones((4, n_features))
    data = [np.vstack([row, both]) for row in (vote, -vote)]
    if neighbors is ADD:
        data[1] = both
    return [bounded_rows(layout(X), np.ones(len(X)), BOUNDS) for X in data]


def planned(solver, budget, n_features, noise):
    problem = Problem(HuberizedHinge(), BOUNDS, 5, n_features)
    return less_noise(solver.plan(problem, budget), noise)


def choice_bound(solver, budget, n_runs, seed, layout, noise=1.0):
    """Return the lower bound on epsilon from how often the first one is chosen."""
    # without the row all coordinates are alike: more of them leave more room to rise
    n_features = 8 if budget.neighbors is REPLACE else 64
    plan = planned(solver, budget, n_features, noise)
    rng = as_generator(seed)
    first, second = (
        sum(solver.run(plan, rows, rng).path[0].coordinate == 0 for _ in range(n_runs))
        for rows in sides(budget.neighbors, layout, n_features)
    )
    return event_bound(first, second, n_runs, budget.delta)


def update_bound(solver, budget, n_runs, seed, layout, noise=1.0):
    """Return the lower bound on epsilon from all noisy sums of one coordinate."""
    # steps so short that the weights do not matter
    plan = replace(planned(solver, budget, 1, noise), step=1e-9)
    both = np.zeros((1, 1))
    other = both if budget.neighbors is ADD else np.vstack([-np.ones((1, 1)), both])
    data = [np.vstack([np.ones((1, 1)), both]), other]
    rows = [bounded_rows(layout(X), np.ones(len(X)), BOUNDS) for X in data]

    def run(rows, seed):
        path = solver.run(plan, rows, as_generator(seed)).path
        return np.array([[sum(visit.gradient for visit in path)]])

    return bound_of_runs(run, rows, n_runs, budget.delta, seed)


def check(bound, solver, budget, n_runs, seed, layout=np.asarray, broken=0.5):
    honest = bound(solver, budget, n_runs, seed, layout)
    control = bound(solver, budget, n_runs, seed, layout, noise=broken)
    assert_refutes_the_control(
        "GreedyCoordinateDescent", budget.epsilon, honest, control, broken
    )


CHOICE = GreedyCoordinateDescent(
    1, mechanism="pure", selection_share=0.95, n_polish=0, smoothness="public"
)
UPDATES = GreedyCoordinateDescent(
    1,
    mechanism="gumbel",
    selection_share=1e-6,
    n_polish=3,
    clip=1.0,
    smoothness="public",
)


@pytest.mark.statistical
def test_too_little_noise_of_choices_is_caught_quickly(seed):
    check(choice_bound, CHOICE, Budget(2.0), 500, seed, broken=0.25)


@pytest.mark.statistical
def test_too_little_noise_of_updates_is_caught_quickly(seed):
    check(update_bound, UPDATES, Budget(10.0, 1e-5, ADD), 400, seed, broken=0.4)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("rule", ["gs-s", "gs-r", "gs-q"])
@pytest.mark.parametrize("mechanism", ["pure", "laplace"])
def test_pure_choices_survive(mechanism, rule, seed):
    solver = replace(CHOICE, mechanism=mechanism, rule=rule)
    broken = 0.5 if mechanism == "pure" else 0.3  # a third of it is for the update
    check(choice_bound, solver, Budget(2.0), 4000, seed, broken=broken)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_choices_on_sparse_rows_survive(neighbors, seed):
    solver = replace(CHOICE, mechanism="gumbel", selection_share=0.999)
    budget = Budget(3.0, 1e-3, neighbors)
    check(choice_bound, solver, budget, 4000, seed, sparse.csr_array, broken=0.25)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
def test_updates_survive(neighbors, layout, seed):
    check(update_bound, UPDATES, Budget(3.0, 1e-3, neighbors), 3000, seed, layout)
