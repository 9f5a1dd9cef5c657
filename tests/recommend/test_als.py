"""Private alternating least squares: plans, what is learned, what is left without."""

from math import sqrt

import numpy as np
import pytest
from tests.recommend.doubles import some_ratings
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import GRID
from tacit.privacy import Budget, GaussianNoise, calibrate
from tacit.recommend.items.linear import LinearItems
from tacit.recommend.ratings import table as used
from tacit.recommend.ratings.table import RatingFacts, Ratings, kept
from tacit.recommend.solvers.als import PrivateALS
from tacit.recommend.solvers.als_round import RoundSums, learned_vectors
from tacit.recommend.solvers.item_means import (
    ItemCounts,
    ItemMeans,
    ReleasedMeans,
    derived_vectors,
)

LOW, HIGH = 1.0, 5.0


def budget(epsilon=1.0, neighbors="replace_one"):
    return Budget(epsilon, 1e-6, neighbors)


def facts_of(ratings, n_users=None, max_ratings=None):
    n_items = ratings.n_items
    n_users = max(1, ratings.n_users) if n_users is None else n_users
    return RatingFacts(n_items, LOW, HIGH, n_users, max_ratings or n_items)


def fitted(ratings, epsilon, rng, solver=None, neighbors="replace_one", **facts):
    solver = PrivateALS() if solver is None else solver
    plan = solver.plan(facts_of(ratings, **facts), budget(epsilon, neighbors))
    return solver.run(plan, ratings, rng)


def low_rank(n_users, n_items, rng, ratings_each=15):
    """Return ratings with two tastes, and others of the same users to predict."""
    U, V = rng.standard_normal((n_users, 2)), 0.6 * rng.standard_normal((n_items, 2))
    offsets = rng.normal(0, 0.4, n_items)
    items = np.argsort(rng.random((n_users, n_items)), axis=1)[:, : ratings_each + 2]
    levels = rng.normal(3.2, 0.3, (n_users, 1))
    truth = levels + offsets[items] + np.einsum("ik,ijk->ij", U, V[items])
    values = np.clip(truth + rng.normal(0, 0.4, truth.shape), LOW, HIGH)
    kept, test_set = slice(None, ratings_each), slice(ratings_each, None)
    order = np.argsort(items[:, kept], axis=1)
    ratings = Ratings(
        np.arange(n_users + 1, dtype=np.int64) * ratings_each,
        np.take_along_axis(items[:, kept], order, 1).astype(np.int32).ravel(),
        np.take_along_axis(values[:, kept], order, 1).astype(np.float32).ravel(),
        n_items,
    )
    users = np.repeat(np.arange(n_users), 2)
    return ratings, (users, items[:, test_set].ravel(), values[:, test_set].ravel())


def rmse(side, ratings, test_set):
    users, items, values = test_set
    return sqrt(float(np.mean((side.at(ratings, users, items) - values) ** 2)))


def user_mean_rmse(ratings, test_set):
    users, _, values = test_set
    means = np.add.reduceat(ratings.values, ratings.indptr[:-1])
    means = means / np.diff(ratings.indptr)
    return sqrt(float(np.mean((means[users] - values) ** 2)))


@each_relation
@pytest.mark.parametrize("n_iter", [None, 0, 1, 4])
def test_all_releases_together_cost_the_budget_exactly(neighbors, n_iter):
    facts = RatingFacts(100, LOW, HIGH, 25_000, 100)
    plan = PrivateALS(n_iter=n_iter).plan(facts, budget(1.0, neighbors))
    whole = calibrate(GaussianNoise, budget(1.0, neighbors))
    assert spent(plan.event) == pytest.approx(whole**-2, rel=1e-9)
    if n_iter is not None:
        assert len(plan.rounds) == n_iter


def spent(event):
    """Return the squared Gaussian parameter of an event."""
    if isinstance(event, GaussianNoise):
        return event.multiplier**-2
    return sum(map(spent, event.events))


