"""A bar that counts steps that were public before the run began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["progress", "steps"]

_SHOWN: ContextVar[bool] = ContextVar("tacit_progress", default=False)


@contextmanager
def progress(shown: bool) -> Iterator[None]:
    """Show a bar for the steps taken inside, or none."""
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def steps(count: int, label: str) -> Iterator[int]:
    """Count planned steps, with a bar where `progress` asks for one.

    The bar shows the planned count and the time, nothing that depends on a row.
    """
    if not _SHOWN.get():
        yield from range(count)
        return
    from rich.console import Console  # noqa: PLC0415 - loaded for those who look
    from rich.progress import track  # noqa: PLC0415

    # results go to standard output, and may be read by a program
    yield from track(range(count), description=label, console=Console(stderr=True))
