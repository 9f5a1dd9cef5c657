"""
Labels from any learner, by votes: tacit label
==============================================

One office has records with labels that must stay private, and another a table without
labels that is public. How does the public table get labels, and what comes of a kill in
the middle?
"""

from _shell import Shell, census_files
from pyarrow import csv

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists. Its last 1,000 rows stand in for the public table, without the answers.

census_files(tacit.folder)
table = csv.read_csv(tacit.folder / "census.csv")
csv.write_csv(table.slice(0, 9_000), tacit.folder / "private.csv")
unlabelled = table.slice(9_000).drop_columns(["high_income"])
csv.write_csv(unlabelled, tacit.folder / "public.csv")

# %%
# First the plan: how much noise there is on the votes, and how many labels will be as
# most teachers say. Fewer questions meet less noise, and 60 of the public rows are
# enough. No row is read and nothing is charged.

LABEL = (
    "private.csv public.csv --schema census.toml --epsilon 2 --delta 1e-7 "
    "--teachers 120 --queries 60"
)
tacit(f"label {LABEL} --expected-rows 9000 --plan")

# %%
# Then the labels. Each teacher is a logistic regression on rows that no other teacher
# sees; ``--teacher boosting`` or ``--teacher forest`` would do as well. One charge
# covers all answers.

LEDGER = "--ledger sqlite:///budget.db"
OUT = "--state secret-state --labels labelled.csv --output student --quiet"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 3 --delta 1e-6")
tacit(f"label {LABEL} {LEDGER} {OUT}")

# %%
# The same command again, as after a kill: it finds what was done, answers nothing anew
# and charges nothing.

tacit(f"label {LABEL} {LEDGER} {OUT}")

# %%
# The public rows are as they were, with one column more, which is empty where no
# query was made. How many labels are right is known here alone, where the table was
# synthetic.

found = csv.read_csv(tacit.folder / "labelled.csv")["high_income"].to_pylist()
truth = table.slice(9_000)["high_income"].to_pylist()
released = [a == b for a, b in zip(found, truth, strict=True) if a]
print(len(released), "labels,", f"{sum(released) / len(released):.0%}", "right")

# %%
# The student saw these rows and labels alone. It is an ordinary model, with a report
# and a card beside it. The folder of the state is as secret as the private table.

tacit("predict student private.csv --out predictions.csv --force")
