"""Time of a private fit against scikit-learn's at the same ridge, and of imports.

Medians of alternating runs on the same rows in the same process; the machine is
noisy, so read the ratios.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

from benchmarks.accuracy import clipped
from sklearn.linear_model import LogisticRegression as Plain

from tacit.convex import Logistic
from tacit.data import RowBounds
from tacit.datasets import load
from tacit.linear_model import LogisticRegression
from tacit.linear_model._base import guaranteed_budget
from tacit.solvers import AMP, Problem
from tacit.solvers._base import INTERCEPT_FRACTION
from tacit.solvers._gradients.descent import capped_where_noisy


def planned_ridge(epsilon, n_rows, n_features):
    """Return the ridge that the default plan chooses, for the same in scikit-learn."""
    budget = guaranteed_budget(epsilon, None, "replace_one", n_rows)
    bounds = RowBounds(1.0).with_intercept(INTERCEPT_FRACTION)
    problem = Problem(Logistic(), bounds, n_rows, n_features + 1)
    problem = Problem(
        capped_where_noisy(problem, budget), bounds, n_rows, n_features + 1
    )
    return AMP().plan(problem, budget).tilted.ridge


def timed(action, *given):
    start = perf_counter()
    action(*given)
    return perf_counter() - start


def fits(repeats=7, epsilon=1.0):
    print(f"seconds of a fit at epsilon {epsilon:g}, median of {repeats}; bar 1.5")
    print(f"{'set':12} {'rows':>8} {'private':>8} {'sklearn':>8} {'ratio':>6}")
    reached = True
    for name, data in (
        ("adult", load("adult")),
        ("covertype", load("covertype", binary=True)),
    ):
        X, y = clipped(data.X), data.y
        ridge = planned_ridge(epsilon, *X.shape)
        ours = LogisticRegression(epsilon, classes=(0, 1), x_norm=1.0)
        theirs = Plain(C=1 / ridge, tol=1e-4, solver="lbfgs", max_iter=1000)
        ours.fit(X[:1000], y[:1000])  # compile and load once
        theirs.fit(X[:1000], y[:1000])
        pairs = [
            (timed(ours.fit, X, y), timed(theirs.fit, X, y)) for _ in range(repeats)
        ]
        private, plain = (median(side) for side in zip(*pairs, strict=True))
        ratio = private / plain
        reached &= ratio <= 1.5
        print(
            f"{name:12} {len(y):8} {private:8.3f} {plain:8.3f} {ratio:6.2f}", flush=True
        )
    return reached


def imports(repeats=9):
    print(f"seconds of an import in a fresh process, median of {repeats}; bar 1.5")

    def run(statement):
        command = [sys.executable, "-c", statement]
        return timed(subprocess.check_call, command)

    statements = (
        "pass",
        "import sklearn.linear_model",
        "import tacit",
        "from tacit.linear_model import LogisticRegression",
    )
    run(statements[1]), run(statements[3])  # bytecode
    times = {
        statement: median(run(statement) for _ in range(repeats))
        for statement in statements
    }
    floor = times.pop("pass")
    reference = times["import sklearn.linear_model"] - floor
    for statement, took in times.items():
        took -= floor
        print(f"{statement:52} {took:6.3f} ratio {took / reference:5.2f}")
    return all((took - floor) / reference <= 1.5 for took in times.values())


if __name__ == "__main__":
    fits()
    imports()
