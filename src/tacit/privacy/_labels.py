"""Labels of charges: what a block of code is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["full_label", "labelled"]

_PURPOSE: ContextVar[str] = ContextVar("tacit_purpose", default="")


@contextmanager
def labelled(purpose: str) -> Iterator[None]:
    """Put ``purpose`` before the label of every charge made inside.

    Estimators label their charges with their own name; this adds what the fit is for.

    Examples
    --------
    >>> from tacit.privacy import Budget, Ledger, PureDP, labelled
    >>> ledger = Ledger(Budget(epsilon=1.0))
    >>> with labelled("readmissions, spring"):
    ...     ledger.charge(PureDP(0.1), "LogisticRegression").label
    'readmissions, spring: LogisticRegression'
    """
    if not isinstance(purpose, str):
        raise TypeError(f"purpose must be a string, got {type(purpose).__name__}.")
    token = _PURPOSE.set(purpose)
    try:
        yield
    finally:
        _PURPOSE.reset(token)


def full_label(label: str) -> str:
    """Return the label of a charge with what it is for."""
    purpose = _PURPOSE.get()
    return f"{purpose}: {label}" if purpose else label
