"""Private Frank-Wolfe: its noise, its steps, and what users make of them."""

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from tests.recommend.doubles import some_ratings

from tacit import _execution
from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.exceptions import PlanError
from tacit.mechanisms import noise as draws
from tacit.privacy import Budget, Neighbors
from tacit.recommend import FrankWolfeCompletion, MatrixCompletion
from tacit.recommend.ratings.table import RatingFacts, Ratings
from tacit.recommend.solvers.frank_wolfe import FrankWolfeCompletionPlan

BUDGET = Budget(1.0, 1e-6)
# Whose noise is as small as integers allow
RICH = Budget(1e7, 1e-6)
VARIANTS = (
    {},
    {"step": "standard"},
    {"step": "published", "clip": "row", "inflate": True},
    {"clip": "row", "weights": "increasing"},
    {"item_means": True},
    {"eigenvector": "oja", "n_products": 3},
    {"eigenvector": "power", "n_products": 3, "step": "standard"},
    {"eigenvector": "lanczos", "nuclear_norm": 20.0},
)


@pytest.fixture
def silent(monkeypatch):
    """Leave all noise out, but not what is known about its scale."""

    def none(size, rng):
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(draws, "rounded_normal", none)


def facts_of(ratings, low=1.0, high=5.0, max_ratings=None):
    n_items = ratings.n_items
    return RatingFacts(
        n_items, low, high, max(1, ratings.n_users), max_ratings or n_items
    )


def fitted(solver, ratings, budget, seed, facts=None):
    plan = solver.plan(facts or facts_of(ratings), budget)
    return solver.run(plan, ratings, as_generator(seed))


def rank_one(n_users, n_items, seed, *, kept=1.0):
    """Return ratings of +1 and -1 with level zero in every row, and the truth."""
    rng = as_generator(seed)
    taste = rng.choice([-1.0, 1.0], n_users)
    side = np.where(np.arange(n_items) % 2, 1.0, -1.0)
    truth = np.outer(taste, side)
    # whole pairs of items, so that the level stays zero
    rated = np.repeat(rng.random((n_users, n_items // 2)) < kept, 2, axis=1)
    indptr = np.append(0, np.cumsum(rated.sum(axis=1))).astype(np.int64)
    items = np.nonzero(rated)[1].astype(np.int32)
    ratings = Ratings(indptr, items, truth[rated].astype(np.float32), n_items)
    return ratings, truth


def unclipped(side, ratings):
    """Return completed rows before they are clipped into the range."""
    users = side.local(ratings)
    return users._private_coefficients @ side.vectors.T + users._private_means[:, None]


@pytest.mark.parametrize(
    ("clip", "relation", "sensitivity"),
    [
        ("row", "replace_one", 4 * sqrt(2)),
        ("row", "add_or_remove_one", 4.0),
        ("residual", "replace_one", sqrt(2)),
        ("residual", "add_or_remove_one", 1.0),
    ],
)
@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.1, 0.02754), (1, 0.23670), (5, 1.02036)]
)
def test_noise_is_that_of_the_exact_calibration(
    clip, relation, sensitivity, epsilon, mu
):
    solver = FrankWolfeCompletion(
        clip=clip, row_norm=1.0, n_iter=10, step="standard", nuclear_norm=1.0
    )
    facts = RatingFacts(20, -1.0, 1.0, 1000, 20)
    plan = solver.plan(facts, Budget(epsilon, 1e-6, Neighbors.of(relation)))
    expected = sensitivity * sqrt(10) / mu
    for direction in plan.directions:
        assert plan.bound**2 * direction.scale == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("relation", list(Neighbors))
def test_a_plan_fits_its_budget_and_half_the_noise_would_not(variant, relation):
    budget = Budget(1.0, 1e-6, relation)
    solver = FrankWolfeCompletion(n_iter=4, **variant)
    plan = solver.plan(RatingFacts(20, 1.0, 5.0, 1000, 20), budget)
    curve = plan.event.curve(relation)
    assert curve.fits(budget)
    assert not curve.fits(Budget(0.99, 1e-6, relation))
    halved = FrankWolfeCompletionPlan.__dict__["event"].fget(
        SimpleNamespace(
            means=plan.means,
            directions=plan.directions * 4,
            lengths=plan.lengths * 4,
        )
    )
    assert not halved.curve(relation).fits(budget)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("relation", list(Neighbors))
