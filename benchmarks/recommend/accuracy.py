"""Error on held-out ratings against epsilon, of every way to complete privately.

``python -m benchmarks.recommend.accuracy`` appends one line a fit to a file and goes on
where it was stopped, as long as the code is the same: about an hour on one core.
``--sets``, ``--solvers`` and ``--runs`` measure some of it; ``--quick`` takes two small
sets at epsilon 1 and 5.

Each run holds out a random hundredth of the ratings and draws fresh noise. No fit sees
a held-out rating, and settings without privacy are chosen on ratings that no run holds
out. Private solvers have their defaults, at delta 1e-6 for a whole user. A solver whose
fits are slow has as many runs as an allowance of seconds lets it begin, one at least.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter, process_time
from typing import Any

import numpy as np
from benchmarks.recommend import baselines
from benchmarks.recommend.common import RESULTS
from benchmarks.recommend.data import (
    PROBLEMS,
    QUICK_SETS,
    RUNS,
    WHOLE_SETS,
    Problem,
    Split,
)
from benchmarks.tables import Log, code_of, markdown
from numpy.typing import NDArray

import tacit
from tacit import Seed
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS

EPSILONS, QUICK_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0), (1.0, 5.0)
DELTA = 1e-6
REPLACE, ADD = "replace_one", "add_or_remove_one"
# The solver that is measured under both relations
DEFAULT = "als"
PLAIN = "als without privacy"
TRIVIAL = ("user means", "user and item means")
QUICK_RUNS = 1
# Seconds after which a solver begins no further run on a set
ALLOWANCE = 100.0
FIELDS = (
    "dataset",
    "n_users",
    "n_items",
    "n_ratings",
    "method",
    "neighbors",
    "epsilon",
    "run",
    "rmse",
    "seconds",
    "rank",
    "ridge",
    "power",
    "code",
)
KEYS = ("dataset", "method", "neighbors", "epsilon")
HERE, LIBRARY = Path(__file__).resolve().parent, Path(tacit.__file__).parent


def _files(*folders: str) -> list[Path]:
    own = [HERE / name for name in ("accuracy.py", "baselines.py", "data.py")]
    parts = [sorted((LIBRARY / folder).rglob("*.py")) for folder in folders]
    return own + [file for part in parts for file in part]


# All code that lines follow from, as it was when it was loaded
OPEN_CODE = code_of(_files("datasets"))
PRIVATE_CODE = code_of(_files("datasets", "recommend", "mechanisms", "privacy"))


@dataclass(frozen=True)
class Case:
    """One method, under one relation of neighbors where it is private."""

    method: str
    neighbors: str = ""

    @property
    def code(self) -> str:
        return PRIVATE_CODE if self.neighbors else OPEN_CODE

    def epsilons(self, quick: bool) -> tuple[float | None, ...]:
        if not self.neighbors:
            return (None,)
        return QUICK_EPSILONS if quick else EPSILONS


def cases(solvers: Sequence[str]) -> list[Case]:
    """Return everything that is compared."""
    private = [Case(name, REPLACE) for name in solvers]
    if DEFAULT in solvers:
        private.append(Case(DEFAULT, ADD))
    return [*map(Case, baselines.BY_MEANS), Case(PLAIN), *private]


def private_predictions(
    split: Split, case: Case, epsilon: float, run: int
) -> NDArray[np.float64]:
    """Fit a private solver with its defaults, and predict what was held out."""
    model = MatrixCompletion(
        case.method,
        epsilon,
        DELTA,
        items=split.n_items,
        rating_range=split.rating_range,
        neighbors=case.neighbors,
        expected_users=split.n_users if case.neighbors == ADD else None,
        random_state=Seed(run),
    )
    model.fit(split.train)
    return np.asarray(model.predict(np.column_stack([split.users, split.items])))


class Measuring:
    """What is measured on one set; settings and splits are made where needed."""

    def __init__(self, problem: Problem, log: Log, quick: bool) -> None:
        self.problem, self.log, self.quick = problem, log, quick
        self._plain: baselines.PlainALS | None = None

    def rows_of(self, case: Case) -> list[Mapping[str, str]]:
        """Return the lines that are there already."""
        found = self.problem.name, case.method, case.neighbors
        names = "dataset", "method", "neighbors"
        return [r for r in self.log.rows if tuple(r[n] for n in names) == found]

    def plain(self) -> baselines.PlainALS:
        """Return settings without privacy: of lines that are there, or chosen now."""
        if self._plain is None:
            known = self.rows_of(Case(PLAIN))
            if self.problem.rank is not None:
                self._plain = baselines.of_known_rank(self.problem.rank)
            elif known:
                rank, ridge, power = (known[0][n] for n in ("rank", "ridge", "power"))
                self._plain = baselines.PlainALS(int(rank), float(ridge), float(power))
            else:
                self._plain = baselines.tuned(self.problem.tuning())
        return self._plain

    def predicted(
        self, split: Split, case: Case, epsilon: float | None, run: int
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Return predictions and the settings that were chosen."""
        if case.method in baselines.BY_MEANS:
            return baselines.BY_MEANS[case.method](split), {}
        if case.method == PLAIN:
            model = self.plain()
            names = ("rank", "ridge", "power")
            return model.predict(split), {n: getattr(model, n) for n in names}
        return private_predictions(split, case, epsilon, run), {}

    def missing(self, case: Case, run: int) -> list[float | None]:
        """Return the epsilons that this run still has to measure.

        None where the seconds of earlier runs are more than the solver is allowed.
        """
        rows = self.rows_of(case)
        earlier = [row for row in rows if int(row["run"]) < run]
        if earlier and sum(float(row["seconds"]) for row in earlier) > ALLOWANCE:
            return []
        have = {row["epsilon"] for row in rows if int(row["run"]) == run}
        wanted = case.epsilons(self.quick)
        return [e for e in wanted if ("" if e is None else str(e)) not in have]

    def measure(self, run: int, among: Sequence[Case]) -> None:
        """Measure what is missing of one run."""
        wanted = [(case, e) for case in among for e in self.missing(case, run)]
        split = self.problem.split(run) if wanted else None
        for case, epsilon in wanted:
            if case.method == PLAIN:
                self.plain()
            start = process_time()
            found, settings = self.predicted(split, case, epsilon, run)
            seconds = process_time() - start
            self.log.append(
                {
                    "dataset": self.problem.name,
                    "n_users": self.problem.n_users,
                    "n_items": self.problem.n_items,
                    "n_ratings": self.problem.n_ratings,
                    "method": case.method,
                    "neighbors": case.neighbors,
                    "epsilon": epsilon,
                    "run": run,
                    "rmse": split.rmse(found),
                    "seconds": round(seconds, 3),
                    "code": case.code,
                    **settings,
                }
            )


