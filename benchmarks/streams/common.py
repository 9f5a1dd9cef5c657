"""Where the rows of the benchmarks of streams go; see `benchmarks.tables`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.tables import arguments, markdown, measured_rows, save_rows, shown

__all__ = ["RESULTS", "arguments", "markdown", "measured", "save", "shown"]

RESULTS = Path(__file__).resolve().parent / "results"


def save(name: str, rows: Iterable[Mapping[str, Any]], *, quick: bool) -> Path:
    """Write the rows of a module, in place of those of its last run."""
    return save_rows(RESULTS, name, rows, quick=quick)


def measured(name: str, *, whole: bool) -> list[dict[str, str]]:
    """Return the rows that a module wrote, of a whole run if that is asked."""
    return measured_rows(RESULTS, name, whole=whole)
