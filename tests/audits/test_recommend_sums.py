"""What one user adds to sums of matrix completion, against the declared sensitivity.

These audits are exact. What was released is kept fixed, and sums are compared: no user
moves one further than its sensitivity, in no public state, and none depends on another.
"""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from tests.audits.recommending import (
    ADDED,
    REPLACED,
    VARIANTS,
    State,
    hostile,
    one_taste,
    planted,
    some_rows,
    with_noise,
    worst_rows,
)
from tests.recommend.doubles import MeansSolver
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.audit.bounds import gaussian_epsilon
from tacit.privacy import Budget, Neighbors
from tacit.recommend._plan import SOLVERS
from tacit.recommend.items import _kernels as user_kernels
from tacit.recommend.ratings import table as used
from tacit.recommend.ratings.table import RatingFacts
from tacit.recommend.solvers import _kernels as sum_kernels
from tacit.recommend.solvers import frank_wolfe_sums, svd
from tacit.recommend.solvers.item_means import ItemMeans
from tacit.recommend.solvers.moments import NoisyMoments

each_variant = pytest.mark.parametrize("name", VARIANTS)

# rows of more ratings than are used, in ranges of all kinds
FACTS = RatingFacts(7, 1.0, 5.0, 20, 4)
RANGES = ((1.0, 5.0), (-1e30, 1e30), (1e3, 1e3 + 1e-3))


def quiet(name, neighbors, seed, epsilon=300.0, part=1.0, solver=None):
    """Return a state that is about true, so that all rounds take place."""
    solver = solver or VARIANTS[name]
    plan = with_noise(solver.plan(FACTS, Budget(epsilon, 1e-5, neighbors)), part)
    return State(solver, plan, one_taste(FACTS, 20, as_generator(seed)), seed)


def furthest(state, rows, neighbors):
    """Return how far one user moves each release, over its sensitivity."""
    parts = state.parts(rows)
    if neighbors is ADDED:
        return np.array([np.linalg.norm(part, axis=1).max() for part in parts])
    return np.array([pdist(part).max() for part in parts])


def test_every_solver_is_audited():
    assert {type(solver) for solver in VARIANTS.values()} == {
        MeansSolver,
        *SOLVERS.values(),
    }


# what some pair of rows comes to, of the sensitivity of each release: steps of descent
# leave room in later ones, products depend on vectors, and rows of the most ratings are
# shorter than what clipped rows would be
LEAST = {
    "gradient": 0.3,
    "gradient, inverse": 0.03,
    "walk, rows": 0.02,
    "walk, oja": 0.2,
    "walk, power": 0.2,
}
# and what the furthest pair comes to in the first release, where more takes rows of
# more items than are here: see tests/recommend/test_means.py
MOST = {"item means": 0.8, "walk, rows": 0.8}


@each_relation
@each_variant
def test_no_user_moves_a_release_further_than_its_sensitivity(name, neighbors, seed):
    state = quiet(name, neighbors, seed)
    rows = worst_rows(FACTS) + some_rows(FACTS, 20, as_generator(seed))
    moves = furthest(state, rows, neighbors)
    assert (moves <= 1).all()
    # nor is a sensitivity larger than it needs to be
    assert moves.max() > MOST.get(name, 0.85)
    assert moves.min() > LEAST.get(name, 0.4)


@each_relation
@each_variant
def test_nor_does_she_after_releases_that_are_far_off(name, neighbors, seed):
    rng = as_generator(seed)
    for i, (low, high) in enumerate(RANGES):
        facts = RatingFacts(7, low, high, 20, 4)
        plan = VARIANTS[name].plan(facts, Budget(3.0, 1e-5, neighbors))
        users = one_taste(facts, 10, rng)
        state = State(VARIANTS[name], plan, users, seed, hostile(seed + i))
        rows = worst_rows(facts) + some_rows(facts, 4, rng)
        assert (furthest(state, rows, neighbors) <= 1).all()


@each_variant
def test_a_user_adds_the_same_whoever_else_is_there(name, seed):
    state = quiet(name, REPLACED, seed)
    assert state.adds_up(some_rows(FACTS, 6, as_generator(seed)))


