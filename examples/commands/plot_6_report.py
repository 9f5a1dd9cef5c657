"""
A report for people who were not there: tacit report
====================================================

A model was fitted last month. What does a data protection officer get to read about it,
and does it say what has been spent since? ``tacit report`` writes the report and the
card of a model folder again, from the folder and the ledger alone. No row is read.
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
# The model of last month, and its account.

LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 2 --delta 1e-6")
tacit(
    "fit census.csv --schema census.toml --epsilon 1 --delta 1e-7 --quiet "
    "--ledger sqlite:///budget.db --out model"
)

# %%
# The report again, with the account as it is now.

tacit("report model --ledger sqlite:///budget.db")

# %%
# The card is a text to put beside the model. The report is one HTML file that needs
# nothing from the network.

card = next((FOLDER / "model").glob("*.md"))
print(card.name)
print(card.read_text())
html = (FOLDER / "model" / "report.html").read_text()
asks = 'src="http' in html
print(f"report.html: {len(html) // 1024} kB, asks the network for more: {asks}")
