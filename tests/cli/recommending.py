"""Ratings in a folder, for the tests of ``tacit recommend``."""

import csv

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tacit._random import as_generator
from tacit.privacy import Budget, Ledger

N_USERS, N_ITEMS, EACH = 300, 20, 12
FILMS = [f"film {j}" for j in range(N_ITEMS)]
# Half of the people like the first half of the films, the others the rest
MINE = {f"film {j}": (5 if j < N_ITEMS // 2 else 1) for j in (0, 1, 2, 11, 12, 13)}


def ratings(seed=0):
    """Return rows of user, item and rating in any order."""
    rng = as_generator(seed)
    rows = []
    for user in range(N_USERS):
        for j in rng.choice(N_ITEMS, EACH, replace=False).tolist():
            liked = (user % 2 == 0) == (j < N_ITEMS // 2)
            rows.append((f"user {user}", FILMS[j], 4.5 if liked else 1.5))
    return [rows[i] for i in rng.permutation(len(rows)).tolist()]


def write_csv(path, rows, names=("user", "item", "rating")):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def as_table(rows, names=("user", "item", "rating")):
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(dict(zip(names, columns, strict=True)))


def position(folder, neighbors="replace_one"):
    """Write ratings, the films, ratings of one user, and a ledger of epsilon 100."""
    write_csv(folder / "ratings.csv", ratings())
    (folder / "films.txt").write_text("".join(f"{film}\n" for film in FILMS))
    write_csv(folder / "mine.csv", MINE.items(), ("item", "rating"))
    parts = folder / "parts"
    parts.mkdir()
    rows = ratings()
    for k in range(3):
        parquet.write_table(as_table(rows[k::3]), parts / f"part-{k}.parquet")
    url = f"sqlite:///{folder / 'budget.db'}"
    budget = Budget(100.0, 1e-3, neighbors)
    Ledger.open(url, dataset="films", budget=budget).close()
    return folder


def fit(folder, *more, source="ratings.csv", out="side", epsilon=20):
    """Return a command that fits with a fixed seed, so that it can be repeated."""
    return (
        *("recommend", "fit", folder / source, "--items", folder / "films.txt"),
        *("--range", 1, 5, "--epsilon", epsilon, "--delta", 1e-6),
        *("--set", "random_state=5", "--quiet"),
        *("--ledger", f"sqlite:///{folder / 'budget.db'}"),
        *(() if out is None else ("--out", folder / out)),
        *more,
    )


def charges(folder):
    """Return the labels of all charges, of a ledger that is sound."""
    ledger = Ledger.open(f"sqlite:///{folder / 'budget.db'}", dataset="films")
    assert ledger.verify().ok
    found = [record.label for record in ledger.history() if record.kind == "charge"]
    ledger.close()
    return found


def head_of(folder):
    ledger = Ledger.open(f"sqlite:///{folder / 'budget.db'}", dataset="films")
    head = ledger.head
    ledger.close()
    return head


def same_side(folder, other):
    """Return whether two folders hold the same side to the bit."""
    first, second = (np.load(position / "weights.npz") for position in (folder, other))
    return all(first[name].tobytes() == second[name].tobytes() for name in first)
