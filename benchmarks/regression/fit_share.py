"""How much of the budget the selection of columns should get.

Prints, for synthetic tables of many shapes and budgets, the R2 on fresh rows of
``SparseLinearRegression`` by the share of epsilon that its selection gets, and how much
is lost on average by each share and by rules of the number of columns.

    python -m benchmarks.regression.fit_share [--seeds 2] [--quick]
"""

from __future__ import annotations

import argparse
from itertools import product
from math import log

import numpy as np

from tacit import Seed
from tacit._random import as_generator
from tacit.linear_model import SparseLinearRegression

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75)
# least share, slope in the log of columns over those selected, and largest share
RULES = (
    (0.5, 0.0, 0.65),
    (0.4, 0.03, 0.65),
    (0.45, 0.02, 0.65),
    (0.4, 0.04, 0.65),
    (0.45, 0.03, 0.65),
)
ROWS, COLUMNS, CHOSEN = (1000, 5000, 30_000), (20, 200, 1000), (2, 5, 10)
EPSILONS = (0.3, 1.0, 3.0)
MOST_ENTRIES = 6 * 10**6
N_TEST = 2000
# fits that are worse than this are all as useless
FLOOR = -0.2


def table(kind, n, p, chosen, rng):
    """Return features with their ranges, and targets with theirs and an R2 of 0.5."""
    if kind == "uniform":
        X, ranges = rng.uniform(-1, 1, (n, p)), 1.0
    else:
        X = (rng.random((n, p)) < rng.uniform(0.05, 0.5, p)).astype(float)
        ranges = [(0, 1)] * p
    weights = np.zeros(p)
    positions = rng.permutation(p)[:chosen]
    weights[positions] = rng.choice([-1, 1], chosen) * rng.uniform(0.4, 1, chosen)
    signal = X @ weights
    middle, half = signal.mean(), 4 * np.sqrt(2) * signal.std()
    y = signal + rng.normal(0, signal.std(), n)
    return X, y, ranges, (middle - half, middle + half)


def scores_of(kind, n, p, chosen, epsilon, seed):
    """Return R2 on fresh rows by the share, none below the floor."""
    rng = as_generator(seed * 7919 + n + p + chosen)
    X, y, ranges, y_range = table(kind, n + N_TEST, p, chosen, rng)
    found = []
    for share in SHARES:
        model = SparseLinearRegression(
            epsilon,
            1e-6,
            n_features_to_select=chosen,
            selection_share=share,
            feature_bounds=ranges,
            y_range=y_range,
            random_state=Seed(seed),
        ).fit(X[:n], y[:n])
        found.append(max(FLOOR, model.score(X[n:], y[n:])))
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    grid = list(product(("uniform", "codes"), ROWS, COLUMNS, CHOSEN, EPSILONS))
    grid = [at for at in grid if at[1] * at[2] <= MOST_ENTRIES]
    if arguments.quick:
        grid = grid[::20]
    lost, ratios, columns = [], [], []
    for at in grid:
        for seed in range(arguments.seeds):
            scores = scores_of(*at, seed)
            lost.append(scores.max() - scores)
            ratios.append(at[2] / at[3])
            columns.append(at[2])
        print(*at, np.round(scores.max() - lost[-1], 2), flush=True)
    lost, columns = np.array(lost), np.array(columns)
    print("share     ", SHARES)
    print("loss      ", np.round(lost.mean(axis=0), 3))
    for p in sorted(set(columns.tolist())):
        print(f"{p:5} cols", np.round(lost[columns == p].mean(axis=0), 3))
    for least, derivative, most in RULES:
        by_rule = [
            np.interp(min(most, least + derivative * log(ratio)), SHARES, row)
            for ratio, row in zip(ratios, lost, strict=True)
        ]
        print(f"rule {least} + {derivative} log(p / s), at most {most}:", end=" ")
        print(f"{np.mean(by_rule):.4f}")


if __name__ == "__main__":
    main()
