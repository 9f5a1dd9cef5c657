"""Completion by a covariance of items that is cleansed of noise."""

from math import sqrt

import numpy as np
import pytest
from tests.recommend.doubles import some_ratings
from tests.recommend.spectral import farthest, low_rank, rows_to_try, signs, silence
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.exceptions import PlanError
from tacit.persistence._side_kinds import KINDS
from tacit.privacy import Budget, Neighbors
from tacit.recommend.items.linear import NeighborItems
from tacit.recommend.ratings.table import RatingFacts, Ratings
from tacit.recommend.solvers import svd as cleansed
from tacit.recommend.solvers.svd import FRACTIONS, CleansedSVD

LOW, HIGH = 1.0, 5.0


def facts(n_items, n_users=100, max_ratings=None):
    return RatingFacts(n_items, LOW, HIGH, n_users, max_ratings or n_items)


def parts_of(neighbors, seed, n=40):
    """Return single users' parts of covariance and weights, and what is declared."""
    solver = CleansedSVD(clamp=0.5)
    plan = solver.plan(facts(5), Budget(1.0, 1e-6, neighbors))
    with recording() as tape:
        solver.run(plan, some_ratings(100, 5, seed), as_generator(seed))
    _, *released = tape.releases
    parts = [[] for _ in released]
    for row in rows_to_try(5, LOW, HIGH, seed, n):
        with replaying(tape, redraw=True) as own:
            solver.run(plan, row, as_generator(seed))
        for position, release in enumerate(own.releases[1:]):
            parts[position].append(release.value)
    return parts, [release.sensitivity for release in released]


@each_relation
def test_no_user_moves_covariance_or_weights_further_than_declared(neighbors, seed):
    parts, declared = parts_of(neighbors, seed)
    replaced = neighbors is Neighbors.REPLACE_ONE
    for part, most in zip(parts, declared, strict=True):
        assert 0.9 * most < farthest(part, replaced) <= most


def test_users_who_weigh_as_much_as_they_rate_would_be_seen(monkeypatch, seed):
    rows = cleansed._weighted_rows

    def heavy(*arguments):
        for indptr, items, values in (block() for block in rows(*arguments)):
            lengths = np.diff(indptr)
            yield indptr, items, values * np.sqrt(np.repeat(lengths, lengths))

    monkeypatch.setattr(cleansed, "_weighted_rows", heavy)
    parts, declared = parts_of(Neighbors.REPLACE_ONE, seed, 5)
    for part, most in zip(parts, declared, strict=True):
        assert farthest(part, replaced=True) > most


def test_the_split_is_fixed_adds_up_and_is_reported():
    budget = Budget(1.0, 1e-6)
    plan = CleansedSVD().plan(facts(6), budget)
    multipliers = [
        plan.means.multiplier,
        plan.covariance.multiplier,
        plan.weights.multiplier,
    ]
    whole = 1 / sqrt(sum(1 / m**2 for m in multipliers))
    fractions = [(whole / m) ** 2 for m in multipliers]
    assert fractions == pytest.approx(FRACTIONS)
    assert sum(FRACTIONS) == pytest.approx(1)
    assert plan.event.curve(budget.neighbors).fits(budget)
    assert any("20%" in a and "60%" in a for a in plan.assumptions)


def sparse(matrix, fraction, seed):
    """Return ratings of some entries, and which these are."""
    known = as_generator(seed).random(matrix.shape) < fraction
    rows = [np.flatnonzero(k) for k in known]
    ratings = Ratings(
        np.append(0, np.cumsum([len(items) for items in rows])).astype(np.int64),
        np.concatenate(rows).astype(np.int32),
        matrix[known].astype(np.float32),
        matrix.shape[1],
    )
    return ratings, known


def test_without_noise_the_covariance_is_that_of_all_entries(monkeypatch, seed):
    silence(monkeypatch)
    rng = as_generator(seed)
    centered = 0.9 * low_rank(6000, 10, 2, seed)
    matrix = 3 + np.linspace(-0.5, 0.5, 10) + centered
    ratings, _ = sparse(matrix + rng.normal(scale=0.1, size=matrix.shape), 0.7, seed)
    solver = CleansedSVD(
        rank=2, clamp=2.0, item_shrinkage=0.0, user_shrinkage=1e9, pair_shrinkage=1e-6
    )
    plan = solver.plan(facts(10, 6000), Budget(1e5, 0.5))
    side = solver.run(plan, ratings, as_generator(seed))
    assert side.offsets == pytest.approx(np.linspace(-0.5, 0.5, 10), abs=0.05)
    wanted = centered.T @ centered / 6000
    found = side.vectors @ side.vectors.T
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()
    # sums that are not divided by weights are far from it
    assert np.abs(0.7 * wanted - wanted).max() > 0.1 * np.abs(wanted).max()


@pytest.mark.parametrize("local", ["ridge", "neighbors"])
def test_it_learns_more_than_means(local, seed):
    matrix = 3 + np.linspace(-0.5, 0.5, 14) + signs(4000, 14, seed)
    ratings, known = sparse(matrix, 0.5, seed)
    solver = CleansedSVD(local=local, n_neighbors=5)
    plan = solver.plan(facts(14, 4000), Budget(2.0, 1e-6))
    side = solver.run(plan, ratings, as_generator(seed))
    error = (side.complete(ratings) - matrix)[~known].std()
    assert error < 0.6 * (matrix - matrix.mean(axis=0))[~known].std()


