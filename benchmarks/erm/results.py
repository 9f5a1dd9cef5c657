"""The file of results: one line a fit, only ever appended to."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.erm.data import OUTPUTS

import tacit

FILE = OUTPUTS / "accuracy.csv"


HEADER = "set,loss,column,epsilon,run,accuracy,cpu_s,status,code,note"


@dataclass(frozen=True)
class Line:
    """One fit as it stands in the file."""

    name: str
    loss: str
    column: str
    epsilon: float
    run: int
    accuracy: float | None
    cpu_s: float
    status: str
    code: str  # digest of the library that was measured
    note: str

    @property
    def key(self):
        return self.name, self.loss, self.column, self.epsilon, self.run


def start() -> None:
    """Make the file, with its header, unless it is there."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    if not FILE.is_file():
        FILE.write_text(HEADER + "\n")


def append(name, loss, column, run, fit) -> None:
    """Add a fit; a single write, so that processes do not cut each other short."""
    accuracy = "" if fit.accuracy is None else f"{fit.accuracy:.6f}"
    line = [name, loss, column, f"{fit.epsilon:g}", run, accuracy]
    line += [f"{fit.cpu_s:.4f}", fit.status, code_digest(), fit.note]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(line)
    handle = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
    finally:
        os.close(handle)


def read() -> list[Line]:
    """Return the last line of every fit; lines cut short by a crash are skipped."""
    if not FILE.is_file():
        return []
    found = {}
    with FILE.open(newline="") as file:
        for row in csv.reader(file):
            try:
                name, loss, column, epsilon, run, accuracy, cpu_s, *rest = row
                status, code, note = rest
                line = Line(
                    name,
                    loss,
                    column,
                    float(epsilon),
                    int(run),
                    float(accuracy) if accuracy else None,
                    float(cpu_s),
                    status,
                    code,
                    note,
                )
            except ValueError:
                continue
            found[line.key] = line
    return list(found.values())


def finished(same_code: bool = False) -> set[tuple]:
    """Return the keys of fits that need not be run again; failures are tried again.

    With ``same_code``, only what the library measured as it is now counts.
    """
    return {
        line.key
        for line in read()
        if line.status != "failed" and (not same_code or line.code == code_digest())
    }


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a digest of the library's source, so that figures can be told apart."""
    digest = hashlib.sha256()
    for file in sorted(Path(tacit.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]
