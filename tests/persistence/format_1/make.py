"""Write the folders of saved things that `test_format_1` reads, by the command line.

``python tests/persistence/format_1/make.py FOLDER`` with the revision to write with on
the path; revision 22ccbce wrote those that are kept. Noise is drawn anew each time.
"""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

from tacit.privacy import GaussianNoise, Ledger

LEDGER = ("--ledger", "sqlite:///budget.db")
SCHEMA = ("--schema", "schema.toml")
SPARSE = ("--target", "hours_per_week", "--select", 2, "--solver", "ada_ssp")
STREAM = ("--horizon", 3, "--rows-per-step", 100, "--once", "--out", "last")
VOTES = (
    "--teachers",
    10,
    "--queries",
    20,
    "--out",
    "student",
    "--labels",
    "labels.csv",
)
AUDIT = ("--runs", 60, "--seed", 0, "--jobs", 1, "--features", 41, "--quiet", "--json")
# so much that directions are learnt from few users
RATED = (
    "--items",
    6,
    "--range",
    1,
    5,
    "--epsilon",
    500,
    "--no-ledger",
    "--out",
    "side",
)
# What is kept beside the folders of models; states are kept in no fixed form
KEPT = ("rows.csv", "mine.csv", "schema.toml", "budget.db", "ledger.jsonl")


def tacit(folder, *arguments, out=None):
    """Run a command in a folder, and write what it printed to a file."""
    command = [sys.executable, "-m", "tacit", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
    if out is not None:
        (folder / out).write_bytes(done.stdout)


def write_csv(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def models(work):
    """Fit models on synthetic rows: linear ones, a stream's, a student, and items."""
    tacit(work, "example", "people.csv", "--rows", 300)
    people = (work / "people.csv").read_text().splitlines(keepends=True)
    (work / "rows.csv").write_text("".join(people[:21]))
    tacit(work, "schema", "init", "people.csv", "--target", "high_income",
          "--out", "schema.toml")  # fmt: skip
    tacit(work, "schema", "confirm", "schema.toml", "--all")
    tacit(work, "ledger", "init", *LEDGER, "--dataset", "census",
          "--epsilon", 9, "--delta", 1e-4)  # fmt: skip
    paid = (*SCHEMA, *LEDGER, "--quiet", "--epsilon", 2)
    tacit(work, "fit", "people.csv", *paid, "--solver", "output_perturbation",
          "--measure", 0.5, "--intervals", 0.5, "--out", "income")  # fmt: skip
    tacit(work, "fit", "people.csv", *paid, *SPARSE, "--out", "hours")
    tacit(work, "stream", "people.csv", *paid, *STREAM, "--state", "stream")
    tacit(work, "label", "people.csv", "rows.csv", *paid, *VOTES, "--state", "labeler")
    ratings = [(u, i, 1 + (u + i) % 5) for u in range(50) for i in range(6) if i != u]
    write_csv(work / "ratings.csv", [("user", "item", "rating"), *ratings])
    write_csv(work / "mine.csv", [("item", "rating"), (0, 5), (3, 1)])
    tacit(work, "recommend", "fit", "ratings.csv", *RATED, "--quiet")


def attachments(work):
    """Attach a certificate of fairness and an audit to the model of incomes."""
    tacit(work, "fairness", "income", "people.csv", "--sensitive", "female", "--groups",
          "female=no,yes", "--epsilon", 0.5, *LEDGER, "--json",
          out="fairness.json")  # fmt: skip
    tacit(work, "audit", "--model", "income", *AUDIT, out="audit.json")
    tacit(work, "report", "income", *LEDGER, "--fairness", "fairness.json",
          "--audit", "audit.json")  # fmt: skip


def records(work):
    """Add the kinds of records to the ledger that the commands did not write."""
    ledger = Ledger.open(f"sqlite:///{work / 'budget.db'}", dataset="census")
    ledger.charge(GaussianNoise(20.0), "mean of ages")
    ledger.void(ledger.head[0], "the run failed before it drew noise")
    ledger.reserve(GaussianNoise(20.0), "sum of ages", ledger.budget)
    ledger.cancel(ledger.head[0], "not needed")
    ledger.reserve(GaussianNoise(20.0), "median of ages", ledger.budget).charge()
    ledger.reserve(GaussianNoise(30.0), "open", ledger.budget)
    ledger.allow("ann", ledger.budget)
    ledger.allow("*", None)
    ledger.close()
    tacit(work, "ledger", "export", *LEDGER, "--out", "ledger.jsonl")


def main(folder):
    """Write everything, and what today's code makes of it as ``expected``."""
    work, expected = folder / "work", folder / "expected"
    work.mkdir(parents=True)
    models(work)
    attachments(work)
    records(work)
    expected.mkdir()
    tacit(work, "ledger", "history", *LEDGER, "--json", out=expected / "history.json")
    tacit(work, "ledger", "verify", *LEDGER, "--json", out=expected / "verify.json")
    tacit(work, "schema", "check", "schema.toml", "rows.csv", "--json",
          out=expected / "schema.json")  # fmt: skip
    tacit(work, "recommend", "row", "side", "mine.csv", "--out", expected / "side.csv")
    for model in ("income", "hours", "last", "student", "side"):
        if model != "side":
            more = () if model == "hours" else ("--probabilities",)
            out = expected / f"{model}.csv"
            tacit(work, "predict", model, "rows.csv", "--out", out, *more)
        # pages are written and never read
        ignored = shutil.ignore_patterns("*.html", "*.md")
        shutil.copytree(work / model, folder / model, ignore=ignored)
    for name in KEPT:
        shutil.copy(work / name, folder / name)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
