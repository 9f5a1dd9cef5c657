"""The synthetic experiments behind the default rules.

Draws random problems, scales one constant of a rule at a time by factors around the
shipped value, and prints the mean excess error over the best possible classifier, in
points, with the regret of the shipped value against the best factor of each problem.
No real row is read.

    python benchmarks/fit_rule.py --problems 20
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
from benchmarks.synthetic_problems import FAMILIES
from scipy.special import expit

from tacit._random import as_generator
from tacit.convex import L1Ball, Logistic, Softmax
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget
from tacit.solvers import (
    AMP,
    FrankWolfe,
    NoisyGD,
    OutputPerturbation,
    PreconditionedGD,
    Problem,
    frank_wolfe,
)
from tacit.solvers._base import INTERCEPT_FRACTION
from tacit.solvers._gradients.descent import (
    at_zero,
    capped_where_noisy,
    descent_rule,
    gradient_unit,
    noise_level,
)
from tacit.solvers._minimizers.ridge_rules import ridge_rule
from tacit.solvers.output_perturbation import USUAL_MARGIN
from tacit.solvers.preconditioned_gd import damping_rule

FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (0.1, 1.0, 8.0)


def problem_of(drawn, n_classes, budget):
    bounds = RowBounds(1.0).with_intercept(INTERCEPT_FRACTION)
    loss = Logistic() if n_classes == 2 else Softmax(n_classes)
    n, p = drawn.X.shape
    problem = Problem(loss, bounds, n, p + 1)
    return replace(problem, loss=capped_where_noisy(problem, budget))


def rows_of(drawn, n_classes):
    y = 2.0 * drawn.y - 1.0 if n_classes == 2 else drawn.y
    return bounded_rows(drawn.X, y, RowBounds(1.0), INTERCEPT_FRACTION)


def budget_of(drawn, epsilon, seed):
    relation = ("replace_one", "add_or_remove_one")[seed % 2]
    return Budget(epsilon, len(drawn.y) ** -2.0, relation)


def noise_fraction(problem, budget):
    """Return the noise as a share of the largest gradient there can be."""
    noise = noise_level(problem, budget, at_zero(problem).typical)
    return noise / (problem.n_rows * gradient_unit(problem))


def variants(problem, budget):
    """Return, for each constant of a rule, one solver a factor."""
    found = {}
    if problem.loss.n_outputs == 1:
        ridge = ridge_rule(problem, budget)
        found["AMP ridge"] = [AMP(ridge=f * ridge, noise="float") for f in FACTORS]
        usual = USUAL_MARGIN / problem.bounds.x_norm
        found["output norm"] = [
            OutputPerturbation(weight_norm=f * usual, noise="float") for f in FACTORS
        ]
    rule = descent_rule(problem, budget)
    found["GD step"] = [NoisyGD(step=f * rule.step, noise="float") for f in FACTORS]
    found["GD steps"] = [
        NoisyGD(n_steps=max(1, int(f * rule.n_steps)), noise="float") for f in FACTORS
    ]
    plan = PreconditionedGD().plan(problem, budget)
    found["PGD steps"] = [
        PreconditionedGD(n_steps=max(1, int(f * plan.n_steps)), noise="float")
        for f in FACTORS
    ]
    damping = damping_rule(problem, budget, plan.n_steps, plan.clip)
    found["PGD damping"] = [
        PreconditionedGD(damping=f * damping, noise="float") for f in FACTORS
    ]
    found["PGD clip"] = [
        PreconditionedGD(clip=min(f, 2.0) * plan.clip, noise="float") for f in FACTORS
    ]
    return found


def excess(drawn, solver, problem, budget, rows, rng):
    try:
        plan = solver.plan(problem, budget)
    except PlanError:  # too small a ridge for this epsilon
        return np.nan
    return drawn.excess(solver.run(plan, rows, rng).coefficients)


def fit_constants(n_problems):
    print("excess error in points; columns are factors of the shipped constant")
    print(f"{'':28}" + " ".join(f"{f:>7g}" for f in FACTORS) + "   regret")
    for n_classes, epsilon in itertools.product((2, 3, 10), EPSILONS):
        found = {}
        for seed in range(n_problems):
            family = list(FAMILIES.values())[seed % len(FAMILIES)]
            drawn = family(1000 * n_classes + seed, n_classes)
            budget = budget_of(drawn, epsilon, seed)
            problem, rows = (
                problem_of(drawn, n_classes, budget),
                rows_of(drawn, n_classes),
            )
            for constant, solvers in variants(problem, budget).items():
                rng = as_generator(seed)
                line = [excess(drawn, s, problem, budget, rows, rng) for s in solvers]
                found.setdefault(constant, []).append(line)
        for constant, lines in found.items():
            table = np.array(lines)
            shipped = table[:, FACTORS.index(1.0)]
            regret = float(np.mean(shipped - np.nanmin(table, axis=1)))
            cells = " ".join(f"{v:7.2f}" for v in np.nanmean(table, axis=0))
            name = f"k {n_classes} eps {epsilon:g} {constant}"
            print(f"{name:28}{cells} {regret:8.2f}", flush=True)


def compare_solvers(n_problems):
    """Print the excess error of three solvers by the share of noise."""
    rivals = (
        AMP(noise="float"),
        NoisyGD(noise="float"),
        PreconditionedGD(noise="float"),
    )
    print("excess error in points by noise as a share of the largest gradient")
    print(
        f"{'family':8} {'share':>16} {'cases':>6} {'AMP':>7} {'NoisyGD':>8} {'PGD':>7}"
    )
    edges = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, np.inf)
    for name, family in FAMILIES.items():
        found = []
        for seed, epsilon in itertools.product(range(n_problems), (0.1, 0.5, 1, 3, 8)):
            drawn = family(7000 + seed, 2)
            budget = budget_of(drawn, epsilon, seed)
            problem, rows = problem_of(drawn, 2, budget), rows_of(drawn, 2)
            errors = [
                excess(drawn, solver, problem, budget, rows, as_generator(seed))
                for solver in rivals
            ]
            found.append((noise_fraction(problem, budget), *errors))
        table = np.array(found)
        for low, high in itertools.pairwise(edges):
            part = table[(table[:, 0] >= low) & (table[:, 0] < high), 1:]
            if len(part):
                cells = " ".join(f"{v:7.2f}" for v in part.mean(axis=0))
                span = f"{low:g} to {high:g}"
                print(f"{name:8} {span:>16} {len(part):6} {cells}", flush=True)


def few_features(seed):
    """Return rows in [-1, 1] of which a few columns matter, and true probabilities."""
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(800), np.log(12_000))))
    p = int(np.exp(rng.uniform(np.log(200), np.log(4_000))))
    X = np.clip(rng.standard_normal((n + 3000, p)) / rng.uniform(2, 6), -1, 1)
    w = np.zeros(p)
    w[: rng.integers(1, 12)] = 1.0
    z = X @ (w * rng.standard_normal(p))
    P = expit(z * rng.uniform(1, 5) / z.std())
    y = np.where(rng.random(len(z)) < P, 1.0, -1.0)
    return X[:n], y[:n], X[n:], P[n:]


def fit_frank_wolfe(n_problems):
    """Print the excess error of Frank-Wolfe by what makes a feature worth choosing."""
    worths, bounds = (0.025, 0.05, 0.1, 0.2, 1e9), RowBounds(1.0, norm="linf")
    print("Frank-Wolfe; columns are the least share of the score worth choosing")
    print(f"{'':28}" + " ".join(f"{worth:>7g}" for worth in worths))
    for epsilon, radius in itertools.product(EPSILONS, (1.0, 5.0, 20.0)):
        lines = []
        for seed in range(n_problems):
            X, y, X_test, P = few_features(seed)
            budget = Budget(epsilon, len(y) ** -2.0)
            problem = Problem(
                Logistic(cap=0.5), bounds, *X.shape, regularizer=L1Ball(radius)
            )
            line = []
            for worth in worths:
                with mock.patch.object(frank_wolfe, "WORTH", worth):
                    plan = FrankWolfe(noise="float").plan(problem, budget)
                rows = bounded_rows(X, y, bounds)
                W = (
                    FrankWolfe(noise="float")
                    .run(plan, rows, as_generator(seed))
                    .coefficients
                )
                right = np.where(X_test @ W[:, 0] > 0, P, 1 - P)
                line.append(100 * np.mean(np.maximum(P, 1 - P) - right))
            lines.append(line)
        cells = " ".join(f"{v:7.2f}" for v in np.mean(lines, axis=0))
        print(f"{f'eps {epsilon:g} radius {radius:g}':28}{cells}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20)
    n_problems = parser.parse_args().problems
    compare_solvers(n_problems)
    fit_frank_wolfe(n_problems)
    fit_constants(n_problems)
