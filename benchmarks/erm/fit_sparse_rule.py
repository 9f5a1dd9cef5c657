"""How sparse rows are bounded by default, on synthetic texts of many shapes.

Prints, by how clear the choice of a column is, what part of the way from the more
frequent label to the model without privacy is reached: with rows bounded in L2 norm,
and with entries bounded by a part of it and weights in L1 balls of several radii. The
constants of `tacit.solvers._auto.auto_norm` are read off this table.

    python -m benchmarks.erm.fit_sparse_rule [--seconds 1200] [--seed 5]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import pairwise
from time import monotonic

import numpy as np
from benchmarks.erm.sparse_text import texts
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from tacit import Seed
from tacit._random import as_generator
from tacit.convex import L1Ball
from tacit.linear_model import LogisticRegression
from tacit.privacy import Budget
from tacit.solvers._auto import clear_choices

ENTRIES, RADII = (1.0, 0.5, 0.25, 0.125), (2.5, 5.0, 10.0, 20.0, 40.0)
EPSILONS = (0.3, 1.0, 3.0)
LEVELS = (0, 50, 100, 200, 400, 800, 1600, 3200, np.inf)


def _between(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def drawn(rng):
    """Return texts of random shape and signal."""
    return texts(
        int(rng.integers(1e6)),
        int(_between(rng, 1000, 16_000)),
        int(_between(rng, 4000, 80_000)),
        length=_between(rng, 20, 200),
        informative=int(rng.choice([10, 30, 100, 300])),
        top=int(rng.choice([300, 1000, 3000])),
        ratio=float(rng.choice([4, 8, 16])),
        positives=float(rng.uniform(0.2, 0.5)),
        damped=bool(rng.integers(2)),
    )


def gains(given, epsilon, plain):
    """Return the part of the way that each setting reaches."""
    settings = {"l2": {"x_norm": 1.0, "bound_norm": "l2"}}
    for entry in ENTRIES:
        for radius in RADII:
            settings[f"{entry:g}/{radius:g}"] = {
                "x_norm": entry,
                "bound_norm": "linf",
                "penalty": L1Ball(radius / entry),
            }
    found = {}
    for name, setting in settings.items():
        model = LogisticRegression(
            epsilon, classes=[0, 1], noise="float", random_state=Seed(1), **setting
        )
        score = model.fit(given.X, given.y).score(given.X_test, given.y_test)
        found[name] = (score - given.majority) / (plain - given.majority)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    rng, started = as_generator(options.seed), monotonic()
    lines = []
    while monotonic() - started < options.seconds:
        given = drawn(rng)
        model = PlainLogisticRegression(C=10, max_iter=200).fit(given.X, given.y)
        plain = model.score(given.X_test, given.y_test)
        if not given.majority + 0.1 <= plain <= 0.995:
            continue  # nothing to learn, or hard to miss
        n_rows, n_words = given.X.shape
        for epsilon in EPSILONS:
            budget = Budget(epsilon, 1 / n_rows**2)
            clear = clear_choices(n_rows, n_words, budget)
            lines.append((clear, gains(given, epsilon, plain)))
    for low, high in pairwise(LEVELS):
        inside = [found for clear, found in lines if low < clear <= high]
        means = defaultdict(float)
        for found in inside:
            for name, gain in found.items():
                means[name] += gain / len(inside)
        shown = "  ".join(f"{name} {gain:.3f}" for name, gain in means.items())
        print(f"{low:g} to {high:g}, {len(inside)} problems: {shown}")


if __name__ == "__main__":
    main()
