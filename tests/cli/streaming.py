"""A small stream in a folder, for the tests of ``tacit stream``."""

import json
import os
import signal
import sys
import time

from tacit._random import as_generator
from tacit.cli import main
from tacit.privacy import Budget, Ledger
from tacit.tables import Column, Schema

AGE = Column("age", "number", range=(0, 100))
SEX = Column("sex", "category", categories=("f", "m"))
ILL = Column("ill", "category", categories=("no", "yes"))
PAY = Column("pay", "number", range=(0, 10))
HEADER = "age,sex,pay,ill\n"


def rows(n, seed=0):
    """Return lines of a CSV file."""
    rng = as_generator(seed)
    ages, codes = rng.integers(0, 100, n), rng.integers(0, 2, (n, 2))
    return [
        f"{age},{'fm'[sex]},{age / 10:g},{('no', 'yes')[ill]}\n"
        for age, (sex, ill) in zip(ages, codes, strict=True)
    ]


def objects(lines):
    """Return the same lines as JSON."""
    found = []
    for line in lines:
        age, sex, pay, ill = line.strip().split(",")
        row = {"age": int(age), "sex": sex, "pay": float(pay), "ill": ill}
        found.append(json.dumps(row) + "\n")
    return found


def position(folder, n=100):
    """Write the table, its schema and a ledger of epsilon 3."""
    (folder / "t.csv").write_text(HEADER + "".join(rows(n)))
    Schema((AGE, SEX, PAY), target=ILL).save(folder / "t.toml")
    with_ledger(folder)
    return folder


def with_ledger(folder):
    ledger = Ledger.open(
        f"sqlite:///{folder / 'budget.db'}", dataset="ward", budget=Budget(3.0, 1e-5)
    )
    head = ledger.head
    ledger.close()
    return head


def head_of(folder, ledger="budget.db"):
    ledger = Ledger.open(f"sqlite:///{folder / ledger}", dataset="ward")
    head = ledger.head
    ledger.close()
    return head


def arguments(folder, *more, source="t.csv", state="state", horizon=12, epsilon=1):
    return (
        *("stream", folder / source, "--schema", folder / "t.toml"),
        *("--state", folder / state, "--epsilon", epsilon, "--delta", 1e-6),
        *("--horizon", horizon, "--rows-per-step", 10, "--set", "random_state=5"),
        *("--ledger", f"sqlite:///{folder / 'budget.db'}", *more),
    )


def releases(path):
    """Return what was released, without the name of the stream."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({line.pop("stream") for line in found}) <= 1
    return found


def forked(given):
    """Run a command in a process of its own, which can be killed for good."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        main([str(argument) for argument in given])
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code)


def killed_after(child, seconds):
    """Kill a process unless it ends before; return its exit code, or None."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
