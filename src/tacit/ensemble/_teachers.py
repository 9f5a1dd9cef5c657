"""Teachers: one model for each chunk of private rows, and their votes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from tacit.data.bounds import canonical
from tacit.ensemble._folder import SIZE, TeacherFolder
from tacit.ensemble._parallel import each
from tacit.ensemble._row_digests import row_digests
from tacit.ensemble._voting import Voting
from tacit.ensemble._worker import (
    Parcel,
    Position,
    cast_votes,
    chunk_of,
    packed,
    trained,
    unpacked,
)
from tacit.stability._base import as_table

__all__ = ["LateTeachers", "Teachers", "open_teachers", "train_teachers"]

# Questions below which teachers in memory vote in this process: to send them takes
# longer
FEW_QUESTIONS = 32


class Teachers:
    """Models of disjoint private rows, of which only votes are for use.

    They are in memory, or in a folder. They are private: no copy or pickle has them.

    Notes
    -----
    **Guarantee.** The votes of a teacher are a function of its own rows, its seed and
    the public questions. No value in a row makes `train_teachers` or `votes` raise or
    warn: a teacher that could not be trained, fails to predict, or predicts what is no
    vote, votes the public default. What a learner prints is kept from view, in worker
    processes also what native code prints; what it logs, or writes to files, is not.
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
        """Return what each teacher says of each public row: teachers by questions.

        Places of classes, or numbers, as the voting has them. Exact votes are private.

        Parameters
        ----------
        X
            Public rows: an array, a sparse matrix or a data frame.
        """
        table = canonical(as_table("X", X))
        n_questions = int(table.shape[0])
        # an array of bytes reaches all workers once, whatever the table is
        questions = np.frombuffer(cloudpickle.dumps(table), dtype=np.uint8)
        rest = (questions, n_questions, self.voting)
        in_memory = self.folder is None
        position = Position.here()

        def asked(teacher: int) -> tuple[Any, ...]:
            if in_memory:
                source = self._private_models[teacher]
            else:
                source = (self.folder, teacher, self._private_digests[teacher])
            return source, *rest, self._private_seeds[teacher], position

        votes = each(
            _voted,
            asked,
            len(self),
            lost=self.voting.abstained(n_questions),
            n_jobs=1 if in_memory and n_questions < FEW_QUESTIONS else self.n_jobs,
            label="votes of teachers",
            verbose=self.verbose,
        )
        return np.array(votes, dtype=self.voting.dtype).reshape(len(self), n_questions)

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
        Private rows and targets. A worker is sent those of one chunk at a time.
    chunks
        Rows of each teacher, as from `chunk_members`.
    voting
        What predictions become.
    seeds
        One for each teacher, drawn before rows were looked at. All parameters called
        ``random_state``, also nested ones, get a seed from it.
    n_jobs
        As in scikit-learn: None for one process unless joblib is configured otherwise.
    folder
        Where teachers are kept, one file each, so that they need not fit in memory; a
        training that was stopped goes on with those that are there. The folder is
        secret, and made for its owner alone. Its files are pickles: give only a folder
        that you wrote. Workers on other machines must see it under the same name.
    verbose
        Whether to show a bar, which counts teachers.

    Notes
    -----
    **Guarantee.** As `Teachers` says. A worker that ends without an answer, such as by
    a crash of native code, counts as a teacher that failed; without worker processes
    it ends this one. Under threads, learners must not draw from the generators that
    Python and numpy share among them.
    """
    table, targets = canonical(as_table("X", X)), as_table("y", y)
    position = Position.here()
    store = None if folder is None else TeacherFolder(Path(folder).absolute())

    def given(teacher: int) -> tuple[Any, ...]:
        chunk = chunk_of(table, targets, chunks[teacher])
        source = None if store is None else (store, teacher)
        return estimator, chunk, seeds[teacher], position, source

    def all_trained(lost: Any) -> list[Any]:
        return each(
            _made,
            given,
            len(seeds),
            lost=lost,
            n_jobs=n_jobs,
            label="teachers",
            verbose=verbose,
        )

    options = {"n_jobs": n_jobs, "verbose": verbose}
    if store is None:
        models = all_trained(Parcel(None))
        return Teachers(voting, seeds, models=models, **options)
    with store.opened(estimator, seeds):
        digests = all_trained(None)
        for teacher, digest in enumerate(digests):
            if digest is None:
                # its worker ended: it has no vote of its own, now and after a restart
                chunk = chunk_of(table, targets, chunks[teacher])
                rows = _rows_digest(chunk, seeds[teacher])
                digests[teacher] = store.write(
                    teacher, seeds[teacher], rows, packed(None)
                )
    return Teachers(voting, seeds, folder=store, digests=digests, **options)


def open_teachers(
    folder: str | os.PathLike[str],
    estimator: Any,
    voting: Voting,
    *,
    seeds: Sequence[int],
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Teachers:
    """Return teachers that were all trained in a folder, without their rows.

    Parameters
    ----------
    folder, estimator, voting, seeds, n_jobs, verbose
        As they were trained with. Files are pickles: open only a folder that you wrote.
    """
    store = TeacherFolder(Path(folder).absolute())
    store.refuse_others(estimator, seeds)
    digests = [store.digest_of(teacher, seed) for teacher, seed in enumerate(seeds)]
    return Teachers(
        voting, seeds, folder=store, digests=digests, n_jobs=n_jobs, verbose=verbose
    )


class LateTeachers:
    """Teachers in a folder that are looked for when the first question is asked.

    What was answered can so be read without them.

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


def _made(
    estimator: Any, chunk: Parcel, seed: int, position: Position, source: Any
) -> Parcel | bytes:
    """Return a teacher, or the digest of its file where it is kept in a folder."""
    if source is None:
        return Parcel(trained(estimator, chunk, seed, position))
    store, teacher = source
    rows = _rows_digest(chunk, seed)
    digest = store.digest_if_whole(teacher, seed, rows)
    if digest is not None:
        return digest
    model = packed(trained(estimator, chunk, seed, position))
    return store.write(teacher, seed, rows, packed(None) if model is None else model)


def _rows_digest(chunk: Parcel, seed: int) -> bytes:
    """Return what tells rows of a teacher from others."""
    digest = blake2b(digest_size=SIZE)
    rows = chunk.opened()
    if rows is not None:
        for row in row_digests(*rows, seed.to_bytes(16, "big")):
            digest.update(row)
    return digest.digest()


def _voted(source: Any, *rest: Any) -> NDArray[Any]:
    if isinstance(source, Parcel):
        return cast_votes(source.opened(), *rest)
    store, teacher, digest = source
    *_, seed, _ = rest
    return cast_votes(unpacked(store.read(teacher, seed, digest)), *rest)
