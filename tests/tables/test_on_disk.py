"""Rows that do not fit in memory are kept in a file without a name, and read there."""

import errno
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import tracemalloc
from math import inf

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from sklearn.base import clone

from tacit import Budget, Ledger
from tacit._random import as_generator
from tacit.data import RowBounds, bounded_rows
from tacit.data import bounds as bounds_module
from tacit.data import rows as rows_module
from tacit.data.rows import DiskRows
from tacit.linear_model import (
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    SimplexRegressor,
)
from tacit.solvers._auto import solver_names
from tacit.tables import Column, Schema, TableError, _read, _row_store, read_rows
from tacit.tables._row_store import RowStore

WIDE = 4
SCHEMA = Schema(
    tuple(Column(f"x{j}", "number", (-1, 1)) for j in range(WIDE)),
    Column("y", "category", categories=("no", "yes")),
)


@pytest.fixture(params=["csv", "parquet"])
def table(request, tmp_path):
    rng = as_generator(0)
    X = rng.uniform(-1, 1, (3000, WIDE))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 0, "yes", "no")
    path = tmp_path / f"t.{request.param}"
    found = pa.table({**{f"x{j}": X[:, j] for j in range(WIDE)}, "y": y})
    (csv.write_csv if request.param == "csv" else parquet.write_table)(found, path)
    return path


def mapped(X, folder):
    """Return the same numbers in a file."""
    found = np.memmap(folder / "X", np.float64, "w+", shape=X.shape)
    found[:] = X
    found.flush()
    return np.memmap(folder / "X", np.float64, "r", shape=X.shape)


def is_mapped(X):
    """Whether an array, or one that it is a view of, lies in a file."""
    while X is not None:
        if isinstance(X, np.memmap | mmap.mmap):
            return True
        X = getattr(X, "base", None)
    return False


@pytest.mark.parametrize("limit", [0, 1000, 50_000])
def test_rows_beyond_the_limit_are_the_same_on_disk(
    table, tmp_path, monkeypatch, limit
):
    monkeypatch.setattr(_read, "BATCH", 700)
    whole = read_rows(table, SCHEMA)
    X, y = read_rows(table, SCHEMA, memory=limit, scratch=tmp_path)
    assert not is_mapped(whole.X)
    assert isinstance(X, np.memmap)
    assert is_mapped(np.asarray(X)[1:])
    assert not X.flags.writeable
    assert np.array_equal(X, whole.X)
    assert np.array_equal(y, whole.y)
    assert os.listdir(tmp_path) == [table.name]


def test_rows_within_the_limit_stay_in_memory(table):
    X, _ = read_rows(table, SCHEMA, memory=3000 * WIDE * 8)
    assert type(X) is np.ndarray
    assert not is_mapped(X)
    assert len(X) == 3000


def test_the_scratch_file_is_for_its_owner_alone_and_has_no_name(tmp_path):
    store = RowStore(2, None, 0, tmp_path)
    store.block(3)[:] = 1.0
    store.add(3)
    state = os.fstat(store._file.fileno())
    assert state.st_mode & 0o777 == 0o600
    assert state.st_nlink == 0
    assert os.listdir(tmp_path) == []
    store.close()


@pytest.mark.parametrize("n_rows", [None, 1000])
@pytest.mark.parametrize("limit", [0, 100 * 24, 10**6])
def test_a_store_gives_back_what_was_added(tmp_path, n_rows, limit):
    X = as_generator(0).normal(size=(1000, 3))
    store = RowStore(3, n_rows, limit, tmp_path)
    start = 0
    for size in (1, 7, 300, 2, 690):
        store.block(size)[:] = X[start : start + size]
        store.add(size)
        start += size
        assert len(store) == start
    assert np.array_equal(store.finish(), X)


def test_memory_that_runs_out_early_is_made_up_for_on_disk(tmp_path, monkeypatch):
    X = as_generator(0).normal(size=(40_000, 3))
    store = RowStore(3, None, 10**9, tmp_path)
    store.block(10_000)[:] = X[:10_000]
    store.add(10_000)

    class Narrow(np.ndarray):
        def resize(self, *_, **__):
            raise MemoryError

    store._buffer = store._buffer.view(Narrow)
    store.block(30_000)[:] = X[10_000:]
    store.add(30_000)
    found = store.finish()
    assert isinstance(found, np.memmap)
    assert np.array_equal(found, X)


