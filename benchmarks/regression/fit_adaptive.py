"""How the rule of adaptive moments does beside others, on tables it was chosen on.

Fits all tables of `adaptive_tables` at many budgets and prints the mean R2 on other
rows by kind, number of columns and noise; then, if asked, with constants of the rule
changed one at a time. No table of the comparison in `data` is read.

    python -m benchmarks.regression.fit_adaptive --repeats 2
    python -m benchmarks.regression.fit_adaptive --kinds wide
    python -m benchmarks.regression.fit_adaptive --constants --kinds real correlated
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from contextlib import ExitStack
from functools import lru_cache
from unittest import mock

import numpy as np
from benchmarks.regression.adaptive_tables import REAL, real, synthetic

from tacit._random import as_generator
from tacit.linear_model import Lasso, LinearRegression
from tacit.privacy import Budget, GaussianNoise, calibrate
from tacit.solvers import AdaptiveMoments, _adaptive_plan, _adaptive_rounds
from tacit.solvers import adaptive_moments as solver

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
ROWS, COLUMNS = (300, 1000, 3000, 10_000, 40_000), (1, 3, 8, 12, 30, 100)
WIDE = ((600, 700), (1500, 1200))
KINDS = ("real", "sensible", "hard", "correlated", "wide")
METHODS = ("mean", "ada_ssp", "noisy_gd", "preconditioned_gd", "cd", "auto")
# Upper ends of the noise on a mean of numbers up to one, and of the columns
LEVELS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
WIDTHS = (4, 15, 100, 2000)
LEAST_SCORE = -2.0
FACTORS = (0.5, 2.0)
CONSTANTS = {
    **dict.fromkeys(("QUIET", "CENTER_FRACTION", "LOST_CENTER"), solver),
    **dict.fromkeys(("SMALL_SPREAD_FRACTION", "STEPS"), _adaptive_plan),
    **dict.fromkeys(
        ("STEP_CUT", "FURTHER", "SOONER", "BEYOND", "LEAST_SPREAD"), _adaptive_rounds
    ),
}


def cases(kinds, most_rows):
    """Yield tables, each with a seed."""
    for kind in kinds:
        if kind == "wide":
            for seed, (n, p) in enumerate(WIDE):
                yield synthetic("sparse", n, p, seed), seed
            continue
        for position, which in enumerate(REAL if kind == "real" else COLUMNS):
            for n in (rows for rows in ROWS if rows <= most_rows):
                seed = 100_000 * position + n
                if kind == "real":
                    yield real(which, n, seed), seed
                else:
                    yield synthetic(kind, n, which, seed), seed


@lru_cache
def noise_level(n, epsilon, neighbors):
    """Return the noise on the mean of numbers up to one."""
    budget = Budget(epsilon, 1 / n**2, neighbors)
    return budget.neighbors.rows_changed * calibrate(GaussianNoise, budget) / n


def score(table, epsilon, method, seed, neighbors):
    n, p = table.X.shape
    common = {
        "delta": 1 / n**2,
        "y_range": (-1, 1),
        "random_state": seed,
        "neighbors": neighbors,
    }
    if method == "mean":
        noise = noise_level(n, epsilon, neighbors)
        found = table.y.mean() + noise * as_generator(seed).standard_normal()
        predicted = np.full(len(table.y_test), found * 0.1 / (0.1 + noise**2))
    elif method in ("cd", "gcd"):
        model = Lasso(epsilon, alpha=2e-3, feature_bounds=1.0, solver=method, **common)
        predicted = model.fit(table.X, table.y).predict(table.X_test)
    else:
        model = LinearRegression(epsilon, x_norm=np.sqrt(p), solver=method, **common)
        predicted = model.fit(table.X, table.y).predict(table.X_test)
    error = np.mean((table.y_test - np.clip(predicted, -1, 1)) ** 2)
    return max(1 - error / np.var(table.y_test), LEAST_SCORE)


def compare(given, methods):
    """Print mean scores by kind, columns and noise, and over all of these."""
    cells = defaultdict(list)
    for table, seed in cases(given.kinds, given.rows):
        n, p = table.X.shape
        for i, epsilon in enumerate(EPSILONS):
            level = noise_level(n, epsilon, given.neighbors)
            if level > LEVELS[-1]:
                continue
            scores = [
                np.mean(
                    [
                        score(table, epsilon, how, seed + 10 * r + i, given.neighbors)
                        for r in range(given.repeats)
                    ]
                )
                for how in methods.values()
            ]
            wide, noisy = np.searchsorted(WIDTHS, p), np.searchsorted(LEVELS, level)
            cells[table.kind, int(wide), int(noisy)].append(scores)
    print(f"{'kind':9}{'p':>6}{'noise':>7}{'fits':>6}", *(f"{m:>9.9}" for m in methods))
    for (kind, wide, noisy), scores in sorted(cells.items()):
        print(
            f"{kind:9}{WIDTHS[wide]:6}{LEVELS[noisy]:7}{len(scores):6}",
            *(f"{value:9.3f}" for value in np.mean(scores, axis=0)),
            flush=True,
        )
    total = np.mean([np.mean(scores, axis=0) for scores in cells.values()], axis=0)
    print(f"{'all':28}", *(f"{value:9.3f}" for value in total), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=KINDS[:4], choices=KINDS)
    parser.add_argument("--rows", type=int, default=10_000, help="of the largest")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--neighbors", default="replace_one")
    parser.add_argument("--constants", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.constants:
        methods = (*METHODS, "gcd") if "wide" in given.kinds else METHODS
        compare(given, {name: name for name in methods})
        return
    for name, where in CONSTANTS.items():
        for factor in FACTORS:
            value = type(getattr(where, name))(factor * getattr(where, name))
            print(f"{name} = {value:g}")
            with ExitStack() as changed:
                changed.enter_context(mock.patch.object(where, name, value))
                compare(given, {"auto": AdaptiveMoments(noise="float")})


if __name__ == "__main__":
    main()
