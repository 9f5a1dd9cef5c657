"""The synthetic experiments behind the default rule of greedy coordinate descent.

Draws random regressions and classifications with few true weights, sets one constant of
the rule at a time to values around the shipped one, and prints how much is left of what
the minimum gains over zero weights, on average. No real row is read.

    python benchmarks/cd/fit_greedy_rule.py --problems 16
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from unittest import mock

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression

from tacit._random import as_generator
from tacit.convex import L1, Logistic, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget
from tacit.solvers import Problem, _greedy_plan
from tacit.solvers.greedy_coordinate_descent import GreedyCoordinateDescent

BOUNDS = RowBounds(1.0, "linf")
EPSILONS = (0.5, 2.0, 8.0)
N_RUNS = 3
VALUES = {
    "WORTH": (0.08, 0.1, 0.15, 0.2, 0.3),
    "MOST_STEPS": (8, 12, 16, 24),
    "STEP": (1.0, 1.5, 2.0, 3.0),
    "RESIDUAL_CLIP": (0.1, 0.18, 0.25, 0.35, 0.5),
    "DERIVATIVE_CLIP": (0.25, 0.35, 0.5, 0.7, 1.0),
    "NARROW": (0.1, 0.3, 1.0),
    "POLISH": (0, 1, 2, 4),
}


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows as a solver sees them, and where the best weights lead to."""

    problem: Problem
    X: np.ndarray
    y: np.ndarray
    least: float

    def value(self, w):
        loss = self.problem.loss.value(self.y, self.X @ w)
        return float(loss.sum()) + self.problem.regularizer.value(w)

    def left(self, W):
        start = self.value(np.zeros((self.X.shape[1], 1)))
        return min((self.value(W) - self.least) / (start - self.least), 2.0)


def drawn(seed):
    """Return a problem with few true weights, features and targets within [-1, 1]."""
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(800), np.log(10_000))))
    p = int(np.exp(rng.uniform(np.log(30), np.log(800))))
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 0.4, size=p)
    if rng.random() < 0.3:  # features that are there or not
        X = (rng.random((n, p)) < rng.uniform(0.05, 0.5, size=p)).astype(float)
    X = np.clip(X, -1, 1)
    w = np.zeros(p)
    few = rng.choice(p, size=int(rng.integers(3, 16)), replace=False)
    w[few] = rng.choice([-1, 1], size=len(few)) * rng.lognormal(0, 0.7, len(few))
    z = (X - X.mean(0)) @ w
    z /= z.std()
    if rng.random() < 0.5:
        y = z + rng.uniform(0.1, 1.0) * rng.normal(size=n)
        loss, y = Squared(), np.clip(y / rng.uniform(2, 6) / y.std(), -1, 1)
        l1 = rng.uniform(0.02, 0.2) * np.abs(X.T @ y).max()
        best = Lasso(l1 / n, fit_intercept=False, tol=1e-6, max_iter=5000).fit(X, y)
    else:
        y = np.where(rng.uniform(2, 6) * z + rng.logistic(size=n) > 0, 1.0, -1.0)
        loss, l1 = Logistic(), rng.uniform(0.02, 0.2) * np.abs(X.T @ y).max() / 2
        best = LogisticRegression(
            l1_ratio=1.0, C=1 / l1, solver="liblinear", fit_intercept=False, tol=1e-6
        ).fit(X, y)
    problem = Problem(loss, BOUNDS, n, p, regularizer=L1(l1))
    case = Drawn(problem, X, y, 0.0)
    return Drawn(problem, X, y, case.value(best.coef_.reshape(-1, 1)))


def mean_left(cases):
    """Return what is left on average, over problems, budgets and runs."""
    found = []
    for case in cases:
        rows = bounded_rows(case.X, case.y, BOUNDS)
        for epsilon in EPSILONS:
            solver = GreedyCoordinateDescent(noise="float")
            plan = solver.plan(case.problem, Budget(epsilon, 1 / len(case.y) ** 2))
            found += [
                case.left(solver.run(plan, rows, as_generator(run)).coefficients)
                for run in range(N_RUNS)
            ]
    return float(np.mean(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=16)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(VALUES))
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.problems)
    cases = [drawn(seed) for seed in seeds]
    print("shipped", round(mean_left(cases), 4), flush=True)
    for name in options.only:
        for value in VALUES[name]:
            with mock.patch.object(_greedy_plan, name, value):
                print(name, value, round(mean_left(cases), 4), flush=True)


if __name__ == "__main__":
    main()
