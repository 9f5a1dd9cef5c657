"""
A model from a file, charged first: tacit fit
=============================================

A model is to be fitted to a file and its budget kept in one file, so that the next
model on the same rows is counted as well. What does a fit write, and what happens when
the budget is used up?
"""

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

census_files(tacit.folder)

# %%
# The account of the data set is a file here, and can be a database server. It is opened
# once, with all that may ever be spent on these rows.

LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 1.5 --delta 1e-6")

# %%
# The fit reads the rows by the schema, charges, and then fits. ``--measure`` pays a
# little more to measure the accuracy on rows that were set aside, with noise.

FIT = "census.csv --schema census.toml --epsilon 1 --delta 1e-7 --quiet"
tacit(f"fit {FIT} {LEDGER} --measure 0.1 --out model")

# %%
# What was written is one folder: numbers and public facts, a report for people and a
# card. There is no pickle in it, so nothing runs when it is read.

for path in sorted((tacit.folder / "model").iterdir()):
    print(f"{path.name:20} {path.stat().st_size:8} bytes")

# %%
# A second fit of the same size does not fit in the budget. It is rejected with exit
# code 3 before any noise is drawn, charges nothing, and writes nothing.

tacit(f"fit {FIT} {LEDGER} --out model2", exit_code=3)
print("written:", (tacit.folder / "model2").exists())

# %%
# What is left pays for a smaller one. ``--model`` chooses another estimator, here one
# that selects a few columns; ``report.html`` names them. Which they are is noisy as
# well.

SMALL = "census.csv --schema census.toml --epsilon 0.3 --delta 1e-7 --quiet"
FEW = "--model sparse-logistic --solver gcd --alpha 0.003 --out few"
tacit(f"fit {SMALL} {LEDGER} {FEW}")
