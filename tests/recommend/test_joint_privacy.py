"""Other users reach a user's row through the published item side, and in no other way.

Three things together are joint privacy: the item side is a function of what mechanisms
released, a row is a function of the item side and of its user's own ratings, and what
was released is private, which audits and the tests of each solver look at.
"""

import gc
import pickle
from dataclasses import dataclass, fields
from types import ModuleType

import numpy as np
import pytest
from tests.recommend.doubles import MeansSide, MeansSolver, matrix, some_ratings

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.privacy import Budget
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS
from tacit.recommend._rows import UserRow
from tacit.recommend.items.side import UserSide
from tacit.recommend.ratings.table import RatingFacts, Ratings

N_ITEMS = 14
FACTS = RatingFacts(N_ITEMS, 1.0, 5.0, 60, 8)
BUDGET = Budget(3.0, 1e-5)


def solver_of(name):
    return MeansSolver() if name == "double" else SOLVERS[name]()


NAMES = ["double", *SOLVERS]


def with_row(ratings, position, items, values):
    """Return the table with one user's row replaced."""
    rows = [ratings.row(i) for i in range(ratings.n_users)]
    rows[position] = Ratings.of_row(items, values, ratings.n_items).row(0)
    return table_of(rows, ratings.n_items)


def table_of(rows, n_items):
    lengths = [len(items) for items, _ in rows]
    return Ratings(
        np.append(0, np.cumsum(lengths)).astype(np.int64),
        np.concatenate([items for items, _ in rows]).astype(np.int32),
        np.concatenate([values for _, values in rows]).astype(np.float32),
        n_items,
    )


def replayed(solver, ratings, other, seed):
    """Return the item sides of two tables from the same releases, and both tapes."""
    plan = solver.plan(FACTS, BUDGET)
    with recording() as tape:
        side = solver.run(plan, ratings, as_generator(seed))
    with replaying(tape, redraw=True) as again:
        same = solver.run(plan, other, as_generator(seed))
    return side, same, tape, again


@pytest.mark.parametrize("name", NAMES)
def test_the_item_side_is_a_function_of_what_was_released(name, seed):
    ratings = some_ratings(60, N_ITEMS, seed)
    other = with_row(ratings, 11, [0, 3, 9], [1.0, 5.0, 5.0])
    side, same, tape, again = replayed(solver_of(name), ratings, other, seed)
    assert pickle.dumps(side) == pickle.dumps(same)
    # a neighbor moves no sum further than its declared sensitivity
    assert len(tape.releases) == len(again.releases) > 0
    moves = [
        np.linalg.norm((one.value - two.value).astype(np.float64)) / one.sensitivity
        for one, two in zip(tape.releases, again.releases, strict=True)
    ]
    # and some sum does move, so that there was something to hide
    assert 0 < max(moves) <= 1 + 1e-12


class Counting(MeansSolver):
    """A planted leak: the true number of ratings of an item moves its offset."""

    def run(self, plan, ratings, rng):
        side = super().run(plan, ratings, rng)
        side.offsets[0] += 1e-9 * (ratings.items == 0).sum()
        return side


def test_an_item_side_that_knows_a_true_count_is_found_out(seed):
    ratings = with_row(some_ratings(60, N_ITEMS, seed), 11, [1], [2.0])
    other = with_row(ratings, 11, [0, 3, 9], [1.0, 5.0, 5.0])
    side, same, _, _ = replayed(Counting(), ratings, other, seed)
    assert pickle.dumps(side) != pickle.dumps(same)


def own_rows_differ(side, ratings, others):
    """Return whether a row changes with those of others, with the side fixed."""
    whole, changed = side.complete(ratings), side.complete(others)
    single = np.stack(
        [
            side.complete(Ratings.of_row(*ratings.row(i), ratings.n_items))[0]
            for i in range(ratings.n_users)
        ]
    )
    kept = slice(0, None, 2)  # those whose ratings are the same in both tables
    at = side.at(ratings, np.arange(ratings.n_users), np.full(ratings.n_users, 3))
    return not (
        np.array_equal(whole, single)
        and np.array_equal(whole[kept], changed[kept])
        and np.array_equal(whole[:, 3], at)
    )


