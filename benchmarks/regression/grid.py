"""R2 and CPU time of the default for least squares beside the library's other solvers.

All tables are synthetic, 1,000 to 500,000 rows of 5 to 1,000 columns, so that the rule
of ``solver="auto"`` and the constants of adaptive moments may be chosen here.
``python -m benchmarks.regression.grid`` appends one line a fit and resumes where it was
stopped; ``--quick`` takes the small tables once; ``--report`` prints the cells of what
was measured, the worst first.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.linear_model import Ridge

from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.linear_model import LinearRegression

RESULTS = Path(__file__).resolve().parents[1] / "outputs" / "regression"
FIELDS = ("kind", "n", "p", "epsilon", "method", "run", "r2", "seconds")
EPSILONS = (0.1, 1.0, 10.0)
TEST_ROWS = 4000
# Number of columns that `bins` encodes
BINNED = 8
KINDS = ("bins", "uniform", "skewed", "correlated", "narrow")
SHAPES = (
    (1_000, 5),
    (1_000, 40),
    (1_000, 1_000),
    (5_000, 16),
    (16_000, 264),
    (20_000, 1_000),
    (50_000, 8),
    (50_000, 200),
    (200_000, 24),
    (200_000, 200),
    (500_000, 5),
    (500_000, 64),
)
# Cells of a table up to which it is fitted more often, and by the slower solvers
SMALL, RUNS = 1_000_000, 3
WITHOUT = "ridge_without_privacy"
FAST = ("preconditioned_gd", "ada_ssp", "noisy_gd", "quadratic_perturbation", "cd")
SLOW = ("adaptive_ridge", "tukey")
DEFAULT = "auto"
# What the default may fall behind the best solver, and its CPU time that of Ridge
MOST_BEHIND, MOST_RATIO, MANY_ROWS = 0.03, 5.0, 50_000


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and targets in [-1, 1], to fit and to score, and the longest row."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    x_norm: float

    def r2(self, predicted):
        """Return R2 of predictions, clipped to the range of the targets."""
        error = np.mean((self.y_test - np.clip(predicted, -1, 1)) ** 2)
        return max(1 - error / np.var(self.y_test), -2.0)


def columns_of(kind, rows, p, rng):
    """Return columns in [-1, 1] and the signal in them."""
    if kind == "bins":
        raw = rng.gamma(rng.uniform(0.7, 3, BINNED), size=(rows, BINNED))
        part = np.minimum(raw / 10, 1 - 1e-9)
        bins = (part * (p // BINNED)).astype(int)
        X = np.zeros((rows, p))
        for k in range(BINNED):
            X[np.arange(rows), k * (p // BINNED) + bins[:, k]] = 1.0
        waves = np.sin(rng.uniform(2, 12, BINNED) * np.sqrt(part) + rng.uniform(0, 6))
        return X, waves @ rng.standard_normal(BINNED)
    if kind == "uniform":
        X = rng.uniform(-1, 1, (rows, p))
    elif kind == "skewed":
        latent = rng.standard_normal((rows, p)) * rng.uniform(0.5, 1.2, p)
        X = np.exp(latent, out=latent) / rng.uniform(5, 40, p) - 1
    elif kind == "correlated":
        factors = rng.standard_normal((rows, max(2, p // 8)))
        X = factors @ rng.standard_normal((factors.shape[1], p))
        X /= np.sqrt(factors.shape[1])
        X += 0.4 * rng.standard_normal((rows, p))
        X *= rng.uniform(0.15, 0.4, p)
        X += rng.uniform(-0.3, 0.3, p)
    else:
        X = rng.standard_normal((rows, p)) * rng.uniform(0.03, 0.2, p)
        X += rng.uniform(-0.7, 0.7, p)
    X = X.clip(-1, 1, out=X)
    return X, ((X - X.mean(axis=0)) / X.std(axis=0)) @ rng.standard_normal(p)


def table(kind, n, p, seed):
    """Return a synthetic table."""
    rng = as_generator(seed)
    rows = n + TEST_ROWS
    X, signal = columns_of(kind, rows, p, rng)
    noise = rng.standard_normal(rows)
    if kind in ("skewed", "narrow"):
        noise = rng.standard_t(4, rows) / np.sqrt(2)
    part = {"uniform": 0.97, "bins": 0.65}.get(kind, 0.8)
    signal -= signal.mean()
    y = np.sqrt(part) * signal / signal.std() + np.sqrt(1 - part) * noise
    spread, middle = (0.06, 0.4) if kind == "narrow" else (0.25, -0.2)
    y = (middle + spread * y).clip(-1, 1)
    x_norm = np.sqrt(BINNED if kind == "bins" else p)
    return Table(X[:n], y[:n], X[n:], y[n:], float(x_norm))


def fitted(data, epsilon, method, seed):
    """Return a fitted model, and the CPU seconds of the fit."""
    if method == WITHOUT:
        model = Ridge()
    else:
        entries = method == "cd"
        model = LinearRegression(
            epsilon,
            1 / len(data.y) ** 2,
            x_norm=1.0 if entries else data.x_norm,
            bound_norm="linf" if entries else "l2",
            y_range=(-1, 1),
            solver=method,
            random_state=seed,
        )
    start = process_time()
    model.fit(data.X, data.y)
    return model, process_time() - start


def cells(shapes):
    """Yield a kind and a shape of each table."""
    for (n, p), kind in itertools.product(shapes, KINDS):
        if kind == "bins" and (p < 2 * BINNED or p % BINNED):
            continue
        yield kind, n, p


def read(file):
    """Return what was measured so far."""
    if not file.is_file():
        return []
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def measure(given, file):
    """Append a line for each fit that is not in the file."""
    done = {tuple(line[name] for name in FIELDS[:6]) for line in read(file)}
    fresh = not file.is_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", newline="") as opened:
        lines = csv.writer(opened)
        if fresh:
            lines.writerow(FIELDS)
        shapes = [(n, p) for n, p in SHAPES if n * p <= given.cells]
        for kind, n, p in cells(shapes):
            small = n * p <= SMALL
            for run in range(given.runs if small else 1):
                left = [
                    (epsilon, method)
                    for method in given.methods
                    if small or method not in SLOW
                    for epsilon in ((0.0,) if method == WITHOUT else given.epsilons)
                    if tuple(map(str, (kind, n, p, epsilon, method, run))) not in done
                ]
                data = table(kind, n, p, 1000 * run + n + p) if left else None
                for epsilon, method in left:
                    try:
                        model, seconds = fitted(data, epsilon, method, run)
                    except (PlanError, ValueError):
                        continue
                    r2 = data.r2(model.predict(data.X_test))
                    line = (kind, n, p, epsilon, method, run)
                    lines.writerow((*line, f"{r2:.4f}", f"{seconds:.4f}"))
                opened.flush()
            print(kind, n, p, flush=True)


def report(file):
    """Print each cell: the default, the best other solver, and their difference."""
    found, times = defaultdict(list), defaultdict(list)
    for line in read(file):
        cell = line["kind"], int(line["n"]), int(line["p"])
        key = (*cell, float(line["epsilon"]))
        found[key, line["method"]].append(float(line["r2"]))
        times[cell, line["method"]].append(float(line["seconds"]))
    lines = []
    for key in {key for key, method in found if method == DEFAULT}:
        others = {m: r for (k, m), r in found.items() if k == key and m != DEFAULT}
        best = max(others, key=lambda method: np.mean(others[method]))
        own = found[key, DEFAULT]
        std = max(np.std(own), np.std(others[best]))
        behind = np.mean(others[best]) - np.mean(own)
        free = np.mean(found[(*key[:3], 0.0), WITHOUT])
        lines.append(
            (behind, std, key, np.mean(own), np.mean(others[best]), best, free)
        )
    lines.sort(key=lambda line: -line[0])
    print(f"{'table':30}{'eps':>5}{'auto':>8}{'best':>8}{'behind':>8}{'std':>7}  best")
    for behind, std, (kind, n, p, epsilon), own, other, best, free in lines:
        mark = "!" if behind > max(MOST_BEHIND, std) else " "
        name = f"{kind} {n:,} x {p:,}"
        print(
            f"{name:30}{epsilon:5g}{own:8.3f}{other:8.3f}{behind:8.3f}{std:7.3f}{mark} "
            f"{best} ({free:.2f} without privacy)"
        )
    bad = sum(line[0] > max(MOST_BEHIND, line[1]) for line in lines)
    print(f"{bad} of {len(lines)} cells behind by more than {MOST_BEHIND} and 1 std")
    for cell in sorted({cell for cell, method in times if cell[1] >= MANY_ROWS}):
        own, free = (np.median(times[cell, m]) for m in (DEFAULT, WITHOUT))
        kind, n, p = cell
        print(f"{kind} {n:,} x {p:,}: {own:.3f} s, {own / free:.1f} times Ridge")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--cells", type=int, default=4 * 10**7, help="of the largest")
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument(
        "--methods", nargs="*", default=(WITHOUT, DEFAULT, *FAST, *SLOW)
    )
    parser.add_argument("--file", type=Path, default=RESULTS / "grid.csv")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.quick:
        given.runs, given.cells = 1, SMALL
    if not given.report:
        measure(given, given.file)
    report(given.file)


if __name__ == "__main__":
    main()
