"""Read and fit a CSV file that is larger than memory.

Writes a file of the size asked for to a temporary folder, reads it and fits a logistic
regression in a process whose memory is limited to a gibibyte, prints time and memory,
and removes the file.

    python benchmarks/big_csv.py --gigabytes 10
"""

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tacit import Seed
from tacit._random import as_generator

COLUMNS = 100
GIB = 2**30


def write(path, size):
    """Write made-up rows until the file has this many bytes."""
    rng = as_generator(0)
    weights = rng.normal(size=COLUMNS) / COLUMNS**0.5
    pool = []
    # a few thousand different rows, again and again: formatting numbers takes longest
    X = rng.uniform(-1, 1, (4000, COLUMNS))
    chance = 1 / (1 + np.exp(-6 * X @ weights))
    labels = np.where(rng.uniform(size=len(X)) < chance, "yes", "no")
    for row, label in zip(X, labels, strict=True):
        pool.append(",".join(f"{value:.5f}" for value in row) + f",{label}\n")
    block = "".join(pool).encode()
    with open(path, "wb") as file:
        file.write((",".join(f"x{j}" for j in range(COLUMNS)) + ",y\n").encode())
        while file.tell() < size:
            file.write(block)


def measure(path, limit, scratch):
    """Read and fit, with so much memory for everything but files."""
    # loaded first, as on any machine the code itself is not what fills it
    from tacit.linear_model import LogisticRegression  # noqa: PLC0415
    from tacit.tables import Column, Schema, read_rows  # noqa: PLC0415

    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    schema = Schema(
        tuple(Column(f"x{j}", "number", (-1, 1)) for j in range(COLUMNS)),
        Column("y", "category", categories=("no", "yes")),
    )
    start = time.perf_counter()
    X, y = read_rows(path, schema, scratch=scratch)
    read = time.perf_counter() - start
    where = "on disk" if isinstance(X, np.memmap) else "in memory"
    print(f"{len(X)} rows of {X.nbytes / 1e9:.2f} GB {where}, read in {read:.1f} s")
    print(f"after reading: {memory()}")
    start = time.perf_counter()
    model = LogisticRegression(
        1.0, x_norm=schema.row_norm, classes=schema.target.labels, random_state=Seed(0)
    ).fit(X, y)
    fit = time.perf_counter() - start
    print(f"fitted in {fit:.1f} s, accuracy {model.score(X[:4000], y[:4000]):.3f}")
    print(f"at the end: {memory()}")


def memory():
    """Return the peak of memory, and what is in use now without pages of files."""
    status = Path("/proc/self/status").read_text("utf-8")
    found = dict(re.findall(r"(\w+):\s+(\d+) kB", status))
    shown = {"VmHWM": "peak with files", "RssAnon": "anonymous now", "VmData": "data"}
    return ", ".join(
        f"{text} {int(found[k]) / 1e6:.2f} GB" for k, text in shown.items()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--limit", type=float, default=1.0, help="memory in GiB")
    parser.add_argument("--folder", help="where to write; a temporary one by default")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    limit = int(given.limit * GIB)
    if given.measure:
        measure(given.measure, limit, Path(given.measure).parent)
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "big.csv"
        start = time.perf_counter()
        write(path, int(given.gigabytes * 1e9))
        print(f"wrote {path.stat().st_size / 1e9:.2f} GB", end=" ")
        print(f"in {time.perf_counter() - start:.1f} s", flush=True)
        # a process of its own, so that writing the file counts for nothing
        command = [sys.executable, __file__, "--measure", str(path)]
        return subprocess.run([*command, "--limit", str(given.limit)]).returncode


if __name__ == "__main__":
    sys.exit(main())
