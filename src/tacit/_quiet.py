"""Calls of functions that see rows, of which only the result comes back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from io import StringIO
from threading import Lock
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
    """Return what the function says of rows, and None where it fails.

    An error, a warning or a printed line would tell of the rows. Only a keyboard
    interrupt ends the run: it is not the function's. What a function logs, or writes
    to files or other places, is not held back.
    """
    # the state of floating point errors belongs to the thread
    with _quiet(), np.errstate(all="ignore"):
        try:
            return function(*rows, **options)
        except KeyboardInterrupt:
            raise
        except BaseException:  # such as SystemExit or a canceled task
            return None


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
