"""Events as plain data: how ledgers, reports and saved models store them."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from numbers import Real
from typing import Any

from tacit._discovery import declaring
from tacit.privacy.combined import PoissonSampled
from tacit.privacy.events import LARGEST_RANK, Event

__all__ = ["describe", "event_classes", "is_own", "restore"]

# Limits on events that are read from a file: far beyond any use, and still evaluated
# in seconds
DEEPEST = 20
MOST_TIMES = 10**6
MOST_PARTS = 10**4
LARGEST_SIZE = 10**12
LEAST_SAMPLED = 0.05  # noise multiplier of a sampled event


def describe(event: Any) -> Any:
    """Return an event as plain data, for JSON."""
    if isinstance(event, tuple):
        return [describe(part) for part in event]
    if is_dataclass(event) and not isinstance(event, type):
        fields = {
            name: describe(getattr(event, name)) for name in event.__dataclass_fields__
        }
        return {"type": type(event).__name__, **fields}
    return event


@cache
def event_classes() -> dict[str, Any]:
    """Return the events of this package by name, which alone are restored."""
    kinds = declaring("curve", "tacit.privacy", nested=False)
    return {kind.__name__: kind for kind in kinds if is_dataclass(kind)}


def is_own(event: object) -> bool:
    """Whether an event and all its parts are of these classes.

    A subclass or a class of the same name may have another curve than what `restore`
    makes of its description.
    """
    if type(event) in event_classes().values():
        return all(_is_own_part(part) for part in vars(event).values())
    return False


def _is_own_part(part: object) -> bool:
    if type(part) is tuple:
        return all(map(is_own, part))
    return is_own(part) or isinstance(part, Real)


def restore(data: Any) -> Event:
    """Return the event that `describe` wrote; reject what it cannot have written.

    Raises ValueError also for what would take too long to evaluate: deep nesting, and
    numbers beyond all use.
    """
    return _event(data, DEEPEST, MOST_TIMES)


def _event(data: Any, depth: int, times: int) -> Event:
    parts = dict(data) if isinstance(data, dict) else {}
    name = parts.pop("type", data)
    kind = event_classes().get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(data, dict):
        raise ValueError(
            f"{name!r} is not an event of this version of tacit; use the version "
            "that wrote it."
        )
    if set(parts) != set(kind.__dataclass_fields__) or None in parts.values():
        raise ValueError(f"{name} has other parts in this version.")
    _check_excess(name, parts, depth, times)
    below = depth - 1, times // parts.get("count", 1)
    event: Event = kind(
        **{part: _part(part, value, *below) for part, value in parts.items()}
    )
    if isinstance(event, PoissonSampled) and event.event.multiplier < LEAST_SAMPLED:
        raise ValueError(f"{name} must have noise of at least {LEAST_SAMPLED}.")
    return event


def _part(name: str, value: Any, depth: int, times: int) -> Any:
    if name == "events" and isinstance(value, list):
        return tuple(_event(part, depth, times) for part in value)
    if name == "event":
        return _event(value, depth, times)
    if name == "events" or type(value) not in (int, float):
        raise ValueError(f"{name} must not be of type {type(value).__name__}.")
    return value


def _check_excess(name: str, parts: dict[str, Any], depth: int, times: int) -> None:
    """Reject what cannot be evaluated in reasonable time and memory."""
    limits = {
        "count": times,
        "rank": LARGEST_RANK,
        "size": LARGEST_SIZE,
        "n_rows": LARGEST_SIZE,
    }
    for part, most in limits.items():
        value = parts.get(part, 1)
        if type(value) is not int or not 1 <= value <= most:
            raise ValueError(
                f"{name} must have an integer {part} from 1 to {most}, got {value!r}."
            )
    events = parts.get("events", ())
    if depth == 0 or (isinstance(events, list) and len(events) > MOST_PARTS):
        raise ValueError(
            f"An event may be nested {DEEPEST} deep and list {MOST_PARTS} parts."
        )
