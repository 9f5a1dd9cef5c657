"""Rows are read as sums over blocks, whatever the blocks."""

from fractions import Fraction
from math import ceil, log2

import numpy as np
import pytest
from scipy import sparse

from tacit._random import as_generator
from tacit.data import RowBounds, bounded_rows
from tacit.data import rows as module
from tacit.data.rows import ArrayRows


def data(n, p, seed=0):
    rng = as_generator(seed)
    return rng.uniform(-1, 1, (n, p)), rng.uniform(-1, 1, n)


def sums(X, y):
    return X.T @ y, np.asarray(X.sum(axis=0)), len(y)


def blocks_of(X, y, monkeypatch, entries):
    monkeypatch.setattr(module, "BLOCK_ENTRIES", entries)
    return ArrayRows(X, y)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 4097])
def test_sums_do_not_depend_on_the_blocks(n, monkeypatch):
    X, y = data(n, 5)
    whole = ArrayRows(X, y).sum(sums)
    parts = blocks_of(X, y, monkeypatch, 1)
    assert parts.block_rows == 64
    assert parts.n_rows == n
    assert parts.n_features == 5
    for a, b in zip(whole, parts.sum(sums), strict=True):
        assert np.allclose(a, b, rtol=1e-13, atol=1e-12)
    assert np.allclose(whole[0], X.T @ y)
    assert whole[2] == n


def test_blocks_cover_every_row_once_in_order(monkeypatch):
    X, _ = data(1000, 3)
    y = np.arange(1000.0)
    rows, seen = blocks_of(X, y, monkeypatch, 1), []

    def look(X, y):
        seen.append((X.copy(), y.copy()))
        return (0.0,)

    rows.sum(look)
    seen.sort(key=lambda block: block[1][0])  # blocks may be read side by side
    assert {len(y) for _, y in seen[:-1]} == {64}
    assert np.array_equal(np.vstack([X for X, _ in seen]), X)
    assert np.array_equal(np.concatenate([y for _, y in seen]), y)


class Term:
    """A sum that remembers how deep its additions are."""

    def __init__(self, depth=0, positions=()):
        self.depth, self.positions = depth, positions

    def __add__(self, other):
        depth = 1 + max(self.depth, other.depth)
        return Term(depth, self.positions + other.positions)


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 5, 8, 21, 64])
def test_blocks_are_added_in_pairs(n_blocks, monkeypatch):
    n = 64 * n_blocks
    rows = blocks_of(np.zeros((n, 2)), np.arange(n), monkeypatch, 1)
    (total,) = rows.sum(lambda X, y: (Term(0, (int(y[0]) // 64,)),))
    assert total.positions == tuple(range(n_blocks))
    assert total.depth <= ceil(log2(n_blocks)) + 1


def test_pairs_lose_less_than_a_running_sum(monkeypatch):
    n = 64 * 512
    y = np.full(n, 0.1)
    rows = blocks_of(np.zeros((n, 1)), y, monkeypatch, 1)
    (total,) = rows.sum(lambda X, y: (y.sum(),))
    exact, running = n * Fraction(0.1), 0.0
    for value in y.tolist():
        running += value
    assert abs(Fraction(float(total)) - exact) < abs(Fraction(running) - exact) / 10


@pytest.mark.parametrize("entries", [1, 2**18])
def test_sparse_rows_sum_as_dense_ones(entries, monkeypatch):
    X, y = data(1000, 7)
    X[as_generator(1).uniform(size=X.shape) < 0.8] = 0.0
    X[100:200] = 0.0
    dense = blocks_of(X, y, monkeypatch, entries).sum(sums)
    stored = blocks_of(sparse.csr_array(X), y, monkeypatch, entries).sum(sums)
    for a, b in zip(dense, stored, strict=True):
        assert np.allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_blocks_are_views(kind, monkeypatch):
    X, _ = data(300, 4)
    X[X < 0] = 0.0
    stored, y = kind(X), np.arange(300)
    rows = blocks_of(stored, y, monkeypatch, 1)

    def look(block, targets):
        part = X[targets]
        if sparse.issparse(block):
            assert np.array_equal(block.toarray(), part)
            assert np.shares_memory(block.data, stored.data)
            assert np.shares_memory(block.indices, stored.indices)
        else:
            assert np.array_equal(block, part)
            assert np.shares_memory(block, stored)
        assert np.shares_memory(targets, y)
        return (len(targets),)

    assert rows.sum(look) == (300,)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_constant_feature_comes_last_and_is_not_clipped(norm, kind, dtype):
    X, y = data(50, 3)
    X = (5 * X).astype(dtype)
    bounds = RowBounds(0.1, norm)
    rows = bounded_rows(kind(X), y, bounds, intercept=2.5)
    assert rows.n_features == 4
    held = []
    rows.sum(lambda X, y: (held.append(X) or 0,))
    (block,) = held
    assert block.dtype == np.float64
    block = block.toarray() if sparse.issparse(block) else block
    assert np.all(block[:, -1] == 2.5)
    assert np.allclose(block[:, :-1], bounds.clip(X.astype(np.float64)), rtol=1e-14)
    sizes = (
        np.abs(block[:, :-1]).max(axis=1)
        if norm == "linf"
        else np.sqrt((block[:, :-1] ** 2).sum(axis=1))
    )
    assert sizes.max() <= 0.1


def test_without_an_intercept_rows_are_only_clipped():
    X, y = data(20, 3)
    rows = bounded_rows((10 * X).astype(np.float32), y, RowBounds(1.0))
    (gram,) = rows.sum(lambda X, y: (X.T @ X,))
    assert rows.n_features == 3
    assert gram.dtype == np.float64
    assert np.trace(gram) == pytest.approx(20.0)


def test_no_rows_sum_to_nothing():
    # where the number of rows is private, an error would tell that there are none
    for X in (np.zeros((0, 3)), sparse.csr_array((0, 3))):
        rows = ArrayRows(X, np.zeros(0))
        assert rows.n_rows == 0
        gram, total = rows.sum(lambda X, y: (X.T @ X, y.sum()))
        assert gram.shape == (3, 3)
        assert total == gram.sum() == 0.0


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("stretch", [None, (RowBounds(0.5), 3.0)])
def test_rows_of_a_file_that_stop_being_finite_count_as_zeros(
    tmp_path, norm, value, stretch
):
    X, y = data(50, 3)
    on_disk = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    on_disk[:] = X
    rows = bounded_rows(on_disk, y, RowBounds(1.0, norm), 2.5, stretch)
    on_disk[7, 1] = value  # after it was checked
    X[7] = 0.0
    expected = bounded_rows(X, y, RowBounds(1.0, norm), 2.5, stretch).sum(sums)
    for a, b in zip(rows.sum(sums), expected, strict=True):
        assert np.array_equal(a, b)


def test_the_printed_form_shows_no_data():
    rows = ArrayRows(np.full((3, 2), 123.456), np.full(3, 7.891))
    assert repr(rows) == str(rows) == "ArrayRows(3 rows, 2 features)"
    public = [name for name in vars(rows) if not name.startswith("_private_")]
    assert all(not np.ndim(getattr(rows, name)) for name in public)


@pytest.mark.parametrize(("p", "expected"), [(1, 2**16), (64, 2**14), (2**20, 64)])
def test_blocks_stay_small_enough_for_the_cache(p, expected):
    dense = np.broadcast_to(0.0, (10, p))
    assert ArrayRows(dense, np.zeros(10)).block_rows == expected
    empty = sparse.csr_array((10, p))
    assert ArrayRows(empty, np.zeros(10)).block_rows == 2**16
