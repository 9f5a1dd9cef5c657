"""
What to expect before any row is read: tacit plan
=================================================

Is a budget of 0.5 enough for ten thousand rows? Trying it would cost the budget.
``tacit plan`` says what a fit would do and what it is likely to be worth, from the
schema, the number of rows and the budget alone.
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
# The scores are of private fits on made-up rows with the same columns. What carries
# over to real rows is the distance to the fits without privacy, and not the score
# itself.

tacit("plan --schema census.toml --rows 10000 --epsilon 0.5 --quiet")

# %%
# And with a tenth of that? Nothing was charged for either answer, as no row was read.

tacit("plan --schema census.toml --rows 10000 --epsilon 0.05 --quiet")
