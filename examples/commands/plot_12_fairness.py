"""
How are groups treated, and was it the noise? tacit fairness
============================================================

A model was fitted with noise. Does it treat women and men alike, and would it have done
so without the noise? ``tacit fairness`` measures metrics of groups, and certifies
bounds on those of the same model without noise.
"""

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists. The model is fitted by output perturbation, whose plan bounds the change
# of the weights by noise.

census_files(tacit.folder)
LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 10 --delta 1e-6")
tacit(
    "fit census.csv --schema census.toml --epsilon 8 --delta 1e-7 --quiet "
    f"--solver output_perturbation {LEDGER} --out model"
)

# %%
# Metrics and certificate for those who may see the rows. Nothing is charged, and the
# output is private data. A wide interval means that noise may have changed much, not
# that it did.

tacit("fairness model census.csv --sensitive female --notion accuracy_parity")

# %%
# The same for everybody else: counts of rows with noise, charged before they are drawn.
# The intervals account for that noise too.

PAID = f"--epsilon 0.5 {LEDGER} --html groups.html"
tacit(f"fairness model census.csv --sensitive female --notion accuracy_parity {PAID}")

# %%
# Groups must be public: those that the schema lists, or that are listed by hand. Here
# two regions are, and all others are one group.

FEW = "--sensitive region --groups region=north,south --notion accuracy_parity"
tacit(f"fairness model census.csv {FEW} --epsilon 0.2 {LEDGER}")

# %%
# A certificate that does not fit in the budget is rejected with exit code 3, before any
# noise is drawn.

tacit(f"fairness model census.csv --sensitive female --epsilon 9 {LEDGER}", exit_code=3)
