"""A private search over twenty candidates on Adult, and what it costs.

One line a fit, only ever appended to, so that a run that was stopped goes on where it
was. ``python -m benchmarks.regression.search --quick`` does one seed with few runs.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from tacit import Seed
from tacit.datasets import load
from tacit.evaluation import hold_out
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.model_selection import PrivateSearchCV
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.privacy.combined import RepeatAndSelect, mean_repeats

FILE = Path(__file__).resolve().parents[1] / "outputs" / "regression" / "search.csv"
HEADER = ("quick", "seed", "what", "candidate", "accuracy", "score", "epsilon", "cpu_s")
EPSILON, SEEDS = 1.0, 10
# So much budget that noise no longer matters
PLENTY = 1e5


def logistic(**given):
    return {"model": [LogisticRegression(classes=[0, 1], x_norm=1.0)], **values(given)}


def support(**given):
    return {"model": [LinearSVC(classes=[0, 1], x_norm=1.0)], **values(given)}


def values(given):
    return {f"model__{name}": options for name, options in given.items()}


# Bounds on rows whose norms are about three, penalties, intercepts, solvers, losses
GRID = [
    logistic(x_norm=[0.1, 0.5, 1.0, 3.0], ridge=[0.0, 300.0]),
    logistic(x_norm=[0.5, 3.0], fit_intercept=[False]),
    logistic(x_norm=[0.5, 3.0], solver=["amp", "noisy_gd"]),
    support(x_norm=[0.1, 0.5, 1.0, 3.0]),
    support(x_norm=[0.5, 3.0], h=[0.1]),
]


def search(**given):
    start = Pipeline([("model", LogisticRegression(classes=[0, 1], x_norm=1.0))])
    return PrivateSearchCV(start, GRID, EPSILON, **given)


def in_words(params):
    parts = [type(params["model"]).__name__]
    parts += [f"{n[7:]}={v}" for n, v in sorted(params.items()) if n != "model"]
    return " ".join(parts)


def frontier(n_rows, n_candidates):
    """Print what shapes and means of the number of runs leave to one of them."""
    budget = Budget(EPSILON, n_rows**-2)
    print(
        "mean runs, shape, epsilon of one fit, total over it, chance to miss the best"
    )
    for mean in (20, 60, 200):
        for shape in (0.0, 0.5, 1.0, 2.0, 4.0):
            low, high = 1e-9, 1 - 1e-9
            while high / low > 1 + 1e-12:
                gamma = (low * high) ** 0.5
                more = mean_repeats(shape, gamma) > mean
                low, high = (gamma, high) if more else (low, gamma)

            def best_of(noise, shape=shape, gamma=gamma):
                return RepeatAndSelect(GaussianNoise(noise), shape, gamma)

            noise = calibrate(best_of, budget)
            one = GaussianNoise(noise).curve(budget.neighbors).epsilon(budget.delta)
            x = (1 - gamma) * (1 - 1 / n_candidates)
            miss = np.log1p(-x) / np.log(gamma)
            if shape:
                miss = ((1 - x) ** -shape - 1) / (gamma**-shape - 1)
            print(f"{mean:9} {shape:6} {one:10.3f} {EPSILON / one:10.2f} {miss:10.3f}")


def known(quick):
    if not FILE.is_file():
        return {}
    with FILE.open(newline="") as file:
        return {
            (int(line["seed"]), line["what"], line["candidate"]): line
            for line in csv.DictReader(file)
            if line["quick"] == str(int(quick))
        }


def append(*line):
    FILE.parent.mkdir(parents=True, exist_ok=True)
    new = not FILE.is_file()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(HEADER)
        writer.writerow(line)


def rows(seed):
    adult = load("adult")
    return train_test_split(adult.X, adult.y, test_size=0.2, random_state=seed)


def one_seed(seed, quick):
    """Fit what is not in the file yet."""
    X, X_test, y, y_test = rows(seed)
    done = known(quick)
    given = {"mean_repeats": 20} if quick else {}
    if (seed, "search", "") not in done:
        start = time.process_time()
        found = search(random_state=Seed(seed), **given).fit(X, y)
        append(
            int(quick),
            seed,
            "search",
            "",
            f"{found.score(X_test, y_test):.5f}",
            f"{found.best_score_:.5f}",
            f"{found.plan_.per_run.epsilon:.5f}",
            f"{time.process_time() - start:.1f}",
        )
    plan = search(**given).plan(*X.shape)
    one = plan.per_run
    kept, held = hold_out(len(y), plan.holdout, random_state=seed)
    candidates = search()._candidates()
    for params, model in zip(*candidates, strict=True):
        for what, epsilon in (("private", one.epsilon), ("plain", PLENTY)):
            if (seed, what, in_words(params)) in done:
                continue
            start = time.process_time()
            fitted = clone(model).set_params(
                model__epsilon=epsilon,
                model__delta=one.delta,
                model__random_state=Seed(seed),
            )
            fitted.fit(X[kept], y[kept])
            append(
                int(quick),
                seed,
                what,
                in_words(params),
                f"{fitted.score(X_test, y_test):.5f}",
                f"{fitted.score(X[held], y[held]):.5f}",
                f"{epsilon:.5f}",
                f"{time.process_time() - start:.1f}",
            )


def report(quick):
    """Print the figures of all seeds in the file."""
    table = known(quick)
    seeds = sorted({seed for seed, what, _ in table if what == "search"})
    names = sorted({name for _, what, name in table if what == "plain"})

    def figure(seed, what, name, column="accuracy"):
        return float(table[seed, what, name][column])

    mean = {
        name: np.mean([figure(seed, "private", name) for seed in seeds])
        for name in names
    }
    best = max(mean, key=mean.get)
    picked = [
        max(names, key=lambda name, s=seed: figure(s, "plain", name, "score"))
        for seed in seeds
    ]
    both = list(zip(seeds, picked, strict=True))
    lines = {
        "released by the search": [figure(s, "search", "") for s in seeds],
        f"best candidate, same noise ({best})": [
            figure(s, "private", best) for s in seeds
        ],
        "choice of a plain search, same noise": [
            figure(s, "private", name) for s, name in both
        ],
        "choice of a plain search, no noise": [
            figure(s, "plain", name) for s, name in both
        ],
        "mean of the candidates, same noise": [
            np.mean([figure(s, "private", name) for name in names]) for s in seeds
        ],
    }
    n_rows = len(rows(0)[2])
    plan = search(**({"mean_repeats": 20} if quick else {})).plan(n_rows, 104)
    relation = Neighbors.REPLACE_ONE
    single = plan.noise.event.curve(relation).epsilon(plan.budget.delta)
    print(f"{len(names)} candidates, {plan.mean_repeats:.0f} runs on average")
    print(f"{plan.repeats}, {plan.per_run}, held out {plan.holdout:.2f}")
    print(f"one fit alone: epsilon {single:.3f} at delta {plan.budget.delta:.3g}")
    print(f"total over one fit: {EPSILON / single:.2f}")
    for name, found in lines.items():
        print(f"{name:75} {np.mean(found):.4f} +- {np.std(found):.4f}")
    print("by seed", *(f"{value:.4f}" for value in lines["released by the search"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    frontier(36_177, 20)
    for seed in range(1 if quick else SEEDS):
        one_seed(seed, quick)
    report(quick)


if __name__ == "__main__":
    main()