@each_relation
@each_variant
def test_bounds_and_noise_of_all_releases_come_to_the_claim(name, neighbors, seed):
    state, half = (quiet(name, neighbors, seed, 2.0, part) for part in (1.0, 0.5))
    assert gaussian_epsilon(1e-5, state.parameter) <= 2.0
    assert gaussian_epsilon(1e-5, half.parameter) > 2.0


# a bound or a factor that is forgotten, and a solver that this is seen in
PLANTED = {
    "rows of ratings": (
        "svd",
        user_kernels,
        "scale_rows",
        "max(radius, np.sqrt(square))",
        "radius",
    ),
    "rows of steps": (
        "gradient, inverse",
        user_kernels,
        "descend",
        "row[j] / radius",
        "row[j] / step_sizes[n_done]",
    ),
    "residuals": (
        "walk",
        user_kernels,
        "unit_residuals",
        "max(np.sqrt(dot(row, row)), bound)",
        "bound",
    ),
    "lengths": (
        "walk",
        user_kernels,
        "add_lengths",
        "max(np.sqrt(square), bound * bound)",
        "bound * bound / 4.0",
    ),
    "weights of ratings": (
        "item means",
        sum_kernels,
        "add_means",
        "max(float(n), square)",
        "float(n)",
    ),
    "gains, als": (
        "als",
        sum_kernels,
        "add_gains",
        "max(1.0, np.sqrt(square))",
        "1.0",
    ),
    "ratings, als": (
        "als",
        sum_kernels,
        "add_user_parts",
        "max(float(n), square)",
        "float(n)",
    ),
    "coefficients, als": (
        "als",
        sum_kernels,
        "add_user_parts",
        "1.0 / max(reach, np.sqrt(length))",
        "1.0 / reach",
    ),
    "moments, als": (
        "als",
        sum_kernels,
        "add_user_parts",
        "max(reach * reach, length)",
        "reach",
    ),
    "root of two": ("cleansed", sum_kernels, "add_outer", "np.sqrt(2.0)", "2.0"),
    "start": ("walk, power", frank_wolfe_sums, "_unit", "vector / norm", "vector"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bound_that_is_forgotten_is_found(bug, seed, monkeypatch):
    name, *change = PLANTED[bug]
    rows = worst_rows(FACTS) + some_rows(FACTS, 8, as_generator(seed))
    planted(monkeypatch, *change)
    for neighbors in Neighbors:
        state = quiet(name, neighbors, seed)
        assert furthest(state, rows, neighbors).max() > 1.05


@pytest.mark.parametrize(
    ("name", "release", "declared"),
    [("item means", ItemMeans, 2**0.5), ("svd", NoisyMoments, 1.0)],
)
def test_the_sensitivity_for_an_added_user_is_too_small_for_a_replaced_one(
    name, release, declared, seed, monkeypatch
):
    monkeypatch.setattr(release, "sensitivity", declared)
    state = quiet(name, REPLACED, seed)
    assert furthest(state, worst_rows(FACTS), REPLACED).max() > 1.3


def test_a_limit_on_ratings_that_is_not_enforced_is_found(seed, monkeypatch):
    # weights by the most ratings of a user are right where there are no more
    rows = worst_rows(FACTS) + some_rows(FACTS, 20, as_generator(seed))
    by_limit = f"np.sqrt({FACTS.max_ratings})"
    planted(
        monkeypatch,
        svd,
        "_weighted_rows",
        "np.sqrt(np.repeat(lengths, lengths))",
        by_limit,
    )
    for neighbors in Neighbors:
        moves = furthest(quiet("cleansed", neighbors, seed), rows, neighbors)
        assert moves.max() <= 1
    monkeypatch.setattr(used, "kept", lambda ratings, *_: ratings)
    for neighbors in Neighbors:
        moves = furthest(quiet("cleansed", neighbors, seed), rows, neighbors)
        assert moves.max() > 1.05


def test_a_row_that_depends_on_another_users_is_found(seed, monkeypatch):
    rows = some_rows(FACTS, 6, as_generator(seed))
    alone = svd.unit_rows

    def together(ratings, level, row_norm):
        return alone(ratings, level + ratings.values.max(initial=0.0) / 1e6, row_norm)

    state = quiet("svd", REPLACED, seed)
    assert state.adds_up(rows)
    monkeypatch.setattr(svd, "unit_rows", together)
    assert not state.adds_up(rows)
