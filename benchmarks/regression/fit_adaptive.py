"""The made-up regressions behind the rule of adaptive moments.

Draws tables with columns and targets that fill more or less of their ranges, scales
one constant of the rule at a time, and prints the mean R2 on fresh rows beside that of
other solvers; then how often to release moments by their noise. No real row is read.

    python -m benchmarks.regression.fit_adaptive --problems 30
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from unittest import mock

import numpy as np

from tacit._random import as_generator
from tacit.linear_model import LinearRegression
from tacit.solvers import AdaptiveMoments, _adaptive_plan, _adaptive_rounds
from tacit.solvers import adaptive_moments as solver

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
FACTORS = (0.5, 1.0, 2.0)
RIVALS = ("ada_ssp", "noisy_gd", "preconditioned_gd")
TIMES = ("never", "once", "twice")
CROWDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
TEST_ROWS = 4000
CONSTANTS = [
    *((solver, name) for name in ("CENTER_SHARE", "MORE_CENTER")),
    *((_adaptive_plan, name) for name in ("SPREAD_SHARE", "FIRST_SHARE", "GROWTH")),
    *((_adaptive_rounds, name) for name in ("BEYOND", "FIRST_CUT", "LAST_CUT")),
]


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def column(rng, latent):
    """Return a column in [-1, 1] that follows a normal one."""
    kind = rng.choice(["normal", "skew", "indicator", "even"], p=[0.45, 0.25, 0.2, 0.1])
    if kind == "normal":
        spread = log_uniform(rng, 0.02, 0.4)
        return spread * latent + rng.uniform(-1, 1) * (1 - 2 * spread)
    if kind == "skew":
        return -1 + 2 * np.exp(rng.uniform(0.3, 1.2) * latent) / log_uniform(
            rng, 3, 100
        )
    if kind == "indicator":
        return np.where(latent > rng.uniform(-1.5, 2), 1.0, -1.0)
    return 2 * np.arctan(latent) / np.pi


def drawn(seed, most_rows=9000, most_columns=60):
    """Return rows and targets to fit, and to score."""
    rng = as_generator(seed)
    n = int(log_uniform(rng, 200, most_rows))
    p = int(log_uniform(rng, 1, most_columns))
    k, common = int(rng.integers(1, 5)), rng.uniform(0, 0.98)
    factors = rng.standard_normal((n + TEST_ROWS, k))
    if rng.random() < 0.25:
        factors = rng.standard_t(4, size=factors.shape)
    loadings = rng.standard_normal((k, p))
    loadings /= np.linalg.norm(loadings, axis=0)
    latent = np.sqrt(1 - common) * rng.standard_normal((n + TEST_ROWS, p))
    latent += np.sqrt(common) * factors @ loadings
    X = np.column_stack([column(rng, latent[:, j]) for j in range(p)]).clip(-1, 1)
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    w = rng.standard_normal(p)
    if rng.random() < 0.4:
        w *= rng.random(p) < max(1 / p, rng.uniform(0.05, 0.5))
    w[0] += not w.any()
    signal = standard @ w
    signal /= max(signal.std(), 1e-9)
    heavy = rng.random() < 0.3
    noise = rng.standard_t(3, size=len(X)) if heavy else rng.standard_normal(len(X))
    part = rng.uniform(0.1, 0.95)
    y = np.sqrt(part) * signal + np.sqrt(1 - part) * noise / noise.std()
    spread = log_uniform(rng, 0.04, 0.4)
    y = rng.uniform(-0.5, 0.5) * (1 - spread) + spread * y / y.std()
    return X[:n], y[:n].clip(-1, 1), X[n:], y[n:].clip(-1, 1)


def score(table, epsilon, how, seed):
    X, y, X_test, y_test = table
    model = LinearRegression(
        epsilon,
        x_norm=np.sqrt(X.shape[1]),
        y_range=(-1, 1),
        solver=how,
        random_state=seed,
    )
    return model.fit(X, y).score(X_test, y_test)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=30)
    given = parser.parse_args()
    tables = [drawn(seed) for seed in range(given.problems)]

    def line(name, how):
        means = [
            np.mean([score(table, e, how, i) for i, table in enumerate(tables)])
            for e in EPSILONS
        ]
        print(f"{name:28}", *(f"{value:7.3f}" for value in means), flush=True)

    print(f"{'epsilon':28}", *(f"{e:7g}" for e in EPSILONS))
    for rival in RIVALS:
        line(rival, rival)
    ours = AdaptiveMoments(noise="float")
    for where, name in CONSTANTS:
        for factor in FACTORS:
            value = factor * getattr(where, name)
            with mock.patch.object(where, name, value):
                line(f"{name} = {value:g}", ours)
    found = defaultdict(list)
    for i, table in enumerate(tables):
        for epsilon in EPSILONS:
            n, p = table[0].shape
            model = LinearRegression(epsilon, y_range=(-1, 1), solver=ours)
            plan = model.plan(n, p).plan
            noisy = int(
                np.searchsorted(CROWDS, _adaptive_plan.crowd(plan.problem, plan.level))
            )
            tried = [AdaptiveMoments(times, noise="float") for times in TIMES]
            found[noisy].append([score(table, epsilon, how, i) for how in tried])
    print("\nnoise up to", *TIMES)
    for noisy, scores in sorted(found.items()):
        limit = (*CROWDS, np.inf)[noisy]
        print(f"{limit:<11g}", *(f"{v:7.3f}" for v in np.mean(scores, axis=0)))


if __name__ == "__main__":
    main()
