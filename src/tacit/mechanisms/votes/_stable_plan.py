"""The split of a budget by which stable votes tell winners with the least lead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.votes._base import FAILURE
from tacit.mechanisms.votes._stable import StableVotes
from tacit.mechanisms.votes._tail import tail_points
from tacit.privacy import ApproxDP, Budget, Repeated

__all__ = ["stable_votes"]

Array = NDArray[np.float64]

# Parts of delta for what is told where neighbors differ, the rest for composition
SHARES = (0.1, 0.3, 0.5)
# A little below the budget, so that sums of rounded numbers stay within it
KEPT_BACK = 1e-12
# How near to the largest epsilon of a group its search ends
CLOSE = 1e-4
# Parts of the epsilon of a group that the noise of its threshold may have
SPLITS: Array = np.geomspace(1e-3, 0.8, 240)


@dataclass(frozen=True)
class _Grouping:
    """How refusals share thresholds, and the privacy of each group."""

    per_group: int
    n_groups: int
    epsilon: float
    delta: float


def stable_votes(
    budget: Budget, n_classes: int, max_refusals: int, noise: str = "grid"
) -> StableVotes:
    """Return the stable votes that fit a budget and need the least distance.

    Notes
    -----
    **Guarantee.** The event of what is returned was evaluated and fits. Candidates are
    all refusals in one group, each in its own, and sizes between, each composed as pure
    mechanisms, when all of delta is left for the threshold, and by its Renyi curve,
    with parts of delta for either; and for each the epsilon of a group is divided
    between threshold and refusals.
    """
    split = _best_split(budget, max_refusals)
    threshold_epsilon, query_epsilon, delta, per_group = split
    return StableVotes(
        threshold_epsilon,
        query_epsilon,
        delta,
        n_classes,
        max_refusals,
        per_group,
        noise,
    )


@lru_cache(maxsize=256)
def _best_split(budget: Budget, max_refusals: int) -> tuple[float, float, float, int]:
    """Return epsilons of threshold and refusal, delta and the size of a group."""
    best: tuple[float, tuple[float, float, float, int]] | None = None
    for group in _groupings(budget, max_refusals + 1):
        threshold = SPLITS * group.epsilon
        query = (group.epsilon - threshold) / group.per_group
        scales = 2 / query, 1 / threshold
        each = group.delta / (group.n_groups * group.per_group)
        # [votes:split]
        needed = tail_points(log(each), *scales) + tail_points(log(FAILURE), *scales)
        position = int(np.argmin(needed))
        if best is None or needed[position] < best[0]:
            split = float(threshold[position]), float(query[position])
            best = float(needed[position]), (*split, group.delta, group.per_group)
    assert best is not None  # one group is always a candidate
    return best[1]


def _groupings(budget: Budget, refusals: int) -> list[_Grouping]:
    """Return candidates that fit the budget."""
    found = []
    for per_group in _sizes(refusals):
        n_groups = -(-refusals // per_group)
        pure = budget.epsilon * (1 - KEPT_BACK) / n_groups
        delta = budget.delta * (1 - KEPT_BACK)
        found.append(_Grouping(per_group, n_groups, pure, delta))
        if n_groups == 1:
            continue
        for share in SHARES:
            epsilon = _composed(budget, n_groups, share * delta, pure)
            if epsilon > pure:
                part = _Grouping(per_group, n_groups, epsilon, share * delta)
                found.append(part)
    return found


def _sizes(refusals: int) -> list[int]:
    """Return sizes of groups: few refusals in each, all in one, and some between."""
    counts = {1, 2, 3, refusals}
    counts |= {ceil(refusals / round(n)) for n in np.geomspace(1, refusals, 8)}
    return sorted(size for size in counts if size <= refusals)


def _composed(budget: Budget, n_groups: int, delta: float, pure: float) -> float:
    """Return an epsilon of each group that fits with this delta, from ``pure`` on."""

    def fits(epsilon: float) -> bool:
        event = Repeated(ApproxDP(epsilon, delta / n_groups), n_groups)
        return event.curve(budget.neighbors).fits(budget)

    low, high = pure, 2 * pure
    while fits(high):
        low, high = high, 2 * high
    while high > low * (1 + CLOSE):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
