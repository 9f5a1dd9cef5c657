"""How many rows it takes to find just the columns that matter, by selector.

Features are normal with deviation one half, cut to [-1, 1]; the target is a sum of s of
them with weights of plus or minus one half, and normal noise of deviation a quarter.
The probability of finding these s columns and no other is measured against the number
of rows, which are the first of one large design, and put beside the number of rows that
`tacit.evaluation.rows_for_support` predicts. Each fit is a line of the file of results;
fits that are there are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean
from time import process_time

import numpy as np

from tacit import Seed
from tacit import feature_selection as selectors
from tacit._random import as_generator
from tacit.evaluation import rows_for_support
from tacit.exceptions import PlanError
from tacit.feature_selection._block_selectors import first_columns

OUTPUTS = Path(__file__).resolve().parents[1] / "outputs" / "regression"
FILE = OUTPUTS / "support.csv"
HEADER = "p,s,epsilon,n,method,run,exact,found,cpu_s"

SIGNAL, NOISE, SPREAD, DELTA = 0.5, 0.25, 0.5, 1e-6
# half of the public range of the targets, in their deviations
REACH = 4.0
# the sum of absolute weights that is allowed, over the sum there is
BOUND = 1.5
SIZES = (62, 125, *(250 * 2**k for k in range(9)))
EPSILONS = (0.5, 1.0, 4.0)
# columns, columns that matter, most rows, runs
PROBLEMS = (
    (100, 2, 64_000, 20),
    (100, 5, 64_000, 20),
    (100, 10, 64_000, 20),
    (1_000, 5, 64_000, 20),
    (1_000, 10, 64_000, 20),
    (10_000, 5, 16_000, 10),
    (10_000, 10, 16_000, 10),
)
QUICK = ((100, 2, 4_000, 2), (100, 5, 4_000, 2))
# rows over the predicted number that are worth measuring
WINDOW = (1 / 8, 8)


@dataclass(frozen=True)
class Method:
    """A selector, what predicts its rows, and the problems it is run on."""

    name: str
    predicted: str
    make: object
    most_columns: int = 10**9
    most_relevant: int = 10**9
    epsilons: tuple[float, ...] = EPSILONS
    most_runs: int = 10**9

    def runs_on(self, p, s, epsilon, run):
        """Return whether this fit is affordable."""
        small = p <= self.most_columns and s <= self.most_relevant
        return small and epsilon in self.epsilons and run < self.most_runs


def votes(method):
    def make(s, scale, epsilon, seed):
        return selectors.BlockVoteSelector(
            epsilon,
            DELTA,
            n_features_to_select=s,
            method=method,
            random_state=Seed(seed),
        )

    return make


def bounded(kind, **more):
    def make(s, scale, epsilon, seed):
        # weights and their bound are in units of the targets
        own = {name: value(s, scale) for name, value in more.items() if callable(value)}
        return getattr(selectors, kind)(
            epsilon,
            DELTA,
            n_features_to_select=s,
            feature_bounds=1.0,
            y_range=(-REACH * scale, REACH * scale),
            random_state=Seed(seed),
            **{**more, **own},
        )

    return make


def plain(s, scale, epsilon, seed):
    return None


def std(s):
    """Return the standard deviation of the targets."""
    return sqrt(s * (SIGNAL * SPREAD) ** 2 + NOISE**2)


def weight_bound(s, scale):
    return BOUND * s * SIGNAL / (REACH * scale)


def noise_level(s, scale):
    return NOISE / (REACH * scale)


METHODS = (
    Method("lasso, not private", "lasso", plain, epsilons=(1.0,)),
    Method("votes of blocks", "blocks", votes("blocks")),
    Method("votes of blocks, by column", "features", votes("features")),
    Method(
        "peeling, correlation",
        "correlation",
        bounded("PeelingSelector", method="correlation"),
    ),
    Method("peeling, pursuit", "pursuit", bounded("PeelingSelector", method="pursuit")),
    Method(
        "stable lasso",
        "stability",
        bounded(
            "LassoStabilitySelector", coef_bound=weight_bound, noise_level=noise_level
        ),
    ),
    Method(
        "exponential mechanism",
        "exponential",
        bounded("ExponentialSelector", coef_bound=weight_bound),
        most_columns=100,
        most_relevant=2,
    ),
    Method(
        "votes of subsamples",
        "subsamples",
        votes("subsamples"),
        most_columns=100,
        most_relevant=2,
        epsilons=(4.0,),
        most_runs=3,
    ),
)


def design(p, n, run):
    """Return one large design in single precision, for all sizes."""
    rng = as_generator(np.random.SeedSequence((p, run)))
    X = np.empty((n, p), dtype=np.float32)
    for start in range(0, n, 4_000):  # so that little is held besides
        block = rng.standard_normal((min(4_000, n - start), p), dtype=np.float32)
        np.clip(block / 2, -1, 1, out=X[start : start + 4_000])
    return X


def targets(X, s, run):
    """Return the columns that matter, and targets."""
    n, p = X.shape
    rng = as_generator(np.random.SeedSequence((p, s, run, 1)))
    relevant = np.sort(rng.choice(p, s, replace=False))
    weights = SIGNAL * rng.choice([-1.0, 1.0], s)
    y = X[:, relevant].astype(np.float64) @ weights + NOISE * rng.standard_normal(n)
    return tuple(relevant.tolist()), y


def predicted(method, p, s, epsilon):
    """Return the number of rows that the forecast gives."""
    more = {}
    if method.predicted == "stability":  # which is run with this bound
        more["coef_bound"] = weight_bound(s, std(s))
    try:
        return rows_for_support(
            p,
            s,
            method=method.predicted,
            epsilon=epsilon,
            delta=DELTA,
            signal=SIGNAL,
            noise=NOISE,
            spread=SPREAD,
            **more,
        )
    except PlanError:
        return None


def sizes(method, p, s, epsilon, most):
    """Return the numbers of rows about the predicted one."""
    about = predicted(method, p, s, epsilon) or most
    low, high = (about * part for part in WINDOW)
    return [n for n in SIZES if n <= most and low <= n <= high]


def fit(method, X, y, s, epsilon, run):
    """Return the columns that were selected, or none, and CPU seconds."""
    scale = std(s)
    # noise of its own for each size and budget, so that bad luck is not repeated
    seed = np.random.SeedSequence((run, s, len(y), int(100 * epsilon)))
    start = process_time()
    selector = method.make(s, scale, epsilon, seed)
    if selector is None:
        found = sorted(first_columns(X.astype(np.float64), y, s).tolist())
    else:
        selector.fit(X, y)
        found = selector.selection_ if selector.released_ else ()
    return tuple(found), process_time() - start


def measure(problems, runs=None):
    """Append the fits that the file does not hold."""
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    if not FILE.is_file():
        FILE.write_text(HEADER + "\n")
    done = {key for key, *_ in read()}
    for p in dict.fromkeys(p for p, *_ in problems):
        here = [problem[1:] for problem in problems if problem[0] == p]
        most = max(most for _, most, _ in here)
        for run in range(max(count for *_, count in here)):
            wanted = [
                (p, s, epsilon, n, method, run)
                for s, limit, count in here
                if run < min(count, runs or count)
                for method in METHODS
                for epsilon in EPSILONS
                if method.runs_on(p, s, epsilon, run)
                for n in sizes(method, p, s, epsilon, limit)
                if (p, s, epsilon, n, method.name, run) not in done
            ]
            if wanted:
                _append(wanted, design(p, most, run), run)


def _append(wanted, X, run):
    known = {}
    for p, s, epsilon, n, method, _ in wanted:
        if s not in known:
            known[s] = targets(X, s, run)
        relevant, y = known[s]
        found, took = fit(method, X[:n], y[:n], s, epsilon, run)
        hits = len(set(found) & set(relevant))
        line = [p, s, epsilon, n, method.name, run, int(found == relevant), hits]
        with FILE.open("a", newline="") as file:
            csv.writer(file).writerow([*line, f"{took:.3f}"])


def read():
    """Return what was measured: key, whether exact, columns found, seconds."""
    if not FILE.is_file():
        return []
    lines = []
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            if None in row.values():  # cut short
                continue
            p, s, n, run = (int(row[name]) for name in ("p", "s", "n", "run"))
            key = (p, s, float(row["epsilon"]), n, row["method"], run)
            lines.append((key, int(row["exact"]), int(row["found"]), row["cpu_s"]))
    return lines


def curves():
    """Return the probability of recovery by problem, method and number of rows."""
    found = {}
    for (p, s, epsilon, n, name, _), exact, _, _ in read():
        found.setdefault((p, s, epsilon, name), {}).setdefault(n, []).append(exact)
    return {
        key: {n: (mean(v), len(v)) for n, v in sorted(by_n.items())}
        for key, by_n in found.items()
    }


def least(curve, level):
    """Return the least number of rows from which on recovery is at least this."""
    reached = None
    for n in sorted(curve, reverse=True):
        if curve[n][0] < level:
            break
        reached = n
    return reached


def rows():
    """Return the lines of the table of least rows beside what is predicted."""
    found, names = curves(), {method.name: method for method in METHODS}
    lines = []
    for p, s, epsilon, name in sorted(found, key=lambda k: (*k[:3], _position(k[3]))):
        if name not in names:
            continue
        curve = found[p, s, epsilon, name]
        count = min(v for _, v in curve.values())
        beyond = f"> {max(curve):,}"
        shown = [
            f"{at:,}" if (at := least(curve, level)) else beyond for level in (0.5, 0.9)
        ]
        forecast = predicted(names[name], p, s, epsilon)
        told = "" if forecast is None else f"{forecast:,}"
        lines.append([f"{p:,}", s, f"{epsilon:g}", name, *shown, told, count])
    return lines


def _position(name):
    return next((k for k, m in enumerate(METHODS) if m.name == name), len(METHODS))


def markdown():
    """Return that table as Markdown."""
    head = ["p", "s", "epsilon", "selector", "half", "nine tenths", "predicted", "runs"]
    lines = [head, ["---"] * len(head), *rows()]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 columns, 2 runs")
    parser.add_argument("--runs", type=int, help="at most so many of each")
    parser.add_argument("--table", action="store_true", help="print the table only")
    given = parser.parse_args()
    if not given.table:
        measure(QUICK if given.quick else PROBLEMS, given.runs)
    print("Least rows from which on all s columns are found, and no other, in half and")
    print("in nine tenths of the runs:")
    print(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