def grouped(
    rows: Sequence[Mapping[str, str]],
) -> dict[tuple[str, ...], dict[int, float]]:
    """Return the errors of lines that differ in the run alone, by the run."""
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for row in rows:
        key = tuple(row[name] for name in KEYS)
        found.setdefault(key, {})[int(row["run"])] = float(row["rmse"])
    return found


def spread_of(errors: Sequence[float]) -> float | None:
    """Return the standard error of a mean, where there are two numbers."""
    return stdev(errors) / sqrt(len(errors)) if len(errors) > 1 else None


def is_better(errors: Mapping[int, float], beside: Mapping[int, float]) -> bool:
    """Return whether a method beats another on the same test ratings.

    By two standard errors, as a tie is not a win.
    """
    runs = sorted(set(errors) & set(beside))
    ahead = [beside[run] - errors[run] for run in runs]
    return bool(ahead) and mean(ahead) > 2 * (spread_of(ahead) or 0.0)


def table(rows: Sequence[Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield a line for each method of each set, with a column for each epsilon."""
    errors = grouped(rows)
    sizes = {
        row["dataset"]: f"{int(row['n_users']):,} x {int(row['n_items']):,}"
        for row in rows
    }
    epsilons = sorted({key[3] for key in errors} - {""}, key=float)
    for dataset, method, neighbors in dict.fromkeys(key[:3] for key in errors):
        own = {
            key[3]: e
            for key, e in errors.items()
            if key[:3] == (dataset, method, neighbors)
        }
        line = {
            "part": f"{dataset}, {sizes[dataset]}",
            "method": method,
            "neighbors": neighbors,
            **{f"epsilon {e}": told(own.get(e)) for e in epsilons},
            "no epsilon": told(own.get("")),
            "runs": max(map(len, own.values())),
        }
        for name in TRIVIAL:
            beside = errors.get((dataset, name, "", ""), {})
            line[f"better than {name}"] = words(own, beside) if neighbors else ""
        yield line


def told(errors: Mapping[int, float] | None) -> str:
    """Return the mean of some runs with its standard error."""
    if not errors:
        return ""
    found, off = mean(errors.values()), spread_of(list(errors.values()))
    return f"{found:.4f} (one run)" if off is None else f"{found:.4f} ± {off:.4f}"


def words(curve: Mapping[str, Mapping[int, float]], beside: Mapping[int, float]) -> str:
    """Return in words at which epsilons a curve is below a baseline."""
    ordered = sorted(curve, key=float)
    won = [e for e in ordered if is_better(curve[e], beside)]
    if not won:
        return "nowhere"
    if won == ordered:
        return "everywhere"
    if won == ordered[-len(won) :]:
        return f"from {float(won[0]):g} on"
    return "at " + ", ".join(f"{float(e):g}" for e in won)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small sets")
    parser.add_argument("--sets", nargs="+", choices=PROBLEMS, help="these alone")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, help="these alone")
    parser.add_argument("--runs", type=int, help="at most so many")
    given = parser.parse_args(argv)
    quick, start = given.quick, perf_counter()
    sets = given.sets or (QUICK_SETS if quick else WHOLE_SETS)
    runs = given.runs or (QUICK_RUNS if quick else RUNS)
    among = cases(given.solvers or tuple(SOLVERS))
    current = {OPEN_CODE, PRIVATE_CODE}
    with RESULTS.log(
        "accuracy", FIELDS, lambda row: row["code"] in current, quick=quick
    ) as log:
        for name in sets:
            measuring = Measuring(PROBLEMS[name](), log, quick)
            for run in range(min(runs, measuring.problem.runs)):
                measuring.measure(run, among)
            print(f"{name} after {perf_counter() - start:.0f} s", flush=True)
        print(markdown(table(log.rows)))


if __name__ == "__main__":
    main()
