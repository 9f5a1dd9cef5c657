"""Mutation testing: a named fast test must fail for each planted bug.

``python -m tools.mutate`` reads the tables in ``tools/mutations/*.toml``, one file per
area. Every mutation is applied to a temporary copy of the package, never to the working
tree, and the tests that it names run against that copy. The exit status is 1 if a
mutation survives its tests, or if its text is no longer in the source.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tacit"
TABLES = Path(__file__).resolve().parent / "mutations"

TIMEOUT = 300.0  # seconds for the tests of one mutation
BASELINE_TIMEOUT = 3600.0
GRACE = 10.0  # for tests to stop the servers that they started

# A pytest plugin: without it a mistake in the path would test the installed package,
# and every mutation would survive.
IMPORT_CHECK = """
import importlib.util, os
import pytest

def pytest_configure(config):
    mutant = os.path.realpath(os.environ["TACIT_MUTANT"]) + os.sep
    found = os.path.realpath(importlib.util.find_spec("tacit").origin)
    if not found.startswith(mutant):
        pytest.exit(f"tacit is imported from {found}", returncode=70)

def pytest_collection_finish(session):
    # after the tests were imported: nothing may have moved the path since
    pytest_configure(session.config)
    # examples that fail on a mutant are not kept for later runs
    from hypothesis.configuration import set_hypothesis_home_dir
    set_hypothesis_home_dir(os.environ["TACIT_MUTANT"])
"""


@dataclass(frozen=True)
class Mutation:
    """One planted bug, and the tests that must fail for it."""

    area: str
    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    why: str
    near: str = ""
    equivalent: str = ""

    def applied(self, source: str) -> str:
        """Return the source with the bug; ValueError if the text is not found."""
        start = 0
        if self.near:
            if source.count(self.near) != 1:
                raise ValueError(f"'near' occurs {source.count(self.near)} times")
            start = source.index(self.near) + len(self.near)
        elif source.count(self.before) != 1:
            raise ValueError(f"'before' occurs {source.count(self.before)} times")
        at = source.find(self.before, start)
        if at < 0:
            raise ValueError("'before' does not occur after 'near'")
        return source[:at] + self.after + source[at + len(self.before) :]


@dataclass(frozen=True)
class Result:
    """What became of one mutation."""

    mutation: Mutation
    outcome: str  # killed, SURVIVED, stale, invalid or equivalent
    detail: str = ""
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether the run must fail because of it."""
        return self.outcome in ("SURVIVED", "stale", "invalid")