@each_relation
def test_means_instead_of_rounds_cost_no_more_than_these(neighbors):
    facts = RatingFacts(100, LOW, HIGH, 500_000, 100)
    plan = PrivateALS().plan(facts, budget(1.0, neighbors))
    assert len(plan.again) == len(plan.rounds) == 3
    for i, means in enumerate(plan.again):
        rounds = sum(spent(each.event) for each in plan.rounds[i:])
        assert 0.999999 * rounds < spent(means.event) <= rounds


@pytest.mark.parametrize("n_iter", [None, 1, 2])
def test_every_run_spends_the_plan_whatever_it_finds(n_iter, seed):
    rng = as_generator(seed)
    some, _ = low_rank(6000, 30, rng)
    noise = Ratings(some.indptr, some.items, rng.uniform(1, 5, 90_000), 30)
    few = Ratings(some.indptr[:201], some.items[:3000], some.values[:3000], 30)
    for table in (some, noise, few):
        solver = PrivateALS(n_iter=n_iter)
        plan = solver.plan(facts_of(table, 6000), budget(2.0))
        with recording() as tape:
            solver.run(plan, table, rng)
        parameters = [each.sensitivity / GRID for each in tape.releases]
        total = float(np.sum(np.square(parameters)))
        assert total == pytest.approx(spent(plan.event), rel=1e-5)
        assert total <= spent(plan.event)


def offsets_fit(ratings, epsilon, rng, neighbors="replace_one"):
    """Return the side of item means for the whole budget, and nothing else."""
    facts = facts_of(ratings)
    multiplier = calibrate(GaussianNoise, budget(epsilon, neighbors))
    means = ItemMeans(facts, multiplier, neighbors).run(ratings, rng)
    none = np.empty((facts.n_items, 0))
    return LinearItems(none, means.offsets, LOW, HIGH, np.empty(0), means.level)


def sparse_set(n_users, n_items, rng, *, tastes=0.0, each=30):
    """Return ratings of few, unevenly popular items a user, and others of the same."""
    popularity = (np.arange(n_items) + 5.0) ** -0.8
    offsets = rng.permutation(rng.normal(0, 0.5, n_items))
    order = np.log(popularity) + rng.gumbel(size=(n_users, n_items))
    items = np.argsort(-order, axis=1)[:, : each + 3]
    follows = 1 + tastes * rng.standard_normal((n_users, 1))
    truth = rng.normal(3.6, 0.4, (n_users, 1)) + follows * offsets[items]
    values = np.clip(np.rint(truth + rng.normal(0, 0.8, truth.shape)), LOW, HIGH)
    chosen = np.sort(items[:, :each], axis=1)
    position = np.argsort(items[:, :each], axis=1)
    ratings = Ratings(
        np.arange(n_users + 1, dtype=np.int64) * each,
        chosen.astype(np.int32).ravel(),
        np.take_along_axis(values[:, :each], position, 1).astype(np.float32).ravel(),
        n_items,
    )
    test_set = items[:, each:].ravel(), values[:, each:].ravel()
    return ratings, (np.repeat(np.arange(n_users), 3), *test_set)


@each_relation
@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0])
def test_nothing_is_lost_where_there_is_nothing_but_offsets(epsilon, neighbors, seed):
    # the same noise would be best to compare by; over six runs the standard deviation
    # of the difference is 0.0007, and extra vectors used to cost 0.006 to 0.02
    rng = as_generator(seed)
    ratings, test_set = sparse_set(1500, 400, rng)
    off = [
        rmse(fitted(ratings, epsilon, rng, neighbors=neighbors), ratings, test_set)
        - rmse(offsets_fit(ratings, epsilon, rng, neighbors), ratings, test_set)
        for _ in range(6)
    ]
    assert np.mean(off) < 0.004