def half_replaced(ratings, seed):
    """Return the table in which every second user has other ratings."""
    fresh = some_ratings(ratings.n_users, ratings.n_items, seed + 1)
    rows = [(fresh if i % 2 else ratings).row(i) for i in range(ratings.n_users)]
    return table_of(rows, ratings.n_items)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_follows_from_the_item_side_and_its_own_ratings_bit_for_bit(name, seed):
    ratings = some_ratings(40, N_ITEMS, seed)
    solver = solver_of(name)
    side = solver.run(solver.plan(FACTS, BUDGET), ratings, as_generator(seed))
    assert not own_rows_differ(side, ratings, half_replaced(ratings, seed))


@dataclass(frozen=True, eq=False)
class Together(MeansSide):
    """A planted leak: levels are taken from the mean of all users' levels."""

    def local(self, ratings):
        own = super().local(ratings)
        levels = own._private_means - own._private_means.mean() * 1e-6
        return UserSide(levels, own._private_coefficients)


def test_a_local_step_that_looks_at_other_users_is_found_out(seed):
    ratings = some_ratings(40, N_ITEMS, seed)
    solver = MeansSolver(kind=Together)
    side = solver.run(solver.plan(FACTS, BUDGET), ratings, as_generator(seed))
    assert own_rows_differ(side, ratings, half_replaced(ratings, seed))


def reachable(thing):
    """Return all arrays that can be had from an object, other than through code."""
    seen, found, todo = set(), [], [thing]
    while todo:
        part = todo.pop()
        if id(part) in seen or isinstance(part, ModuleType | type):
            continue
        seen.add(id(part))
        if callable(part) and not hasattr(part, "__dataclass_fields__"):
            continue
        if isinstance(part, np.ndarray):
            found.append(part)
        todo += gc.get_referents(part)
    return found


def fitted(seed):
    ratings = some_ratings(40, N_ITEMS, seed)
    model = MatrixCompletion(
        MeansSolver(),
        3.0,
        1e-5,
        rating_range=(1, 5),
        random_state=seed,
    )
    return model.fit(matrix(ratings)), ratings


def holds_others(row, table):
    return any(
        np.shares_memory(array, private)
        for array in reachable(row)
        for private in (table.values, table.items, table.indptr)
    )


def test_a_users_row_holds_her_own_ratings_and_the_public_side_only(seed):
    model, ratings = fitted(seed)
    table = model.rows_._private_table
    for user in (1, 5, 20):
        row = model.rows_[user]
        names = {field.name for field in fields(row)}
        assert names == {"side", "catalogue", "_private_ratings"}
        assert row.side is model.factors_
        items, values = ratings.row(user)
        assert row.ratings == dict(zip(items.tolist(), values.tolist(), strict=True))
        assert not holds_others(row, table)
    # control: a view of the table carries all of it
    view = Ratings(np.array([0, 2]), table.items[:2], table.values[:2], N_ITEMS)
    assert holds_others(UserRow(model.factors_, table.catalogue, view), table)


def test_the_same_side_gives_the_same_row_whoever_else_was_fitted(seed):
    model, ratings = fitted(seed)
    for user in (1, 5, 20):
        items, values = ratings.row(user)
        own = dict(zip(items.tolist(), values.tolist(), strict=True))
        row = model.rows_[user].complete()
        assert np.array_equal(row, model.complete_row(own))
        single = UserRow(
            model.factors_, model._items, Ratings.of_row(items, values, N_ITEMS)
        )
        assert np.array_equal(row, single.complete())


def test_what_is_public_of_a_model_holds_no_users_ratings(seed):
    model, _ = fitted(seed)
    table = model.rows_._private_table
    public = {n: part for n, part in vars(model).items() if "_private" not in n}
    assert not holds_others(public, table)
    assert not holds_others(model.__getstate__(), table)
    assert holds_others(vars(model), table)
