"""Progress bars of planned steps, rows read and trainings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["bar", "progress", "steps"]

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
