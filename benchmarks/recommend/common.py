"""Where the rows of the benchmarks of ratings go; see `benchmarks.tables`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.tables import (
    arguments,
    code_of,
    markdown,
    measured_rows,
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


class Log(tables.Log):
    """Rows of these benchmarks that reach their file one by one."""

    def __init__(
        self,
        name: str,
        fields: Sequence[str],
        holds: Callable[[Mapping[str, str]], bool],
        *,
        quick: bool,
    ) -> None:
        super().__init__(RESULTS, name, fields, holds, quick=quick)
