"""R2 on rows that were not fitted, of every way to regress privately.

``python -m benchmarks.regression.accuracy`` appends one line a fit to a file and goes
on where it was stopped; ``--quick`` takes two runs at epsilon 1. Nothing is tuned.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from benchmarks.peers.client import (
    PeerFailed,
    diffprivlib_regression,
    widened_bounds,
)
from benchmarks.regression.data import SETS, SQUARE, split
from sklearn.linear_model import LassoCV
from sklearn.linear_model import LinearRegression as SklearnLinear

from tacit.convex import L1Ball, L2Ball
from tacit.exceptions import PlanError
from tacit.linear_model import Lasso, LinearRegression
from tacit.solvers import AdaSSP, FrankWolfe
from tacit.solvers._auto import solver_names

RESULTS = Path(__file__).resolve().parents[1] / "outputs" / "regression"
FILE = RESULTS / "accuracy.csv"
FIELDS = ("set", "method", "epsilon", "run", "r2", "seconds", "note")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RUNS, QUICK_RUNS = 10, 2
# Methods of many seconds a fit, and how often they are run
SLOW, SLOW_RUNS = ("noisy_sgd", "sample_and_aggregate"), 1
# Widths of the range of the targets that weights may have, for methods that need a set,
# and penalty of the lasso, in the same unit
RADIUS, PENALTY = 1.0, 1e-3

FREE = (
    "auto",
    "adaptive_moments",
    "ada_ssp",
    "noisy_gd",
    "noisy_sgd",
    "preconditioned_gd",
    "sample_and_aggregate",
    "quadratic_perturbation",
    "adaptive_ridge",
    "tukey",
)
IN_A_BALL = ("amp", "output_perturbation")
LASSO = ("cd", "gcd")
PEERS = ("diffprivlib", "diffprivlib_widened")
WITHOUT = "without_privacy"


def methods() -> tuple[str, ...]:
    """Return what is compared, as far as this version has it."""
    named = tuple(n for n in (*FREE, *IN_A_BALL) if n in solver_names())
    lasso = tuple(f"lasso_{name}" for name in LASSO)
    return (WITHOUT, *named, "ada_ssp_adaptive", "frank_wolfe", *lasso, *PEERS)


def estimator(method: str, part, epsilon: float, seed: int):
    """Return a private model with public settings alone."""
    low, high = part.y_range
    width = high - low
    common = {"delta": part.delta, "y_range": part.y_range, "random_state": seed}
    if method.startswith("lasso_"):
        return Lasso(
            epsilon,
            alpha=PENALTY * width,
            feature_bounds=1.0,
            solver=method.removeprefix("lasso_"),
            **common,
        )
    if method == "frank_wolfe":
        return LinearRegression(
            epsilon,
            x_norm=1.0,
            bound_norm="linf",
            penalty=L1Ball(RADIUS * width),
            solver=FrankWolfe(),
            **common,
        )
    solver = AdaSSP(adaptive=True) if method == "ada_ssp_adaptive" else method
    penalty = L2Ball(RADIUS * width) if method in IN_A_BALL else None
    return LinearRegression(
        epsilon, x_norm=part.x_norm, penalty=penalty, solver=solver, **common
    )


def fits(name: str, method: str, run: int, epsilons):
    """Yield epsilon, R2, seconds and a note for each fit."""
    part = split(name, run)
    if method == WITHOUT:
        start = perf_counter()
        model = LassoCV(alphas=20, cv=3) if name == SQUARE else SklearnLinear()
        found = part.r2(model.fit(part.X, part.y).predict(part.X_test))
        yield np.inf, found, perf_counter() - start, type(model).__name__
        return
    if method in PEERS:
        bounds = part.bounds.ends
        if method == "diffprivlib_widened":
            bounds = widened_bounds(*bounds)
        if name == SQUARE:
            # half a million mechanisms, each with a share of epsilon
            for epsilon in epsilons:
                yield epsilon, np.nan, 0.0, "not run: half a million mechanisms a fit"
            return
        try:
            found = diffprivlib_regression(part, epsilons, run, *bounds, part.y_range)
        except PeerFailed as failure:
            for epsilon in epsilons:
                yield epsilon, np.nan, 0.0, str(failure)
            return
        for fit in found:
            yield fit["epsilon"], fit["r2"], fit["wall_s"], "; ".join(fit["warnings"])
        return
    X, X_test = part.X, part.X_test
    for epsilon in epsilons:
        start = perf_counter()
        try:
            model = estimator(method, part, epsilon, run).fit(X, part.y)
        except (PlanError, ValueError) as rejection:
            yield epsilon, np.nan, 0.0, f"refused: {rejection}"
            continue
        found = part.r2(model.predict(X_test))
        yield epsilon, found, perf_counter() - start, ""


def read() -> list[dict[str, str]]:
    """Return what was measured so far."""
    if not FILE.is_file():
        return []
    with FILE.open(newline="") as lines:
        return list(csv.DictReader(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="*", default=methods())
    given = parser.parse_args()
    runs = QUICK_RUNS if given.quick else RUNS
    epsilons = (1.0,) if given.quick else EPSILONS
    RESULTS.mkdir(parents=True, exist_ok=True)
    done = {(d["set"], d["method"], float(d["epsilon"]), int(d["run"])) for d in read()}
    fresh = not FILE.is_file()
    with FILE.open("a", newline="") as file:
        lines = csv.writer(file)
        if fresh:
            lines.writerow(FIELDS)
        for run, name in itertools.product(range(runs), given.sets):
            for method in given.methods:
                if method in SLOW and run >= SLOW_RUNS:
                    continue
                asked = (np.inf,) if method == WITHOUT else epsilons
                left = [e for e in asked if (name, method, e, run) not in done]
                if not left:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for epsilon, r2, seconds, note in fits(name, method, run, left):
                        line = (name, method, epsilon, run, r2, f"{seconds:.3f}", note)
                        lines.writerow(line)
                file.flush()
            print(f"{name}: run {run}", flush=True)


if __name__ == "__main__":
    main()
