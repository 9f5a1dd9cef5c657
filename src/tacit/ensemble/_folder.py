"""Teachers on the disk: one file each, whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tacit import _json
from tacit._resumable.files import locked, made, placed
from tacit.ensemble._learner_description import described

__all__ = ["TeacherFolder", "TeachersLost"]

MANIFEST, LOCK = "teachers.json", "lock"
FORMAT, VERSION = "tacit teachers", 1
SIZE = 32


class TeachersLost(ValueError):
    """A folder does not hold the teachers that were trained there."""


@dataclass(frozen=True)
class TeacherFolder:
    """A folder with one file for each teacher.

    A file is a digest, a digest of the rows that the teacher was trained on, and the
    teacher as a pickle. Both digests are keyed by the teacher's seed, so that a file
    that is damaged, or of another teacher, is told from a whole one.

    Parameters
    ----------
    path
        Of the folder. It is secret: whoever reads it has models of few private rows
        each. Files are pickles, and reading one runs what its writer put there: open
        only a folder that you wrote.
    """

    path: Path

    def make(self) -> None:
        """Make the folder, or restrict an existing one to its owner."""
        made(self.path, "teacher_folder")

    @contextmanager
    def opened(self, estimator: Any, seeds: Sequence[int]) -> Iterator[None]:
        """Hold the folder while teachers are written, and refuse one of others."""
        self.make()
        lock = locked(
            self.path / LOCK,
            f"teacher_folder {self.path} is held by another process that trains; wait "
            "for it, or give another folder.",
        )
        try:
            manifest = self.path / MANIFEST
            if not manifest.exists():
                terms = _json.canonical(_terms(estimator, seeds))
                placed(manifest, terms.encode())
            self.refuse_others(estimator, seeds)
            yield
        finally:
            os.close(lock)

    def refuse_others(self, estimator: Any, seeds: Sequence[int]) -> None:
        """Refuse a folder that was not begun for these teachers."""
        try:
            found = json.loads((self.path / MANIFEST).read_bytes())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            found = {}
        terms = _terms(estimator, seeds)
        differ = [name for name in terms if found.get(name) != terms[name]]
        if differ:
            raise TeachersLost(
                f"teacher_folder {self.path} must be new, or have been begun for the "
                f"same teachers; it differs in {', '.join(differ)}."
            )

    def digest_if_whole(self, position: int, seed: int, rows: bytes) -> bytes | None:
        """Return the digest of a teacher of these rows, if it is there and whole."""
        found = self._whole(position, seed)
        if found is None or found[SIZE : 2 * SIZE] != rows:
            return None
        return found[:SIZE]

    def write(self, position: int, seed: int, rows: bytes, model: bytes) -> bytes:
        """Put a teacher in its place, and return the digest of its file."""
        content = rows + model
        digest = _digest(seed, content)
        # [teachers:file]
        placed(self._file(position), digest + content)
        return digest

    def read(self, position: int, seed: int, digest: bytes) -> bytes:
        """Return a teacher as it was packed; ``digest`` is that of its file."""
        found = self._whole(position, seed)
        if found is None or found[:SIZE] != digest:
            raise self._lacking()
        return found[2 * SIZE :]

    def digest_of(self, position: int, seed: int) -> bytes:
        """Return the digest of a teacher that must be there."""
        found = self._whole(position, seed)
        if found is None:
            raise self._lacking()
        return found[:SIZE]

    def _whole(self, position: int, seed: int) -> bytes | None:
        """Return what a file holds, if it is as it was written."""
        try:
            found = self._file(position).read_bytes()
        except FileNotFoundError:
            return None
        return found if _digest(seed, found[SIZE:]) == found[:SIZE] else None

    def _file(self, position: int) -> Path:
        return self.path / f"private-teacher-{position}"

    def _lacking(self) -> TeachersLost:
        return TeachersLost(
            f"teacher_folder {self.path} lacks a teacher, or holds another in its "
            "place; train the teachers there again."
        )


def _digest(seed: int, content: bytes) -> bytes:
    key = str(seed).encode()[:64]
    return blake2b(content, key=key, digest_size=SIZE).digest()


def _terms(estimator: Any, seeds: Sequence[int]) -> dict[str, Any]:
    """Return what a folder is begun with; parameters and seeds as digests."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_teachers": len(seeds),
        "estimator": type(estimator).__name__,
        "parameters": blake2b(described(estimator).encode()).hexdigest(),
        "seeds": blake2b(repr(list(seeds)).encode()).hexdigest(),
    }
