"""Where random and where greedy coordinate descent is the better default.

Prints, for synthetic problems of many shapes and budgets, the R2 or accuracy on fresh
rows of ``Lasso`` and ``SparseLogisticRegression`` with both solvers, beside the public
number that `tacit.solvers.auto_solver` decides by, and how often each limit on it would
have chosen the better one.

    python -m benchmarks.cd.fit_auto [--seeds 3] [--quick]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from tacit._random import as_generator
from tacit.linear_model import Lasso, SparseLogisticRegression
from tacit.solvers._coordinates.rules import noise_fraction

N_TEST = 4000
ROWS = (300, 2000, 10_000)
FEATURES = (5, 30, 200, 1000)
EPSILONS = (0.3, 1.0, 4.0)
ACTIVE = (3, 15)
MOST_ENTRIES = 4 * 10**6


def problem(kind, n, p, active, rng):
    """Return correlated features in [-1, 1], and targets that few of them tell."""
    common = rng.standard_normal((n + N_TEST, 1))
    X = np.clip((0.5 * common + rng.standard_normal((n + N_TEST, p))) / 3, -1, 1)
    w = np.zeros(p)
    chosen = rng.permutation(p)[:active]
    w[chosen] = rng.choice([-1, 1], len(chosen)) * rng.uniform(0.5, 1.5, len(chosen))
    z = X @ w
    z /= z.std()
    if kind == "lasso":
        return X, np.clip((z + 0.5 * rng.standard_normal(len(z))) / 3, -1, 1)
    return X, (3 * z + rng.logistic(size=len(z)) > 0).astype(int)


def made(kind, solver, epsilon, alpha, seed):
    """Return the model to fit."""
    common = {
        "feature_bounds": 1.0,
        "solver": solver,
        "random_state": seed,
        "alpha": alpha,
    }
    if kind == "lasso":
        return Lasso(epsilon, y_range=(-1, 1), **common)
    return SparseLogisticRegression(epsilon, classes=[0, 1], **common)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows, features = (ROWS[:2], FEATURES[:3]) if given.quick else (ROWS, FEATURES)
    print("kind      rows  features  epsilon  active     noise     cd    gcd")
    found = []
    for kind, n, p, epsilon, active in product(
        ("lasso", "logistic"), rows, features, EPSILONS, ACTIVE
    ):
        if n * p > MOST_ENTRIES or active > p:
            continue
        scores = {"cd": [], "gcd": []}
        for seed, alpha in product(range(given.seeds), (0.001, 0.01)):
            X, y = problem(kind, n, p, active, as_generator(1000 * seed + active))
            for solver, kept in scores.items():
                model = made(kind, solver, epsilon, alpha, seed).fit(X[:n], y[:n])
                kept.append(max(-1.0, model.score(X[n:], y[n:])))
        cd, gcd = (float(np.mean(kept)) for kept in scores.values())
        planned = model.plan(n, p)
        level = noise_fraction(planned.problem, planned.budget)
        found.append((kind, level, level / planned.problem.n_features, cd, gcd))
        print(
            f"{kind:9}{n:5}{p:10}{epsilon:9}{active:8}{level:10.3g}{cd:7.3f}{gcd:7.3f}",
            flush=True,
        )
    for kind in ("lasso", "logistic"):
        level, one, *both = np.array([row[1:] for row in found if row[0] == kind]).T
        best = np.maximum(*both).mean()
        singles = (*np.unique(one.round(4)), np.inf)
        print(
            f"\n{kind}: mean score (best of both {best:.4f}), by rows the least noise"
        )
        print("for gcd, by columns the most noise of one weight")
        print(" " * 8 + "".join(f"{most:8.3g}" for most in singles))
        for limit in (0.0, *np.quantile(level, np.linspace(0, 0.8, 13))):
            means = [
                np.where((level > limit) & (one < most), both[1], both[0]).mean()
                for most in singles
            ]
            print(f"{limit:8.3g}" + "".join(f"{mean:8.4f}" for mean in means))


if __name__ == "__main__":
    main()
