"""Time of a step of private greedy coordinate descent, against a whole gradient.

Run as ``python -m benchmarks.cd.greedy_speed``. The problem is one group of
newsgroups20 against the rest. A step chooses a coordinate among 21,907 by the
exponential mechanism, releases its sum with noise and brings all sums that the move
changes up to date. Times are of such steps by the solver's own walk, over a run. Whole
gradients are those of the same kernels, slopes cut and in whole numbers, and of
``X.T @ slopes`` by scipy, which cuts nothing. ``entries`` is the share of all
entries that lie in rows with the chosen word, in the mean: what a step must visit at
least if all slopes are to be right.

A row whose parts are all cut to full votes before and after a move adds what it added
before, so that a step visits the entries of other rows only: sums stay exact.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import L1, Logistic
from tacit.data import RowBounds
from tacit.datasets import load_newsgroups20
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.solvers._columns import Columns, Updates
from tacit.solvers._greedy_walk import Walk
from tacit.solvers.greedy_coordinate_descent import GreedyCoordinateDescent

BOUNDS = RowBounds(norm="linf")
BAR = 0.05


def milliseconds(action: Callable[[], Any], repeats: int = 9) -> float:
    action()
    found = []
    for _ in range(repeats):
        start = process_time()
        action()
        found.append(1e3 * (process_time() - start))
    return median(found)


def whole_gradients(columns: Columns, X: Any, updates: Updates) -> tuple[float, float]:
    """Return the times of a gradient by our kernels and by scipy."""
    t = columns.state(np.zeros(X.shape[1]))
    by_row = sparse.csr_array(X)

    def plain() -> Any:
        return by_row.T @ columns.slopes(t)

    return milliseconds(lambda: columns.sums(t, updates)), milliseconds(plain)


def steps(plan: Any, columns: Columns, squares: np.ndarray, seed: int) -> Any:
    """Return the times of all steps, the weights at the end, and what was chosen."""
    walk = Walk(plan, columns, squares, as_generator(seed))
    found, chosen = [], []
    for _ in range(plan.n_steps):
        start = process_time()
        chosen.append(walk.choose())
        walk.join(chosen[-1])
        found.append(1e3 * (process_time() - start))
    for k in range(plan.n_polish):
        walk.visit(walk.joined[k % len(walk.joined)])
    return found, walk.w, chosen


def objective(columns: Columns, w: np.ndarray, l1: float) -> float:
    t = columns.state(w)
    return float(np.mean(np.logaddexp(0, -t)) + l1 * np.abs(w).sum() / len(t))


def main() -> int:
    """Print the table; fail where no line is within the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=[50, 200])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    news = load_newsgroups20(binary=True)
    X = sparse.csr_array(news.X)
    y = np.where(news.y == 1, 1.0, -1.0)
    columns = Columns(X, y, Logistic())
    l1 = 1e-4
    problem = Problem(Logistic(), BOUNDS, *X.shape, regularizer=L1(l1))
    squares = np.maximum(np.asarray((X * X).mean(axis=0)).ravel(), 1e-4)
    print(
        f"{'steps':>6} {'mean ms':>8} {'median':>7} {'kernels':>8} "
        f"{'scipy':>6} {'of kernels':>10} {'of scipy':>9} {'entries':>8} {'value':>8}"
    )
    ones = sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    share = ones.T @ np.diff(X.indptr) / X.nnz  # of entries in rows with each word
    best = np.inf
    for n_steps in args.steps:
        solver = GreedyCoordinateDescent(n_steps=n_steps)
        plan = solver.plan(problem, Budget(args.epsilon, 1e-6))
        updates = plan.updates(squares, plan.selection_clip)
        steps(plan, columns, squares, 0)  # compiles
        times, values, wholes, shares = [], [], [], []
        for seed in range(args.runs):
            wholes.append(whole_gradients(columns, X, updates))
            found, w, chosen = steps(plan, columns, squares, seed)
            times += found
            shares += [share[j] for j in chosen]
            values.append(objective(columns, w, l1))
        ours, scipys = (median(pair[i] for pair in wholes) for i in (0, 1))
        mean = float(np.mean(times))
        best = min(best, mean / ours)
        print(
            f"{n_steps:>6} {mean:>8.3f} {median(times):>7.3f} "
            f"{ours:>8.2f} {scipys:>6.2f} {mean / ours:>10.1%} "
            f"{mean / scipys:>9.1%} {np.mean(shares):>8.1%} {median(values):>8.4f}"
        )
    print(f"least share of a whole gradient: {best:.1%} (bar {BAR:.0%})")
    return int(best > BAR)


if __name__ == "__main__":
    sys.exit(main())