def test_tastes_for_what_others_like_are_used_where_users_differ_in_them(seed):
    rng = as_generator(seed)
    ratings, test_set = sparse_set(3000, 200, rng, tastes=0.8)
    side = fitted(ratings, 5.0, rng, PrivateALS(n_iter=0))
    assert side.vectors.shape[1] == 2
    # control: where users do not, they are left out
    other, _ = sparse_set(3000, 200, rng)
    assert fitted(other, 5.0, rng, PrivateALS(n_iter=0)).vectors.shape[1] == 0
    offsets_only = offsets_fit(ratings, 5.0, rng)
    assert rmse(side, ratings, test_set) < rmse(offsets_only, ratings, test_set) - 0.005


def test_few_users_for_the_noise_spend_all_on_means():
    few, many, most = (
        PrivateALS().plan(RatingFacts(400, LOW, HIGH, n, 400), budget())
        for n in (1_000, 20_000, 500_000)
    )
    assert [len(plan.rounds) for plan in (few, many, most)] == [0, 2, 3]
    assert few.n_starts < many.n_starts < most.n_starts
    assert few.means.multiplier < many.means.multiplier


def test_tastes_of_users_are_learned_and_used(seed):
    rng = as_generator(seed)
    ratings, test_set = low_rank(6000, 30, rng)
    found = rmse(fitted(ratings, 2.0, rng), ratings, test_set)
    without = rmse(fitted(ratings, 2.0, rng, PrivateALS(n_iter=0)), ratings, test_set)
    # against the error of the true model, and without differences between users
    assert found < 0.75 * without < 0.75 * user_mean_rmse(ratings, test_set)
    assert found < 0.65


def test_next_to_no_noise_is_as_good_as_knowing_the_tastes(seed):
    rng = as_generator(seed)
    ratings, test_set = low_rank(6000, 30, rng)
    side = fitted(ratings, 1000.0, rng)
    assert rmse(side, ratings, test_set) < 0.54


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
@each_relation
def test_noise_leaves_levels_of_users(epsilon, neighbors, seed):
    rng = as_generator(seed)
    ratings, test_set = low_rank(800, 200, rng)
    side = fitted(ratings, epsilon, rng, neighbors=neighbors)
    assert rmse(side, ratings, test_set) < 1.03 * user_mean_rmse(ratings, test_set)
    # control: rounds that are requested in spite of the noise are dropped as such
    forced = fitted(ratings, epsilon, rng, PrivateALS(n_iter=3), neighbors)
    assert rmse(forced, ratings, test_set) < 1.1 * user_mean_rmse(ratings, test_set)


def round_sums(products, scale, error=1.0, moments=None):
    size = products.shape[1]
    moments = np.eye(size) / size if moments is None else moments
    return RoundSums(products, moments, error, scale, sqrt(size), 1.0)


def test_pure_noise_is_hardly_ever_a_direction(seed):
    rng = as_generator(seed)
    items = ItemCounts(rng.exponential(20.0, 300) + 2, np.zeros(300), 1e-6, 1.0)
    for size in (2, 8, 24):
        found = [
            learned_vectors(
                round_sums(5.0 * rng.standard_normal((300, size)), 5.0),
                items,
                8,
                4.0,
                synthetic=False,
            ).shape[1]
            for _ in range(60)
        ]
        # expected in one of twelve rounds at most; 14 of 60 would be one in 10^4
        assert np.count_nonzero(found) <= 14
    # control: noise of twice the declared scale makes directions of all
    underrated = round_sums(5.0 * rng.standard_normal((300, 8)), 2.5)
    assert learned_vectors(underrated, items, 8, 4.0, synthetic=False).shape[1] == 8


