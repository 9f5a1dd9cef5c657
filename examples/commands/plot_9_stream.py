"""
A model that follows a growing file: tacit stream
=================================================

A file grows by the day, and the model is to grow with it. What does a stream cost, what
does it write, and what happens when the machine stops in the middle of the year?
"""

import json

from _shell import Shell, census_files

tacit = Shell()

# %%
# The table and the schema of public facts, as in the example on schemas. Nobody in the
# table exists. The file holds the first days alone, and will grow.

census_files(tacit.folder)
whole = (tacit.folder / "census.csv").read_text().splitlines(keepends=True)
growing = tacit.folder / "people.csv"
growing.write_text("".join(whole[:4_001]))

# %%
# First the plan: how many steps will be charged, and what noise they meet. No row is
# read and nothing is charged.

STREAM = (
    "people.csv --schema census.toml --epsilon 1 --delta 1e-7 "
    "--horizon 20 --rows-per-step 500 --state secret-state"
)
tacit(f"stream {STREAM} --no-ledger --plan")

# %%
# Then the stream. The first step charges for all twenty, and each step releases a
# model: the last one in a folder that is replaced, all of them as lines of a file.
# ``--follow`` would wait for more rows; without it the command takes what is there and
# ends.

LEDGER = "--ledger sqlite:///budget.db"
OUT = "--output model --releases releases.jsonl --quiet"
tacit(f"ledger init {LEDGER} --dataset census --epsilon 1.5 --delta 1e-6")
tacit(f"stream {STREAM} {LEDGER} {OUT}")

# %%
# The next day the file is longer. The same command continues where it ended, also after
# the process was killed, and charges nothing more.

with growing.open("a") as file:
    file.writelines(whole[4_001:8_301])
tacit(f"stream {STREAM} {LEDGER} {OUT}")

# %%
# Rows that do not fill a step wait for more. Each line of the releases is a model.

for line in (tacit.folder / "releases.jsonl").read_text().splitlines()[::5]:
    release = json.loads(line)
    print(
        release["step"], release["rows"], [round(w, 3) for w in release["coef"][0][:4]]
    )

# %%
# The model folder is like any other. The folder of the state is not: it holds exact
# sums of rows and the key of the noise, and is as secret as the table.

tacit("predict model people.csv --out predictions.csv")
