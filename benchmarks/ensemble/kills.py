"""``tacit label`` whose process is killed at random moments.

Public rows are labelled again and again. Each time the command is killed with signal 9
at moments drawn at random, from its start to after its end, and started again until it
ends by itself. Its labelled table and its student are then held against those of a run
that nothing disturbed, byte for byte; a fixed seed gives both the same secrets. Most
processes are forked from one that has loaded everything, which saves seconds a start
and leaves the kill as real; some are new interpreters.

    python -m benchmarks.ensemble.kills [--quick]

Ends with code 1 if an answer or a student is different, or if the ledger has more than
one charge or is not sound. What a kill leaves beside a student that is written, a
hidden folder that is public, is removed by the next run; what is still there at the end
is counted.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.ensemble.common import RESULTS
from benchmarks.killing import (
    ILL,
    PAY,
    ended,
    forked,
    put_schema,
    run_cases,
    started,
)
from pyarrow import csv, parquet

from tacit._random import as_generator
from tacit.persistence import read_student
from tacit.privacy import Budget, Ledger
from tacit.tables import Column

SEED = 20267
# Moments of kills reach so far beyond the time that an undisturbed run takes
LATEST = 1.1


@dataclass(frozen=True)
class Case:
    """Tables, learners and a mechanism, and how often the process is killed."""

    public: str
    target: Column
    kills: int
    options: tuple[Any, ...]
    fresh: bool = False


def cases(quick: bool) -> list[Case]:
    many, few = (16, 8) if quick else (40, 20)
    stable = ("--teacher", "tree", "--mechanism", "stable", "--student", "forest")
    votes = ("--teacher", "logistic", "--votes")
    return [
        Case("public.csv", ILL, many, votes),
        Case("public.parquet", ILL, few, stable),
        Case("public.csv", PAY, few, ("--teacher", "linear", "--student", "linear")),
        Case("public.csv", ILL, few, votes, fresh=True),
    ]


def people(n: int, seed: int) -> pa.Table:
    """Return made-up people, the old of whom are ill and well paid."""
    rng = as_generator(seed)
    ages, codes = rng.integers(0, 100, n), rng.integers(0, 2, n)
    pay = (ages + rng.integers(0, 10, n)) / 11
    return pa.table(
        {
            "age": ages,
            "sex": ["fm"[code] for code in codes],
            "pay": pay,
            "ill": ["yes" if age > 50 else "no" for age in ages],
        }
    )


def prepare(folder: Path, case: Case) -> None:
    """Write both tables and their schema."""
    folder.mkdir()
    put_schema(folder, case.target)
    csv.write_csv(people(3000, 0), folder / "private.csv")
    public = people(2500, 1).drop_columns([case.target.name])
    write = parquet.write_table if case.public.endswith("parquet") else csv.write_csv
    write(public, folder / case.public)


def command(tables: Path, position: Path, case: Case, *more: Any) -> list[str]:
    ending = Path(case.public).suffix
    given = (
        *("label", tables / "private.csv", tables / case.public),
        *("--schema", tables / "t.toml", "--state", position / "state"),
        *("--labels", position / f"labels{ending}", "--out", position / "student"),
        *("--epsilon", 2, "--delta", 1e-6, "--teachers", 100, "--json"),
        *("--set", f"random_state={SEED}", *case.options, *more),
    )
    return [str(part) for part in given]


def released(position: Path) -> dict[str, Any]:
    """Return all that is the same for the same answers, to the last bit."""
    found: dict[str, Any] = {
        path.name: path.read_bytes() for path in position.glob("labels.*")
    }
    found["student"] = predictions(read_student(position / "student").estimator)
    return found


def predictions(student: Any) -> bytes:
    """Return what a student says of made-up rows; its file has dates and addresses."""
    steps = np.sqrt(np.arange(student.n_features_in_) + 2.0)
    rows = 2 * (np.outer(np.arange(5000), steps) % 1) - 1
    ask = getattr(student, "predict_proba", student.predict)
    told: bytes = np.asarray(ask(rows)).tobytes()
    return told


def phase(position: Path) -> str:
    """Return how far a process came before it was killed."""
    if (position / "student").exists():
        return "after the student"
    if any(position.glob("labels.*")):
        return "in the student"
    labeler = position / "state" / "labeler"
    if (labeler / "answers-0").exists():
        return "in the answers"
    trained = len(list((labeler / "teachers").glob("private-teacher-*")))
    if trained >= 100:
        return "before answers"
    return "in the training" if trained else "before the training"


def left_over(position: Path) -> int:
    """Return how many parts of files are still there at the end."""
    return sum("partial" in path.name for path in position.rglob("*"))


def one_labeling(
    tables: Path,
    position: Path,
    case: Case,
    begin: Callable[[list[str]], int],
    most: Any,
) -> tuple[Counter[str], dict[str, Any]]:
    """Kill and start a command until it ends; return where, and what was found."""
    position.mkdir()
    url = f"sqlite:///{position / 'budget.db'}"
    ledger = Ledger.open(url, dataset="ward", budget=Budget(3.0, 1e-5))
    given = command(tables, position, case, "--ledger", url, "--dataset", "ward")
    phases: Counter[str] = Counter()
    while True:
        code = ended(begin(given), most())
        if code == 0:
            break
        if code != -signal.SIGKILL:
            raise RuntimeError(f"tacit ended by itself with {code}: {given}")
        phases[phase(position)] += 1
    found = {
        "released": released(position),
        "charges": sum(record.kind == "charge" for record in ledger.history()),
        "sound": ledger.verify().ok,
        "left_over": left_over(position),
    }
    ledger.close()
    return phases, found


def measured(folder: Path, case: Case) -> dict[str, Any]:
    tables = folder / "tables"
    prepare(tables, case)
    begin = started if case.fresh else forked
    begun = time.perf_counter()
    (folder / "alone").mkdir()
    quiet = command(tables, folder / "alone", case, "--no-ledger")
    if ended(begin(quiet), 600.0):
        raise RuntimeError(f"tacit failed: {quiet}")
    alone = time.perf_counter() - begun
    expected = released(folder / "alone")
    assert len(expected) == 2, sorted(expected)
    moment = as_generator(SEED + case.kills)
    phases: Counter[str] = Counter()
    row: Counter[str] = Counter()
    while phases.total() < case.kills:
        position = folder / f"labeling{row['labelings']}"
        more, found = one_labeling(
            tables, position, case, begin, lambda: moment.uniform(0, LATEST * alone)
        )
        phases += more
        row["labelings"] += 1
        row["different"] += found["released"] != expected
        row["charges"] += found["charges"]
        row["unsound"] += not found["sound"]
        row["left_over"] += found["left_over"]
    return {
        "public": case.public,
        "options": " ".join(map(str, case.options)),
        "process": "new" if case.fresh else "forked",
        "kills": phases.total(),
        "where": "; ".join(f"{name} {n}" for name, n in sorted(phases.items())),
        **{name: row[name] for name in ("labelings", "charges", "different")},
        **{name: row[name] for name in ("unsound", "left_over")},
        "seconds": round(time.perf_counter() - begun, 1),
        "seconds_without_kills": round(alone, 2),
    }


def sound(row: dict[str, Any]) -> bool:
    """Return whether the row keeps every promise."""
    clean = not (row["different"] or row["unsound"])
    return clean and row["charges"] == row["labelings"]


def main(argv: Sequence[str] | None = None) -> None:
    run_cases(argv, __doc__, RESULTS, cases, measured, sound)


if __name__ == "__main__":
    main()