def test_learned_vectors_span_the_true_ones_and_are_shrunk(seed):
    rng = as_generator(seed)
    counts = rng.exponential(50.0, 400) + 5
    items = ItemCounts(counts, np.zeros(400), 1e-6, 1.0)
    truth = rng.standard_normal((400, 2))
    mixing = np.linalg.qr(rng.standard_normal((6, 6)))[0][:, :2]
    signal = counts[:, None] * (truth @ mixing.T) / sqrt(6)
    for scale, least in ((0.01, 0.999), (10.0, 0.6)):
        sums = round_sums(signal + scale * rng.standard_normal((400, 6)), scale)
        found = learned_vectors(sums, items, 8, 10.0, synthetic=True)
        assert found.shape == (400, 2)
        fit = np.linalg.lstsq(found, truth, rcond=None)[0]
        assert 1 - np.mean((truth - found @ fit) ** 2) / np.mean(truth**2) > least
    # with noise, items that are rated less are shrunk more
    rare = counts < np.median(counts)
    sizes = (found**2).sum(axis=1)
    assert sizes[rare].mean() < 0.9 * sizes[~rare].mean()


def released(counts, scale, offsets):
    sums, noisy = counts * offsets, np.stack([counts, counts * offsets])
    return ReleasedMeans(counts, sums, offsets, 3.0, 1.0, scale, scale, noisy, scale)


def test_derived_vectors_are_offsets_and_popularity(seed):
    rng = as_generator(seed)
    counts, offsets = rng.exponential(100.0, 50), rng.normal(0, 0.5, 50)
    items = ItemCounts.of(released(counts, 1.0, offsets), 1000.0)
    found = derived_vectors(items, 1.0)
    assert np.corrcoef(found[:, 0], offsets)[0, 1] > 0.999
    assert np.corrcoef(found[:, 1], np.log(counts + 30))[0, 1] > 0.99
    # counts that are noise are no popularity
    counts = np.maximum(100 * rng.standard_normal(50), 0)
    noise = ItemCounts.of(released(counts, 300.0, offsets), 10.0)
    assert not derived_vectors(noise, 1.0)[:, 1].any()


@pytest.mark.parametrize("keep", ["even", "adaptive"])
@pytest.mark.parametrize("most", [3, 20])
def test_no_release_is_of_more_ratings_than_the_limit(keep, most, seed):
    table = row(range(20), as_generator(seed).uniform(1, 5, 20), 20)
    with recording() as tape:
        solver = PrivateALS(n_iter=1, keep=keep)
        fitted(table, 5.0, as_generator(3), solver, max_ratings=most)
    means, products, _ = (release.value for release in tape.releases)
    assert np.count_nonzero(means.reshape(2, 21)[0, :20]) == most
    rated = products.reshape(20, -1).any(axis=1)
    assert np.count_nonzero(rated) == most


def test_an_adaptive_choice_prefers_rare_items_in_the_rounds_only(monkeypatch, seed):
    # all rate ten items, and one user in ten another ten besides
    rows = [range(20) if i % 10 == 0 else range(10) for i in range(2000)]
    table = Ratings(
        np.append(0, np.cumsum([len(each) for each in rows])),
        np.concatenate(rows).astype(np.int32),
        as_generator(seed).uniform(1, 5, sum(map(len, rows))).astype(np.float32),
        20,
    )
    calls = []

    def noted(ratings, most, key, weights=None):
        found = kept(ratings, most, key, weights)
        calls.append((weights, np.count_nonzero(found.items >= 10)))
        return found

    monkeypatch.setattr(used, "kept", noted)
    rare = {}
    for keep in ("even", "adaptive"):
        calls.clear()
        solver = PrivateALS(n_iter=1, keep=keep)
        fitted(table, 50.0, as_generator(0), solver, max_ratings=5)
        # blocks of the means come first, then those of the round and of the choice
        even = np.array([each[0] is None for each in calls])
        means, rounds, choice = np.split(even, 3)
        assert means.all()
        assert choice.all()
        assert (rounds == (keep == "even")).all()
        rare[keep] = sum(count for _, count in calls[len(means) : -len(choice)])
    assert rare["adaptive"] > 1.2 * rare["even"]


