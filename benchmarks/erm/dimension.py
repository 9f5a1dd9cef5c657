"""Accuracy against the number of empty columns, after Jain and Thakurta (2014).

Eight informative columns, 42,000 training rows, epsilon 5 and delta 1e-3; 92 to almost
a million columns of zeros are appended. A law whose noise on one prediction does not
grow with the number of features keeps its accuracy: Gaussian noise does, noise whose
norm has a gamma law does not.
"""

from __future__ import annotations

import argparse
import csv
import sys
from statistics import mean, stdev
from time import process_time

import numpy as np
from benchmarks.erm.data import OUTPUTS, synthetic
from benchmarks.erm.report import table
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import HuberizedHinge
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.solvers.amp import AMP
from tacit.solvers.output_perturbation import OutputPerturbation

FILE = OUTPUTS / "dimension.csv"
N_ROWS, TRAIN_SHARE, INFORMATIVE = 60_000, 0.7, 8
BUDGET = Budget(5.0, 1e-3)
WIDTHS = (8, 10**2, 10**3, 10**4, 10**5, 10**6)
# the published ridge is 0.001 in units of the average loss
RIDGE = 0.001 * TRAIN_SHARE * N_ROWS
# a public guess of the norm of the best weights, for rows of norm one
WEIGHT_NORM = 10.0
SOLVERS = {
    "output, Gaussian": OutputPerturbation(ridge=RIDGE, law="gaussian"),
    "output, gamma": OutputPerturbation(ridge=RIDGE, law="gamma"),
    "objective, Gaussian": AMP(ridge=RIDGE, law="gaussian"),
    "objective, gamma": AMP(ridge=RIDGE, law="gamma"),
    "output, Gaussian, from a weight norm": OutputPerturbation(weight_norm=WEIGHT_NORM),
    "objective, Gaussian, from a weight norm": AMP(weight_norm=WEIGHT_NORM),
}


def padded(X, n_features):
    """Return rows with columns of zeros up to this many."""
    X = sparse.csr_array(X)
    return sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], n_features))


def fit(solver, X, y, X_test, y_test, seed):
    """Return the test accuracy and the CPU seconds of one fit."""
    bounds = RowBounds(1.0)
    problem = Problem(HuberizedHinge(0.5), bounds, X.shape[0], X.shape[1])
    start = process_time()
    plan = solver.plan(problem, BUDGET)
    W = solver.run(
        plan, bounded_rows(X, 2.0 * y - 1.0, bounds), as_generator(seed)
    ).coefficients
    took = process_time() - start
    found = (bounds.clip(X_test) @ W)[:, 0] >= 0
    return float(np.mean(found == y_test)), took


def measure(widths, n_runs):
    """Append the fits that the file does not hold."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    done = {(line[0], int(line[1]), int(line[2])) for line in read()}
    X, y = synthetic(N_ROWS, INFORMATIVE, 6, 5)
    cut = int(TRAIN_SHARE * N_ROWS)
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file)
        for run in range(n_runs):
            order = as_generator(run).permutation(N_ROWS)
            for width in widths:
                wide = padded(X[order], width)
                for name, solver in SOLVERS.items():
                    if (name, width, run) in done:
                        continue
                    accuracy, took = fit(
                        solver,
                        wide[:cut],
                        y[order[:cut]],
                        wide[cut:],
                        y[order[cut:]],
                        run,
                    )
                    line = [name, width, run, f"{accuracy:.6f}", f"{took:.3f}"]
                    writer.writerow(line)
                    file.flush()


def read():
    if not FILE.is_file():
        return []
    with FILE.open(newline="") as file:
        return [line for line in csv.reader(file) if len(line) == 5]


def summary():
    """Return mean and spread by method and number of columns."""
    found = {}
    for name, width, _, accuracy, _ in read():
        found.setdefault((name, int(width)), []).append(100 * float(accuracy))
    return {
        key: (mean(v), stdev(v) if len(v) > 1 else 0.0, len(v))
        for key, v in found.items()
    }


def markdown() -> str:
    figures = summary()
    widths = sorted({width for _, width in figures})
    rows = [
        [name]
        + [
            "{:.1f} ± {:.1f} ({})".format(*figures[name, w])
            if (name, w) in figures
            else ""
            for w in widths
        ]
        for name in SOLVERS
    ]
    return table(["accuracy, % (runs)", *(f"p = {w:,}" for w in widths)], rows)


def plot() -> str:
    import matplotlib  # noqa: PLC0415 - only for plots

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figures = summary()
    figure, axis = pyplot.subplots(figsize=(7, 4.2))
    for name in SOLVERS:
        points = sorted((w, *v[:2]) for (n, w), v in figures.items() if n == name)
        if points:
            widths, means, spreads = zip(*points, strict=True)
            style = "--" if "gamma" in name else "-"
            axis.errorbar(widths, means, spreads, ls=style, capsize=2, label=name)
    axis.set(xscale="log", xlabel="columns", ylabel="test accuracy, %")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
    file = OUTPUTS / "dimension.png"
    figure.savefig(file, dpi=130, bbox_inches="tight")
    return str(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="2 runs, to 10,000 columns"
    )
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    if given.quick:
        measure(WIDTHS[:4], 2)
    else:
        measure(WIDTHS, given.runs)
    print(markdown())
    print(f"plot: {plot()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
