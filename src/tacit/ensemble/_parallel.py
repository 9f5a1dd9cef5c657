"""One piece of work for each teacher, in parallel, with a bar of public counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from typing import Any

from joblib import Parallel, delayed

from tacit._progress import bar

__all__ = ["each"]

# What joblib's back ends raise when a worker is gone, such as by a crash of native
# code or for want of memory; dask's own error has no base that is imported here
_GONE = "KilledWorker"


def each(
    function: Callable[..., Any],
    arguments: Callable[[int], tuple[Any, ...]],
    n: int,
    *,
    lost: Any,
    n_jobs: int | None,
    label: str,
    verbose: int,
) -> list[Any]:
    """Return the function of each teacher, in their order.

    Parameters
    ----------
    function
        Called in a worker; it must not raise because of rows.
    arguments
        Makes the arguments for a teacher, when a worker is about to be free.
    n
        Number of teachers.
    lost
        What stands for a teacher whose worker ended without an answer, also when it
        had no other work.
    n_jobs
        As for joblib, whose configured back end is used.
    label, verbose
        What the bar says, and whether there is one.
    """
    found: dict[int, Any] = {}
    handed_out: set[int] = set()

    def work(position: int) -> tuple[Any, ...]:
        handed_out.add(position)
        return arguments(position)

    with bar(label, n, shown=bool(verbose)) as move, warnings.catch_warnings():
        # joblib warns of workers that end, and it depends on rows whether they do
        warnings.simplefilter("ignore")
        waiting: list[Sequence[int]] = [range(n)]
        while waiting:
            positions = waiting.pop()
            try:
                for position, result in _results(function, work, positions, n_jobs):
                    found[position] = result
                    move(len(found))
            except Exception as error:
                if not _is_gone(error):
                    raise
                left = [position for position in positions if position not in found]
                if len(positions) == 1:
                    found.update(dict.fromkeys(left, lost))
                    continue
                # nobody knows whose work it was, so each that was begun is tried alone
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
    except ValueError:  # a back end that gives all results at once
        yield from Parallel(n_jobs)(tasks)
        return
    with closing(parallel(tasks)) as results:
        yield from results


def _numbered(
    position: int, function: Callable[..., Any], *rest: Any
) -> tuple[int, Any]:
    return position, function(*rest)


def _is_gone(error: Exception) -> bool:
    return isinstance(error, BrokenExecutor) or type(error).__name__ == _GONE
