"""Coverage of the noise bands of additive models, on synthetic tables.

Each table is fitted 200 times with fresh noise and the same bins. The bands of 95%,
value +- 1.96 std, should contain the mean of all fits in about 95% of them. The
columns of the output are the means over bins with mass and over rows, the worst bin,
and the median over bins of the stated over the true standard deviation.

    python -m benchmarks.additive.coverage [FITS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import Seed
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.additive._bins import Bins, BinsPlan
from tacit.mechanisms import as_generator

Array = NDArray[np.float64]

RANGES = {0: (18, 90), 1: (0, 500), 2: (-5, 5)}
CATEGORIES = {3: list("abcd")}
# Residuals of the regressions by the name of the table
RESIDUALS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal residuals": lambda rng, n: rng.normal(0, 0.7, n),
    "small residuals": lambda rng, n: rng.normal(0, 0.1, n),
    "heavy tails": lambda rng, n: 0.5 * rng.standard_t(2, n),
    "two modes": lambda rng, n: 1.5 * rng.choice([-1, 1], n) + rng.normal(0, 0.2, n),
}
LABELS = ("labels", "labels, correlated")
SIZES = ((5_000, 1.0), (20_000, 1.0), (20_000, 4.0))


def table(name: str, n: int, seed: int = 0) -> tuple[Any, Array]:
    """Return rows and targets: three columns of numbers, one with missing cells."""
    rng = as_generator(seed)
    age = rng.normal(45, 15, n).clip(18, 90)
    debt = rng.lognormal(3, 1, n).clip(0, 500)
    noise = 0.1 if name.endswith("correlated") else 1.0
    tied = (0.5 * (age - 45) / 15 + rng.normal(0, noise, n)).clip(-5, 5)
    kind = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    z = np.sin((age - 18) / 12) + 0.8 * (np.log1p(debt) - 3) + 0.5 * tied
    z += np.array([0, 0.8, -0.5, 1.5])[kind]
    X = np.column_stack([age, debt, tied, kind]).astype(object)
    X[rng.random(n) < 0.05, 2] = np.nan
    X[:, 3] = [CATEGORIES[3][code] for code in kind]
    if name in RESIDUALS:
        return X, z + RESIDUALS[name](rng, n)
    return X, (rng.random(n) < 1 / (1 + np.exp(0.5 - z))).astype(float)


def model(name: str, epsilon: float, seed: int) -> Any:
    """Return the model of a table."""
    facts: dict[str, Any] = {
        "ranges": RANGES,
        "categories": CATEGORIES,
        "random_state": Seed(seed),
        "noise": "float",
    }
    if name in RESIDUALS:
        return AdditiveRegressor(epsilon, 1e-6, y_range=(-20, 20), **facts)
    return AdditiveClassifier(epsilon, 1e-6, classes=[0, 1], **facts)


@contextmanager
def given_bins(bins: list[Bins]) -> Iterator[None]:
    """Let every fit have these bins, so that their values can be compared."""
    run = BinsPlan.run

    def fixed(self: BinsPlan, codes: Any, *rest: Any) -> tuple[list[Bins], float]:
        return bins, run(self, codes, *rest)[1]

    BinsPlan.run = fixed  # type: ignore[method-assign]
    try:
        yield
    finally:
        BinsPlan.run = run  # type: ignore[method-assign]


def coverage(name: str, n: int, epsilon: float, fits: int) -> dict[str, float]:
    """Return how often bands contain the mean of all fits."""
    X, y = table(name, n)
    first = model(name, epsilon, 0).fit(X, y)
    values, stds = [], []
    with given_bins(first._bins):
        for seed in range(1, fits + 1):
            shapes = model(name, epsilon, seed).fit(X, y).shapes_
            values.append(np.concatenate([shape.values[:, 0] for shape in shapes]))
            stds.append(np.concatenate([shape.std[:, 0] for shape in shapes]))
    found, std = np.array(values), np.array(stds)
    inside = (np.abs(found - found.mean(axis=0)) <= 1.96 * std).mean(axis=0)
    mass = np.concatenate([shape.mass for shape in first.shapes_])
    filled = mass > 1e-3
    ratio = std.mean(axis=0) / found.std(axis=0, ddof=1)
    return {
        "bins": float(inside[filled].mean()),
        "rows": float(inside @ mass / mass.sum()),
        "worst": float(inside[filled].min()),
        "ratio": float(np.median(ratio[filled])),
    }


def main() -> None:
    """Print the coverage of each table."""
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"| table | rows | epsilon | bins | by mass | worst bin | std ratio | {fits}")
    for name in (*LABELS, *RESIDUALS):
        for n, epsilon in SIZES:
            found = coverage(name, n, epsilon, fits)
            figures = " | ".join(f"{figure:.3f}" for figure in found.values())
            print(f"| {name} | {n} | {epsilon:g} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
