"""Test accuracy of every column on every set, appended to a file one fit a line.

``--quick`` runs the default at the epsilons that have a bar, and every column at
epsilon 0.1 and 1 on the small sets, twice. ``--full`` runs the whole grid, the most
telling fits first: stop it at any time, and start it again to go on. ``--estimate``
says how long the grid takes, from the fits measured so far.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from benchmarks.erm import report, results
from benchmarks.erm.columns import COLUMNS, NON_PRIVATE_EPSILON
from benchmarks.erm.data import SETS, split, stored

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LOSSES = ("logistic", "svm")
RUNS = 10
QUICK_RUNS, QUICK_EPSILONS = 2, (0.1, 1.0)
QUICK_SETS = ("synthetic_l", "adult", "kddcup99", "synthetic_h")

# Sets whose fits take seconds to a minute: fewer runs of all columns but the default.
# The tables print how many there were.
LARGE_SETS = ("covertype", "mnist", "newsgroups20")
LARGE_RUNS, SLOW_RUNS = 3, 1
SLOW_COLUMNS = ("entries", "frank_wolfe_1", "frank_wolfe_10", "non_private")
# columns of the second wave: what the default is compared with first
FIRST_RIVALS = ("non_private", "hf_amp", "amp", "noisy_gd", "diffprivlib")


@dataclass(frozen=True, order=True)
class Job:
    """Fits that share a split, a loss and a column, at some epsilons."""

    wave: int
    run: int
    name: str
    loss: str
    column: str
    epsilons: tuple[float, ...]


def n_runs(name: str, column: str, most: int = RUNS) -> int:
    if name not in LARGE_SETS or column == "default":
        return most
    return min(most, SLOW_RUNS if column in SLOW_COLUMNS else LARGE_RUNS)


def wave_of(name: str, column: str, epsilon: float) -> int:
    """Return how soon a fit is wanted: bars, defaults, first rivals, the rest."""
    if column == "default":
        return 0 if epsilon in report.BARS.get(name, {}) else 1
    if not COLUMNS[column].private:
        return 1
    return 2 if column in FIRST_RIVALS and epsilon in QUICK_EPSILONS else 3


def grid(names, losses, columns, epsilons, runs) -> list[Job]:
    """Return all jobs in the order to run them in."""
    grouped = defaultdict(list)
    for name in names:
        for loss in losses:
            for column in columns:
                levels = epsilons if COLUMNS[column].private else (NON_PRIVATE_EPSILON,)
                for run in range(n_runs(name, column, runs)):
                    for epsilon in levels:
                        wave = wave_of(name, column, epsilon)
                        grouped[wave, run, name, loss, column].append(epsilon)
    # by run before set, so that all sets have figures early; a set's jobs stay together
    return [
        Job(*key, tuple(levels))
        for key, levels in sorted(
            grouped.items(),
            key=lambda item: (*item[0][:2], _position(item[0]), item[0]),
        )
    ]


def _position(key):
    return list(SETS).index(key[2])


def quick() -> list[Job]:
    """Return the default at its bars, then all columns on the small sets."""
    defaults = grid(SETS, LOSSES, ["default"], EPSILONS, QUICK_RUNS)
    bars = [job for job in defaults if job.wave == 0]
    rivals = grid(QUICK_SETS, LOSSES, COLUMNS, QUICK_EPSILONS, QUICK_RUNS)
    return bars + [job for job in rivals if job.wave > 0]


def work(jobs: list[Job]) -> int:
    """Run jobs of one split, writing each fit as soon as it is there."""
    for job in jobs:
        rows = split(job.name, job.run)
        for fit in COLUMNS[job.column].run(
            rows, job.loss, list(job.epsilons), 7919 * job.run
        ):
            results.append(job.name, job.loss, job.column, job.run, fit)
    return sum(len(job.epsilons) for job in jobs)


def run(jobs: list[Job], workers: int, same_code: bool = False) -> None:
    """Run what the file does not hold yet."""
    results.start()
    done = results.finished(same_code)
    batches: dict[tuple, list[Job]] = {}
    for job in jobs:
        left = tuple(
            e
            for e in job.epsilons
            if (job.name, job.loss, job.column, e, job.run) not in done
        )
        if left:
            key = (job.wave, job.run, job.name, job.loss)
            batches.setdefault(key, []).append(
                Job(job.wave, job.run, job.name, job.loss, job.column, left)
            )
    total = sum(len(j.epsilons) for batch in batches.values() for j in batch)
    print(f"{total} fits to run, {workers} at a time.", flush=True)
    for name in dict.fromkeys(key[2] for key in batches):
        stored(name)  # once, before the workers ask for it together
    finished = 0
    with ProcessPoolExecutor(workers) as pool:
        waiting = {pool.submit(work, batch): key for key, batch in batches.items()}
        for future in as_completed(waiting):
            finished += future.result()
            _, number, name, loss = waiting[future]
            print(f"{finished}/{total}  {name} {loss} run {number}", flush=True)


def chosen(given) -> list[Job]:
    if given.quick:
        return quick()
    return grid(
        given.sets or SETS,
        given.losses or LOSSES,
        given.columns or COLUMNS,
        given.epsilons or EPSILONS,
        given.runs,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--quick", action="store_true")
    what.add_argument("--full", action="store_true", help="the default")
    parser.add_argument("--estimate", action="store_true", help="run nothing")
    parser.add_argument("--sets", nargs="*", choices=SETS)
    parser.add_argument("--losses", nargs="*", choices=LOSSES)
    parser.add_argument("--columns", nargs="*", choices=COLUMNS)
    parser.add_argument("--epsilons", nargs="*", type=float)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--same-code",
        action="store_true",
        help="measure again what another state of the library has measured",
    )
    given = parser.parse_args()
    jobs = chosen(given)
    if given.estimate:
        print(report.cost(jobs))
        return 0
    run(jobs, given.workers, given.same_code)
    print(report.markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
