"""Processes that charge a ledger and write down what they were told."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tacit.exceptions import BudgetExceeded, LedgerUnavailable


@dataclass(frozen=True)
class Child:
    """A process, and the file with one byte for each charge it was told succeeded."""

    name: str
    process: int
    told_in: Path

    def told(self):
        return self.told_in.stat().st_size

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)

    def wait(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def spend(ledger, event, name, tell, until):
    """Charge until a time or the end of the budget."""
    made = 0
    while time.monotonic() < until:
        try:
            ledger.charge(event, f"{name}/{made}")
        except BudgetExceeded:
            return
        except LedgerUnavailable as error:
            # one that may stand must not be told as made, nor its name used again
            made += "may stand" in str(error)
            continue
        made += 1
        tell()


def forked(work, name, folder):
    """Fork a child for ``work``; what that tells goes to a file at once."""
    path = folder / name
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    process = os.fork()
    if process:
        os.close(file)
        return Child(name, process, path)
    code = 1
    try:
        work(lambda: os.write(file, b"x"))
        code = 0
    finally:
        os._exit(code)


def start(ledger, event, name, folder, until=float("inf")):
    """Fork a child that charges."""
    return forked(lambda tell: spend(ledger, event, name, tell, until), name, folder)


def lost_and_more(ledger, children):
    """Return charges told and lost, and the most kept of a child beyond the told."""
    kept = {}
    for record in ledger.history():
        if record.kind == "charge":
            name = record.label.partition("/")[0]
            kept[name] = kept.get(name, 0) + 1
    differences = [kept.get(child.name, 0) - child.told() for child in children]
    lost = -sum(d for d in differences if d < 0)
    return lost, max(differences, default=0)
