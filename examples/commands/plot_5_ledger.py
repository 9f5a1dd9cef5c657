"""
An account that several people share: tacit ledger
==================================================

Two teams use the same table. Who may spend how much, who has spent what, and how would
anyone notice if an entry had been changed by hand? The account is in a database, and
``tacit ledger`` opens it, shows it and checks it.
"""

import sqlite3

from _shell import Shell

from tacit import BudgetExceeded, Ledger
from tacit.privacy import GaussianNoise

tacit = Shell()

# %%
# One account for the table, with all that may ever be spent on it. The owner gives one
# analyst a part of it.

LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 2 --delta 1e-6")
tacit(f"ledger allow ann --epsilon 0.5 --delta 1e-7 {LEDGER}")

# %%
# Charges come from ``tacit fit --ledger``, or from Python, where the same account is a
# ledger like any other. Here two analysts are about to release counts with noise. A
# charge beyond what an analyst may spend is rejected.

url = f"sqlite:///{tacit.folder / 'budget.db'}"
for analyst, label, multiplier in (
    ("ann", "counts by region", 20.0),
    ("bob", "counts by sector", 10.0),
    ("ann", "counts by sector", 8.0),
):
    ledger = Ledger.open(url, dataset="census", analyst=analyst)
    try:
        ledger.charge(GaussianNoise(multiplier), label)
        print(f"{analyst}: {label} is charged.")
    except BudgetExceeded as error:
        print(f"{analyst}: {error}")

# %%
# What was done, and by whom. Each record holds a hash of itself and of the one before.

tacit(f"ledger history {LEDGER}")

# %%
# Now someone with access to the file makes the second charge smaller than it was. The
# database has a rule against that, which whoever owns the file can take away.

with sqlite3.connect(tacit.folder / "budget.db") as database:
    database.execute("DROP TRIGGER tacit_record_update")
    database.execute(
        "UPDATE tacit_record SET body = replace(body, '10.0', '99.0') WHERE seq = 3"
    )
database.close()
tacit(f"ledger verify {LEDGER}", exit_code=4)

# %%
# The hashes do not stop anyone. They show that something was changed, to whoever keeps
# the last hash somewhere else.
