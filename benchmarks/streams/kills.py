"""Durable streams whose process is killed at random moments.

``tacit stream --follow`` learns from a source that is written to meanwhile, and is
killed with signal 9 again and again, at moments drawn at random; the last start runs to
the horizon. Its releases are then held against those of a run that nothing disturbed,
bit for bit. Most processes are forked from one that has loaded everything, which saves
seconds a start and leaves the kill as real; some are new interpreters.

    python -m benchmarks.streams.kills [--quick]

Ends with code 1 if a release is lost, repeated or different, or if the ledger has more
than one charge, is not sound or was written to after the charge.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from benchmarks.killing import (
    CODE,
    ILL,
    PAY,
    ended,
    forked,
    put_schema,
    run_cases,
    started,
)
from benchmarks.streams.common import RESULTS

from tacit._random import as_generator
from tacit.cli import main as tacit
from tacit.privacy import Budget, Ledger
from tacit.tables import Column

SEED = 20261
ROWS_PER_STEP, POLL = 5, 0.02
# Most seconds that a process lives, after what a new interpreter takes to load
LONGEST_LIFE = 0.7


@dataclass(frozen=True)
class Case:
    """A kind of source and a model, and how often its process is killed."""

    source: str
    model: str
    target: Column
    kills: int
    fresh: bool = False

    @property
    def horizon(self) -> int:
        return 6 * self.kills


def cases(quick: bool) -> list[Case]:
    few = 5 if quick else 50
    return [
        Case("t.csv", "online", ILL, 8 if quick else 90),
        Case("t.jsonl", "online", PAY, few),
        Case("parts", "incremental", PAY, few),
        Case("t.csv", "incremental", ILL, 2 if quick else 10, fresh=True),
    ]


def synthetic(n: int) -> list[dict[str, Any]]:
    rng = as_generator(SEED)
    ages, codes = rng.integers(0, 100, n).tolist(), rng.integers(0, 2, (n, 2)).tolist()
    return [
        {"age": age, "sex": "fm"[sex], "pay": age / 10, "ill": ("no", "yes")[ill]}
        for age, (sex, ill) in zip(ages, codes, strict=True)
    ]


class Writer:
    """Appends rows to a source in pieces that end anywhere, also inside a line."""

    def __init__(self, path: Path, rows: Sequence[dict[str, Any]]) -> None:
        self.path, self.rows = path, rows
        self.done = 0
        self.text = b""
        if path.suffix == ".csv":
            self.text = b"age,sex,pay,ill\n"
            lines = (",".join(map(str, row.values())) for row in rows)
        else:
            lines = map(json.dumps, rows)
        if path.suffix:
            self.body = b"".join(f"{line}\n".encode() for line in lines)
            path.write_bytes(self.text)
        else:
            path.mkdir()

    @property
    def total(self) -> int:
        return len(self.body) if self.path.suffix else len(self.rows)

    def write(self, share: float) -> None:
        """Write so much more of all there is."""
        end = min(self.total, self.done + max(1, int(share * self.total)))
        if end == self.done:
            return
        if self.path.suffix:
            with self.path.open("ab") as file:
                file.write(self.body[self.done : end])
        else:
            name = f"{self.done:08}.parquet"
            table = pa.Table.from_pylist(list(self.rows[self.done : end]))
            pyarrow.parquet.write_table(table, self.path.parent / name)
            os.replace(self.path.parent / name, self.path / name)
        self.done = end


def command(folder: Path, case: Case, *more: Any) -> list[str]:
    given = (
        *("stream", folder / case.source, "--schema", folder / "t.toml"),
        *("--state", folder / "state", "--releases", folder / "r.jsonl"),
        *("--epsilon", 1, "--delta", 1e-6, "--horizon", case.horizon),
        *("--rows-per-step", ROWS_PER_STEP, "--model", case.model, "--json"),
        *("--set", f"random_state={SEED}", *more),
    )
    return [str(part) for part in given]


def touched(path: Path) -> int | None:
    """Return when a file was last written, if it is there."""
    return path.stat().st_mtime_ns if path.exists() else None


def time_to_load(given: list[str]) -> float:
    """Return what a new interpreter takes before the first row is read, in seconds."""
    begun = time.perf_counter()
    planning = [sys.executable, "-c", CODE, *given, "--plan"]
    subprocess.run(planning, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def run(given: list[str]) -> None:
    """Run a command here, without what it prints."""
    kept, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    try:
        tacit(given)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"tacit ended with {end.code}: {given}") from None
    finally:
        sys.stdout = kept


def released(path: Path) -> list[dict[str, Any]]:
    """Return the releases, each without the name of its stream."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    for line in found:
        line.pop("stream")
    return found


