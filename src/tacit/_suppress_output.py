"""Calls of functions that see rows, with output, warnings and errors suppressed."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from io import StringIO
from threading import Lock, current_thread, main_thread
from types import FrameType
from typing import Any

import numpy as np

__all__ = ["Shared", "attempt"]


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
