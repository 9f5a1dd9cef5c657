"""
A few columns, chosen and fitted for one charge: --select
=========================================================

Which three columns of a table best predict the hours people work, and with what
weights? With ``--select`` a part of the budget selects the columns, and the rest fits
weights to only these.
"""

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

census_files(tacit.folder)

# %%
# First a plan. It reads no row: scores are for synthetic rows with as many relevant
# columns as are selected, and it states how many rows it takes to find them.

HOURS = "--schema census.toml --target hours_per_week --epsilon 1 --select 3 --quiet"
tacit(f"plan {HOURS} --rows 10000")

# %%
# Then the fit. One charge covers both parts. The selected columns are printed; the
# selection is private too, and may be wrong by chance.

tacit(f"fit census.csv {HOURS} --delta 1e-7 --no-ledger --out hours")

# %%
# This selector always has an answer. Another lets blocks of rows vote, and gives no
# answer where one row could have changed the result. Then the model is a private mean,
# which costs as much.

tacit(f"fit census.csv {HOURS} --no-ledger --out again --set selector=votes")