def undisturbed(folder: Path, case: Case, rows: Sequence[dict[str, Any]]) -> Any:
    folder.mkdir()
    put_schema(folder, case.target)
    Writer(folder / case.source, rows).write(1.0)
    begun = time.perf_counter()
    run(command(folder, case, "--no-ledger"))
    return released(folder / "r.jsonl"), time.perf_counter() - begun


def measured(folder: Path, case: Case) -> dict[str, Any]:
    rows = synthetic(ROWS_PER_STEP * case.horizon)
    expected, alone = undisturbed(folder / "alone", case, rows)
    put_schema(folder, case.target)
    writer = Writer(folder / case.source, rows)
    url = f"sqlite:///{folder / 'budget.db'}"
    ledger = Ledger.open(url, dataset="ward", budget=Budget(3.0, 1e-5))
    account = ("--ledger", url, "--dataset", "ward")
    given = command(folder, case, *account, "--follow", "--poll", POLL)
    moment = as_generator(SEED + case.kills)
    begin, loading = (started, time_to_load(given)) if case.fresh else (forked, 0.0)
    killed, lives, torn, heads = 0, set(), set(), set()
    begun = time.perf_counter()
    while killed < case.kills:
        child = begin(given)
        life = loading + float(moment.uniform(0, LONGEST_LIFE))
        until = time.perf_counter() + life
        fed = 0.0  # never all of it, or the horizon would come before the kill
        while time.perf_counter() < until:
            piece = float(moment.uniform(0, 0.3)) / case.kills
            if fed + piece < 0.9 / case.kills:
                writer.write(piece)
                fed += piece
            time.sleep(float(moment.uniform(0, 0.1)))
        code = ended(child)
        if code != -signal.SIGKILL:
            raise RuntimeError(f"tacit ended by itself with {code}: {given}")
        killed += 1
        torn.add(touched(folder / "state" / "private-state.partial"))
        lives.add(touched(folder / "state" / "private-state"))
        if (folder / "r.jsonl").exists():
            heads.add(ledger.head)
    writer.write(1.0)
    run(command(folder, case, *account))
    heads.add(ledger.head)
    found = released(folder / "r.jsonl")
    steps = [line["step"] for line in found]
    charges = [r.label for r in ledger.history() if r.kind == "charge"]
    row = {
        "source": case.source,
        "model": case.model,
        "process": "new" if case.fresh else "forked",
        "kills": killed,
        "after_a_step": len(lives - {None}),
        "in_a_write": len(torn - {None}),
        "steps": len(found),
        "lost": len(set(range(1, case.horizon + 1)) - set(steps)),
        "repeated": len(steps) - len(set(steps)),
        "different": sum(a != b for a, b in zip(found, expected, strict=False)),
        "charges": len(charges),
        "heads": len(heads),
        "ledger": "sound" if ledger.verify().ok else "BROKEN",
        "seconds": round(time.perf_counter() - begun, 1),
        "ms_a_step": round(1000 * alone / case.horizon, 1),
    }
    ledger.close()
    return row


def sound(row: dict[str, Any]) -> bool:
    """Return whether the row keeps every promise."""
    clean = not (row["lost"] or row["repeated"] or row["different"])
    return clean and row["ledger"] == "sound" and row["charges"] == row["heads"] == 1


def main(argv: Sequence[str] | None = None) -> None:
    run_cases(argv, __doc__, RESULTS, cases, measured, sound)


if __name__ == "__main__":
    main()
