"""``tacit fit`` against the library call plus reading the file, on Covertype.

Both sides are processes of their own, one after the other, several times. The library
side reads the same Parquet file, brings its columns to the same ranges and fits the
same model; it writes nothing. ``tacit fit`` also checks the values, charges a ledger on
disk, and writes the model, its report and its card.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from tacit.datasets._ranges import COVERTYPE_RANGES
from tacit.datasets._real import _require
from tacit.tables import Column, Schema

LIBRARY = """
import sys
from time import perf_counter
began = perf_counter()
import numpy as np
from pyarrow import parquet
from tacit.linear_model import LogisticRegression
from tacit.tables import Schema
schema = Schema.load(sys.argv[2])
loaded = perf_counter()
table = parquet.read_table(sys.argv[1])
X = np.column_stack([table[column.name].to_numpy() for column in schema.columns])
y = table["target"].to_numpy()
lows, highs = np.array([column.range for column in schema.columns]).T
X = np.clip((X - lows) / (highs - lows), 0, 1)
model = LogisticRegression(
    1.0, 1e-12, x_norm=schema.row_norm, classes=schema.target.labels
)
model.fit(X, y)
print(perf_counter() - loaded, loaded - began)
"""


def covertype_schema() -> Schema:
    """Return the public ranges of the loader, with zero where columns are zero."""
    columns = tuple(
        Column(name, "number", (ends.low, ends.high), zero=ends.low)
        for name, ends in COVERTYPE_RANGES.items()
    )
    classes = tuple(str(label) for label in range(1, 8))
    # measurements between 0 and 1, and two indicators that are set
    return Schema(columns, Column("target", "category", categories=classes), 2.5)


def timed(arguments: list[str]) -> tuple[float, str]:
    """Return the wall seconds and the output of a process that must succeed."""
    start = perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return perf_counter() - start, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    data = str(_require("covertype/covertype.parquet"))
    tacit = [sys.executable, "-m", "tacit"]
    with TemporaryDirectory() as folder:
        schema = str(Path(folder, "schema.toml"))
        covertype_schema().save(schema)
        ledger = f"sqlite:///{folder}/budget.db"
        account = ("--dataset", "covertype", "--epsilon", "1e6", "--delta", "1e-3")
        timed([*tacit, "ledger", "init", "--ledger", ledger, *account])
        rows = []
        for repeat in range(repeats):
            whole, said = timed([sys.executable, "-c", LIBRARY, data, schema])
            call, loading = map(float, said.split())
            out = os.path.join(folder, f"model{repeat}")
            fit = ("--epsilon", "1", "--delta", "1e-12", "--out", out, "--quiet")
            command, _ = timed(
                [*tacit, "fit", data, "--schema", schema, "--ledger", ledger, *fit]
            )
            rows.append((call, loading, whole, command))
            print(
                f"library call and reading {call:.2f} s (imports {loading:.2f} s, "
                f"whole process {whole:.2f} s), tacit fit {command:.2f} s"
            )
    call, loading, whole, command = map(median, zip(*rows, strict=True))
    figures = {
        "library call and reading, s": call,
        "library process, s": whole,
        "tacit fit, s": command,
        "tacit fit / library process": command / whole,
        "tacit fit / (call and reading)": command / call,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