@pytest.mark.parametrize("epsilon", [2.0, 20.0])
def test_a_pattern_of_few_items_has_no_echoes_of_itself(epsilon, seed):
    signs = np.where(np.arange(7) % 2, 2.0, -2.0)
    values = 3 + np.where(np.arange(3000) % 2, 1, -1)[:, None] * signs
    table = Ratings(
        np.arange(3001) * 7,
        np.tile(np.arange(7, dtype=np.int32), 3000),
        values.astype(np.float32).ravel(),
        8,
    )
    side = fitted(table, epsilon, as_generator(seed))
    # one that is learned, with or without the two that are free
    assert side.vectors.shape[1] in (1, 3)
    found = side.complete(row([0, 1], [5.0, 1.0], 8))[0]
    assert np.abs(found[:7] - (3 - signs)).max() < 0.5
    assert found[7] == pytest.approx(3, abs=0.5)


def test_directions_are_fewer_than_items():
    for n_items, rank in ((1, 1), (2, 1), (6, 5), (100, 8)):
        facts = RatingFacts(n_items, LOW, HIGH, 10_000, n_items)
        assert PrivateALS().plan(facts, budget()).rank == rank


def row(items, values, n_items):
    return Ratings.of_row(items, values, n_items)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("n_iter", [None, 3])
@each_relation
def test_strange_tables_give_finite_sides_without_a_warning(epsilon, n_iter, neighbors):
    tables = (
        row([], [], 3),
        row([0], [5.0], 1),
        row(range(7), [5.0] * 7, 7),
        Ratings(
            np.array([0, 0, 3, 3, 4]),
            np.array([0, 1, 4, 2], dtype=np.int32),
            np.array([1, 5, 1, 3], dtype=np.float32),
            5,
        ),
    )
    for table in tables:
        solver = PrivateALS(n_iter=n_iter)
        side = fitted(table, epsilon, as_generator(0), solver, neighbors)
        assert np.isfinite(side.vectors).all()
        completed = side.complete(table)
        assert ((completed >= LOW) & (completed <= HIGH)).all()


def test_a_range_far_from_zero_changes_nothing_but_the_level(seed):
    ratings = some_ratings(400, 12, seed)
    far = Ratings(ratings.indptr, ratings.items, ratings.values + 4096, 12)
    solver = PrivateALS(n_iter=2)
    sides = []
    for table, shift in ((ratings, 0.0), (far, 4096.0)):
        facts = RatingFacts(12, LOW + shift, HIGH + shift, 400, 12)
        plan = solver.plan(facts, budget(50.0))
        side = solver.run(plan, table, as_generator(seed))
        sides.append(side.complete(table) - shift)
    np.testing.assert_allclose(sides[0], sides[1], atol=0.02)


def test_what_makes_no_plan_is_rejected():
    facts = RatingFacts(10, LOW, HIGH, 100, 10)
    with pytest.raises(PlanError, match="delta"):
        PrivateALS().plan(facts, Budget(1.0, 0.0, "replace_one"))
    with pytest.raises(ValueError, match="rank must be 'auto'"):
        PrivateALS(rank="most")
    with pytest.raises(ValueError, match="rank"):
        PrivateALS(rank=0)
    with pytest.raises(ValueError, match="n_iter"):
        PrivateALS(n_iter=-1)
    with pytest.raises(ValueError, match="keep"):
        PrivateALS(keep="rare")
    with pytest.raises(ValueError, match="noise"):
        PrivateALS(noise="none")


def test_rank_is_never_more_than_was_requested(seed):
    rng = as_generator(seed)
    ratings, _ = low_rank(3000, 30, rng)
    for rank in (1, 3):
        side = fitted(ratings, 20.0, rng, PrivateALS(rank=rank))
        # two of them are free
        assert side.vectors.shape[1] <= rank + 2
