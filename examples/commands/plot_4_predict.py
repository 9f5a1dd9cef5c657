"""
Predictions for a file: tacit predict
=====================================

A model folder came from a colleague, and there is a file of new people. How are they
brought into the form that the model was fitted in? By the schema that is kept inside
the folder, so there is nothing to set up.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
from pyarrow.csv import read_csv, write_csv

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
# The model. A fit without a ledger keeps its own promise, and no one adds it to others.

tacit("fit census.csv --schema census.toml --epsilon 1 --no-ledger --quiet --out model")

# %%
# New people, of whom the file has a key and no income.

others = make_census_table(1_000, 1)
others["person"] = list(range(1_000))
truth = others.pop("high_income")
write_csv(pa.table(others), FOLDER / "new.csv")
tacit("predict model new.csv --out answers.csv --keep person --probabilities")

# %%
# The answers are private towards the rows of the fit, and exact about the new ones:
# they are what the model makes of what it was told.

answers = read_csv(FOLDER / "answers.csv")
print(answers.slice(0, 4).to_pandas())
right = sum(
    a == b for a, b in zip(answers["high_income"].to_pylist(), truth, strict=True)
)
print(f"{right / 1_000:.1%} are right.")
