"""Run one suite of benchmarks: ``python -m benchmarks erm --quick``.

A suite is a list of modules, each with its arguments; the quick form takes minutes and
the full one up to some hours. A full run resumes where it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Suite:
    """Modules of `benchmarks` to run in turn, and the peers that they need."""

    full: tuple[str, ...]
    quick: tuple[str, ...]
    peers: tuple[str, ...] = ()
    quick_peers: tuple[str, ...] = ()


def parts(package: str, names: str, *, peers: tuple[str, ...] = ()) -> Suite:
    """Return a suite of parts that take ``--quick``, and a report at the end."""
    listed = [f"{package}.{name}" for name in names.split()]
    return Suite(
        full=(*listed, f"{package}.report --docs"),
        quick=(*(f"{part} --quick" for part in listed), f"{package}.report"),
        peers=peers,
        quick_peers=peers,
    )


EVERY_PEER = ("sklearn", "torch", "jax", "celer", "implicit")
WORKERS = os.environ.get("WORKERS", "2")

SUITES = {
    "headline": Suite(full=("headline",), quick=("headline --quick",)),
    "erm": Suite(
        full=(
            f"erm.accuracy --full --workers {WORKERS}",
            "erm.report",
            "erm.dimension",
            "erm.speed",
            "frank_wolfe_speed",
        ),
        quick=(f"erm.accuracy --quick --workers {WORKERS}",),
        peers=EVERY_PEER,
        quick_peers=EVERY_PEER,
    ),
    "cd": Suite(
        full=("cd.run", "cd.report", "cd.speed", "cd.greedy_speed"),
        quick=("cd.algorithms", "cd.sgd", "cd.run --quick", "cd.report --quick"),
        peers=EVERY_PEER,
    ),
    "regression": Suite(
        full=(
            "regression.grid",
            "regression.accuracy",
            "regression.support",
            "regression.counterexample",
            "regression.search",
            "regression.report --docs",
        ),
        quick=(
            "regression.grid --quick",
            "regression.accuracy --quick",
            "regression.support --quick",
            "regression.counterexample",
            "regression.search --quick",
            "regression.report",
        ),
        peers=EVERY_PEER,
        quick_peers=EVERY_PEER,
    ),
    "features": Suite(
        full=("random_features --docs",), quick=("random_features --quick",)
    ),
    "additive": Suite(
        full=("additive.accuracy", "additive.report --docs"),
        quick=("additive.accuracy --quick", "additive.report --quick"),
        peers=("interpret",),
        quick_peers=("interpret",),
    ),
    "streams": parts("streams", "prefix regret hedge real incremental kills"),
    "ensemble": parts("ensemble", "reference factor accuracy speed kills"),
    "recommend": parts(
        "recommend", "reference plateau accuracy speed", peers=("implicit",)
    ),
    "fairness": parts("fairness", "table ladder ridge sweeps"),
    "audit-peers": parts(
        "audit_peers", "promises chosen estimators one_run", peers=("sklearn",)
    ),
}


def run(suite: Suite, *, quick: bool) -> None:
    """Install the peers of a suite, and run its modules one after the other."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    peers = suite.quick_peers if quick else suite.peers
    commands = [f"peers.install {' '.join(peers)}"] if peers else []
    for command in (*commands, *(suite.quick if quick else suite.full)):
        print(f"python -m benchmarks.{command}", flush=True)
        module, *arguments = command.split()
        subprocess.run(
            [sys.executable, "-m", f"benchmarks.{module}", *arguments],
            cwd=ROOT,
            env=environment,
            check=True,
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--quick", action="store_true", help="minutes instead of hours")
    options = parser.parse_args()
    run(SUITES[options.suite], quick=options.quick)


if __name__ == "__main__":
    main()
