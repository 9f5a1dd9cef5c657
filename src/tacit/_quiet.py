"""Calls of functions that see rows, of which only the result comes back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

__all__ = ["attempt"]


def attempt(function: Callable[..., Any], *rows: Any, **options: Any) -> Any:
    """Return what the function says of rows, and None where it fails.

    An error, a warning or a printed line would tell of the rows. Only a keyboard
    interrupt ends the run: it is not the function's. What a function logs, or writes
    to files or other places, is not held back.
    """
    with _quiet():
        try:
            return function(*rows, **options)
        except KeyboardInterrupt:
            raise
        except BaseException:  # such as SystemExit or a canceled task
            return None


@contextmanager
def _quiet() -> Iterator[None]:
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
