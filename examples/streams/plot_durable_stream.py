"""
What if the machine stops in the middle of the stream?
======================================================

A stream is charged once and lasts for months. Processes do not: machines are updated,
power fails, someone presses the wrong key. How does a stream go on without paying
twice, without releasing a step twice with other noise, and without losing rows?

The rows are synthetic. Seeds are fixed for reproduction only.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from tacit import Budget, Ledger, Seed
from tacit.mechanisms import as_generator
from tacit.streaming import DurableStream, OnlineLinearRegression

rng = as_generator(0)
X = rng.uniform(-0.5, 0.5, (2_000, 3))
y = np.clip(X @ [1.0, -0.5, 0.25] + rng.normal(0, 0.05, 2_000), -1, 1)
position = Path(mkdtemp())
state, account = position / "state", f"sqlite:///{position / 'budget.db'}"


def model():
    """Return the estimator, with the same parameters in every process."""
    return OnlineLinearRegression(
        1.0,
        1e-8,
        horizon=40,
        rows_per_step=50,
        y_range=(-1, 1),
        random_state=Seed(0),
        x_norm=1.0,
    )


# %%
# A :class:`tacit.streaming.DurableStream` holds the estimator and a folder. A step is
# saved before its model can be read. ``position`` is kept with it: whatever says where
# the next rows are.

ledger = Ledger.open(account, dataset="homes", budget=Budget(1.0, 1e-6))
with DurableStream(model(), state, ledger=ledger) as stream:
    for step in range(25):
        rows = slice(50 * step, 50 * (step + 1))
        stream.partial_fit(X[rows], y[rows], position=rows.stop)
    print(
        stream.n_steps, "steps,", stream.position, "rows,", stream.model.coef_.round(2)
    )

# %%
# Another process opens the folder and goes on. Parameters are compared with those the
# stream was begun with, and the standing charge is found in the ledger.

ledger = Ledger.open(account, dataset="homes")
with DurableStream(model(), state, ledger=ledger) as stream:
    print("goes on after", stream.n_steps, "steps at row", stream.position)
    while stream.n_steps < 40:
        rows = slice(stream.position, stream.position + 50)
        stream.partial_fit(X[rows], y[rows], position=rows.stop)
    print(stream.model.coef_.round(2), "spent", round(ledger.spent(), 3))

# %%
# **Killed.** Here is a process that is killed again and again, each time some steps
# further, until the stream is done. At the end its model has the same numbers as the
# one above: a step that is repeated with the same rows meets the same noise.

CHILD = """
import os, signal, sys
import numpy as np
from tacit import Seed
from tacit.streaming import OnlineLinearRegression
from tacit.streaming import DurableStream

folder, table, last = sys.argv[1:]
rows = np.load(table)
model = OnlineLinearRegression(
    1.0, 1e-8, horizon=40, rows_per_step=50, y_range=(-1, 1), x_norm=1.0,
    random_state=Seed(0),
)
with DurableStream(model, folder) as stream:
    while stream.n_steps < 40:
        at = stream.position or 0
        part = rows[at : at + 50]
        stream.partial_fit(part[:, :3], part[:, 3], position=at + 50)
        if stream.n_steps == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
"""
np.save(position / "rows.npy", np.column_stack([X, y]))
for last in (7, 23, 99):
    command = [sys.executable, "-c", CHILD, "killed", "rows.npy", str(last)]
    print("ended with", subprocess.run(command, cwd=position).returncode)
with DurableStream(model(), position / "killed") as killed:
    same = np.array_equal(killed.model.coef_, stream.model.coef_)
    print(f"{killed.n_steps} steps, the same numbers: {same}")

# %%
# The folder is for its owner alone, and stays secret after the last step.

print(sorted(path.name for path in state.iterdir()), oct(state.stat().st_mode & 0o777))