def test_labels_are_found_piece_by_piece(monkeypatch):
    monkeypatch.setattr(bounds_module, "PIECE", 7)
    bounds = RowBounds(classes=("b", "c", "a"))
    positions = as_generator(0).integers(0, 3, size=50)
    y = np.array(["b", "c", "a"])[positions]
    assert np.array_equal(bounds.codes(y), positions)
    y[-1] = "d"
    with pytest.raises(ValueError, match="outside the public classes"):
        bounds.codes(y)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_said(table, tmp_path, monkeypatch, number):
    class Full:
        def write(self, _):
            raise OSError(number, "secret")

        def close(self):
            pass

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: Full())
    with pytest.raises(TableError, match="has no room for the encoded rows") as error:
        read_rows(table, SCHEMA, memory=0, scratch=tmp_path)
    assert str(tmp_path) in str(error.value)


def test_too_little_disk_is_said_before_anything_is_written(tmp_path):
    with pytest.raises(TableError, match="has no room"):
        RowStore(1000, 10**12, 0, tmp_path)


def test_a_scratch_folder_that_is_not_there_is_refused(table, tmp_path):
    with pytest.raises(TableError, match="cannot take the encoded rows"):
        read_rows(table, SCHEMA, memory=0, scratch=tmp_path / "none")


def test_addresses_that_run_out_are_said(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise OSError(errno.ENOMEM, "no")

    store = RowStore(2, None, 0, tmp_path)
    store.block(3)[:] = 1.0
    store.add(3)
    monkeypatch.setattr(np, "memmap", forbidden)
    with pytest.raises(TableError, match="ulimit -v"):
        store.finish()


def test_memory_is_bounded_by_the_tightest_limit(monkeypatch):
    assert 0 < _row_store.available() < inf
    limits = {resource.RLIMIT_DATA: 2**31, resource.RLIMIT_AS: resource.RLIM_INFINITY}
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (limits[kind], resource.RLIM_INFINITY)
    )
    assert _row_store.available() < 2**31
    assert _row_store.memory_limit() <= _row_store.available() / 3 + 1
    limits[resource.RLIMIT_AS] = 2**20
    assert _row_store.available() == 0


def test_control_groups_bound_memory(tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text("1000\n")
    (tmp_path / "a" / "memory.current").write_text("700\n")
    (tmp_path / "a" / "memory.stat").write_text("anon 5\ninactive_file 100\n")
    assert _row_store._group(str(tmp_path), "/a/b", "max", "current") == 400
    assert _row_store._group(str(tmp_path), "/", "max", "current") == inf


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("intercept", [None, 0.7])
@pytest.mark.parametrize("stretch", [None, (RowBounds(0.8, "linf"), 3.0)])
@pytest.mark.parametrize("n", [1, 64, 1001])
def test_sums_over_rows_on_disk_are_those_in_memory_to_the_bit(
    tmp_path, monkeypatch, norm, intercept, stretch, n
):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 1)
    rng = as_generator(0)
    X, y = rng.normal(size=(n, 5)), rng.normal(size=n)
    bounds = RowBounds(1.5, norm)
    held = bounded_rows(X, y, bounds, intercept, stretch)
    disk = bounded_rows(mapped(X, tmp_path), y, bounds, intercept, stretch)
    assert isinstance(disk, DiskRows)
    assert disk.n_rows == held.n_rows
    assert disk.n_features == held.n_features
    assert disk.block_rows == held.block_rows
    weights = rng.normal(size=held.n_features)

    def sums(X, y):
        return X.T @ (X @ weights), X.T @ y, X.sum(axis=0), X.T @ X

    for a, b in zip(held.sum(sums), disk.sum(sums), strict=True):
        assert np.array_equal(a, b)


