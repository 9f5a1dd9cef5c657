"""A private and a public table in a folder, for the tests of ``tacit label``."""

import csv
from contextlib import redirect_stdout
from io import StringIO

import joblib
import pytest
from tests.cli.streaming import AGE, ILL, PAY, SEX, with_ledger

from tacit._random import as_generator
from tacit.cli import main
from tacit.persistence import read_student
from tacit.privacy import Ledger
from tacit.tables import Column, Schema

WHO = Column("who", "ignore")
SCHEMA = Schema((WHO, AGE, SEX, PAY), target=ILL)
N_PRIVATE, N_PUBLIC = 400, 60


def people(n, seed):
    """Return rows of people, the old of whom are ill."""
    rng = as_generator(seed)
    ages, codes = rng.integers(0, 100, n).tolist(), rng.integers(0, 2, n).tolist()
    return [
        {
            "who": f"p{i // 2}",
            "age": age,
            "sex": "fm"[code],
            "pay": age / 10,
            "ill": "yes" if age > 50 else "no",
        }
        for i, (age, code) in enumerate(zip(ages, codes, strict=True))
    ]


def write_csv(path, rows, leave_out=()):
    names = [name for name in rows[0] if name not in leave_out]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def position(folder, n_private=N_PRIVATE, n_public=N_PUBLIC):
    """Write both tables, their schema and a ledger of epsilon 3."""
    write_csv(folder / "private.csv", people(n_private, 0))
    write_csv(folder / "public.csv", people(n_public, 1), leave_out=["ill"])
    SCHEMA.save(folder / "t.toml")
    with_ledger(folder)
    return folder


LABELS = ("--labels",)
BOTH = ("--labels", "--out")


def options(folder, *more, out=BOTH, state="state", epsilon=2, teachers=20):
    """Return all of a command but its tables; ``out`` names what it writes."""
    positions = {"--labels": folder / "labels.csv", "--out": folder / "student"}
    written = [part for name in out for part in (name, positions[name])]
    return (
        *("--schema", folder / "t.toml", "--state", folder / state),
        *("--epsilon", epsilon, "--delta", 1e-6, "--teachers", teachers),
        *("--set", "random_state=5", "--quiet"),
        *("--ledger", f"sqlite:///{folder / 'budget.db'}"),
        *written,
        *more,
    )


def arguments(folder, *more, **given):
    tables = (folder / "private.csv", folder / "public.csv")
    return ("label", *tables, *options(folder, *more, **given))


def run_once(given):
    """Run a command for several tests; return what it printed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
        patch.delenv("TACIT_DATASET", raising=False)
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in given])
    assert end.value.code == 0
    return said.getvalue()


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def hash_of(folder):
    """Return the same for the same student, to the last bit; a file has its date."""
    return joblib.hash(read_student(folder).estimator)


def charges(folder, ledger="budget.db"):
    """Return the labels of all charges, of a ledger that is sound."""
    ledger = Ledger.open(f"sqlite:///{folder / ledger}", dataset="ward")
    assert ledger.verify().ok
    found = [record.label for record in ledger.history() if record.kind == "charge"]
    ledger.close()
    return found
