"""The file of results: one JSON object a fit, only ever appended to."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import tacit

OUTPUTS = Path(__file__).resolve().parents[1] / "outputs" / "additive"
FILE, QUICK_FILE = OUTPUTS / "fits.jsonl", OUTPUTS / "quick.jsonl"

Key = tuple[str, str, str, float | None, int]


@dataclass(frozen=True)
class Line:
    """One fit as it stands in the file; without privacy ``epsilon`` is None."""

    protocol: str
    name: str
    method: str
    epsilon: float | None
    run: int
    score: float | None
    cpu_s: float
    status: str = "ok"  # or "rejected", for good, or "failed", to be tried again
    note: str = ""
    code: str = ""  # digest of the library that was measured, or a peer's version

    @property
    def key(self) -> Key:
        return self.protocol, self.name, self.method, self.epsilon, self.run

    @property
    def is_ours(self) -> bool:
        """Whether the library was measured: others have a name and a version."""
        return " " not in self.code


def append(line: Line, file: Path = FILE) -> None:
    """Add a fit; a single write, so that two processes cannot mix their lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, (json.dumps(asdict(line)) + "\n").encode())
    finally:
        os.close(handle)


def read(file: Path = FILE) -> list[Line]:
    """Return the last line of every fit; lines cut short by a crash are skipped."""
    found: dict[Key, Line] = {}
    if file.is_file():
        for text in file.read_text().splitlines():
            try:
                line = Line(**json.loads(text))
            except (ValueError, TypeError):
                continue
            found[line.key] = line
    return list(found.values())


def finished(file: Path = FILE, *, same_code: bool = False) -> set[Key]:
    """Return the fits that need not be run again; failures are tried again.

    With ``same_code``, fits of the library count only as it is now.
    """
    return {
        line.key
        for line in read(file)
        if line.status != "failed"
        and not (same_code and line.is_ours and line.code != code_digest())
    }


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a digest of the library's source, so that figures can be told apart."""
    digest = hashlib.sha256()
    for file in sorted(Path(tacit.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]
