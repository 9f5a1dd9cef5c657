"""How many blocks it takes, before any row is read."""

from __future__ import annotations

from math import floor

from tacit.mechanisms import StableRelease

__all__ = ["blocks_needed", "distance_needed", "release_probability"]


def release_probability(
    epsilon: float, delta: float, distance: float, *, rule: str = "optimal"
) -> float:
    """Return how likely a value at this distance to instability is released."""
    return StableRelease(epsilon, delta, rule).release_probability(distance)


def distance_needed(
    epsilon: float, delta: float, *, failure: float = 1e-3, rule: str = "optimal"
) -> int:
    """Return the least whole distance that is released but for this probability."""
    return StableRelease(epsilon, delta, rule).distance_needed(failure)


def blocks_needed(
    epsilon: float,
    delta: float,
    *,
    agreement: float = 0.75,
    failure: float = 1e-3,
    rule: str = "optimal",
) -> int:
    """Return the number of blocks whose vote is told, but for this probability.

    Parameters
    ----------
    epsilon
        Privacy budget.
    delta
        Probability with which the bound may fail.
    agreement
        Share of the blocks that vote for the winner, above one half; all others are
        taken to vote for one other value.
    failure
        Probability of no answer.
    rule
        ``"optimal"`` or ``"laplace"``.

    Notes
    -----
    **Bound.** From that number on, ``floor(agreement * blocks)`` votes for the winner
    put it at the distance that is released with probability ``1 - failure``, by the
    law of `tacit.mechanisms.StableRelease`.
    """
    if not 0.5 < agreement <= 1:
        raise ValueError(
            f"agreement must be a number with 0.5 < agreement <= 1, got {agreement!r}."
        )
    distance = distance_needed(epsilon, delta, failure=failure, rule=rule)

    def enough(blocks: int) -> bool:
        # a lead that is there for this many and for all greater numbers
        return 2 * floor(agreement * blocks) - blocks >= 2 * distance + 1

    blocks = max(1, floor((2 * distance + 1) / (2 * agreement - 1)))
    while not all(enough(blocks + more) for more in range(4)):
        blocks += 1
    return blocks