def test_one_user_moves_no_release_further_than_declared(variant, relation, seed):
    ratings = some_ratings(25, 6, seed)
    rows = [ratings.row(i) for i in range(25)]
    other = list(rows)
    if relation is Neighbors.REPLACE_ONE:
        other[7] = (np.arange(6, dtype=np.int32), np.float32([5, 1, 5, 1, 5, 1]))
    else:
        del other[7]
    solver = FrankWolfeCompletion(n_iter=3, row_norm=0.8, **variant)
    plan = solver.plan(facts_of(ratings), Budget(3.0, 1e-6, relation))
    with recording() as tape:
        side = solver.run(plan, ratings, as_generator(seed))
    with replaying(tape, redraw=True) as replay:
        again = solver.run(plan, stacked(other, 6), as_generator(seed))
    assert tape.releases
    for one, two in zip(tape.releases, replay.releases, strict=True):
        moved = np.linalg.norm((one.value - two.value).astype(np.float64))
        assert moved <= one.sensitivity
    # all else is a function of what was released: others keep every bit
    for name in ("vectors", "offsets", "keeps", "lengths", "strengths"):
        assert np.array_equal(getattr(side, name), getattr(again, name))


def stacked(rows, n_items):
    indptr = np.append(0, np.cumsum([len(items) for items, _ in rows]))
    return Ratings(
        indptr.astype(np.int64),
        np.concatenate([items for items, _ in rows]),
        np.concatenate([values for _, values in rows]),
        n_items,
    )


def test_the_sensitivity_of_the_thesis_is_caught_for_a_replaced_user(seed):
    """Two users with residuals at right angles are further apart than one squared."""
    solver = FrankWolfeCompletion(n_iter=1, row_norm=1.0)
    plan = solver.plan(RatingFacts(4, -5.0, 5.0, 1, 4), BUDGET)
    released = []
    for values in ([5, -5, 0, 0], [0, 0, 5, -5]):
        row = Ratings.of_row(np.arange(4), values, 4)
        with recording() as tape:
            solver.run(plan, row, as_generator(seed))
        released.append(tape.releases[0])
    moved = np.linalg.norm((released[0].value - released[1].value).astype(float))
    assert moved <= released[0].sensitivity
    # with residuals of 2 row_norm one squared is 4 row_norm^2, which was published
    assert moved > 1.4 * plan.directions[0].mechanism.units


@pytest.mark.parametrize("n_iter", [1, 5])
@pytest.mark.usefixtures("silent")
def test_a_searched_or_standard_step_is_exact_on_rank_one(n_iter, seed):
    ratings, truth = rank_one(60, 8, seed)
    facts = facts_of(ratings, -1.0, 1.0)
    norm = sqrt(truth.size)
    for variant in ({}, {"step": "standard", "nuclear_norm": norm, "row_norm": 3.0}):
        solver = FrankWolfeCompletion(n_iter=n_iter, **variant)
        side = fitted(solver, ratings, RICH, seed, facts)
        np.testing.assert_allclose(unclipped(side, ratings), truth, atol=1e-3)


@pytest.mark.parametrize(
    ("n_iter", "shrinkage"), [(5, 0.59040), (10, 0.61258), (20, 0.62265)]
)
@pytest.mark.usefixtures("silent")
def test_the_published_step_stops_short(n_iter, shrinkage, seed):
    ratings, truth = rank_one(40, 6, seed)
    solver = FrankWolfeCompletion(
        n_iter=n_iter,
        step="published",
        clip="row",
        row_norm=2.5,
        nuclear_norm=sqrt(truth.size),
    )
    side = fitted(solver, ratings, RICH, seed, facts_of(ratings, -1.0, 1.0))
    assert len(side.keeps) == n_iter - 1
    np.testing.assert_allclose(unclipped(side, ratings), shrinkage * truth, atol=1e-5)


@pytest.mark.usefixtures("silent")
def test_the_nuclear_norm_of_predictions_is_bounded(seed):
    ratings = some_ratings(2000, 10, seed)
    for k in (25.0, 250.0):
        solver = FrankWolfeCompletion(
            n_iter=6, step="standard", nuclear_norm=k, row_norm=7.0
        )
        side = fitted(solver, ratings, RICH, seed)
        rows = side.local(ratings)._private_coefficients @ side.vectors.T
        assert np.linalg.norm(rows, ord="nuc") <= k * (1 + 1e-3)


