"""
What to expect before any row is read: tacit plan
=================================================

Is a budget of 0.5 enough for ten thousand rows? Trying it would cost the budget.
``tacit plan`` says what a fit would do and what it is likely to be worth, from the
schema, the number of rows and the budget alone.
"""

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

census_files(tacit.folder)

# %%
# The scores are of private fits on synthetic rows with the same columns. What carries
# over to real rows is the distance to the fits without privacy, and not the score
# itself.

tacit("plan --schema census.toml --rows 10000 --epsilon 0.5 --quiet")

# %%
# And with a tenth of that? Nothing was charged for either answer, as no row was read.

tacit("plan --schema census.toml --rows 10000 --epsilon 0.05 --quiet")
