"""The synthetic experiment behind the default rules.

Draws random problems (rows, features, classes, spectrum, signal and balance all vary),
scales one constant of a rule at a time by factors around the shipped value, and prints
the mean excess error over the best possible classifier, in points, with the regret of
the shipped value against the best factor of each problem. No real row is read.

    python benchmarks/fit_rule.py --problems 40
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from tacit._random import as_generator
from tacit.convex import Logistic, Softmax
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget
from tacit.solvers import AMP, INTERCEPT_SHARE, NoisyGD, Problem, capped_where_noisy
from tacit.solvers._rules import descent_rule, noise_level, ridge_rule
from tacit.solvers.output_perturbation import USUAL_MARGIN, OutputPerturbation

FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (0.1, 1.0, 8.0)


@dataclass(frozen=True)
class Drawn:
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    P_test: np.ndarray  # true class probabilities

    def excess(self, W):
        """Return how much more often than the best classifier this one errs."""
        columns = np.column_stack(
            [self.X_test, np.full(len(self.X_test), INTERCEPT_SHARE)]
        )
        Z = columns @ W
        chosen = (Z[:, 0] > 0).astype(int) if Z.shape[1] == 1 else Z.argmax(axis=1)
        got = self.P_test[np.arange(len(chosen)), chosen]
        return 100 * float(np.mean(self.P_test.max(axis=1) - got))


def draw(seed, n_classes):
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(500), np.log(40_000))))
    p = int(np.exp(rng.uniform(np.log(5), np.log(200))))
    spectrum = np.arange(1, p + 1) ** -rng.uniform(0, 1.5)
    X = rng.standard_normal((n + 4000, p)) * spectrum
    X += rng.uniform(0, 1) * np.abs(rng.standard_normal(p)) * spectrum  # not centered
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = rng.standard_normal((p, n_classes)) * rng.uniform(0.3, 1, size=(p, 1))
    Z = (X - X.mean(axis=0)) @ W
    Z *= np.exp(rng.uniform(np.log(1), np.log(6))) / Z.std()
    Z += rng.uniform(-1, 1, size=n_classes)  # unequal classes
    P = softmax(Z, axis=1)
    y = (P.cumsum(axis=1) < rng.random((len(P), 1))).sum(axis=1)
    return Drawn(X[:n], y[:n], X[n:], P[n:])


def draw_table(seed):
    """Return a problem like a table in public ranges: correlated, far from centered."""
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(400), np.log(15_000))))
    p = int(rng.integers(10, 80))
    factors, loadings = rng.standard_normal((n + 4000, 3)), rng.standard_normal((3, p))
    X = 0.3 * (factors @ loadings / np.sqrt(3) + rng.standard_normal((n + 4000, p)))
    X = np.clip(X + 1.0, 0.0, None)
    W = loadings.T @ rng.standard_normal(3) + 0.3 * rng.standard_normal(p)
    z = (X - X.mean(axis=0)) @ W
    z = 4 * z / z.std() + rng.uniform(-0.7, 0.7)
    P = softmax(np.column_stack([np.zeros_like(z), z]), axis=1)
    y = (rng.random(len(z)) < P[:, 1]).astype(int)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    return Drawn(X[:n], y[:n], X[n:], P[n:])


def problem_of(drawn, n_classes, budget):
    bounds = RowBounds(1.0).with_intercept(INTERCEPT_SHARE)
    loss = Logistic() if n_classes == 2 else Softmax(n_classes)
    n, p = drawn.X.shape
    problem = Problem(loss, bounds, n, p + 1)
    return replace(problem, loss=capped_where_noisy(problem, budget))


def solvers(problem, budget):
    """Return, for each constant of the rule, one solver a factor."""
    if problem.loss.n_outputs == 1:
        ridge = ridge_rule(problem, budget)
        return {"ridge": [AMP(ridge=f * ridge, noise="float") for f in FACTORS]}
    rule = descent_rule(problem, budget)
    return {
        "step": [NoisyGD(step=f * rule.step, noise="float") for f in FACTORS],
        "steps": [
            NoisyGD(n_steps=max(1, int(f * rule.n_steps)), noise="float")
            for f in FACTORS
        ],
        "clip": [NoisyGD(clip=min(f, 2.0) * rule.clip, noise="float") for f in FACTORS],
    }


def excess(drawn, solver, problem, budget, rows, rng):
    try:
        plan = solver.plan(problem, budget)
    except PlanError:  # too small a ridge for this epsilon
        return np.nan
    return drawn.excess(solver.run(plan, rows, rng))


def main(n_problems):
    print("excess error in points; columns are factors of the shipped constant")
    print(f"{'':24}" + " ".join(f"{f:>7g}" for f in FACTORS) + "   regret")
    for n_classes in (2, 3, 10):
        for epsilon in EPSILONS:
            found = {}
            for seed in range(n_problems):
                drawn = draw(1000 * n_classes + seed, n_classes)
                relation = ("replace_one", "add_or_remove_one")[seed % 2]
                budget = Budget(epsilon, len(drawn.y) ** -2.0, relation)
                problem = problem_of(drawn, n_classes, budget)
                y = 2.0 * drawn.y - 1.0 if n_classes == 2 else drawn.y
                rows = bounded_rows(drawn.X, y, RowBounds(1.0), INTERCEPT_SHARE)
                for constant, family in solvers(problem, budget).items():
                    rng = as_generator(seed)
                    line = [
                        excess(drawn, solver, problem, budget, rows, rng)
                        for solver in family
                    ]
                    found.setdefault(constant, []).append(line)
            for constant, lines in found.items():
                table = np.array(lines)
                shipped = table[:, FACTORS.index(1.0)]
                regret = float(np.mean(shipped - np.nanmin(table, axis=1)))
                cells = " ".join(f"{v:7.2f}" for v in np.nanmean(table, axis=0))
                name = f"k {n_classes} eps {epsilon:g} {constant}"
                print(f"{name:24}{cells} {regret:8.2f}", flush=True)


def compare_solvers(n_problems):
    """Print the excess error of both solvers by the share of noise, two classes."""
    print("excess error in points by noise as a share of the largest gradient")
    print(f"{'family':8} {'share':>14} {'cases':>6} {'AMP':>7} {'NoisyGD':>8}")
    edges = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, np.inf)
    for family, make in (("mixed", lambda seed: draw(seed, 2)), ("table", draw_table)):
        found = []
        for seed in range(n_problems):
            drawn = make(9000 + seed)
            rows = bounded_rows(
                drawn.X, 2.0 * drawn.y - 1.0, RowBounds(1.0), INTERCEPT_SHARE
            )
            for epsilon in (0.1, 0.5, 1.0, 3.0, 8.0):
                relation = ("replace_one", "add_or_remove_one")[seed % 2]
                budget = Budget(epsilon, len(drawn.y) ** -2.0, relation)
                problem = problem_of(drawn, 2, budget)
                slope = problem.loss.max_slope(np.inf, (-1.0, 1.0))
                share = noise_level(problem, budget, slope) / problem.n_rows
                errors = [
                    excess(drawn, solver, problem, budget, rows, as_generator(seed))
                    for solver in (AMP(noise="float"), NoisyGD(noise="float"))
                ]
                found.append((share, *errors))
        table = np.array(found)
        for low, high in itertools.pairwise(edges):
            part = table[(table[:, 0] >= low) & (table[:, 0] < high), 1:]
            if len(part):
                amp, descent = part.mean(axis=0)
                span = f"{low:g} to {high:g}"
                print(f"{family:8} {span:>14} {len(part):6} {amp:7.2f} {descent:8.2f}")


def fit_output_rule(n_problems):
    """Print the excess error of output perturbation by the norm it is set for."""
    print("output perturbation; columns are factors of the shipped weight norm")
    print(f"{'':24}" + " ".join(f"{f:>7g}" for f in FACTORS))
    for epsilon in EPSILONS:
        lines = []
        for seed in range(n_problems):
            drawn = draw(5000 + seed, 2)
            relation = ("replace_one", "add_or_remove_one")[seed % 2]
            budget = Budget(epsilon, len(drawn.y) ** -2.0, relation)
            problem = problem_of(drawn, 2, budget)
            rows = bounded_rows(
                drawn.X, 2.0 * drawn.y - 1.0, RowBounds(1.0), INTERCEPT_SHARE
            )
            usual, rng = USUAL_MARGIN / problem.bounds.x_norm, as_generator(seed)
            family = [
                OutputPerturbation(weight_norm=f * usual, noise="float")
                for f in FACTORS
            ]
            lines.append(
                [excess(drawn, each, problem, budget, rows, rng) for each in family]
            )
        cells = " ".join(f"{v:7.2f}" for v in np.mean(lines, axis=0))
        print(f"{f'eps {epsilon:g}':24}{cells}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20)
    n_problems = parser.parse_args().problems
    compare_solvers(n_problems)
    fit_output_rule(n_problems)
    main(n_problems)
