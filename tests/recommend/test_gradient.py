"""Completion by projected descent on a nuclear ball, and users who replay it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.recommend.doubles import some_ratings
from tests.recommend.spectral import (
    HUGE,
    farthest,
    full,
    low_rank,
    rows_to_try,
    silence,
)
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.exceptions import PlanError
from tacit.persistence._side_kinds import KINDS
from tacit.privacy import Budget, Composed, GaussianNoise, Neighbors
from tacit.recommend.items import _kernels as user_kernels
from tacit.recommend.ratings.table import RatingFacts, Ratings
from tacit.recommend.solvers import _kernels as sum_kernels
from tacit.recommend.solvers import gradient
from tacit.recommend.solvers.gradient import (
    LARGEST_RADIUS,
    ProjectedGradientCompletion,
    _projection,
    onto_simplex,
)
from tacit.recommend.solvers.moments import strengths

LOW, HIGH = 1.0, 5.0
BUDGET = Budget(1.0, 1e-6)


def facts(n_items, n_users=100, max_ratings=None):
    return RatingFacts(n_items, LOW, HIGH, n_users, max_ratings or n_items)


def test_the_nearest_point_of_the_simplex_is_found(seed):
    for trial in range(20):
        values = as_generator(seed + trial).exponential(size=6)
        bound = values.sum() * (0.1 + 0.05 * trial)
        found = onto_simplex(values, bound)
        if bound >= values.sum():
            assert (found == values).all()
            continue
        wanted = minimize(
            lambda x, values=values: ((x - values) ** 2).sum(),
            np.full(6, bound / 6),
            jac=lambda x, values=values: 2 * (x - values),
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda x, b=bound: x.sum() - b},
            method="SLSQP",
            options={"ftol": 1e-14},
        ).x
        assert found.sum() == pytest.approx(bound)
        assert found == pytest.approx(wanted, abs=1e-5)


def nuclear_projection(matrix, bound):
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    return (left * onto_simplex(singular, bound)) @ right


@pytest.mark.parametrize("step", [1.0, 0.5, "inverse_root", "inverse"])
def test_without_noise_it_is_projected_descent(step, monkeypatch, seed):
    silence(monkeypatch)
    rng = as_generator(seed)
    matrix = low_rank(50, 12, 3, seed)
    known = rng.random(matrix.shape) < 0.6
    rows = [np.flatnonzero(k) for k in known]
    ratings = Ratings(
        np.append(0, np.cumsum([len(items) for items in rows])).astype(np.int64),
        np.concatenate(rows).astype(np.int32),
        (3 + 1.9 * matrix)[known].astype(np.float32),
        12,
    )
    rest = np.where(known, 1.9 * matrix, 0.0)
    # less the means of users, to which the middle of the range adds three ratings
    levels = rest.sum(axis=1) / (known.sum(axis=1) + 3)
    target = np.where(known, rest - levels[:, None], 0.0)
    bound = 0.4 * np.linalg.svd(target)[1].sum()
    solver = ProjectedGradientCompletion(
        n_iter=4, step=step, nuclear_norm=bound, row_norm=50.0
    )
    plan = solver.plan(facts(12, 50), Budget(HUGE, 0.5))
    side = solver.run(plan, ratings, as_generator(seed))

    def descended(sign):
        row = np.zeros_like(target)
        for size in plan.step_sizes:
            moved = row - sign * size * np.where(known, row - target, 0.0)
            row = nuclear_projection(moved, bound)
        return row

    found = side.complete(ratings) - 3 - levels[:, None]
    assert found == pytest.approx(descended(1), abs=1e-3)
    # steps uphill, as they are printed, end elsewhere
    assert np.abs(found - descended(-1)).max() > 0.1


def test_a_user_replays_what_the_fit_computed_bit_for_bit(seed):
    ratings = some_ratings(120, 9, seed)
    solver = ProjectedGradientCompletion(n_iter=3)
    plan = solver.plan(facts(9, 120, max_ratings=5), Budget(50.0, 1e-6))
    side = solver.run(plan, ratings, as_generator(seed))
    assert (side.ranks > 0).all()
    # the rows that went into the last release, from all projections before it
    last = side.ranks[-1]
    before = replace(
        side,
        projections=side.projections[:, : -int(last)],
        shrinks=side.shrinks[: -int(last)],
        ranks=side.ranks[:-1],
    )
    (block,) = (make() for make in before.next_rows(ratings))
    together = block[2].reshape(120, 9)
    shared = side.complete(ratings)
    for i in range(0, 120, 11):
        row = Ratings.of_row(*ratings.row(i), 9)
        (single,) = (make() for make in before.next_rows(row))
        assert single[2].tobytes() == together[i].tobytes()
        assert side.complete(row)[0].tobytes() == shared[i].tobytes()
    # they are the rows of the fit: the exact sum on its tape is made of them
    with recording() as tape:
        solver.run(plan, ratings, as_generator(seed))
    assert len(tape.releases) == 3
    factor = tape.releases[-1].sensitivity / plan.moments.sensitivity
    assert tape.releases[-1].value[0] == pytest.approx(
        factor * (together[:, 0] ** 2).sum(), rel=1e-6
    )


def replayed_parts(neighbors, solver, seed):
    """Return parts of single users in all releases, after the same projections."""
    crowd = some_ratings(200, 5, seed)
    plan = solver.plan(facts(5, 200), Budget(30.0, 1e-6, neighbors))
    with recording() as tape:
        solver.run(plan, crowd, as_generator(seed))
    parts = [[] for _ in tape.releases]
    for row in rows_to_try(5, LOW, HIGH, seed, 40):
        with replaying(tape, redraw=True) as own:
            solver.run(plan, row, as_generator(seed))
        for position, release in enumerate(own.releases):
            parts[position].append(release.value)
    return parts, [release.sensitivity for release in tape.releases]


@each_relation
def test_no_user_moves_a_sum_further_than_declared(neighbors, seed):
    solver = ProjectedGradientCompletion(n_iter=3, row_norm=0.5, nuclear_norm=1e3)
    parts, declared = replayed_parts(neighbors, solver, seed)
    replaced = neighbors is Neighbors.REPLACE_ONE
    moves = [farthest(p, replaced) / d for p, d in zip(parts, declared, strict=True)]
    assert max(moves) <= 1
    assert moves[0] > 0.99


def test_rows_that_are_not_clipped_would_be_seen(monkeypatch, seed):
    kernel = user_kernels.descend

    def loose(*arguments):
        *fixed, radii, rows, coefficients = arguments
        kernel(*fixed, 4 * radii, rows, coefficients)
        rows *= 4

    monkeypatch.setattr(user_kernels, "descend", loose)
    # steps beyond one lead beyond the largest radius
    solver = ProjectedGradientCompletion(
        n_iter=3, step=3.0, row_norm=0.5, nuclear_norm=1e3
    )
    parts, declared = replayed_parts(Neighbors.REPLACE_ONE, solver, seed)
    assert (
        max(
            farthest(p, replaced=True) / d for p, d in zip(parts, declared, strict=True)
        )
        > 1
    )


def longest_rows(sizes, radii, targets):
    """Return the length of a row before each clipping, for targets step by step."""
    row, lengths = np.zeros(4), []
    for t, (size, radius) in enumerate(zip(sizes, radii, strict=True)):
        known, target = targets(t, row)
        row = row - size * np.where(known, row - target, 0.0)
        lengths.append(np.linalg.norm(row))
        row *= min(1.0, radius / max(lengths[-1], 1e-9))
    return lengths


@pytest.mark.parametrize("step", [1.0, 0.3, 1.7, "inverse"])
def test_radii_are_no_longer_than_rows_can_get(step, seed):
    rng = as_generator(seed)

    def random(t, row):
        known = rng.random(4) < 0.5
        target = np.where(known, rng.normal(size=4), 0.0)
        return known, target / max(np.linalg.norm(target), 1e-9)

    def turned(t, row):
        norm = np.linalg.norm(row)
        return np.ones(4, dtype=bool), -row / norm if norm else np.eye(4)[0]

    def one_by_one(t, row):
        return np.arange(4) == t % 4, np.eye(4)[t % 4]

    solver = ProjectedGradientCompletion(n_iter=6, step=step)
    plan = solver.plan(facts(4), Budget(1.0, 1e-6))
    radii = np.array(plan.radii)
    ways = [random] * 200 + [turned, one_by_one]
    found = [longest_rows(plan.step_sizes, radii, way) for way in ways]
    longest = np.max(found, axis=0)
    assert radii[0] == pytest.approx(min(plan.step_sizes[0], LARGEST_RADIUS))
    # the cap is there only where some row would be longer or as long
    capped = radii == LARGEST_RADIUS
    assert (longest[capped] >= LARGEST_RADIUS * (1 - 1e-9)).all()
    assert (longest[~capped] <= radii[~capped] * (1 + 1e-9)).all()
    assert (radii <= LARGEST_RADIUS).all()


def test_releases_compose_exactly():
    budget = Budget(1.0, 1e-6)
    plan = ProjectedGradientCompletion(n_iter=10, row_norm=1.0).plan(facts(6), budget)
    assert plan.event.curve(budget.neighbors).fits(budget)
    less = Composed((GaussianNoise(0.99 * plan.moments.multiplier),) * 10)
    assert not less.curve(budget.neighbors).fits(budget)
    # ten releases of rows of length two, as tabled for steps with all of the budget
    assert plan.radii[-1] ** 2 * plan.moments.scale == pytest.approx(75.57, rel=1e-3)


def test_pure_noise_leaves_users_their_levels(seed):
    ratings = some_ratings(30, 6, seed)
    solver = ProjectedGradientCompletion()
    plan = solver.plan(facts(6, 30), Budget(0.01, 1e-6))
    side = solver.run(plan, ratings, as_generator(seed))
    assert np.isfinite(side.complete(ratings)).all()


def test_everything_known_comes_back_in_a_ball_that_holds_it(monkeypatch, seed):
    silence(monkeypatch)
    matrix = 3 + 1.9 * low_rank(40, 7, 2, seed)
    ratings = full(matrix)
    solver = ProjectedGradientCompletion(nuclear_norm=1e6, row_norm=20.0)
    plan = solver.plan(facts(7, 40), Budget(HUGE, 0.5))
    side = solver.run(plan, ratings, as_generator(seed))
    assert side.complete(ratings) == pytest.approx(matrix, abs=1e-3)


def test_bad_parameters_are_rejected_by_name():
    for wrong in (
        {"n_iter": 0},
        {"step": "slow"},
        {"step": -1.0},
        {"nuclear_norm": 0.0},
        {"row_norm": float("inf")},
        {"noise": "none"},
    ):
        (name,) = wrong
        with pytest.raises(ValueError, match=name):
            ProjectedGradientCompletion(**wrong)
    with pytest.raises(PlanError, match="delta"):
        ProjectedGradientCompletion().plan(facts(3), Budget(1.0, 0.0))


@pytest.mark.parametrize(
    "given",
    [
        {"nuclear_norm": 1e-100},
        {"nuclear_norm": 1e100, "row_norm": 1e-100},
        {"row_norm": 1e100},
        {"step": 1e100},
        {"step": 1e-100},
    ],
)
def test_no_bound_that_is_allowed_fails_after_the_charge(given, seed):
    ratings = some_ratings(60, 6, seed)
    solver = ProjectedGradientCompletion(**given)
    plan = solver.plan(facts(6, 60), Budget(100.0, 1e-6))
    side = solver.run(plan, ratings, as_generator(seed))
    assert np.isfinite(side.complete(ratings)).all()
    assert KINDS["ReplayedItems"].is_usable(side)


def test_a_bound_that_rounding_loses_leaves_nothing():
    assert (onto_simplex(np.array([3.0, 2.0]), 1e-100) == 0).all()


def test_spread_of_single_ratings_is_no_direction(seed):
    # rank one, noise of standard deviation one, and much on the diagonal
    rng, size = as_generator(seed), 80
    noise = np.triu(rng.normal(size=(size, size)), 1) / np.sqrt(2)
    axis = np.full(size, 1 / np.sqrt(size))
    noisy = noise + noise.T + np.diag(rng.normal(size=size))
    noisy += 100 * np.outer(axis, axis) + np.diag(np.full(size, 10.0))
    vectors, shrinks = _projection(noisy, 1.0, 1e6, size)
    assert vectors.shape[1] == 1
    assert abs(vectors[:, 0] @ axis) > 0.9
    assert shrinks == pytest.approx(1)
    # ten is within the noise, but with it the noise is beyond its own
    values = np.linalg.eigvalsh(noisy)
    assert np.count_nonzero(strengths(values, 1.0, size)) > 10


def test_sums_are_the_same_however_large_the_catalogue_is(seed):
    # rows of few of its items are added in another way
    rows = as_generator(seed).normal(size=(4, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    indptr, items = np.arange(5, dtype=np.int64) * 5, np.tile(np.arange(5), 4)
    block = (indptr, items.astype(np.int32), rows.ravel())
    wide = {}
    for size in (5, 40):
        found = np.zeros(size * (size + 1) // 2, dtype=np.int64)
        sum_kernels.add_outer(*block, size, 1e9, found)
        wide[size] = np.zeros((size, size), dtype=np.int64)
        wide[size][np.triu_indices(size)] = found
    assert wide[5].any()
    assert np.array_equal(wide[40][:5, :5], wide[5])
    assert np.count_nonzero(wide[40]) == np.count_nonzero(wide[5])


def test_steps_are_longer_where_few_items_are_rated():
    def sizes(max_ratings):
        solver = ProjectedGradientCompletion()
        return solver.plan(facts(9, 50, max_ratings), BUDGET).step_sizes

    assert sizes(9) == (1.0,) * 3
    assert sizes(5) == pytest.approx((np.sqrt(9 / 5),) * 3)
    assert sizes(1) == (1.9,) * 3


def test_directions_are_no_more_than_can_be_saved(monkeypatch, seed):
    monkeypatch.setattr(gradient, "MOST_NUMBERS", 6 * 4 * 3)
    solver = ProjectedGradientCompletion()
    plan = solver.plan(facts(6, 60), Budget(HUGE, 0.5))
    side = solver.run(plan, some_ratings(60, 6, seed), as_generator(seed))
    assert side.ranks.tolist() == [2, 2, 2]
    with pytest.raises(PlanError, match="n_iter"):
        ProjectedGradientCompletion(n_iter=2**16).plan(facts(20_000), BUDGET)
    with pytest.raises(ValueError, match="n_iter"):
        ProjectedGradientCompletion(n_iter=2**16 + 1)
