"""What the tests of a fit ask again and again of the folder ``census``."""

from tacit.privacy import Ledger


def fit_arguments(folder, *more, epsilon=1, out="model"):
    files = (folder / "census.csv", "--schema", folder / "census.toml")
    ledger = ("--ledger", f"sqlite:///{folder / 'budget.db'}")
    budget = ("--epsilon", epsilon, "--delta", 1e-7)
    return ("fit", *files, *budget, "--out", folder / out, "--quiet", *ledger, *more)


def ledger_of(folder):
    return Ledger.open(f"sqlite:///{folder / 'budget.db'}", dataset="census")


def spent(folder):
    return ledger_of(folder).spent()
