"""Teachers: one model for each chunk of private rows, in memory or in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from tacit import _json
from tacit._resumable.files import locked, made, placed
from tacit._resumable.record import estimator_string
from tacit.data.bounds import canonical
from tacit.ensemble._chunks import row_digests
from tacit.ensemble._worker import (
    CallSite,
    Parcel,
    Voting,
    cast_votes,
    chunk_of,
    map_teachers,
    packed,
    train,
    unpacked,
)
from tacit.stability._rows import as_table

__all__ = [
    "LazyTeachers",
    "TeacherFolder",
    "Teachers",
    "TeachersLost",
    "open_teachers",
    "train_teachers",
]

MANIFEST, LOCK = "teachers.json", "lock"
FORMAT, VERSION = "tacit teachers", 1
SIZE = 32
# Content of the file of a teacher that could not be trained
FAILED = cloudpickle.dumps(None)


class TeachersLost(ValueError):
    """A folder does not contain the teachers that were trained there."""


@dataclass(frozen=True)
class TeacherFolder:
    """Folder with one file for each teacher, which is complete or absent.

    A file is a digest, a digest of the rows that the teacher was trained on, and the
    teacher as a pickle. Both digests are keyed by the teacher's seed, so that damaged
    files and those of other teachers are detected.

    Parameters
    ----------
    path
        Path of the folder. It is secret: whoever reads it has models of few private
        rows each. Files are pickles, and reading one runs code of its writer: open only
        a folder that you wrote.
    """

    path: Path

    def make(self) -> None:
        """Make the folder, or restrict an existing one to its owner."""
        made(self.path, "teacher_folder")

    @contextmanager
    def opened(self, estimator: Any, seeds: Sequence[int]) -> Iterator[None]:
        """Lock the folder while teachers are written, after a check of its manifest."""
        self.make()
        lock = locked(
            self.path / LOCK,
            f"teacher_folder {self.path} is locked by another process that trains; "
            "wait for it, or give another folder.",
        )
        try:
            manifest = self.path / MANIFEST
            if not manifest.exists():
                terms = _json.canonical(_terms(estimator, seeds))
                placed(manifest, terms.encode())
            self.check_manifest(estimator, seeds)
            yield
        finally:
            os.close(lock)

    def check_manifest(self, estimator: Any, seeds: Sequence[int]) -> None:
        """Raise unless the folder was made for these teachers."""
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
                f"teacher_folder {self.path} must be new, or have been made for the "
                f"same teachers; it differs in {', '.join(differ)}."
            )

    def digest_if_whole(self, position: int, seed: int, rows: bytes) -> bytes | None:
        """Return the digest of a teacher of these rows, if its file is complete."""
        found = self._whole(position, seed)
        if found is None or found[SIZE : 2 * SIZE] != rows:
            return None
        return found[:SIZE]

    def write(self, position: int, seed: int, rows: bytes, model: bytes) -> bytes:
        """Write the file of a teacher, and return its digest."""
        content = rows + model
        digest = _digest(seed, content)
        # [teachers:file]
        placed(self._file(position), digest + content)
        return digest

    def read(self, position: int, seed: int, digest: bytes) -> bytes:
        """Return a pickled teacher; ``digest`` is that of its file."""
        found = self._whole(position, seed)
        if found is None or found[:SIZE] != digest:
            raise self._lacking()
        return found[2 * SIZE :]

    def digest_of(self, position: int, seed: int) -> bytes:
        """Return the digest of a teacher, which must exist."""
        found = self._whole(position, seed)
        if found is None:
            raise self._lacking()
        return found[:SIZE]

    def _whole(self, position: int, seed: int) -> bytes | None:
        """Return the content of a file, if it is undamaged."""
        try:
            found = self._file(position).read_bytes()
        except FileNotFoundError:
            return None
        return found if _digest(seed, found[SIZE:]) == found[:SIZE] else None

    def _file(self, position: int) -> Path:
        return self.path / f"private-teacher-{position}"

    def _lacking(self) -> TeachersLost:
        return TeachersLost(
            f"teacher_folder {self.path} lacks a teacher, or contains another one; "
            "train the teachers there again."
        )


def _digest(seed: int, content: bytes) -> bytes:
    key = str(seed).encode()[:64]
    return blake2b(content, key=key, digest_size=SIZE).digest()


def _terms(estimator: Any, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the content of a manifest; parameters and seeds as digests."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_teachers": len(seeds),
        "estimator": type(estimator).__name__,
        "parameters": blake2b(estimator_string(estimator).encode()).hexdigest(),
        "seeds": blake2b(repr(list(seeds)).encode()).hexdigest(),
    }


# Number of queries below which teachers in memory vote in this process, as sending the
# models to workers takes longer
MIN_QUERIES_FOR_WORKERS = 32


class Teachers:
    """Models of disjoint private rows, of which only votes are used.

    They are in memory, or in a folder. They are private: copies and pickles leave them
    out.

    Notes
    -----
    **Guarantee.** The votes of a teacher are a function of its own rows, its seed and
    the public queries. No value in a row makes `train_teachers` or `votes` raise or
    warn: a teacher that could not be trained, fails to predict, or predicts something
    invalid, votes the public default. Output of a learner is suppressed, in worker
    processes also that of native code; logs and files that it writes are not.
    """

    def __init__(
        self,
        voting: Voting,
        seeds: Sequence[int],
        *,
        models: list[Parcel] | None = None,
        folder: TeacherFolder | None = None,
        digests: Sequence[bytes | None] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.voting = voting
        self.folder = folder
        self.n_jobs = n_jobs
        self.verbose = verbose
        self._private_seeds = list(seeds)
        self._private_models = models
        self._private_digests = list(digests)

    def __len__(self) -> int:
        return len(self._private_seeds)

    def votes(self, X: Any) -> NDArray[Any]:
        """Return the vote of each teacher on each public row: teachers by queries.

        Indices of classes, or numbers, by the kind of voting. Exact votes are private.

        Parameters
        ----------
        X
            Public rows: an array, a sparse matrix or a data frame.
        """
        table = canonical(as_table("X", X))
        n_queries = int(table.shape[0])
        # an array of bytes reaches all workers once, whatever the table is
        queries = np.frombuffer(cloudpickle.dumps(table), dtype=np.uint8)
        rest = (queries, n_queries, self.voting)
        models, site = self._private_models, CallSite.here()

        def task(teacher: int) -> tuple[Any, ...]:
            source: Parcel | tuple[TeacherFolder | None, int, bytes | None]
            if models is not None:
                source = models[teacher]
            else:
                source = (self.folder, teacher, self._private_digests[teacher])
            return source, *rest, self._private_seeds[teacher], site

        votes = map_teachers(
            _votes_of,
            task,
            len(self),
            lost=self.voting.abstained(n_queries),
            n_jobs=1
            if models is not None and n_queries < MIN_QUERIES_FOR_WORKERS
            else self.n_jobs,
            label="votes of teachers",
            verbose=self.verbose,
        )
        return np.array(votes, dtype=self.voting.dtype).reshape(len(self), n_queries)

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(
            "Teachers cannot be copied or pickled, as they are models of private rows; "
            "train them in a folder, and open it where they are needed."
        )


def train_teachers(
    estimator: Any,
    X: Any,
    y: Any,
    chunks: Sequence[NDArray[np.intp]],
    voting: Voting,
    *,
    seeds: Sequence[int],
    n_jobs: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Teachers:
    """Train one teacher on each chunk.

    Parameters
    ----------
    estimator
        A scikit-learn estimator; each teacher is a clone of it.
    X, y
        Private rows and targets. Workers get those of one chunk at a time.
    chunks
        Rows of each teacher, as from `chunk_members`.
    voting
        How predictions become votes.
    seeds
        One for each teacher, drawn before any row was read. All parameters named
        ``random_state``, also nested ones, get a seed derived from it.
    n_jobs
        As in scikit-learn: None for one process unless joblib is configured otherwise.
    folder
        Folder of the teachers, one file each, so that they need not fit in memory; an
        interrupted training resumes with those that exist. The folder is secret, and
        readable for its owner only. Its files are pickles: give only a folder that you
        wrote. Workers on other machines must see it under the same name.
    verbose
        Whether to show a progress bar, which counts teachers.

    Notes
    -----
    **Guarantee.** That of `Teachers`. A worker that dies, such as by a crash of native
    code, counts as a teacher that failed; without worker processes it ends this one.
    Under threads, learners must not draw from the global generators of Python and
    NumPy.
    """
    # long: teachers in memory and in a folder have the task and its closures in common
    table, targets = canonical(as_table("X", X)), as_table("y", y)
    site = CallSite.here()
    store = None if folder is None else TeacherFolder(Path(folder).absolute())

    def task(teacher: int) -> tuple[Any, ...]:
        chunk = chunk_of(table, targets, chunks[teacher])
        source = None if store is None else (store, teacher)
        return estimator, chunk, seeds[teacher], site, source

    def train_all(lost: Any) -> list[Any]:
        return map_teachers(
            _train,
            task,
            len(seeds),
            lost=lost,
            n_jobs=n_jobs,
            label="teachers",
            verbose=verbose,
        )

    open_with = partial(Teachers, voting, seeds, n_jobs=n_jobs, verbose=verbose)
    if store is None:
        return open_with(models=train_all(Parcel(None)))
    with store.opened(estimator, seeds):
        digests = train_all(None)
        for teacher, digest in enumerate(digests):
            if digest is None:
                # its worker died: it votes the default, now and after a restart
                chunk = chunk_of(table, targets, chunks[teacher])
                rows = _rows_digest(chunk, seeds[teacher])
                digests[teacher] = store.write(teacher, seeds[teacher], rows, FAILED)
    return open_with(folder=store, digests=digests)


def open_teachers(
    folder: str | os.PathLike[str],
    estimator: Any,
    voting: Voting,
    *,
    seeds: Sequence[int],
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Teachers:
    """Return teachers that were trained in a folder, without their rows.

    Parameters
    ----------
    folder, estimator, voting, seeds, n_jobs, verbose
        As for `train_teachers`. Files are pickles: open only a folder that you wrote.
    """
    store = TeacherFolder(Path(folder).absolute())
    store.check_manifest(estimator, seeds)
    digests = [store.digest_of(teacher, seed) for teacher, seed in enumerate(seeds)]
    return Teachers(
        voting, seeds, folder=store, digests=digests, n_jobs=n_jobs, verbose=verbose
    )


class LazyTeachers:
    """Teachers in a folder that are opened at the first query.

    Released answers can be read without them.

    Parameters
    ----------
    **terms
        As for `open_teachers`.
    """

    def __init__(self, **terms: Any) -> None:
        self._private_terms = terms

    @cached_property
    def _private_teachers(self) -> Teachers:
        return open_teachers(**self._private_terms)

    def votes(self, X: Any) -> NDArray[Any]:
        """Return votes, as `Teachers.votes` does."""
        return self._private_teachers.votes(X)


def _train(
    estimator: Any,
    chunk: Parcel,
    seed: int,
    site: CallSite,
    source: tuple[TeacherFolder, int] | None,
) -> Parcel | bytes:
    """Return a teacher, or the digest of its file where there is a folder."""
    if source is None:
        return Parcel(train(estimator, chunk, seed, site))
    store, teacher = source
    rows = _rows_digest(chunk, seed)
    digest = store.digest_if_whole(teacher, seed, rows)
    if digest is not None:
        return digest
    model = packed(train(estimator, chunk, seed, site))
    return store.write(teacher, seed, rows, FAILED if model is None else model)


def _rows_digest(chunk: Parcel, seed: int) -> bytes:
    """Return the digest of the rows of a teacher."""
    digest = blake2b(digest_size=SIZE)
    rows = chunk.unpacked()
    if rows is not None:
        X, y = rows
        for row in row_digests(X, y, seed.to_bytes(16, "big")):
            digest.update(row)
    return digest.digest()


def _votes_of(source: Any, *rest: Any) -> NDArray[Any]:
    if isinstance(source, Parcel):
        return cast_votes(source.unpacked(), *rest)
    store, teacher, digest = source
    *_, seed, _ = rest
    return cast_votes(unpacked(store.read(teacher, seed, digest)), *rest)
