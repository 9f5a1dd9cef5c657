"""Completion by the leading directions of noisy second moments."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from tests.recommend.doubles import some_ratings
from tests.recommend.spectral import (
    HUGE,
    farthest,
    full,
    low_rank,
    rows_to_try,
    signs,
    silence,
)
from tests.stat import assert_detects, assert_follows

from tacit._random import as_generator
from tacit._release import recording
from tacit.exceptions import PlanError
from tacit.privacy import Budget, GaussianNoise, Neighbors
from tacit.recommend.items import _kernels as user_kernels
from tacit.recommend.items.side import unit_rows
from tacit.recommend.ratings.table import RatingFacts, Ratings
from tacit.recommend.solvers import moments as _spectrum
from tacit.recommend.solvers.moments import NoisyMoments
from tacit.recommend.solvers.svd import SVDCompletion

LOW, HIGH = 1.0, 5.0
RELATIONS = list(Neighbors)


def facts(n_items, n_users=100, max_ratings=None):
    return RatingFacts(n_items, LOW, HIGH, n_users, max_ratings or n_items)


def summed(solver, ratings, neighbors=Neighbors.REPLACE_ONE):
    """Return the exact sum that the fit releases, and the declared sensitivity."""
    plan = solver.plan(facts(ratings.n_items), Budget(1.0, 1e-6, neighbors))
    with recording() as tape:
        solver.run(plan, ratings, as_generator(0))
    (release,) = tape.releases
    return release.value, release.sensitivity


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_no_user_moves_the_sum_further_than_declared(neighbors, seed):
    parts, declared = [], 0.0
    for row in rows_to_try(5, LOW, HIGH, seed):
        # long rows, so that all of them are clipped
        part, declared = summed(SVDCompletion(row_norm=0.5), row, neighbors)
        parts.append(part)
    replaced = neighbors is Neighbors.REPLACE_ONE
    found = farthest(parts, replaced)
    assert 0.99 * declared < found <= declared


def test_rows_that_are_not_clipped_would_be_seen(monkeypatch, seed):
    kernel = user_kernels.scale_rows

    def loose(indptr, values, radius, scales):
        kernel(indptr, values, radius, scales)
        values *= 1.01

    monkeypatch.setattr(user_kernels, "scale_rows", loose)
    parts, declared = [], 0.0
    for row in rows_to_try(5, LOW, HIGH, seed, 10):
        part, declared = summed(SVDCompletion(row_norm=0.5), row)
        parts.append(part)
    assert farthest(parts, replaced=True) > declared


@pytest.mark.parametrize(
    ("epsilon", "replaced", "added"),
    [(0.1, 51.34, 36.31), (1.0, 5.975, 4.225), (5.0, 1.386, 0.980)],
)
def test_noise_is_that_of_exact_calibration(epsilon, replaced, added):
    for neighbors, scale in zip(RELATIONS, (replaced, added), strict=True):
        plan = SVDCompletion(row_norm=1.0).plan(
            facts(10), Budget(epsilon, 1e-6, neighbors)
        )
        assert plan.moments.scale == pytest.approx(scale, rel=1e-3)


def test_plans_fit_their_budgets_and_half_the_noise_does_not():
    for neighbors in RELATIONS:
        budget = Budget(1.0, 1e-6, neighbors)
        plan = SVDCompletion().plan(facts(10), budget)
        assert plan.event.curve(neighbors).fits(budget)
        half = GaussianNoise(plan.moments.multiplier / 2)
        assert not half.curve(neighbors).fits(budget)


def test_released_entries_follow_the_distribution_of_symmetric_noise(seed):
    moments = NoisyMoments(80, 2.0, Neighbors.REPLACE_ONE)
    noisy = moments.run([], as_generator(seed))
    assert (noisy == noisy.T).all()
    beside = noisy[np.triu_indices(80, 1)]
    std = 2 * sqrt(2) / sqrt(2)
    assert_follows(beside, stats.norm(scale=std).cdf)
    assert_detects(beside, stats.norm(scale=1.3 * std).cdf)
    assert np.diag(noisy).std() == pytest.approx(2 * sqrt(2), rel=0.5)


def test_with_all_directions_and_all_entries_the_matrix_comes_back(monkeypatch, seed):
    silence(monkeypatch)
    n_items = 8
    matrix = 3 + 1.9 * low_rank(60, n_items, n_items, seed)
    ratings = full(matrix)
    for solver in (
        SVDCompletion(rank=n_items, local="projection"),
        SVDCompletion(rank=n_items, ridge=0.0),
    ):
        plan = solver.plan(facts(n_items, 60), Budget(HUGE, 0.5))
        side = solver.run(plan, ratings, as_generator(seed))
        # a projection of a row onto all directions is the row, less the level
        assert side.vectors.shape[1] >= n_items - 1
        assert side.complete(ratings) == pytest.approx(matrix, abs=1e-4)


def test_directions_are_orthonormal_and_those_of_the_matrix(seed):
    matrix = low_rank(300, 20, 3, seed)
    ratings = full(3 + 1.9 * matrix)
    solver = SVDCompletion(rank=3)
    plan = solver.plan(facts(20, 300), Budget(HUGE, 0.5))
    vectors = solver.run(plan, ratings, as_generator(seed)).vectors
    assert vectors.T @ vectors == pytest.approx(np.eye(3), abs=1e-12)
    truth = np.linalg.svd(matrix)[2][:3]
    assert np.linalg.svd(truth @ vectors)[1] == pytest.approx(1.0, abs=0.02)
    # with noise as well
    plan = solver.plan(facts(20, 300), Budget(1.0, 1e-6))
    vectors = solver.run(plan, ratings, as_generator(seed)).vectors
    assert vectors.T @ vectors == pytest.approx(np.eye(vectors.shape[1]), abs=1e-12)


def test_it_learns_more_than_the_level_of_users(seed):
    matrix = 3 + signs(3000, 20, seed)
    known = as_generator(seed).random(matrix.shape) < 0.5
    rows = [
        Ratings.of_row(np.flatnonzero(k), r[k], 20)
        for k, r in zip(known, matrix, strict=True)
    ]
    ratings = Ratings(
        np.append(0, np.cumsum([r.n_ratings for r in rows])),
        np.concatenate([r.items for r in rows]),
        np.concatenate([r.values for r in rows]),
        20,
    )
    solver = SVDCompletion(rank=2)
    side = solver.run(
        solver.plan(facts(20, 3000), Budget(1.0, 1e-6)), ratings, as_generator(seed)
    )
    error = (side.complete(ratings) - matrix)[~known].std()
    assert error < 0.5 * matrix[~known].std()


def test_sums_do_not_depend_on_blocks_or_order_of_users(seed):
    ratings = some_ratings(300, 12, seed)
    whole = summed(SVDCompletion(), ratings)[0]
    order = as_generator(seed).permutation(300)
    rows = [ratings.row(i) for i in order]
    shuffled = Ratings(
        np.append(0, np.cumsum([len(items) for items, _ in rows])).astype(np.int64),
        np.concatenate([items for items, _ in rows]),
        np.concatenate([values for _, values in rows]),
        12,
    )
    assert (summed(SVDCompletion(), shuffled)[0] == whole).all()
    moments = NoisyMoments(12, 1.0, Neighbors.REPLACE_ONE)
    by_seven, at_once = (
        moments.run(
            (unit_rows(block, 3.0, 2.0)[0] for block in ratings.blocks(size)),
            as_generator(1),
        )
        for size in (7, 300)
    )
    assert (by_seven == at_once).all()


def test_no_more_than_max_ratings_are_used(seed):
    row = Ratings.of_row(range(10), np.linspace(1, 5, 10), 10)
    solver = SVDCompletion()
    plan = solver.plan(facts(10, max_ratings=3), Budget(1.0, 1e-6))
    with recording() as tape:
        solver.run(plan, row, as_generator(seed))
    (release,) = tape.releases
    assert np.count_nonzero(release.value) <= 6


def test_bad_parameters_are_rejected_by_name():
    for wrong in (
        {"rank": 0},
        {"row_norm": 0.0},
        {"local": "guess"},
        {"ridge": -1.0},
        {"noise": "none"},
    ):
        (name,) = wrong
        with pytest.raises(ValueError, match=name):
            SVDCompletion(**wrong)
    with pytest.raises(PlanError, match="delta"):
        SVDCompletion().plan(facts(3), Budget(1.0, 0.0))


def test_what_could_not_be_saved_is_rejected_before_the_charge():
    with pytest.raises(ValueError, match="ridge"):
        SVDCompletion(ridge=1e101)
    with pytest.raises(PlanError, match="lower rank"):
        SVDCompletion(rank=20_000).plan(facts(20_000), Budget(1.0, 1e-6))


def noisy_matrix(size, seed):
    """Return three directions and a diagonal of another size, with noise of one."""
    rng = as_generator(seed)
    noise = np.triu(rng.normal(size=(size, size)), 1) / np.sqrt(2)
    axes = np.linalg.qr(rng.normal(size=(size, 3)))[0]
    found = (axes * np.array([20.0, 9.0, 4.0]) * np.sqrt(size)) @ axes.T
    return found + noise + noise.T + np.diag(rng.exponential(10.0, size))


def test_directions_that_are_followed_are_those_of_all_eigenvalues(monkeypatch, seed):
    matrix = noisy_matrix(60, seed)
    wanted, axes = _spectrum.directions(matrix, 5, 1.0)
    sizes = []
    found = _spectrum.eigsh

    def counted(*arguments, **more):
        sizes.append(arguments[1])
        return found(*arguments, **more)

    monkeypatch.setattr(_spectrum, "eigsh", counted)
    monkeypatch.setattr(_spectrum, "LARGE", 50)
    fast, fast_axes = _spectrum.directions(matrix, 5, 1.0)
    assert sizes
    assert fast == pytest.approx(wanted, rel=1e-8)
    assert (fast_axes * fast) @ fast_axes.T == pytest.approx(
        (axes * wanted) @ axes.T, abs=1e-8
    )


def test_a_few_directions_of_many_are_those_of_all_eigenvalues(monkeypatch, seed):
    matrix = noisy_matrix(200, seed)
    wanted, axes = _spectrum.directions(matrix, 2, 1.0)
    monkeypatch.setattr(_spectrum, "LARGE", 50)
    monkeypatch.setattr(_spectrum, "VERY_LARGE", 50)
    monkeypatch.setattr(_spectrum, "leading", None)
    fast, fast_axes = _spectrum.directions(matrix, 2, 1.0)
    assert fast == pytest.approx(wanted, rel=1e-8)
    assert (fast_axes * fast) @ fast_axes.T == pytest.approx(
        (axes * wanted) @ axes.T, abs=1e-8
    )


def test_where_the_fast_way_ends_without_directions_the_other_is_taken(
    monkeypatch, seed
):
    matrix = noisy_matrix(60, seed)
    wanted, _ = _spectrum.directions(matrix, 5, 1.0)

    def fail(*arguments, **more):
        raise _spectrum.ArpackNoConvergence("no", [], [])

    monkeypatch.setattr(_spectrum, "eigsh", fail)
    monkeypatch.setattr(_spectrum, "LARGE", 50)
    assert _spectrum.directions(matrix, 5, 1.0)[0].tolist() == wanted.tolist()


def test_large_matrices_are_taken_apart_as_a_whole_twice(monkeypatch, seed):
    # each time takes seconds where items are thousands
    whole = []
    monkeypatch.setattr(_spectrum, "LARGE", 50)
    every = _spectrum.leading
    monkeypatch.setattr(
        _spectrum, "leading", lambda *given: whole.append(1) or every(*given)
    )
    _spectrum.directions(noisy_matrix(60, seed), 5, 1.0)
    assert len(whole) == 2
