"""One step at a time, also where several threads hold the same object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["alone"]

# Whose step is under way. It is kept here, as a lock in an object would be in copies
_under_way: dict[int, object] = {}


@contextmanager
def alone(owner: object) -> Iterator[None]:
    """Refuse to step with an object while another step of it is under way.

    Two steps from one state would be two releases of which one is paid for.
    """
    mine = object()
    try:
        # one operation, which no other thread can come between
        if _under_way.setdefault(id(owner), mine) is not mine:
            raise ValueError(
                f"{type(owner).__name__} is in the middle of a step; take one step "
                "after the other, from one thread."
            )
        yield
    finally:
        if _under_way.get(id(owner)) is mine:
            del _under_way[id(owner)]
