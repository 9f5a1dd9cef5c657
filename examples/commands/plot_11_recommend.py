"""
Recommendations that stay at home: tacit recommend
==================================================

A shop has ratings of its customers, each of whom is to be protected with everything
that they rated. What may the shop publish, and how does a customer get recommendations
from it that nobody else sees?
"""

from _shell import Shell
from pyarrow import csv, table

from tacit.mechanisms import as_generator

tacit = Shell()

# %%
# The ratings are synthetic: half of the customers like the first half of the books, the
# others the rest. The list of books is public, and so is the range of ratings.

BOOKS = [f"book {j}" for j in range(40)]
rng = as_generator(None)
rows = [
    (f"customer {u}", BOOKS[j], float(rng.integers(3, 6) if (u % 2) == (j < 20) else 1))
    for u in range(3_000)
    for j in rng.choice(40, 15, replace=False).tolist()
]
columns = dict(zip(("user", "item", "rating"), zip(*rows, strict=True), strict=True))
csv.write_csv(table(columns), tacit.folder / "ratings.csv")
(tacit.folder / "books.txt").write_text("\n".join(BOOKS))

# %%
# First the plan: what is spent, and what the guarantee rests on. No rating is read and
# nothing is charged.

FIT = "ratings.csv --items books.txt --range 1 5 --epsilon 1 --delta 1e-6"
tacit(f"recommend fit {FIT} --expected-users 3000 --plan")

# %%
# Then the fit. It is charged once, before the first sum over customers.
# What is written is about books only.

LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset shop --epsilon 3 --delta 1e-5")
tacit(f"recommend fit {FIT} {LEDGER} --out side --quiet")

# %%
# A customer has the folder and ratings of their own, on their own machine. They may be
# new: nothing is charged for them, as nobody else learns of their row.

mine = table({"item": ["book 1", "book 2", "book 33"], "rating": [5.0, 4.0, 1.0]})
csv.write_csv(mine, tacit.folder / "mine.csv")
tacit("recommend top side mine.csv --k 5")

# %%
# The whole row goes to a file. It shows what they rated, so that it is theirs to keep.

tacit("recommend row side mine.csv --out row.csv")
print(csv.read_csv(tacit.folder / "row.csv").slice(0, 4).to_pandas())

# %%
# Report and card lie in the folder, and may be written again with the account as it is.

tacit(f"report side {LEDGER}")
