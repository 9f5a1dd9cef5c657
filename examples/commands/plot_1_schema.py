"""
A table and its public facts: tacit schema
==========================================

A file of rows is there, and a private model is wanted. Which facts about its columns
are needed, and who says that they are public? ``tacit schema`` drafts a list of them,
and a person has to confirm it.

``tacit example`` writes the table, of people who do not exist.
"""

from _shell import Shell

tacit = Shell()

# %%
# Any CSV, Parquet or Arrow file will do. This one is synthetic.

tacit("example census.csv --rows 10000")

# %%
# The draft proposes a kind, a range or a list of categories for each column. It was
# read off the rows, and says so: until someone confirms an entry, no fit will use it.

tacit("schema init census.csv --target high_income")

# %%
# Go through the entries and ask what you would have written without seeing the rows.
# The questionnaire was for people of 18 to 90, so the range of the draft is replaced.
# The survey team finds the other ranges wide enough and the lists as they were printed.

tacit("schema confirm census.toml age --range 18 90 --by 'the survey team'")
tacit("schema confirm census.toml --all --by 'the survey team'")

# %%
# ``check`` says whether all is confirmed and whether a file agrees with it. A file that
# does not agree is rejected in one sentence that names the column and no value.

(tacit.folder / "other.csv").write_text("age,sector\n44,finance\n")
tacit("schema check census.toml other.csv", exit_code=2)

# %%
# The schema is a text file, to be kept with the code.

print((tacit.folder / "census.toml").read_text()[:700], "...")
