"""From which noise on nothing is learned, on dense synthetic tables of many shapes.

Prints, by the noise of one release in units of the gradient of rows that agree, how
much of what can be learned the default models learn. Where rows are bounded entry by
entry, it is by how clear the choice of a column is. The limits of
`tacit.solvers._drowned` are read off this table.

    python -m benchmarks.erm.fit_noise_warning [--seconds 600] [--seed 1]
"""

from __future__ import annotations

import argparse
import warnings
from itertools import pairwise
from time import monotonic

import numpy as np

from tacit import Seed
from tacit._random import as_generator
from tacit.exceptions import NoiseWarning, PlanError
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.solvers._auto import clear_choices
from tacit.solvers._drowned import relative_noise

TEST_ROWS, REPEATS, WORTH = 2000, 3, 0.04
NOISE = (0, 0.3, 0.5, 0.7, 1, 1.5, 2, 4, 10, np.inf)
CLEAR = (0, 2, 5, 10, 20, 40, 80, 160, np.inf)


def _between(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def table(rng):
    """Return rows with their bound, and scores that follow from some columns."""
    n, p = int(_between(rng, 50, 5000)), int(_between(rng, 3, 3000))
    spread = np.arange(1, p + 1) ** -rng.uniform(0, 1.5)
    X = rng.standard_normal((n + TEST_ROWS, p)) * spread
    if rng.random() < 0.5:  # off center
        X += rng.uniform() * np.abs(rng.standard_normal(p)) * spread
    kind = rng.choice(["unit", "box", "flags"])
    if kind == "unit":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    elif kind == "box":
        X = np.clip(3 * X / np.abs(X).max(), -1, 1)
    else:
        X = (spread * rng.normal(0.7, 0.5, p) < X).astype(float)
    w = rng.standard_normal(p)
    if rng.random() < 0.5:  # few columns matter
        w *= rng.random(p) < max(3 / p, 0.1)
    z = (X - X.mean(axis=0)) @ w
    z *= _between(rng, 1, 6) / max(z.std(), 1e-12)
    return n, X, 1.0 if kind == "unit" else np.sqrt(p), z


def learned(rng):
    """Return for two models the norm, noise or clearness, and what was learned."""
    n, X, x_norm, z = table(rng)
    epsilon = _between(rng, 0.02, 5)
    P = 1 / (1 + np.exp(rng.uniform(-1, 1) - z))
    labels = (rng.random(len(P)) < P).astype(int)
    share = P[n:].mean()
    noisy = z + rng.standard_normal(len(z))
    shared = {"x_norm": x_norm, "noise": "float"}
    cases = (
        (
            LogisticRegression(epsilon, classes=[0, 1], **shared),
            labels,
            max(share, 1 - share),
            np.maximum(P[n:], 1 - P[n:]).mean(),
        ),
        (
            LinearRegression(epsilon, y_range=(-1, 1), **shared),
            np.clip(noisy / (3 * noisy.std()), -1, 1),
            0.0,
            z[n:].var() / (z[n:].var() + 1),
        ),
    )
    for model, y, constant, best in cases:
        try:
            planned = model.plan(n, X.shape[1])
        except PlanError:
            continue
        if best - constant < WORTH:
            continue
        scores = [
            model.set_params(random_state=Seed(k)).fit(X[:n], y[:n]).score(X[n:], y[n:])
            for k in range(REPEATS)
        ]
        problem, budget = planned.problem, planned.budget
        norm = problem.bounds.norm
        size = (
            relative_noise(problem, budget)
            if norm == "l2"
            else clear_choices(n, problem.size, budget)
        )
        gains = np.clip((np.array(scores) - constant) / (best - constant), -1, 1)
        yield type(model).__name__, norm, size, float(gains.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", NoiseWarning)
    rng, started, found = as_generator(options.seed), monotonic(), []
    while monotonic() - started < options.seconds:
        found += learned(rng)
    for name, norm in sorted({line[:2] for line in found}):
        for low, high in pairwise(NOISE if norm == "l2" else CLEAR):
            gains = [
                gain
                for other, kind, size, gain in found
                if (other, kind) == (name, norm) and low < size <= high
            ]
            if gains:
                print(
                    f"{name} {norm} {low:g} to {high:g}: {len(gains)} fits, mean "
                    f"{np.mean(gains):.2f}, {np.mean(np.array(gains) > 0.2):.0%} learn"
                )


if __name__ == "__main__":
    main()
