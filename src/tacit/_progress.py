"""Bars: steps that were public before the run began, rows read, trainings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["bar", "progress", "steps"]

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
    with bar(label, count, shown=_SHOWN.get()) as move:
        for step in range(count):
            yield step
            move(step + 1)


@contextmanager
def bar(
    label: str, total: int | None = None, *, shown: bool = True, transient: bool = False
) -> Iterator[Callable[..., None]]:
    """Give a function that moves a bar to ``(done)``, or to ``(done, total)``.

    Parameters
    ----------
    label
        What is counted.
    total
        Where the bar ends, or None while nobody knows.
    shown
        Whether there is a bar at all.
    transient
        Whether it goes away at the end.
    """
    if not shown:
        yield lambda done, total=None: None
        return
    from rich.console import Console  # noqa: PLC0415 - loaded for those who look
    from rich.progress import Progress, TimeRemainingColumn  # noqa: PLC0415

    # the time left, and at the end the time taken
    *columns, _ = Progress.get_default_columns()
    columns.append(TimeRemainingColumn(elapsed_when_finished=True))
    # results go to standard output, and may be read by a program; the file as it is
    # now, as trainings that the bar counts are kept from writing to it
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=transient) as shown_bar:
        task = shown_bar.add_task(label, total=total)
        yield lambda done, total=None: shown_bar.update(
            task, completed=done, total=total
        )
