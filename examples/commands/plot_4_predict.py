"""
Predictions for a file: tacit predict
=====================================

A model folder came from a colleague, and there is a file of new people. How are they
brought into the form that the model was fitted in? By the schema that is kept inside
the folder, so there is nothing to set up.
"""

import pyarrow as pa
from _shell import Shell, census_files
from pyarrow.csv import read_csv, write_csv

from tacit.datasets import make_census_table

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

census_files(tacit.folder)

# %%
# The model. A fit without a ledger keeps its own guarantee, and no one adds it to
# others.

tacit("fit census.csv --schema census.toml --epsilon 1 --no-ledger --quiet --out model")

# %%
# New people, of whom the file has a key and no income.

others = make_census_table(1_000, 1)
others["person"] = list(range(1_000))
truth = others.pop("high_income")
write_csv(pa.table(others), tacit.folder / "new.csv")
tacit("predict model new.csv --out answers.csv --keep person --probabilities")

# %%
# The answers are private towards the rows of the fit, and exact about the new ones:
# they are what the model makes of the facts it was given.

answers = read_csv(tacit.folder / "answers.csv")
print(answers.slice(0, 4).to_pandas())
right = sum(
    a == b for a, b in zip(answers["high_income"].to_pylist(), truth, strict=True)
)
print(f"{right / 1_000:.1%} are right.")
