"""Commands in processes of their own, which can be killed for good."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.tables import Results, arguments, markdown

from tacit.cli import main as tacit
from tacit.tables import Column, Schema

__all__ = [
    "CODE",
    "ILL",
    "PAY",
    "ended",
    "forked",
    "put_schema",
    "run_cases",
    "started",
]

# What a new interpreter runs
CODE = "from tacit.cli import main; main()"

AGE = Column("age", "number", range=(0, 100))
SEX = Column("sex", "category", categories=("f", "m"))
PAY = Column("pay", "number", range=(0, 10))
ILL = Column("ill", "category", categories=("no", "yes"))


def put_schema(folder: Path, target: Column) -> None:
    """Write the schema of the made-up people of both benchmarks to ``t.toml``."""
    columns = [column for column in (AGE, SEX, PAY, ILL) if column != target]
    Schema(tuple(columns), target=target).save(folder / "t.toml")


def forked(given: list[str]) -> int:
    """Run a command in a fork of this process, and return which it is."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        tacit(given)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def started(given: list[str]) -> int:
    """Run a command in a new interpreter, and return which process it is."""
    quiet = [
        (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)
    ]
    words = [sys.executable, "-c", CODE, *given]
    return os.posix_spawn(sys.executable, words, os.environ, file_actions=quiet)


def ended(child: int, seconds: float = 0.0) -> int:
    """Kill a process unless it ends within so many seconds; return its exit code."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_cases(
    argv: Sequence[str] | None,
    description: str | None,
    results: Results,
    cases: Callable[[bool], Sequence[Any]],
    measured: Callable[[Path, Any], dict[str, Any]],
    sound: Callable[[dict[str, Any]], bool],
) -> None:
    """Measure all cases; end with code 1 unless each row is sound."""
    quick = arguments(argv, description).quick
    rows = []
    for case in cases(quick):
        with TemporaryDirectory() as folder:
            rows.append(measured(Path(folder), case))
    print(markdown(rows))
    results.save("kills", rows, quick=quick)
    sys.exit(not all(map(sound, rows)))
