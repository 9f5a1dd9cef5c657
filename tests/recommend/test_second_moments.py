"""Sums of outer products of users' rows are exact, and moved as far as is declared."""

import tracemalloc
from math import sqrt, trunc

import numpy as np
import pytest

from tacit import Budget, Ledger, _execution
from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.recommend import MatrixCompletion
from tacit.recommend.solvers.moments import (
    integer_factor,
    packed_size,
    second_moments,
    unpacked,
)

UNITS = 2**20


def block_of(rows):
    """Return rows of numbers, with NaN where nothing is rated, as one block."""
    rated = ~np.isnan(rows)
    indptr = np.append(0, np.cumsum(rated.sum(axis=1))).astype(np.int64)
    return indptr, np.nonzero(rated)[1].astype(np.int32), rows[rated]


def some_rows(n_users, n_items, seed, rated=0.6):
    rng = as_generator(seed)
    rows = rng.standard_normal((n_users, n_items))
    rows[rng.random(rows.shape) > rated] = np.nan
    return rows / np.sqrt(np.nansum(rows**2, axis=1, keepdims=True) + 1e-300)


def moments(rows, units=UNITS):
    return second_moments([block_of(rows)], rows.shape[1], units)


# rows of few of the items are added in another way than rows of many
@pytest.mark.parametrize(("n_items", "rated"), [(4, 0.6), (40, 0.1), (40, 0.02)])
def test_sums_are_those_of_products_truncated_towards_zero(n_items, rated, seed):
    rows = some_rows(20, n_items, seed, rated)
    factor = integer_factor(UNITS, n_items)
    expected = np.zeros((n_items, n_items), dtype=np.int64)
    for row in np.nan_to_num(rows):
        for i in range(n_items):
            expected[i, i] += trunc(factor * row[i] * row[i])
            for j in range(i + 1, n_items):
                expected[i, j] += trunc(factor * sqrt(2) * row[i] * row[j])
    found = moments(rows)
    assert found.dtype == np.int64
    # products in another order may differ by one where they are nearly whole
    assert np.abs(found - expected[np.triu_indices(n_items)]).max() <= 1


def test_sums_do_not_depend_on_order_blocks_or_threads(seed, monkeypatch):
    rows = some_rows(60, 6, seed)
    expected = moments(rows)
    assert np.array_equal(moments(rows[::-1]), expected)
    blocks = [block_of(rows[i : i + 7]) for i in range(0, 60, 7)]
    for workers in (1, 3):
        monkeypatch.setattr(_execution, "_workers", lambda workers=workers: workers)
        assert np.array_equal(second_moments(blocks, 6, UNITS), expected)
        made = [lambda block=block: block for block in blocks]
        assert np.array_equal(second_moments(made, 6, UNITS), expected)


def test_a_block_may_begin_anywhere(seed):
    rows = some_rows(10, 6, seed)
    indptr, items, parts = block_of(rows)
    first = second_moments(
        [(indptr[:5], items[: indptr[4]], parts[: indptr[4]])], 6, 9**6
    )
    rest = second_moments(
        [(indptr[4:], items[indptr[4] :], parts[indptr[4] :])], 6, 9**6
    )
    assert np.array_equal(first + rest, moments(rows, 9**6))


def test_unpacked_sums_are_the_second_moments(seed):
    rows = some_rows(50, 5, seed)
    filled = np.nan_to_num(rows)
    found = unpacked(moments(rows), 5, UNITS)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, filled.T @ filled, atol=50 * 2 / UNITS)


def farthest(seed, *, replaced):
    """Return how far one user moves the sums, at most, in units."""
    rng = as_generator(seed)
    most = 0.0
    for _ in range(300):
        pair = rng.standard_normal((2, 3))
        if rng.random() < 0.5:  # nearly at right angles, which is the worst case
            pair[1] -= pair[0] * (pair[0] @ pair[1]) / (pair[0] @ pair[0])
        pair /= np.linalg.norm(pair, axis=1, keepdims=True)
        before = moments(pair[:1])
        after = moments(pair[1:]) if replaced else np.zeros_like(before)
        most = max(most, float(np.linalg.norm(before - after)) / UNITS)
    return most


def test_a_user_moves_the_sums_by_no_more_than_declared(seed):
    assert 0.999 < farthest(seed, replaced=False) <= 1.0
    replaced = farthest(seed, replaced=True)
    assert 0.999 * sqrt(2) < replaced <= sqrt(2)
    # control: the published sensitivity for a user who is replaced is caught
    assert replaced > 1.0


def test_nothing_is_summed_for_no_users():
    assert not second_moments([], 3, UNITS).any()
    empty = (np.zeros(3, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0))
    assert not second_moments([empty], 3, UNITS).any()


@pytest.mark.parametrize("solver", ["svd", "gradient", "cleansed_svd"])
def test_a_catalogue_too_large_for_memory_is_rejected_before_the_charge(solver):
    model = MatrixCompletion(solver, 1.0, 1e-6, items=400_000, rating_range=(1, 5))
    ledger = Ledger(Budget(1.0, 1e-6))
    with pytest.raises(PlanError, match="items must be at most 20,000"):
        model.fit([(0, 3, 4.0), (1, 3, 2.0)], ledger=ledger)
    assert ledger.spent() == 0


def test_a_matrix_is_unpacked_without_a_second_one():
    n_items = 400
    noisy = np.arange(packed_size(n_items))
    unpacked(noisy[:1], 1, UNITS)
    tracemalloc.start()
    matrix = unpacked(noisy, n_items, UNITS)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.1 * matrix.nbytes
    assert (matrix == matrix.T).all()


def test_too_coarse_units_are_rejected():
    assert integer_factor(2**28, 400) > 0.999 * 2**28
    with pytest.raises(PlanError, match="raise epsilon or delta"):
        integer_factor(256, 1000)


def test_a_triangle_has_as_many_entries_as_numpys():
    assert packed_size(7) == len(np.triu_indices(7)[0])
