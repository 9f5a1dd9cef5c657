"""Mutual exclusion of the steps of one object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["exclusive_step"]

# Objects with a step under way. A lock in an object would be shared by its copies
_under_way: dict[int, object] = {}


@contextmanager
def exclusive_step(owner: object) -> Iterator[None]:
    """Reject a step of an object while another step of it is under way.

    Two steps from one state would be two releases, of which only one is charged.
    """
    mine = object()
    try:
        # one atomic operation
        if _under_way.setdefault(id(owner), mine) is not mine:
            raise ValueError(
                f"{type(owner).__name__} is in the middle of a step; take one step "
                "after the other, from one thread."
            )
        yield
    finally:
        if _under_way.get(id(owner)) is mine:
            del _under_way[id(owner)]