@pytest.mark.usefixtures("silent")
def test_without_noise_steps_are_those_of_frank_wolfe(seed):
    ratings = some_ratings(2000, 10, seed)
    solver = FrankWolfeCompletion(
        n_iter=3, step="standard", nuclear_norm=150.0, row_norm=7.0
    )
    side = fitted(solver, ratings, RICH, seed)
    start = side.start(side.offsets, 1.0, 5.0, side.prior_level, 10)
    at = start.visited(ratings)
    users = np.repeat(np.arange(2000), np.diff(ratings.indptr))
    truth, rated = np.zeros((2000, 10)), np.zeros((2000, 10), dtype=bool)
    truth[users, ratings.items] = at.values
    rated[users, ratings.items] = True
    rows = np.zeros((2000, 10))
    for t in range(3):
        residual = np.where(rated, rows - truth, 0)
        left, _, right = np.linalg.svd(residual, full_matrices=False)
        corner = -150.0 * np.outer(left[:, 0], right[0])
        rows += 2 / (t + 2) * (corner - rows)
        # the rated part of a row is no longer than the row of ratings
        long = np.linalg.norm(np.where(rated, rows, 0), axis=1)
        own = np.linalg.norm(truth, axis=1)
        rows *= np.minimum(1, own / np.maximum(long, 1e-300))[:, None]
    found = side.local(ratings)._private_coefficients @ side.vectors.T
    np.testing.assert_allclose(found, rows, atol=0.01)


def test_a_fit_does_not_depend_on_order_blocks_or_threads(seed, monkeypatch):
    ratings = some_ratings(40, 6, seed)
    rows = [ratings.row(i) for i in range(40)]
    solver = FrankWolfeCompletion(n_iter=3)
    expected = fitted(solver, ratings, Budget(30.0, 1e-6), seed)
    assert len(expected.keeps)
    blocks = Ratings.blocks
    monkeypatch.setattr(Ratings, "blocks", lambda self, users=7: blocks(self, 7))
    monkeypatch.setattr(_execution, "_workers", lambda: 3)
    found = fitted(solver, stacked(rows[::-1], 6), Budget(30.0, 1e-6), seed)
    assert np.array_equal(found.vectors, expected.vectors)
    assert np.array_equal(found.lengths, expected.lengths)


def test_replayed_rows_are_those_of_the_fit(seed, monkeypatch):
    ratings = some_ratings(30, 6, seed)
    solver = FrankWolfeCompletion(n_iter=2, clip="row", step="standard")
    seen = []
    from tacit.recommend.items.steps import WalkItems  # noqa: PLC0415

    visited = WalkItems.visited

    def noted(side, block, **options):
        at = visited(side, block, **options)
        seen.append((len(side.keeps), at.coefficients))
        return at

    monkeypatch.setattr(WalkItems, "visited", noted)
    side = fitted(solver, ratings, Budget(50.0, 1e-6), seed)
    in_fit = next(found for n_steps, found in seen if n_steps == 1)
    monkeypatch.undo()
    first = type(side).start(side.offsets, 1.0, 5.0, 3.0, 6, side.row_norm)
    first = first.moved(side.vectors[:, 0], side.keeps[0], side.lengths[0], 1.0)
    assert np.array_equal(first.local(ratings)._private_coefficients, in_fit)


def test_longer_rows_are_clipped_for_the_sums_and_used_whole_in_own_rows(seed):
    ratings = some_ratings(50, 30, seed)
    facts = facts_of(ratings, max_ratings=4)
    side = fitted(FrankWolfeCompletion(n_iter=1), ratings, RICH, seed, facts)
    assert side.max_ratings == 4
    assert np.isfinite(side.complete(ratings)).all()


@pytest.mark.parametrize("variant", [{}, {"item_means": True}])
def test_no_release_is_of_more_ratings_than_the_limit(variant, seed):
    row = Ratings.of_row(np.arange(9), np.tile([1.0, 5.0, 2.0], 3), 9)
    solver = FrankWolfeCompletion(n_iter=1, **variant)
    plan = solver.plan(facts_of(row, max_ratings=3), RICH)
    with recording() as tape:
        solver.run(plan, row, as_generator(seed))
    sums = [release.value for release in tape.releases]
    if variant:
        counts = sums.pop(0).reshape(2, 10)[0, :9]
        assert np.count_nonzero(counts) == 3
    # products of three numbers with one another
    assert np.count_nonzero(sums[0]) <= 6


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_learns_a_strong_direction(variant, seed):
    ratings, truth = rank_one(3000, 20, seed, kept=0.5)
    solver = FrankWolfeCompletion(n_iter=3, **variant)
    budget = Budget(20.0, 1e-6)
    side = fitted(solver, ratings, budget, seed, facts_of(ratings, -1.0, 1.0))
    error = np.sqrt(np.mean((side.complete(ratings) - truth) ** 2))
    assert error < 0.97


def test_the_default_is_far_better_than_the_published_algorithm(seed):
    ratings, truth = rank_one(4000, 20, seed, kept=0.5)
    facts = facts_of(ratings, -1.0, 1.0)
    errors = []
    for variant in ({}, {"step": "published", "clip": "row", "inflate": True}):
        side = fitted(FrankWolfeCompletion(**variant), ratings, BUDGET, seed, facts)
        errors.append(np.sqrt(np.mean((side.complete(ratings) - truth) ** 2)))
    assert errors[0] < 0.25
    assert errors[1] > 1.5 * errors[0]


