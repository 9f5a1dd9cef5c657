"""Guesses of how often teachers agree, as shares of the questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real

__all__ = ["Agreement", "Group", "agreement_groups"]

Group = tuple[float, float]
Agreement = float | Sequence[Group] | Callable[[float], float | Sequence[Group]]


def agreement_groups(
    agreement: Agreement, rows: float, n_classes: int
) -> tuple[Group, ...]:
    """Return shares of the questions with the agreement on them, which are checked.

    What a function returns is raised to the agreement of guesses, one in ``n_classes``,
    since a learner with few rows guesses; a number below that is refused.
    """
    least = 1 / n_classes
    if callable(agreement):
        return tuple(
            (share, min(1.0, max(least, value)))
            for share, value in _pairs(agreement(rows))
        )
    groups = _pairs(agreement)
    if not all(least <= value <= 1 for _, value in groups):
        raise ValueError(
            f"agreement must be from {least:.3g}, one in n_classes, to 1, got "
            f"{agreement!r}."
        )
    return groups


def _pairs(agreement: float | Sequence[Group]) -> tuple[Group, ...]:
    """Return groups whose shares add up to one."""
    if isinstance(agreement, Real) and not isinstance(agreement, bool):
        return ((1.0, float(agreement)),)
    try:
        groups = tuple((float(share), float(value)) for share, value in agreement)
    except (TypeError, ValueError):
        groups = ()
    total = sum(share for share, _ in groups)
    least = min((share for share, _ in groups), default=-1.0)
    # written so that what is no number is refused
    if not (least >= 0 and abs(total - 1) <= 1e-6):
        raise ValueError(
            "agreement must be a number, pairs (share of the questions, agreement) "
            "whose shares add up to 1, or a function of the rows of a teacher that "
            f"returns these, got {agreement!r}."
        )
    return groups
