"""
A report for people who were not there: tacit report
====================================================

A model was fitted last month. What does a data protection officer get to read about it,
and does it say what has been spent since? ``tacit report`` writes the report and the
card of a model folder again, from the folder and the ledger alone. No row is read.
"""

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists.

census_files(tacit.folder)

# %%
# The model of last month, and its account.

LEDGER = "--ledger sqlite:///budget.db"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 2 --delta 1e-6")
tacit(
    "fit census.csv --schema census.toml --epsilon 1 --delta 1e-7 --quiet "
    f"{LEDGER} --out model"
)

# %%
# The report again, with the account as it is now.

tacit(f"report model {LEDGER}")

# %%
# The card is a text to put beside the model. The report is one HTML file that needs
# nothing from the network.

card = next((tacit.folder / "model").glob("*.md"))
print(card.name)
print(card.read_text())
html = (tacit.folder / "model" / "report.html").read_text()
asks = 'src="http' in html
print(f"report.html: {len(html) // 1024} kB, asks the network for more: {asks}")
