"""What a worker does for a teacher: train on its rows, and vote; it tells nothing."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone

from tacit._random import Seed, global_states_kept, seed_globals
from tacit._suppress_output import Shared, attempt
from tacit.ensemble._voting import Voting
from tacit.stability._taken_rows import taken

__all__ = [
    "Parcel",
    "Position",
    "cast_votes",
    "chunk_of",
    "packed",
    "seeded",
    "trained",
]


class Parcel:
    """Something private on its way to a worker or back, which cannot fail to travel.

    What cannot be pickled arrives as None: an error on the way would tell of it. Within
    a process it is handed over as it is, unless others may hold parts of it. What has
    arrived stays packed until it is opened, as it may only travel on.
    """

    def __init__(self, content: Any, *, shared: bool = False) -> None:
        self._private_content = content
        self._shared = shared
        self._packed = False

    def opened(self) -> Any:
        if self._packed:
            self._private_content = unpacked(self._private_content)
            self._packed = False
        content = self._private_content
        return unpacked(packed(content)) if self._shared else content

    def __reduce__(self) -> tuple[Any, ...]:
        content = self._private_content
        return _arrived, (content if self._packed else packed(content),)


def packed(thing: Any) -> bytes | None:
    """Return something as bytes, and None where that fails."""
    content = attempt(cloudpickle.dumps, thing)
    return content if isinstance(content, bytes) else None


def unpacked(content: Any) -> Any:
    """Return what was packed, and None where that fails."""
    return None if content is None else attempt(cloudpickle.loads, content)


def _arrived(content: bytes | None) -> Parcel:
    parcel = Parcel(content)
    parcel._packed = True
    return parcel


@dataclass(frozen=True)
class Position:
    """Where work was asked for: the process, and its settings of scikit-learn."""

    process: int
    settings: dict[str, Any]

    @classmethod
    def here(cls) -> Position:
        return cls(os.getpid(), get_config())

    @contextmanager
    def apart(self, seed: int) -> Iterator[None]:
        """Let work print nothing, and leave nothing for the work that follows."""
        with _states(), _muted(elsewhere=os.getpid() != self.process):
            seed_globals(seed)
            with config_context(**self.settings):
                yield


def chunk_of(X: Any, y: Any, rows: NDArray[np.intp]) -> Parcel:
    """Return rows and targets of one chunk, which tell nothing of other rows."""
    # [teachers:cells] one object may be in many rows, and learners may write into it
    shared = _holds_objects(X) or _holds_objects(y)
    return Parcel(attempt(lambda: (taken(X, rows), taken(y, rows))), shared=shared)


def _holds_objects(table: Any) -> bool:
    """Return whether a copy of a table may hold the same objects as the table."""
    kinds = [table.dtype] if hasattr(table, "dtype") else list(table.dtypes)
    return any(getattr(kind, "hasobject", True) for kind in kinds)


def seeded(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy, each of whose parts that draw has a seed of its own."""
    copy = clone(estimator)
    names = [
        name
        for name in copy.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    return copy.set_params(**{name: _child(seed, name) for name in names})


def _child(seed: int, name: str) -> Seed:
    """Return a seed of 32 bits for what is called so."""
    word = blake2b(f"{seed} {name}".encode(), digest_size=4).digest()
    return Seed(int.from_bytes(word))


def trained(estimator: Any, chunk: Parcel, seed: int, position: Position) -> Any:
    """Return a model of a chunk, and None where there is none."""
    with position.apart(seed):
        return attempt(_fitted, estimator, chunk, seed)


def _fitted(estimator: Any, chunk: Parcel, seed: int) -> Any:
    model = seeded(estimator, seed)
    model.fit(*chunk.opened())
    return model


def cast_votes(
    model: Any,
    questions: NDArray[np.uint8],
    n_questions: int,
    voting: Voting,
    seed: int,
    position: Position,
) -> NDArray[Any]:
    """Return the votes of one model; questions are packed, in an array of bytes."""
    with position.apart(seed):
        # a copy for each, as a model may write into what it is asked
        predictions = attempt(lambda: model.predict(cloudpickle.loads(questions)))
    return voting.cast(predictions, n_questions)


_states = Shared(global_states_kept)


@contextmanager
def _muted(*, elsewhere: bool) -> Iterator[None]:
    """Keep what native code and child processes print from view, in a worker.

    In the process that asked, other threads and a bar of progress write to the same
    files.
    """
    if not elsewhere:
        yield
        return
    with _descriptors():
        yield


@contextmanager
def _nowhere() -> Iterator[None]:
    kept = {}
    with suppress(OSError):
        kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _flush()
    for descriptor in kept:
        os.dup2(nowhere, descriptor)
    try:
        yield
    finally:
        # what is in buffers would be printed later
        _flush()
        for descriptor, file in kept.items():
            os.dup2(file, descriptor)
            os.close(file)
        os.close(nowhere)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):  # there is no such library everywhere
        ctypes.CDLL(None).fflush(None)


_descriptors = Shared(_nowhere)
