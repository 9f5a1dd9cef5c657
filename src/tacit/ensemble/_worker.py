"""Work of a teacher in a worker process: training on its rows, and voting."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import cloudpickle
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone

from tacit._estimators import listed
from tacit._execution import Shared, attempt, bar
from tacit._random import Seed, global_states_kept, seed_globals
from tacit.stability._rows import select_rows

__all__ = [
    "CallSite",
    "ClassVoting",
    "NumberVoting",
    "Parcel",
    "Voting",
    "cast_votes",
    "chunk_of",
    "map_teachers",
    "packed",
    "seeded",
    "train",
]

NUMBERS, STRINGS = "biuf", "U"
# Indices of classes are stored in 16 bits
MOST_CLASSES = 2**15


class Voting:
    """Kind of votes. A vote is a function of one prediction only.

    Notes
    -----
    **Guarantee.** `cast` neither raises nor warns, whatever was predicted: a learner
    may do anything with its rows, and only its votes may depend on them.
    """

    dtype: type
    default: int | float

    def cast(self, predictions: Any, n: int) -> NDArray[Any]:
        """Return n votes, with the default for invalid predictions.

        Parameters
        ----------
        predictions
            Predictions of a teacher for n queries, or None where it failed.
        n
            Number of queries.
        """
        votes = attempt(self._cast, predictions, n)
        return self.abstained(n) if votes is None else votes

    def abstained(self, n: int) -> NDArray[Any]:
        """Return the votes of a teacher that failed."""
        return np.full(n, self.default, dtype=self.dtype)

    def _cast(self, predictions: Any, n: int) -> NDArray[Any]:
        raise NotImplementedError


class ClassVoting(Voting):
    """Votes for one of several public classes, as its index.

    Parameters
    ----------
    classes
        Public labels; the first is the default.
    """

    dtype = np.int16
    default = 0

    def __init__(self, classes: Sequence[Any] | NDArray[Any]) -> None:
        found = np.asarray(classes)
        self.classes = tuple(found.reshape(-1).tolist())
        self._positions = {
            label: position for position, label in enumerate(self.classes)
        }
        n_labels = len(self._positions)
        if found.shape != (n_labels,) or not 0 < n_labels <= MOST_CLASSES:
            raise ValueError(f"classes must be 1 to {MOST_CLASSES} distinct labels.")
        self._order = np.argsort(found, kind="stable").astype(self.dtype)
        self._sorted = found[self._order]

    def _cast(self, predictions: Any, n: int) -> NDArray[np.int16]:
        labels = _one_each(predictions, n)
        kinds = {labels.dtype.kind, self._sorted.dtype.kind}
        if kinds <= set(NUMBERS) or kinds <= set(STRINGS):
            near = np.searchsorted(self._sorted, labels).clip(max=len(self.classes) - 1)
            found = self._sorted[near] == labels
            return np.where(found, self._order[near], self.dtype(self.default))
        return np.array([self._position(label) for label in labels], dtype=self.dtype)

    def _position(self, label: Any) -> int:
        try:
            return self._positions.get(label, self.default)
        except TypeError:  # labels are hashable
            return self.default


class NumberVoting(Voting):
    """Votes for numbers in a public range; the default is its middle.

    Parameters
    ----------
    low, high
        Ends of the range, to which numbers are clipped.
    """

    dtype = np.float64

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = float(low), float(high)
        self.default = self.low / 2 + self.high / 2

    def _cast(self, predictions: Any, n: int) -> NDArray[np.float64]:
        numbers = _one_each(predictions, n)
        if numbers.dtype.kind not in NUMBERS:
            numbers = np.array([_number(value) for value in numbers], dtype=np.float64)
        numbers = numbers.astype(np.float64)
        votes = numbers.clip(self.low, self.high)
        return np.where(np.isnan(numbers), self.default, votes)


def _one_each(predictions: Any, n: int) -> NDArray[Any]:
    """Return n predictions as an array, or raise."""
    found = np.asarray(listed(predictions))
    # some learners predict a table of one column
    if found.shape == (n, 1):
        found = found[:, 0]
    if found.shape != (n,):
        raise ValueError
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


class Parcel:
    """Private content on its way to a worker or back, whose transfer cannot fail.

    What cannot be pickled arrives as None, as an error would leak information about it.
    Within a process the content is passed on as it is, unless parts of it are shared.
    Content that has arrived stays packed until it is needed, as it may only be sent on.
    """

    def __init__(self, content: Any, *, shared: bool = False) -> None:
        self._private_content = content
        self._shared = shared
        self._packed = False

    def unpacked(self) -> Any:
        if self._packed:
            self._private_content = unpacked(self._private_content)
            self._packed = False
        content = self._private_content
        return unpacked(packed(content)) if self._shared else content

    def __reduce__(self) -> tuple[Any, ...]:
        content = self._private_content
        return _arrived, (content if self._packed else packed(content),)


def packed(thing: Any) -> bytes | None:
    """Return pickled content, or None where that fails."""
    content = attempt(cloudpickle.dumps, thing)
    return content if isinstance(content, bytes) else None


def unpacked(content: Any) -> Any:
    """Return unpickled content, or None where that fails."""
    return None if content is None else attempt(cloudpickle.loads, content)


def _arrived(content: bytes | None) -> Parcel:
    parcel = Parcel(content)
    parcel._packed = True
    return parcel


@dataclass(frozen=True)
class CallSite:
    """Process that hands out work, with its settings of scikit-learn."""

    process: int
    settings: dict[str, Any]

    @classmethod
    def here(cls) -> CallSite:
        return cls(os.getpid(), get_config())

    @contextmanager
    def isolated(self, seed: int) -> Iterator[None]:
        """Run work without output, and restore all global state after it."""
        with _states(), _output_suppressed(elsewhere=os.getpid() != self.process):
            seed_globals(seed)
            with config_context(**self.settings):
                yield


def chunk_of(X: Any, y: Any, rows: NDArray[np.intp]) -> Parcel:
    """Return rows and targets of one chunk, which leak nothing of other rows."""
    # [teachers:cells] one object may be in several rows, and learners may write into it
    shared = _holds_objects(X) or _holds_objects(y)
    return Parcel(
        attempt(lambda: (select_rows(X, rows), select_rows(y, rows))), shared=shared
    )


def _holds_objects(table: Any) -> bool:
    """Return whether copies of a table may share objects with it."""
    kinds = [table.dtype] if hasattr(table, "dtype") else list(table.dtypes)
    return any(getattr(kind, "hasobject", True) for kind in kinds)


def seeded(estimator: Any, seed: int) -> Any:
    """Return an unfitted clone, each random part of which has a seed of its own."""
    copy = clone(estimator)
    names = [
        name
        for name in copy.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    return copy.set_params(**{name: _child(seed, name) for name in names})


def _child(seed: int, name: str) -> Seed:
    """Return a seed of 32 bits for the parameter of this name."""
    word = blake2b(f"{seed} {name}".encode(), digest_size=4).digest()
    return Seed(int.from_bytes(word))


def train(estimator: Any, chunk: Parcel, seed: int, site: CallSite) -> Any:
    """Return a model of a chunk, or None where training fails."""
    with site.isolated(seed):
        return attempt(_fitted, estimator, chunk, seed)


def _fitted(estimator: Any, chunk: Parcel, seed: int) -> Any:
    model = seeded(estimator, seed)
    model.fit(*chunk.unpacked())
    return model


def cast_votes(
    model: Any,
    queries: NDArray[np.uint8],
    n_queries: int,
    voting: Voting,
    seed: int,
    site: CallSite,
) -> NDArray[Any]:
    """Return the votes of one model; queries are pickled, as an array of bytes."""
    with site.isolated(seed):
        # a copy for each, as a model may write into its input
        predictions = attempt(lambda: model.predict(cloudpickle.loads(queries)))
    return voting.cast(predictions, n_queries)


_states = Shared(global_states_kept)


@contextmanager
def _output_suppressed(*, elsewhere: bool) -> Iterator[None]:
    """Suppress output of native code and child processes, in a worker.

    In the calling process, other threads and a progress bar write to the same files.
    """
    if not elsewhere:
        yield
        return
    with _descriptors():
        yield


@contextmanager
def _to_devnull() -> Iterator[None]:
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
        # buffers would be printed later
        _flush()
        for descriptor, file in kept.items():
            os.dup2(file, descriptor)
            os.close(file)
        os.close(nowhere)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            if stream is not None:
                stream.flush()
    with suppress(Exception):  # not every platform has this library
        ctypes.CDLL(None).fflush(None)


_descriptors = Shared(_to_devnull)


# Raised by dask when a worker dies, such as by a crash of native code or for lack of
# memory; it has no base class that is imported here
_WORKER_DEATH = "KilledWorker"


def map_teachers(
    function: Callable[..., Any],
    arguments: Callable[[int], tuple[Any, ...]],
    n: int,
    *,
    lost: Any,
    n_jobs: int | None,
    label: str,
    verbose: int,
) -> list[Any]:
    """Return the result of a function for each teacher, in their order.

    Parameters
    ----------
    function
        Function that a worker calls; rows must not make it raise.
    arguments
        Makes the arguments for a teacher, shortly before a worker takes them.
    n
        Number of teachers.
    lost
        Result of a teacher whose worker died, also when it had no other work.
    n_jobs
        As for joblib, whose configured back end is used.
    label, verbose
        Text of the progress bar, and whether to show one.
    """
    # long: one loop that hands out again what a dead worker lost
    found: dict[int, Any] = {}
    handed_out: set[int] = set()

    def work(position: int) -> tuple[Any, ...]:
        handed_out.add(position)
        return arguments(position)

    with bar(label, n, shown=bool(verbose)) as move, warnings.catch_warnings():
        # joblib warns of workers that die, which may depend on rows
        warnings.simplefilter("ignore")
        waiting: list[Sequence[int]] = [range(n)]
        while waiting:
            positions = waiting.pop()
            try:
                for position, result in _results(function, work, positions, n_jobs):
                    found[position] = result
                    move(len(found))
            except Exception as error:
                if not _is_worker_death(error):
                    raise
                left = [position for position in positions if position not in found]
                if len(positions) == 1:
                    found.update(dict.fromkeys(left, lost))
                    continue
                # the cause is unknown, so each task that was handed out is tried by
                # itself
                waiting.append(
                    [position for position in left if position not in handed_out]
                )
                waiting += [[position] for position in left if position in handed_out]
    return [found[position] for position in range(n)]


def _results(
    function: Callable[..., Any],
    arguments: Callable[[int], tuple[Any, ...]],
    positions: Sequence[int],
    n_jobs: int | None,
) -> Iterator[tuple[int, Any]]:
    tasks = (
        delayed(_numbered)(position, function, *arguments(position))
        for position in positions
    )
    try:
        parallel = Parallel(n_jobs, return_as="generator_unordered")
    except ValueError:  # a back end that returns all results at once
        yield from Parallel(n_jobs)(tasks)
        return
    with closing(parallel(tasks)) as results:
        yield from results


def _numbered(
    position: int, function: Callable[..., Any], *rest: Any
) -> tuple[int, Any]:
    return position, function(*rest)


def _is_worker_death(error: Exception) -> bool:
    return isinstance(error, BrokenExecutor) or type(error).__name__ == _WORKER_DEATH