def read_table(path: Path) -> list[Mutation]:
    """Return the mutations of one file, whose name is their area."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutation", [])
    return [
        Mutation(area=path.stem, tests=tuple(entry.pop("tests", ())), **entry)
        for entry in entries
    ]


def read_tables() -> list[Mutation]:
    """Return all mutations, by area."""
    return [m for path in sorted(TABLES.glob("*.toml")) for m in read_table(path)]


def kernels_compiled_from(package: Path, file: str) -> set[Path]:
    """Return the compiled modules whose cached machine code contains ``file``.

    Numba caches a kernel by its own file, but compiles what it calls, and constants,
    into it.
    """
    compiled = {}
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "from numba import" in source:
            nodes = ast.walk(ast.parse(source))
            compiled[path] = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    stale, found = set(), {package / file}
    while found:
        stale |= found
        names = {_module(package, path) for path in found}
        found = {p for p, imports in compiled.items() if imports & names} - stale
    return stale


def _module(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


def write_mutant(package: Path, mutation: Mutation) -> None:
    """Apply a mutation to a copy of the package."""
    path = package / mutation.file
    path.write_text(mutation.applied(path.read_text("utf-8")), encoding="utf-8")
    for changed in kernels_compiled_from(package, mutation.file):
        for cached in (changed.parent / "__pycache__").glob(f"{changed.stem}.*"):
            cached.unlink()


def run_tests(
    folder: Path, tests: Iterable[str], timeout: float, *options: str
) -> tuple[int | None, str]:
    """Return the exit status, None if out of time, and the output of the tests."""
    (folder / "check_mutant_import.py").write_text(IMPORT_CHECK, encoding="utf-8")
    path = [str(folder), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in path if p),
        "TACIT_MUTANT": str(folder),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", "-p", "check_mutant_import", "--tb=line"]
    # a group of its own, so that what the tests started ends with them
    process = subprocess.Popen(
        [*command, *options, *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return None, output


def judged(status: int | None, output: str) -> tuple[str, str]:
    """Return the outcome of the tests of a mutant, and what shows it."""
    if status is None or "+++ Timeout +++" in output or "Failed: Timeout" in output:
        return "killed", "timeout"
    if status == 0:
        return "SURVIVED", ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    if status in (1, 2) and failed:
        return "killed", failed.group(1)
    if status < 0:  # a signal: the interpreter itself crashed
        return "killed", f"exit status {status}"
    return "invalid", " ".join(output.split()[-20:])


def try_mutation(original: Path, mutation: Mutation, timeout: float) -> Result:
    """Run the tests of one mutation on a copy of the package."""
    if mutation.equivalent:
        return Result(mutation, "equivalent", mutation.equivalent)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tacit-mutant-") as name:
        folder = Path(name)
        # with times of files, by which Python and Numba know what they compiled
        shutil.copytree(original / "tacit", folder / "tacit")
        try:
            write_mutant(folder / "tacit", mutation)
        except FileNotFoundError:
            return Result(
                mutation, "stale", f"no such file below src/tacit: {mutation.file}"
            )
        except (OSError, ValueError) as error:
            return Result(mutation, "stale", str(error))
        status, output = run_tests(folder, mutation.tests, timeout, "-x")
    outcome, detail = judged(status, output)
    return Result(mutation, outcome, detail, time.monotonic() - start)


def run(mutations: Sequence[Mutation], workers: int, timeout: float) -> list[Result]:
    """Run the tests without a mutation, then for each one; print as they end."""
    tests = sorted({test for m in mutations if not m.equivalent for test in m.tests})
    with tempfile.TemporaryDirectory(prefix="tacit-original-") as name:
        original = Path(name)
        shutil.copytree(PACKAGE, original / "tacit")
        if tests:
            status, output = run_tests(original, tests, BASELINE_TIMEOUT)
            if status != 0:
                print(output)
                raise SystemExit("The tests fail without a mutation.")
            print(output.strip().splitlines()[-1] + ", without a mutation", flush=True)
        results = []
        with ThreadPoolExecutor(workers) as pool:
            jobs = [pool.submit(try_mutation, original, m, timeout) for m in mutations]
            for job in as_completed(jobs):
                results.append(job.result())
                print(line(results[-1]), flush=True)
    return results


def line(result: Result) -> str:
    """Return one row of the table that is printed."""
    m = result.mutation
    name = f"{m.area}/{m.name}"
    return f"{name:56} {result.outcome:10} {result.seconds:5.0f} s  {result.detail}"


def summary(results: Sequence[Result]) -> str:
    """Return the kill rate, of mutations that a test can kill."""
    killed = sum(r.outcome == "killed" for r in results)
    equivalent = sum(r.outcome == "equivalent" for r in results)
    total = len(results) - equivalent
    rate = f"{killed / total:.1%}" if total else "none"
    bad = ", ".join(r.mutation.name for r in results if r.bad)
    tail = f"; not killed: {bad}" if bad else ""
    return f"killed {killed} of {total} ({rate}), {equivalent} equivalent{tail}"


def chosen(mutations: list[Mutation], options: argparse.Namespace) -> list[Mutation]:
    """Return the mutations that were asked for; SystemExit for unknown names.

    A name may have its area before it, as ``--list`` prints it.
    """
    names = {n for m in mutations for n in (m.name, f"{m.area}/{m.name}")}
    unknown = set(options.only) - names
    unknown |= set(options.area) - {m.area for m in mutations}
    if unknown:
        raise SystemExit(f"No such mutation or area: {', '.join(sorted(unknown))}.")
    return [
        m
        for m in mutations
        if (not options.only or {m.name, f"{m.area}/{m.name}"} & set(options.only))
        and (not options.area or m.area in options.area)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--area", nargs="+", default=[], metavar="AREA")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS")
    parser.add_argument("--list", action="store_true", help="print, and run nothing")
    options = parser.parse_args(arguments)
    mutations = chosen(read_tables(), options)
    if options.list:
        for m in mutations:
            print(f"{m.area}/{m.name}: {m.file}: {m.why}")
        return 0
    results = run(mutations, options.workers, options.timeout)
    print(summary(results))
    return int(any(result.bad for result in results))


if __name__ == "__main__":
    sys.exit(main())
