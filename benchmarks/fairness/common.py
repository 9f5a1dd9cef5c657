"""Where the rows of the experiments on fairness go, and the code they follow from."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import Results, code_of

import tacit

HERE, LIBRARY = Path(__file__).resolve().parent, Path(tacit.__file__).parent
RESULTS = Results.beside(__file__)


def _files() -> list[Path]:
    parts = ("datasets", "fairness", "linear_model", "solvers", "mechanisms", "privacy")
    library = [sorted((LIBRARY / part).rglob("*.py")) for part in parts]
    own = [HERE / name for name in ("bounds.py", "data.py", "models.py", "sweeps.py")]
    return own + [file for part in library for file in part]


# All code that lines follow from, as it was when it was loaded
CODE = code_of(_files())
