"""The whole story on a synthetic census, with the commands a person would type.

A table, a schema of public facts, a ledger, a plan, a private model with its report, a
second fit that the ledger rejects, and predictions. Under 60 seconds. Everything is
written to the folder ``demo`` beside where it is run, which is made anew.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pyarrow.csv

FOLDER = Path("demo")
LEDGER = ("--ledger", "sqlite:///budget.db")
FIT = ("--schema", "census.toml", "--epsilon", "1", "--delta", "1e-7")
REJECTED = 3


def tacit(*arguments, expected=0):
    """Show a command, run it, and stop unless it ends as the story says."""
    print("\n$ tacit", *arguments, flush=True)
    done = subprocess.run([sys.executable, "-m", "tacit", *arguments], cwd=FOLDER)
    if done.returncode != expected:
        sys.exit(f"expected exit code {expected}, got {done.returncode}")


def explain(text):
    print(f"\n# {text}", flush=True)


def split_of(table):
    """Set the last fifth of the synthetic persons aside, to look at the model with."""
    kept = len(table) * 4 // 5
    pyarrow.csv.write_csv(table[:kept], FOLDER / "train.csv")
    pyarrow.csv.write_csv(table[kept:], FOLDER / "new.csv")


def right_answers():
    truth = pyarrow.csv.read_csv(FOLDER / "new.csv")["high_income"]
    found = pyarrow.csv.read_csv(FOLDER / "predictions.csv")["high_income"]
    return sum(a == b for a, b in zip(truth, found, strict=True)) / len(truth)


def main():
    start = perf_counter()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()

    explain("Nobody in this table exists; yours would be rows of real people.")
    tacit("example", "census.csv", "--rows", "40000")
    split_of(pyarrow.csv.read_csv(FOLDER / "census.csv"))

    explain(
        "A draft of what is public. A person has to confirm what was read off rows."
    )
    tacit(
        "schema", "init", "train.csv", "--target", "high_income", "--out", "census.toml"
    )
    tacit("plan", *FIT, "--rows", "25600", expected=2)
    tacit("schema", "confirm", "census.toml", "--all")

    explain("What all models on this table may spend together.")
    tacit("ledger", "init", *LEDGER, "--dataset", "census", "--epsilon", "1.5",
          "--delta", "1e-6")  # fmt: skip

    explain(
        "What to expect of a fit, before it reads a row or charges anything.\n"
        "# Of 32000 rows, 6400 will be set aside to measure the accuracy on."
    )
    tacit("plan", *FIT, "--rows", "25600", *LEDGER)

    explain(
        "The fit, charged first, with a tenth more for a private measure of accuracy."
    )
    tacit("fit", "train.csv", *FIT, *LEDGER, "--measure", "0.1", "--out", "model")

    explain(
        "The same again would exceed the budget. It is rejected and releases nothing."
    )
    tacit("fit", "train.csv", *FIT, *LEDGER, "--out", "model2", expected=REJECTED)

    explain("The account, and whether anyone changed it.")
    tacit("ledger", "history", *LEDGER)
    tacit("ledger", "verify", *LEDGER)

    explain("Predictions for persons the model never saw.")
    tacit("predict", "model", "new.csv", "--out", "predictions.csv")
    print(f"\n{right_answers():.1%} of 8000 answers are right.")
    print(f"Open {FOLDER / 'model' / 'report.html'} in a browser.")
    print(f"{perf_counter() - start:.0f} seconds.")


if __name__ == "__main__":
    main()
