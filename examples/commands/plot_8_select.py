"""
A few columns, chosen and fitted for one charge: --select
=========================================================

Which three columns of a table tell most about the hours people work, and how do they
add up? With ``--select`` a part of the budget chooses the columns, and the rest fits
weights to these alone.
"""

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

census_files(tacit.folder)

# %%
# First a plan. It reads no row: scores are of synthetic rows in which as many columns
# tell something as are selected, and it says how many rows it takes to find them.

HOURS = "--schema census.toml --target hours_per_week --epsilon 1 --select 3 --quiet"
tacit(f"plan {HOURS} --rows 10000")

# %%
# Then the fit. One charge pays for both parts, and the columns are named. Which they
# are is private, and as noisy as the weights.

tacit(f"fit census.csv {HOURS} --delta 1e-7 --no-ledger --out hours")

# %%
# This way of choosing always has an answer. Another asks blocks of rows, and would
# rather say nothing than what one row could have changed. Then the model is a private
# mean, which costs as much.

tacit(f"fit census.csv {HOURS} --no-ledger --out again --set selector=votes")