MODELS = [
    LogisticRegression(1.0, classes=["no", "yes"], x_norm=1.0),
    LogisticRegression(100.0, solver="amp", classes=["no", "yes"], x_norm=1.0),
    LinearSVC(1.0, classes=["no", "yes"], fit_intercept=False, x_norm=1.0),
    LogisticRegression(1.0, bound_norm="linf", classes=["no", "yes"], x_norm=1.0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_fit_to_rows_on_disk_is_the_fit_to_rows_in_memory(
    table, tmp_path, monkeypatch, model
):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 2000)
    model.set_params(random_state=0, x_norm=SCHEMA.row_norm)
    X, y = read_rows(table, SCHEMA)
    held = model.fit(X, y).coef_.copy()
    X, y = read_rows(table, SCHEMA, memory=0, scratch=tmp_path)
    assert np.array_equal(model.fit(X, y).coef_, held)
    assert len(model.predict(X)) == len(y)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(1.0, y_range=(-1, 1), x_norm=1.0),
        SimplexRegressor(5.0, radius=2.0, y_range=(-1, 1), x_max=1.0),
    ],
    ids=str,
)
def test_regressions_read_rows_on_disk(tmp_path, model):
    X = as_generator(0).uniform(-1, 1, (500, 3))
    model.set_params(random_state=0)
    held = model.fit(X, X[:, 0]).coef_.copy()
    assert np.array_equal(model.fit(mapped(X, tmp_path), X[:, 0]).coef_, held)


IN_MEMORY = (
    *("noisy_sgd", "permuted_sgd", "online_to_batch"),
    *("sample_and_aggregate", "tukey"),
)
# Solvers that are not for labels
REGRESSORS = {
    **dict.fromkeys(
        ("ada_ssp", "adaptive_moments", "adaptive_ridge", "quadratic_perturbation"),
        LinearRegression(1.0, y_range=(-1, 1), x_norm=1.0),
    ),
    "entropy_sampling": SimplexRegressor(1.0, y_range=(-1, 1), x_max=1.0),
    "frank_wolfe": SimplexRegressor(1.0, y_range=(-1, 1), x_max=1.0),
    "tukey": LinearRegression(1.0, y_range=(-1, 1), expected_rows=20_000, x_norm=1.0),
}


@pytest.mark.parametrize("name", solver_names())
def test_a_solver_reads_rows_on_disk_or_refuses_before_the_charge(tmp_path, name):
    X = as_generator(0).uniform(-1, 1, (500, 3))
    y = X[:, 0] if name in REGRESSORS else X[:, 0] > 0
    model = clone(REGRESSORS.get(name, LogisticRegression(1.0, ridge=1.0, x_norm=1.0)))
    model.set_params(solver=name, delta=1e-6)
    ledger = Ledger(Budget(1.0, 1e-6))
    if name not in IN_MEMORY:
        model.fit(mapped(X, tmp_path), y, ledger=ledger)
        assert ledger.spent() > 0
        return
    with pytest.raises(ValueError, match="needs rows in memory; NoisyGD reads them"):
        model.fit(mapped(X, tmp_path), y, ledger=ledger)
    assert ledger.spent() == 0
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "X contains NaN"), (np.inf, "X contains infinity")]
)
def test_values_on_disk_are_checked_before_the_charge(tmp_path, value, words):
    X = as_generator(0).uniform(-1, 1, (40_000, 2))
    X[-1, 1] = value
    ledger = Ledger(Budget(1.0, 1e-6))
    model = LogisticRegression(1.0, 1e-6, classes=[False, True], x_norm=1.0)
    with pytest.raises(ValueError, match=words):
        model.fit(mapped(X, tmp_path), X[:, 0] > 0, ledger=ledger)
    assert ledger.spent() == 0


def test_rows_on_disk_are_never_held_whole(tmp_path):
    X = as_generator(0).uniform(-1, 1, (200_000, 20))
    y = X[:, 0] > 0
    on_disk = mapped(X, tmp_path)
    model = LogisticRegression(1.0, classes=[False, True], random_state=0, x_norm=1.0)
    model.fit(on_disk[:1000], y[:1000])  # what is loaded once is no part of it
    tracemalloc.start()
    try:
        model.fit(on_disk, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # two blocks of a million numbers, and a few vectors of one number a row
    assert peak < 26e6


@pytest.mark.slow
def test_a_table_larger_than_memory_is_read_and_fitted(tmp_path):
    program = os.path.join(os.path.dirname(__file__), "../../benchmarks/big_csv.py")
    found = subprocess.run(
        [sys.executable, program, "--gigabytes", "1.5", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, found.stderr
    assert "on disk" in found.stdout
    assert os.listdir(tmp_path) == []
