"""Where the rows of the experiments on fairness go; see `benchmarks.tables`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.tables import (
    Log,
    arguments,
    code_of,
    markdown,
    measured_rows,
    save_rows,
    shown,
)

import tacit

__all__ = [
    "CODE",
    "RESULTS",
    "Log",
    "arguments",
    "markdown",
    "measured",
    "save",
    "shown",
]

HERE, LIBRARY = Path(__file__).resolve().parent, Path(tacit.__file__).parent
RESULTS = HERE / "results"


def _files() -> list[Path]:
    parts = ("datasets", "fairness", "linear_model", "solvers", "mechanisms", "privacy")
    library = [sorted((LIBRARY / part).rglob("*.py")) for part in parts]
    own = [HERE / name for name in ("bounds.py", "data.py", "models.py", "sweeps.py")]
    return own + [file for part in library for file in part]


# All code that lines follow from, as it was when it was loaded
CODE = code_of(_files())


def save(name: str, rows: Iterable[Mapping[str, Any]], *, quick: bool) -> Path:
    """Write the rows of a module, in place of those of its last run."""
    return save_rows(RESULTS, name, rows, quick=quick)


def measured(name: str, *, whole: bool) -> list[dict[str, str]]:
    """Return the rows that a module wrote, of a whole run if that is asked."""
    return measured_rows(RESULTS, name, whole=whole)