def test_pure_noise_moves_nobody(seed):
    rng = as_generator(seed)
    indptr, items = np.arange(501) * 10, np.tile(np.arange(10, dtype=np.int32), 500)
    values = rng.uniform(1, 5, 5000).astype(np.float32)
    side = fitted(
        FrankWolfeCompletion(n_iter=5), Ratings(indptr, items, values, 10), BUDGET, seed
    )
    assert side.lengths.sum() < 0.5


def test_steps_follow_from_public_facts():
    def steps(n_users, epsilon, **variant):
        facts = RatingFacts(100, -1.0, 1.0, n_users, 80)
        return FrankWolfeCompletion(**variant).plan(facts, Budget(epsilon, 1e-6)).n_iter

    assert steps(100, 0.1) == 1
    assert steps(100, 0.1, step="published") == 2
    assert 1 < steps(25_000, 1.0) < 20
    assert steps(10**6, 5.0) == 20
    assert steps(25_000, 1.0, eigenvector="oja") < steps(25_000, 1.0)


def test_large_catalogues_get_another_eigenvector():
    names = [FrankWolfeCompletion()._eigenvector(n) for n in (3000, 3001, 20_001)]
    assert names == ["dense", "lanczos", "oja"]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("n_users", "n_items", "most"), [(1, 1, 1), (1, 5, 5), (3, 4, 0), (5, 1, 1)]
)
def test_few_users_items_and_ratings_do(variant, n_users, n_items, most, seed):
    ratings = some_ratings(n_users, n_items, seed, most=most or None)
    if most == 0:
        nothing = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        ratings = stacked([nothing] * n_users, n_items)
        assert ratings.n_ratings == 0
    side = fitted(FrankWolfeCompletion(n_iter=2, **variant), ratings, BUDGET, seed)
    rows = side.complete(ratings)
    assert rows.shape == (n_users, n_items)
    assert ((rows >= 1) & (rows <= 5)).all()


@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
def test_small_and_large_budgets_do(epsilon, seed):
    ratings = some_ratings(30, 6, seed, low=1e6, high=1e6 + 1)
    facts = facts_of(ratings, 1e6, 1e6 + 1)
    side = fitted(FrankWolfeCompletion(), ratings, Budget(epsilon, 1e-6), seed, facts)
    assert np.isfinite(side.complete(ratings)).all()


def test_a_budget_without_delta_is_rejected():
    with pytest.raises(PlanError, match="delta"):
        FrankWolfeCompletion().plan(RatingFacts(5, 1.0, 5.0, 10, 5), Budget(1.0, 0.0))


@pytest.mark.parametrize("eigenvector", ["dense", "lanczos"])
def test_a_matrix_that_is_requested_is_rejected_where_memory_cannot_hold_it(
    eigenvector,
):
    facts = RatingFacts(20_001, 1.0, 5.0, 10_000, 80)
    with pytest.raises(PlanError, match="items must be at most 20,000"):
        FrankWolfeCompletion(eigenvector=eigenvector).plan(facts, BUDGET)
    assert FrankWolfeCompletion().plan(facts, BUDGET).n_iter == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"nuclear_norm": "best"},
        {"nuclear_norm": -1.0},
        {"n_iter": 0},
        {"n_iter": 1, "step": "published"},
        {"row_norm": 0.0},
        {"step": "seed"},
        {"eigenvector": "qr"},
        {"clip": "none"},
        {"weights": "falling"},
        {"n_products": 0},
        {"item_means": "yes"},
        {"inflate": None},
        {"noise": "none"},
    ],
)
def test_wrong_parameters_are_rejected_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        FrankWolfeCompletion(**wrong)


def test_the_estimator_takes_it_by_name(seed):
    rng = as_generator(seed)
    pairs = np.array([(u, i) for u in range(300) for i in range(8)])
    values = 3 + np.where(pairs[:, 0] % 2, 1, -1) * np.where(pairs[:, 1] % 2, 1, -1)
    seen = rng.random(len(pairs)) < 0.7
    rows = np.column_stack([pairs, values])[seen]
    model = MatrixCompletion(
        "frank_wolfe",
        epsilon=20.0,
        items=8,
        rating_range=(1, 5),
        random_state=seed,
    ).fit(rows)
    assert -model.score(pairs[~seen], values[~seen]) < 0.7
    assert len(model.complete_row({0: 5.0, 2: 4.0})) == 8
