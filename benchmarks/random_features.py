"""Public random features on synthetic tables with interactions of columns.

Two of the columns matter, or three; the others have no effect. The figure is the
accuracy in percent that is expected on fresh rows, from their true probabilities.
No real row is read.

    python -m benchmarks.random_features            # the tables of docs/figures
    python -m benchmarks.random_features --sweep    # what the defaults were chosen by
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.tables import DOCS, markdown, rewrite
from scipy.special import expit
from sklearn.pipeline import make_pipeline

from tacit._random import as_generator
from tacit.linear_model import LogisticRegression
from tacit.preprocessing import (
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)

PAGE = DOCS / "figures" / "random_features.md"
TEST_ROWS = 5000
RANGE = (-1.0, 1.0)
KINDS = ("product", "xor", "circles", "mixed", "linear")
EPSILONS = (0.3, 1.0, 3.0)
DRAWS = 2


@dataclass(frozen=True)
class Drawn:
    """A table, and the probability of the second label for rows of a test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    P_test: np.ndarray

    def accuracy(self, model: Any) -> float:
        """Return the expected accuracy of a fitted model, in percent."""
        chosen = model.predict(self.X_test) == 1
        return 100 * float(np.where(chosen, self.P_test, 1 - self.P_test).mean())

    def best(self) -> float:
        """Return the accuracy of the best classifier there can be."""
        return 100 * float(np.maximum(self.P_test, 1 - self.P_test).mean())


def table(kind: str, n_columns: int, n_rows: int, seed: int) -> Drawn:
    """Draw columns that fill their range -1 to 1, or its middle, and labels."""
    rng = as_generator(1000 * seed + 10 * n_columns + KINDS.index(kind))
    shape = n_rows + TEST_ROWS, n_columns
    filling = rng.uniform(-1, 1, size=shape)
    middle = np.clip(rng.normal(size=shape) / 4, -1, 1)
    X = np.where(rng.random(n_columns) < 0.5, filling, middle)
    a, b, c = (X / X.std(axis=0))[:, [0, 1, -1]].T
    if kind == "product":
        z = 4 * np.clip(3 * a * b, -1, 1)
    elif kind == "xor":
        z = np.where((a > 0.3) ^ (b > -0.3), 2.2, -2.2)
    elif kind == "circles":
        radius = a**2 + b**2
        z = 3 * (np.median(radius) - radius)
    elif kind == "mixed":
        z = 1.5 * a * b + c - 0.7 * a
    else:
        z = 1.5 * a - b
    P = expit(z)
    y = (rng.random(len(P)) < P).astype(int)
    return Drawn(X[:n_rows], y[:n_rows], X[n_rows:], P[n_rows:])


def accuracy(drawn: Drawn, step: Any, epsilon: float) -> float:
    """Return the accuracy of a private model behind a public step."""
    step.fit(drawn.X)
    model = LogisticRegression(epsilon, x_norm=step.x_norm_, classes=[0, 1])
    return drawn.accuracy(make_pipeline(step, model).fit(drawn.X, drawn.y))


STEPS: dict[str, Callable[[int], Any]] = {
    "columns alone": lambda seed: PublicScaler(RANGE),
    "RandomFourierFeatures": lambda seed: RandomFourierFeatures(
        RANGE, random_state=seed
    ),
    "RandomPartitionTrees": lambda seed: RandomPartitionTrees(RANGE, random_state=seed),
}


def compared(kind: str, n_columns: int, n_rows: int, epsilon: float) -> dict[str, Any]:
    """Return the accuracies of one kind of table, in a row."""
    draws = [table(kind, n_columns, n_rows, seed) for seed in range(DRAWS)]
    means = {
        name: np.mean([accuracy(d, make(s), epsilon) for s, d in enumerate(draws)])
        for name, make in STEPS.items()
    }
    means["best possible"] = np.mean([d.best() for d in draws])
    row = {"table": kind, "columns": n_columns, "rows": n_rows, "ε": epsilon}
    row |= {name: f"{mean:.1f}" for name, mean in means.items()}
    print(*row.values(), flush=True)
    return row


def report(quick: bool) -> list[str]:
    """Return the lines of the page."""
    sizes = [*itertools.product((5000, 20_000), EPSILONS), (100_000, 1.0)]
    columns, n_rows = (2, 10, 20), 20_000
    if quick:
        sizes, columns, n_rows = [(2000, 1.0)], (3,), 2000
    first = [(kind, 5, *size) for kind, size in itertools.product(KINDS, sizes)]
    second = [(kind, p, n_rows, 1.0) for kind, p in itertools.product(KINDS, columns)]
    # the largest first, so that no process is left alone with one
    cases = sorted(first + second, key=lambda case: -case[2])
    with ProcessPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        rows = dict(
            zip(
                cases,
                pool.map(compared, *zip(*cases, strict=True), chunksize=1),
                strict=True,
            )
        )
    lines: list[str] = []
    for title, part in (("Rows and budget", first), ("Columns", second)):
        lines += [f"## {title}", "", markdown([rows[case] for case in part]), ""]
    return lines


def sweep(n_columns: int, n_draws: int) -> None:
    """Print the mean shortfall from the best classifier, in points, by parameters."""
    fourier = {
        f"fourier {m} scale {c} sqrt(p)": (
            lambda p, seed, m=m, c=c: RandomFourierFeatures(
                RANGE, m, length_scale=c * p**0.5, random_state=seed
            )
        )
        for m, c in itertools.product((16, 64, 256), (0.1, 0.2, 0.4))
    }
    trees = {
        f"trees {t} depth {d}": (
            lambda p, seed, t=t, d=d: RandomPartitionTrees(
                RANGE, t, d, random_state=seed
            )
        )
        for t, d in ((10, 2), (10, 4), (10, 6), (30, 2), (30, 4), (100, 2), (60, 3))
    }
    print("shortfall in points")
    for n_rows, epsilon in ((5000, 0.3), (5000, 3.0), (20_000, 1.0)):
        found: dict[str, list[float]] = {}
        for seed, kind in itertools.product(range(n_draws), KINDS):
            drawn = table(kind, n_columns, n_rows, 50 + seed)
            for name, make in (fourier | trees).items():
                got = accuracy(drawn, make(n_columns, seed), epsilon)
                found.setdefault(name, []).append(drawn.best() - got)
        for name, lost in found.items():
            print(
                n_columns, n_rows, epsilon, f"{name:28} {np.mean(lost):.2f}", flush=True
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller, in seconds")
    parser.add_argument("--docs", action="store_true", help=f"write {Path(PAGE).name}")
    parser.add_argument("--sweep", action="store_true", help="compare parameters")
    parser.add_argument("--columns", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--draws", type=int, default=1, help="tables a case of a sweep")
    options = parser.parse_args()
    if options.sweep:
        for n_columns in options.columns:
            sweep(n_columns, options.draws)
        return
    lines = report(options.quick)
    if options.docs and not options.quick:
        rewrite(PAGE, lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
