"""
A model from a file, charged first: tacit fit
=============================================

A model is to be fitted to a file and its budget kept in one place, so that the next
model on the same rows is counted as well. What does a fit write, and what happens when
the budget is used up?
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
from pyarrow.csv import write_csv

from tacit.datasets import make_census_table
from tacit.tables import draft

FOLDER = Path(mkdtemp())
ROWS = 10_000


def tacit(line, exit_code=0):
    """Type a command, show what it says, and check how it ends."""
    print(f"$ tacit {line}")
    done = subprocess.run(
        [sys.executable, "-m", "tacit", *shlex.split(line)],
        cwd=FOLDER,
        env={**os.environ, "COLUMNS": "88"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == exit_code, f"exit code {done.returncode}"


# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

write_csv(pa.table(make_census_table(ROWS, 0)), FOLDER / "census.csv")
draft(FOLDER / "census.csv", "high_income").confirm(by="us").save(
    FOLDER / "census.toml"
)

# %%
# The account of the data set is a file here, and can be a database server. It is opened
# once, with all that may ever be spent on these rows.

LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 1.5 --delta 1e-6")

# %%
# The fit reads the rows by the schema, charges, and then fits. ``--measure`` pays a
# little more to measure the accuracy on rows that were set aside, with noise.

FIT = "fit census.csv --schema census.toml --epsilon 1 --delta 1e-7 --quiet"
tacit(
    "fit census.csv --schema census.toml --epsilon 1 --delta 1e-7 --quiet "
    "--ledger sqlite:///budget.db --measure 0.1 --out model"
)

# %%
# What was written is one folder: numbers and public facts, a report for people and a
# card. There is no pickle in it, so nothing runs when it is read.

for path in sorted((FOLDER / "model").iterdir()):
    print(f"{path.name:20} {path.stat().st_size:8} bytes")

# %%
# A second fit of the same size does not fit in the budget. It is refused with exit code
# 3 before any noise is drawn, charges nothing, and writes nothing.

tacit(f"{FIT} {LEDGER} --out model2", exit_code=3)
print("written:", (FOLDER / "model2").exists())
