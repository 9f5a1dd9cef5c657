"""Private Frank-Wolfe on sparse rows: time a step and memory, against whole gradients.

Run as ``python benchmarks/frank_wolfe_speed.py``. The plain step computes all margins
and the whole gradient with the CSR matrix and scores every vertex; the fast one visits
what changed. Both choose by the exponential mechanism with the same event. Memory is
the peak beyond the rows given, clipping included, over the bytes of those rows.
"""

from __future__ import annotations

import argparse
import tracemalloc
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import L1Ball, Logistic
from tacit.data import RowBounds, bounded_rows
from tacit.datasets import load
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.solvers.frank_wolfe import FrankWolfe, _combined, _iterate, _sparse_pass

BOUNDS = RowBounds(norm="linf")
RADIUS = 20.0


def newsgroups() -> tuple[Any, np.ndarray]:
    """Largest group against the rest, each row divided by its largest entry."""
    data = load("newsgroups20")
    X = sparse.csr_array(data.X)
    largest = np.maximum.reduceat(np.append(X.data, 0.0), X.indptr[:-1])
    X.data /= np.repeat(np.where(largest > 0, largest, 1.0), np.diff(X.indptr))
    groups, counts = np.unique(data.y, return_counts=True)
    return X, np.where(data.y == groups[counts.argmax()], 1.0, -1.0)


def synthetic(n: int, p: int, per_row: int) -> tuple[Any, np.ndarray]:
    """Rows of ones and fractions at random columns, of which some carry the label."""
    rng = as_generator(0)
    columns = np.sort(rng.integers(0, p, size=(n, per_row), dtype=np.int32), axis=1)
    # a column drawn twice moves on by one, so that every entry is stored once
    for _ in range(3):
        columns[:, 1:] = np.maximum(columns[:, 1:], columns[:, :-1] + 1)
    columns %= p
    columns.sort(axis=1)
    data = rng.uniform(-1, 1, size=n * per_row)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_array((data, columns.ravel(), indptr), shape=(n, p))
    X.sum_duplicates()
    truth = rng.normal(size=p)
    return X, np.where(X @ truth + rng.normal(size=n) > 0, 1.0, -1.0)


def nbytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def seconds(descend: Any, solver: FrankWolfe, problem: Problem, rows: Any) -> float:
    plan = solver.plan(problem, Budget(1.0, 1e-6))
    start = perf_counter()
    _combined(plan, descend(plan, rows, as_generator(0)))
    return perf_counter() - start


def measure(name: str, X: Any, y: np.ndarray, n_steps: int, plain_steps: int) -> None:
    """Print one line a data set."""
    problem = Problem(Logistic(), BOUNDS, *X.shape, regularizer=L1Ball(RADIUS))
    rows = bounded_rows(X, y, BOUNDS)
    seconds(_sparse_pass, FrankWolfe(n_steps=2), problem, rows)  # compiles
    # steps alone: a long run less one that prepares and takes a single step
    first = seconds(_sparse_pass, FrankWolfe(n_steps=1), problem, rows)
    long = seconds(_sparse_pass, FrankWolfe(n_steps=n_steps), problem, rows)
    fast = (long - first) / (n_steps - 1)
    plain = (
        seconds(_iterate, FrankWolfe(n_steps=plain_steps), problem, rows) / plain_steps
    )
    tracemalloc.start()
    solver = FrankWolfe(n_steps=20)
    solver.run(
        solver.plan(problem, Budget(1.0, 1e-6)),
        bounded_rows(X, y, BOUNDS),
        as_generator(0),
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"{name:>16} {X.shape[0]:>8} {X.shape[1]:>9} {X.nnz:>9} {n_steps:>6} "
        f"{1e3 * plain:>9.2f} {1e3 * fast:>9.4f} {plain / fast:>8.0f}x "
        f"{1e3 * first:>8.0f} {peak / nbytes(X):>6.2f}x"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--plain-steps", type=int, default=5)
    args = parser.parse_args()
    print(
        f"{'data':>16} {'rows':>8} {'features':>9} {'entries':>9} {'steps':>6} "
        f"{'plain ms':>9} {'fast ms':>9} {'ratio':>9} {'init ms':>8} {'memory':>7}"
    )
    measure("newsgroups20", *newsgroups(), args.steps, args.plain_steps)
    X, y = synthetic(100_000, 1_000_000, 50)
    measure("synthetic", X, y, args.steps, args.plain_steps)


if __name__ == "__main__":
    main()
