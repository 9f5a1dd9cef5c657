"""Execution: parallel blocks, progress bars, suppressed output."""

from __future__ import annotations

import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from contextvars import ContextVar
from functools import lru_cache
from io import StringIO
from threading import Lock, current_thread, main_thread
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = [
    "Shared",
    "attempt",
    "bar",
    "in_order",
    "one_blas_thread",
    "progress",
    "steps",
]

Block = TypeVar("Block")
Result = TypeVar("Result")


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # inspects all loaded libraries, so only once


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, for many small products."""
    limited: AbstractContextManager[Any] = _controller().limit(
        limits=1, user_api="blas"
    )
    return limited


def _workers() -> int:
    """Return the number of BLAS threads, which environment variables can set."""
    blas = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in blas), default=1)


def in_order(
    function: Callable[[Block], Result], blocks: Iterable[Block], *, side_by_side: bool
) -> Iterator[Result]:
    """Yield the function of each block, in the order of the blocks.

    The products of a block are too small for a threaded BLAS, whose threads wait for
    each other by spinning: on a busy machine that took five times as long. So BLAS uses
    one thread, and ``side_by_side`` runs blocks in parallel threads, if their work is
    long enough. Only a few blocks run ahead of the one that is yielded, to limit
    memory. Results do not depend on the number of threads.
    """

    def quiet(block: Block) -> Result:
        # threads have their own state of floating point errors
        with np.errstate(all="ignore"):
            return function(block)

    workers = _workers() if side_by_side else 1
    with one_blas_thread():
        if workers == 1:
            yield from map(quiet, blocks)
            return
        with ThreadPoolExecutor(workers) as pool:
            ahead: deque[Future[Result]] = deque()
            for block in blocks:
                ahead.append(pool.submit(quiet, block))
                if len(ahead) > 2 * workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()


_SHOWN: ContextVar[bool] = ContextVar("tacit_progress", default=False)


@contextmanager
def progress(shown: bool) -> Iterator[None]:
    """Show or hide the bar of the steps inside."""
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def steps(count: int, label: str) -> Iterator[int]:
    """Count planned steps, with a bar inside `progress`.

    The bar shows the planned count and the time, which depend on no row.
    """
    with bar(label, count, shown=_SHOWN.get()) as move:
        for step in range(count):
            yield step
            move(step + 1)


@contextmanager
def bar(
    label: str, total: int | None = None, *, shown: bool = True, transient: bool = False
) -> Iterator[Callable[..., None]]:
    """Yield a function that moves a bar to ``(done)``, or to ``(done, total)``.

    Parameters
    ----------
    label
        Name of the bar.
    total
        Last count, or None while it is unknown.
    shown
        Whether to show the bar.
    transient
        Whether to remove the bar at the end.
    """
    if not shown:
        yield lambda done, total=None: None
        return
    from rich.console import Console  # noqa: PLC0415 - loaded only with a bar
    from rich.progress import Progress, TimeRemainingColumn  # noqa: PLC0415

    # the time left, and at the end the time taken
    *columns, _ = Progress.get_default_columns()
    columns.append(TimeRemainingColumn(elapsed_when_finished=True))
    # results on standard output may be read by a program. The current file is used, as
    # standard error is suppressed for the trainings that the bar counts
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=transient) as shown_bar:
        task = shown_bar.add_task(label, total=total)
        yield lambda done, total=None: shown_bar.update(
            task, completed=done, total=total
        )


class Shared:
    """A context of the whole process, which several threads may be in.

    The first thread enters it and the last leaves it. Were each to put back what it
    found, one would find what another had put there for a while, and leave that.

    Parameters
    ----------
    make
        Returns the context, anew for each first thread.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock = Lock()
        self._inside = 0
        self._context: AbstractContextManager[Any] | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._context is None:
                context = self._make()
                context.__enter__()
                self._context = context
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    context, self._context = self._context, None
                    context.__exit__(None, None, None)


def attempt(function: Callable[..., Any], *rows: Any, **options: Any) -> Any:
    """Return the function's result on rows, and None where it fails.

    An error, a warning or a printed line would reveal the rows. Only a keyboard
    interrupt ends the run, where the user's signal has come: one that the function
    raises by itself is a failure. What a function logs, or writes to files or
    elsewhere, is not suppressed.
    """
    # the state of floating point errors belongs to the thread
    with _quiet(), np.errstate(all="ignore"), _interrupts() as interrupted:
        try:
            return function(*rows, **options)
        except KeyboardInterrupt:
            if interrupted:
                raise
            return None
        except BaseException:  # such as SystemExit or a canceled task
            return None


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once the user has interrupted."""
    come: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    # signals reach the main thread alone, and raise where Python handles them
    if current_thread() is not main_thread() or not callable(handler):
        yield come
        return

    def noted(number: int, frame: FrameType | None) -> None:
        come.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, noted)
    try:
        yield come
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _nothing_shown() -> Iterator[None]:
    with (
        warnings.catch_warnings(),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


_quiet = Shared(_nothing_shown)