def neighborhood(n_neighbors, seed):
    vectors = as_generator(seed).normal(size=(7, 2))
    return NeighborItems(
        np.eye(7),
        np.linspace(-0.2, 0.2, 7),
        -20.0,
        20.0,
        vectors @ vectors.T,
        0.5,
        n_neighbors,
        0.3,
        2.0,
    )


def test_neighbors_are_the_most_similar_and_weighed_jointly(seed):
    side = neighborhood(3, seed)
    ratings = some_ratings(20, 7, seed)
    found = side.complete(ratings)
    for i in range(ratings.n_users):
        items, values = ratings.row(i)
        rest = values - side.offsets[items]
        level = (rest.sum() + 2 * 0.3) / (len(items) + 2)
        for j in range(7):
            covariance = side.covariance
            likeness = covariance[j, items] ** 2 / (covariance[items, items] + 0.5)
            near = np.argsort(-likeness, kind="stable")[:3]
            own = items[near]
            weights = np.linalg.solve(
                covariance[np.ix_(own, own)] + 0.5 * np.eye(len(own)),
                covariance[own, j],
            )
            wanted = level + side.offsets[j] + weights @ (rest - level)[near]
            assert found[i, j] == pytest.approx(wanted, abs=1e-6)


def test_with_all_neighbors_it_is_the_ridge_on_the_directions(seed):
    vectors = as_generator(seed).normal(size=(7, 2))
    side = neighborhood(7, seed)
    row = Ratings.of_row([0, 2, 3, 6], [1.0, 4.0, 5.0, 2.0], 7)
    users = side.local(row)
    rest = row.values - side.offsets[row.items] - users._private_means[0]
    rated = vectors[row.items]
    weights = np.linalg.solve(rated.T @ rated + 0.5 * np.eye(2), rated.T @ rest)
    assert users._private_coefficients[0] == pytest.approx(vectors @ weights, abs=1e-9)


def test_a_single_user_gets_the_same_bits_as_among_others(seed):
    side = neighborhood(3, seed)
    ratings = some_ratings(20, 7, seed)
    together = side.complete(ratings)
    for i in (0, 7, 19):
        single = side.complete(Ratings.of_row(*ratings.row(i), 7))
        assert single[0].tobytes() == together[i].tobytes()


def test_pure_noise_has_no_direction(seed):
    for trial in range(5):
        ratings = some_ratings(50, 40, seed + trial)
        solver = CleansedSVD()
        plan = solver.plan(facts(40, 50), Budget(0.1, 1e-6))
        side = solver.run(plan, ratings, as_generator(seed + trial))
        assert side.vectors.shape[1] <= 1
        assert np.isfinite(side.complete(ratings)).all()


def test_bad_parameters_are_rejected_by_name():
    for wrong in (
        {"rank": 0},
        {"local": "projection"},
        {"n_neighbors": 0},
        {"clamp": 0.0},
        {"item_shrinkage": -1.0},
        {"user_shrinkage": 0.0},
        {"pair_shrinkage": 0.0},
        {"noise": "none"},
    ):
        (name,) = wrong
        with pytest.raises(ValueError, match=name):
            CleansedSVD(**wrong)
    with pytest.raises(PlanError, match="delta"):
        CleansedSVD().plan(facts(3), Budget(1.0, 0.0))


@pytest.mark.parametrize(
    "given",
    [
        {"clamp": 1e9},
        {"clamp": 1e-8},
        {"item_shrinkage": 1e300},
        {"user_shrinkage": 1e9, "pair_shrinkage": 1e9},
        {"user_shrinkage": 1e-9, "pair_shrinkage": 1e-9},
        {"local": "neighbors", "n_neighbors": 10_000},
    ],
)
@pytest.mark.parametrize("width", [1e-30, 1.0, 1e29])
def test_nothing_that_is_allowed_fails_after_the_charge(given, width, seed):
    ratings = some_ratings(60, 6, seed)
    ratings = Ratings(
        ratings.indptr, ratings.items, ratings.values * np.float32(width), 6
    )
    if "clamp" in given:
        given = {"clamp": given["clamp"] * width}
    solver = CleansedSVD(**given)
    plan = solver.plan(
        RatingFacts(6, LOW * width, HIGH * width, 60, 6), Budget(9.0, 1e-6)
    )
    with np.errstate(all="ignore"):  # as in a fit
        side = solver.run(plan, ratings, as_generator(seed))
    assert np.isfinite(side.complete(ratings)).all()
    assert KINDS[type(side).__name__].is_usable(side)


def test_what_could_not_be_computed_or_saved_is_rejected_before_the_charge():
    budget = Budget(1.0, 1e-6)
    for clamp in (1e100, 1e-100):
        with pytest.raises(PlanError, match="clamp"):
            CleansedSVD(clamp=clamp).plan(facts(3), budget)
    for name in ("user_shrinkage", "pair_shrinkage"):
        for value in (1e-10, 1e10):
            with pytest.raises(ValueError, match=name):
                CleansedSVD(**{name: value})
    with pytest.raises(PlanError, match="'ridge'"):
        CleansedSVD(local="neighbors").plan(facts(12_000), budget)
    assert CleansedSVD().plan(facts(12_000), budget)
