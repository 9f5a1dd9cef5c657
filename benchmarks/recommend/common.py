"""Where the rows of the benchmarks of ratings go; see `benchmarks.tables`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.tables import (
    arguments,
    markdown,
    measured_rows,
    read_rows,
    save_rows,
    shown,
)

__all__ = [
    "RESULTS",
    "Log",
    "arguments",
    "code_of",
    "markdown",
    "measured",
    "save",
    "shown",
]

RESULTS = Path(__file__).resolve().parent / "results"


def save(name: str, rows: Iterable[Mapping[str, Any]], *, quick: bool) -> Path:
    """Write the rows of a module, in place of those of its last run."""
    return save_rows(RESULTS, name, rows, quick=quick)


def measured(name: str, *, whole: bool) -> list[dict[str, str]]:
    """Return the rows that a module wrote, of a whole run if that is asked."""
    return measured_rows(RESULTS, name, whole=whole)


def code_of(files: Iterable[Path]) -> str:
    """Return a digest of some files of code."""
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Log:
    """Rows that reach the file one by one, so that a run can be stopped.

    Rows of the last run stay where ``holds`` is true of them.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[str],
        holds: Callable[[Mapping[str, str]], bool],
        *,
        quick: bool,
    ) -> None:
        self._quick = "yes" if quick else ""
        self.rows = [
            row
            for row in read_rows(RESULTS, name)
            if row["quick"] == self._quick and holds(row)
        ]
        RESULTS.mkdir(exist_ok=True)
        self._file = (RESULTS / f"{name}.csv").open("w", newline="")
        self._writer = csv.DictWriter(self._file, [*fields, "quick"], restval="")
        self._writer.writeheader()
        self._writer.writerows(self.rows)
        self._file.flush()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one more row."""
        text = {
            name: "" if value is None else str(value) for name, value in row.items()
        }
        text["quick"] = self._quick
        self._writer.writerow(text)
        self._file.flush()
        self.rows.append(text)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
