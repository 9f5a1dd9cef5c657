"""Seconds of imports, of a fit at the command line and of its plan.

    python -m benchmarks.imports [--repeats 5]

Each runs in a process of its own. Prints the median processor seconds, which other work
on the machine moves less than those of a clock, their ratio to those of ``import
sklearn.linear_model``, and the number of the library's modules.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

IMPORTS = {
    "import sklearn.linear_model": "import sklearn.linear_model",
    "import tacit": "import tacit",
    "import tacit.linear_model": "import tacit.linear_model",
    "LogisticRegression(1.0)": (
        "from tacit.linear_model import LogisticRegression\nLogisticRegression(1.0)"
    ),
}
RUN = """
import sys
from contextlib import suppress
from tacit.cli import main
with suppress(SystemExit):
    main(sys.argv[1:])
"""
COUNT = "\nimport sys; print(sum(m.startswith('tacit') for m in sys.modules))"
SETTING = """
example census.csv
schema init census.csv --target high_income --out census.toml
schema confirm census.toml --all
ledger init --ledger sqlite:///budget.db --dataset census --epsilon 1000 --delta 1e-3
"""
GUARANTEE = "--epsilon 1 --delta 1e-7 --ledger sqlite:///budget.db --quiet"
COMMANDS = {
    "tacit fit": f"fit census.csv --schema census.toml {GUARANTEE} --out model --force",
    "tacit plan": f"plan --rows 50000 --schema census.toml {GUARANTEE}",
}


def finished(code: str, *arguments: str) -> str:
    """Return the last line that a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return (done.stdout.splitlines() or [""])[-1]


def seconds(code: str, *arguments: str) -> float:
    """Return the processor seconds of a new process."""
    start = spent()
    finished(code, *arguments)
    return spent() - start


def spent() -> float:
    """Return the processor seconds of all processes that finished."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    # the files of a source tree are found from another folder too
    tree = str(Path(__file__).resolve().parents[1] / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([tree, os.environ.get("PYTHONPATH", "")])
    cases = {name: (code,) for name, code in IMPORTS.items()}
    cases |= {name: (RUN, *line.split()) for name, line in COMMANDS.items()}
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in SETTING.strip().splitlines():
            finished(RUN, *line.split())
        # one after the other, so that a busy machine slows all of them
        times = [
            {n: seconds(*case) for n, case in cases.items()} for _ in range(repeats)
        ]
        baseline = median(each["import sklearn.linear_model"] for each in times)
        print(f"{'':28} {'seconds':>8} {'ratio':>6} {'modules':>8}")
        for name, (code, *arguments) in cases.items():
            took = median(each[name] for each in times)
            modules = finished(code + COUNT, *arguments)
            print(f"{name:28} {took:8.2f} {took / baseline:6.2f} {modules:>8}")
        os.chdir("/")


if __name__ == "__main__":
    main()
