"""The published mechanism with its printed constants, at its corrected cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

from tacit._validate import at_least, fraction, plain, positive
from tacit.mechanisms._votes._base import Remaining, published_distance
from tacit.mechanisms._votes._probabilities import MARGIN, difference_tail
from tacit.mechanisms._votes._stable import SparseVotes, StableState
from tacit.mechanisms.noise import check_noise
from tacit.privacy import ApproxDP, Event, Repeated

__all__ = ["PublishedVotes"]


@dataclass(frozen=True)
class PublishedVotes(SparseVotes):
    """Stable labels as published, for comparison.

    Parameters
    ----------
    epsilon
        The epsilon of the printed formulas.
    delta
        The delta of the printed formulas.
    n_classes
        Number of classes.
    n_queries
        Largest number of queries.
    max_refusals
        Queries that may stay unanswered; one more ends the stream. At least one, as the
        printed noise is zero without any.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The printed distance is the lead less one, which one vote moves by
    two, and there is one run more than the printed scale is for. The event is what
    this costs: so many runs of twice the loss, and what is released where neighbors
    differ though the distance is one. It exceeds the printed guarantee for large
    budgets and many refusals, where a plan is rejected. Algorithms 8 to 10 of Thakkar
    (2019), Chapter 5; Bassily, Thakkar and Thakurta (2018).
    """

    epsilon: float
    delta: float
    n_classes: int
    n_queries: int
    max_refusals: int
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(epsilon=self.epsilon)
        fraction(delta=self.delta, closed=False)
        at_least(1, n_classes=self.n_classes, n_queries=self.n_queries)
        at_least(1, max_refusals=self.max_refusals)
        check_noise(self.noise)
        _ = self._cells

    @property
    def event(self) -> Event:
        # [votes:published] a distance that moves by two, and one run more
        pure = self.sensitivity * (1 / self.threshold_scale + 2 / self.query_scale)
        # a winner that a vote can change may be at a distance of one; a run, and a
        # query, has at most one such that is released first
        scales = self.query_scale, self.threshold_scale
        runs = self.max_refusals + 1
        released = difference_tail(self.threshold - 1, *scales) * (1 + MARGIN)
        return Repeated(
            ApproxDP(pure, released * min(1.0, self.n_queries / runs)), runs
        )

    @property
    def sensitivity(self) -> int:
        return 2

    def _least_scales(self) -> tuple[float, float]:
        printed = sqrt(32 * self.max_refusals * log(2 / self.delta)) / self.epsilon
        return printed, 2 * printed

    @cached_property
    def threshold(self) -> float:
        return 2 * self.threshold_scale * log(2 * self.n_queries / self.delta)

    def distance(self, lead: int) -> int:
        """Return the printed distance of a winner with this lead."""
        return published_distance(lead)

    def remaining(self, state: StableState) -> Remaining:
        """Return what is left of the plan."""
        return Remaining(
            queries=self.n_queries - state.n_asked,
            refusals=self.max_refusals + 1 - state.n_refused,
        )
