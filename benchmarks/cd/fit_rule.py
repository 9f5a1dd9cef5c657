"""The synthetic experiments behind the default rule of coordinate descent.

Draws random regressions and classifications, scales one constant of the rule at a time
by factors around the shipped value, and prints how much is left of what the minimum
gains over the best constant, in percent and on average, with the regret of the shipped
value against the best factor of each problem. No real row is read.

    python benchmarks/cd/fit_rule.py --problems 24
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from unittest import mock

import numpy as np

from tacit._random import as_generator
from tacit.convex import Logistic, Loss, Objective, Squared, minimize
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget
from tacit.solvers import CoordinateDescent, Problem, _coordinate_rules

BOUNDS = RowBounds(1.0, "linf")
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
EPSILONS = (0.1, 1.0, 8.0)
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Drawn:
    """Rows as a solver sees them, and where the best weights lead to."""

    problem: Problem
    rows: object
    start: float
    least: float

    def left(self, W):
        """Return what is left of the gain of the minimum over the best constant."""
        gap = self._value(W) - self.least
        return min(gap / (self.start - self.least), 3.0)

    def _value(self, W):
        X, y = self.rows.arrays()
        return float(self.problem.loss.value(y, X @ W).sum())


def spread(rng, n, p):
    """Columns within [-1, 1] that fill anything from all of it to a hundredth."""
    factors = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) / np.sqrt(3)
    Z = rng.uniform(0, 1) * factors + rng.standard_normal((n, p))
    Z += rng.uniform(0, 1) * rng.standard_normal(p)  # more or less off center
    return Z * np.exp(rng.uniform(np.log(0.004), np.log(0.4), size=p))


def skewed(rng, n, p):
    """Columns with long tails, most of whose range is empty, from its middle."""
    Z = np.exp(rng.uniform(0.2, 1.2, size=p) * rng.standard_normal((n, p)))
    top = np.exp(rng.uniform(0.6, 4.0, size=p))
    return 2 * np.minimum(Z / top, 1) - 1


def indicators(rng, n, p):
    """Categories, most of them rare, and a few even columns."""
    odds = rng.uniform(np.log(0.01), np.log(0.6), size=p)
    Z = (rng.random((n, p)) < np.exp(odds)).astype(float)
    even = rng.random(p) < 0.2
    Z[:, even] = rng.uniform(-1, 1, size=(n, int(even.sum())))
    return Z


FAMILIES = (spread, skewed, indicators)


def drawn(seed: int, loss: Loss) -> Drawn:
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(500), np.log(MOST_ROWS))))
    p = int(np.exp(rng.uniform(np.log(4), np.log(200))))
    X = np.clip(FAMILIES[seed % len(FAMILIES)](rng, n, p), -1, 1)
    w = rng.standard_normal(p) * (rng.random(p) < rng.uniform(0.2, 1))
    signal = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9) @ w
    signal /= signal.std() + 1e-9
    if isinstance(loss, Squared):
        noise = rng.uniform(0.2, 2) * rng.standard_normal(n)
        y = rng.uniform(0.05, 0.4) * (signal + noise) + rng.uniform(-0.5, 0.5)
        y = np.clip(y, -1, 1)
    else:
        odds = rng.uniform(0.5, 4) * signal + rng.uniform(-1, 1)
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    rows = bounded_rows(X, y, BOUNDS, 1.0)
    problem = Problem(loss, BOUNDS, n, p + 1, constant=1.0)
    best = Objective(loss, ridge=1e-3)
    found = minimize(best, rows, tolerance=1e-3, x_norm=np.sqrt(p + 1), y_range=(-1, 1))
    # the best prediction that is the same for all rows
    start = np.zeros((p + 1, 1))
    share = (1 + y.mean()) / 2
    start[-1] = y.mean() if isinstance(loss, Squared) else np.log(share / (1 - share))
    value = Drawn(problem, rows, 1.0, 0.0)._value
    return Drawn(problem, rows, value(start), value(found.W))


def budget_of(case, epsilon, seed):
    relation = ("replace_one", "add_or_remove_one")[seed % 2]
    return Budget(epsilon, case.problem.n_rows**-2.0, relation)


def left(case, budget, seed, **settings):
    solver = CoordinateDescent(noise="float", **settings)
    plan = solver.plan(case.problem, budget)
    return 100 * case.left(solver.run(plan, case.rows, as_generator(seed)).coefficients)


def variants(case, budget, seed):
    """Return what is left for each constant and each factor of it."""
    residuals = isinstance(case.problem.loss, Squared)
    kind = "RESIDUAL" if residuals else "LABEL"
    clips = {
        "clip": (f"{kind}_CLIP", f"LEAST_{kind}_CLIP"),
        "duration": (f"{kind}_DURATION",),
    }
    found = {}
    for name, constants in clips.items():
        found[name] = []
        for factor in FACTORS:
            with ExitStack() as stack:
                for constant in constants:
                    scaled = factor * getattr(_coordinate_rules, constant)
                    patch = mock.patch.object(_coordinate_rules, constant, scaled)
                    stack.enter_context(patch)
                found[name].append(left(case, budget, seed))
    for name in ("uniform", "cyclic"):
        found[name] = [left(case, budget, seed, order=name)]
    for name in ("private", "public"):
        found[name] = [left(case, budget, seed, smoothness=name)]
    found["share 0.03"] = [left(case, budget, seed, smoothness_share=0.03)]
    found["share 0.3"] = [left(case, budget, seed, smoothness_share=0.3)]
    found["averaged"] = [left(case, budget, seed, average=True)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.problems)
    print("percent of the way left; columns are factors of the shipped constant")
    print(f"{'':36}" + " ".join(f"{f:>7g}" for f in FACTORS) + "   regret")
    for loss in (Squared(), Logistic()):
        cases = [drawn(seed, loss) for seed in seeds]
        for epsilon in EPSILONS:
            found: dict[str, list[list[float]]] = {}
            for seed, case in zip(seeds, cases, strict=True):
                budget = budget_of(case, epsilon, seed)
                for name, line in variants(case, budget, seed).items():
                    found.setdefault(name, []).append(line)
            for name, lines in found.items():
                table = np.array(lines)
                cells = " ".join(f"{v:7.1f}" for v in table.mean(axis=0))
                if table.shape[1] > 1:
                    shipped = table[:, FACTORS.index(1.0)]
                    regret = float(np.mean(shipped - table.min(axis=1)))
                    cells += f" {regret:8.1f}"
                label = f"{type(loss).__name__} eps {epsilon:g} {name}"
                print(f"{label:36}{cells}", flush=True)


if __name__ == "__main__":
    main()
