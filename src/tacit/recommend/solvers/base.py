"""What all solvers of matrix completion have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from numpy.random import Generator

from tacit.privacy import Budget
from tacit.recommend.items.side import ItemSide
from tacit.recommend.ratings.table import RatingFacts, Ratings
from tacit.solvers import Plan

__all__ = ["USUAL_DELTA", "CompletionSolver", "counted"]

# What a plan without a delta takes
USUAL_DELTA = "a delta of 1 / users^2, which is usual"


class CompletionSolver(ABC):
    """Solver of matrix completion: a plan from public facts, and noisy sums over users.

    A subclass is a frozen dataclass of public parameters, with the ``noise`` of its
    releases among them. Its plan is a frozen dataclass with ``event`` and
    ``assumptions``.

    Attributes
    ----------
    name
        Name by which `MatrixCompletion` and ``tacit recommend`` know the solver.
    usual_max_ratings
        Maximum number of ratings of a user that are used unless it is given; None for
        no limit. The noise grows with it, and so does what is learned of people who
        rate a lot; published figures for private completion are for 50 to 100.
    """

    name: ClassVar[str]
    usual_max_ratings: ClassVar[int | None] = 80

    @abstractmethod
    def plan(self, facts: RatingFacts, budget: Budget) -> Plan:
        """Return the noise of all releases; reads no rating."""

    @abstractmethod
    def run(self, plan: Any, ratings: Ratings, rng: Generator) -> ItemSide:
        """Release noisy sums over users, and return the item side."""

    @abstractmethod
    def sums(self, plan: Any) -> str:
        """Describe the sums over users that a run of this plan releases."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where there are several."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
