"""Accuracy and R2 on held-out rows of additive models and of what else there is.

``python -m benchmarks.additive.accuracy`` appends one line a fit to a file and resumes
where it was stopped; ``--quick`` takes two small tables, two splits and epsilon 1, and
no slow method.
``--sets``, ``--epsilons``, ``--splits`` and ``--methods`` choose parts. Nothing is
tuned. One process, one thread.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import process_time

import numpy as np
from benchmarks.additive import results
from benchmarks.additive.data import (
    SETS,
    TRAIN_SHARE,
    category_codes,
    n_train,
    order,
    split,
    table,
)
from benchmarks.additive.methods import (
    METHODS,
    Method,
    Spend,
    additive_classes,
    n_runs,
    offered,
    timed_fit,
)
from benchmarks.additive.results import Line
from benchmarks.peers.client import PeerFailed, stream
from threadpoolctl import threadpool_limits

from tacit.exceptions import PlanError

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RUNS, QUICK_RUNS = 10, 2
QUICK_SETS, QUICK_EPSILONS = ("adult", "abalone"), (1.0,)
# rows of a first fit that is not timed, so that nothing is compiled in a timed one
WARM_ROWS = 300


@dataclass(frozen=True)
class Protocol:
    """How rows are divided, and what is guaranteed for them."""

    name: str
    share: float
    neighbors: str
    delta_power: float
    runs: int
    epsilons: dict[str, tuple[float, ...]]  # by table
    methods: tuple[str, ...] = tuple(METHODS)

    def delta(self, n_rows: int) -> float:
        return float(n_rows**-self.delta_power)


# the tables of this library, and those of S-GBDT as published
USUAL = Protocol(
    "usual", TRAIN_SHARE, "replace_one", 2.0, RUNS, dict.fromkeys(SETS, EPSILONS)
)
PUBLISHED = Protocol(
    "s_gbdt",
    0.9,
    "add_or_remove_one",
    1.5,
    5,
    {"abalone": (0.15, 0.54), "adult": (0.07, 0.54)},
    ("additive", "additive_pairs", "linear", "dp_ebm", "dp_ebm_rate"),
)


@dataclass(frozen=True)
class Job:
    """One fit."""

    protocol: Protocol
    name: str
    method: Method
    epsilon: float | None
    run: int

    @property
    def key(self) -> results.Key:
        kept = self.protocol.name, self.name, self.method.name
        return (*kept, self.epsilon, self.run)

    def spend(self, n_rows: int) -> Spend:
        """Return the budget, with noise of its own for each fit."""
        text = "/".join(map(str, self.key)).encode()
        seed = int(np.random.SeedSequence(list(text)).generate_state(1)[0] >> 1)
        protocol = self.protocol
        epsilon = 0.0 if self.epsilon is None else self.epsilon
        return Spend(epsilon, protocol.delta(n_rows), seed, protocol.neighbors)

    def line(self, score: float | None, cpu_s: float, status: str, note: str) -> Line:
        code = self.method.code or results.code_digest()
        return Line(*self.key, score, round(cpu_s, 4), status, note, code)


def grid(
    protocol: Protocol,
    names: Iterable[str],
    methods: Iterable[str],
    epsilons: Iterable[float] | None,
    runs: int,
) -> list[Job]:
    """Return all fits; epsilons that a protocol does not have are left out."""
    jobs = []
    for name in names:
        levels = protocol.epsilons.get(name, ())
        if epsilons is not None and protocol is USUAL:
            levels = tuple(epsilons)
        for method in (METHODS[n] for n in methods if n in protocol.methods):
            if not levels:
                continue
            for run in range(n_runs(name, method, min(runs, protocol.runs))):
                for epsilon in levels if method.private else (None,):
                    jobs.append(Job(protocol, name, method, epsilon, run))
    return jobs


def here(jobs: list[Job]) -> Iterator[Line]:
    """Fit in this process, a split at a time."""
    warmed = set()
    for job in sorted(jobs, key=lambda job: (job.protocol.name, job.run)):
        if job.method.name not in warmed:
            warmed.add(job.method.name)
            _warm(job)
        yield _fit_here(job)


def _warm(job: Job) -> None:
    few = table(job.name).take(order(len(table(job.name).y), 0)[:WARM_ROWS])
    with suppress(Exception):  # the timed fit will say what is wrong
        job.method.fit(few, job.spend(WARM_ROWS))


def _fit_here(job: Job) -> Line:
    rows = split(job.name, job.run, job.protocol.share)
    try:
        spend = job.spend(len(rows.train.y))
        score, took = timed_fit(job.method, rows, spend, process_time)
    except PlanError as error:
        return job.line(None, 0.0, "rejected", _one_line(error))
    except Exception as error:  # one fit must not stop the others
        note = f"{type(error).__name__}: {_one_line(error)}"
        return job.line(None, 0.0, "failed", note)
    return job.line(score, took, "ok", "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def at_the_peer(name: str, jobs: list[Job]) -> Iterator[Line]:
    """Fit in one process of the peer, the private ones first."""
    jobs = sorted(jobs, key=lambda job: (job.method.slow, job.run))
    rows = table(name)
    n, codes = len(rows.y), [category_codes(rows, c) for c in rows.categories]
    last = max(job.run for job in jobs)
    arrays = {
        "numbers": rows.frame[list(rows.ranges)].to_numpy(np.float64),
        "codes": np.stack(codes, axis=1) if codes else np.zeros((n, 0), np.int64),
        "y": rows.y,
        "orders": np.stack([order(n, run) for run in range(last + 1)]).astype(np.int32),
    }
    given = {
        "ranges": dict(rows.ranges),
        "categories": {c: list(listed) for c, listed in rows.categories.items()},
        "y_range": rows.y_range,
        "jobs": [_asked(job, n) for job in jobs],
    }
    try:
        for found in stream("interpret", "fit_interpret.py", arrays, given):
            job = jobs[found["job"]]
            yield job.line(
                found["score"], found["cpu_s"], found["status"], found["note"]
            )
    except PeerFailed as failure:
        print(f"{name}: {failure}", file=sys.stderr, flush=True)


def _asked(job: Job, n_rows: int) -> dict:
    fitted = n_train(n_rows, job.protocol.share)
    spend = job.spend(fitted)
    return {
        "method": job.method.name,
        "epsilon": spend.epsilon,
        "delta": spend.delta,
        "run": job.run,
        "n_train": fitted,
        "seed": spend.seed,
    }


def run(jobs: list[Job], file=results.FILE, *, same_code: bool = False) -> None:
    """Run what the file does not hold yet, a table at a time."""
    done = results.finished(file, same_code=same_code)
    left = [job for job in jobs if job.key not in done]
    print(f"{len(left)} of {len(jobs)} fits to run.", flush=True)
    for name in dict.fromkeys(job.name for job in left):
        own = [job for job in left if job.name == name]
        for job in [job for job in own if offered(name, job.method)]:
            reason = offered(name, job.method)
            results.append(job.line(None, 0.0, "rejected", reason), file)
        own = [job for job in own if not offered(name, job.method)]
        local = [job for job in own if not job.method.is_peer]
        peers = [job for job in own if job.method.is_peer]
        for found in here(local):
            _note(found, file)
        if peers:
            for found in at_the_peer(name, peers):
                _note(found, file)


def _note(line: Line, file) -> None:
    results.append(line, file)
    score = line.note if line.score is None else f"{line.score:.4f}"
    level = "" if line.epsilon is None else f" at {line.epsilon:g}"
    print(
        f"{line.name}, {line.method}{level}, split {line.run}: {score}, "
        f"{line.cpu_s:.2f} s",
        flush=True,
    )


def available(methods: Iterable[str]) -> list[str]:
    """Return the methods that this version of the library has."""
    try:
        additive_classes()
    except ImportError:
        print("tacit.additive is missing: its methods are left out.", flush=True)
        return [name for name in methods if not name.startswith("additive")]
    return list(methods)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="*", choices=SETS)
    parser.add_argument("--methods", nargs="*", choices=METHODS)
    parser.add_argument("--epsilons", nargs="*", type=float)
    parser.add_argument("--splits", type=int)
    parser.add_argument(
        "--same-code",
        action="store_true",
        help="measure again what another state of the library has measured",
    )
    given = parser.parse_args()
    names = given.sets or (QUICK_SETS if given.quick else SETS)
    epsilons = given.epsilons or (QUICK_EPSILONS if given.quick else None)
    runs = given.splits or (QUICK_RUNS if given.quick else RUNS)
    usual = [m.name for m in METHODS.values() if not (given.quick and m.slow)]
    methods = available(given.methods or usual)
    jobs = grid(USUAL, names, methods, epsilons, runs)
    if not given.quick:
        jobs += grid(PUBLISHED, names, methods, None, runs)
    file = results.QUICK_FILE if given.quick else results.FILE
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(jobs, file, same_code=given.same_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
