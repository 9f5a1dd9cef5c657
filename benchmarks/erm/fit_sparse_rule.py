"""How sparse rows are bounded by default, on synthetic texts of many shapes.

Prints, for texts with a few informative words and for texts with a little information
in all, by how clear the choice of a column is, what part of the way from the more
frequent label to the model without privacy is reached: with rows bounded in L2 norm,
and with entries bounded by a part of it and weights in L1 balls of several radii. Then
the rule, and what the tenth of problems for which it is worst lose by it. The constants
of `tacit.solvers._auto.auto_norm` are read off this table.

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
from tacit.solvers._auto import CLEAR_PER_RADIUS, clear_choices

ENTRIES, RADII = (1.0, 0.5, 0.25, 0.125), (2.5, 5.0, 10.0, 20.0, 40.0)
EPSILONS = (0.3, 1.0, 3.0)
LEVELS = (0, 100, 200, 300, 400, 500, 600, 800, 1600, 3200, np.inf)


def _between(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def drawn(rng, spread):
    """Return texts of random shape and signal."""
    n_rows = int(_between(rng, 1000, 12_000))
    return texts(
        int(rng.integers(1e6)),
        n_rows,
        max(2500, int(n_rows * _between(rng, 1, 20))),
        length=_between(rng, 20, 200),
        informative=int(rng.choice([0, 10, 30] if spread else [10, 30, 100, 300])),
        spread=spread,
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
        spread = float(rng.choice([0, 0, 0, 0, 0.15, 0.3, 0.6, 1.0]))
        given = drawn(rng, spread)
        model = PlainLogisticRegression(C=10, max_iter=200).fit(given.X, given.y)
        plain = model.score(given.X_test, given.y_test)
        if not given.majority + 0.1 <= plain <= 0.995:
            continue  # nothing to learn, or hard to miss
        n_rows, n_words = given.X.shape
        for epsilon in EPSILONS:
            budget = Budget(epsilon, 1 / n_rows**2)
            clear = clear_choices(n_rows, n_words, budget)
            lines.append((spread > 0, clear, gains(given, epsilon, plain)))
    for in_all in (False, True):
        print("a little in all words" if in_all else "a few informative words")
        for low, high in pairwise(LEVELS):
            inside = [
                (c, g) for kind, c, g in lines if kind == in_all and low < c <= high
            ]
            if inside:
                print(f"{low:g} to {high:g}, {len(inside)} problems: {summary(inside)}")


def summary(inside):
    """Return the mean of each setting, of the rule, and its loss in bad cases."""
    means = defaultdict(float)
    for _, found in inside:
        for name, gain in found.items():
            means[name] += gain / len(inside)
    ruled = np.array([found[f"0.125/{nearest(clear):g}"] for clear, found in inside])
    lost = np.quantile([found["l2"] for _, found in inside] - ruled, 0.9)
    shown = "  ".join(f"{name} {gain:.3f}" for name, gain in means.items())
    return f"{shown}  rule {ruled.mean():.3f}, loses {lost:.3f}"


def nearest(clear):
    """Return the radius of the rule, as one that was measured."""
    radius = clear / CLEAR_PER_RADIUS
    return 2.5 if radius < 3.5 else 5.0 if radius < 7 else 10.0


if __name__ == "__main__":
    main()
