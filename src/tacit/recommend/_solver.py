"""What a solver of matrix completion is asked, and what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from numpy.random import Generator

from tacit.privacy import Budget
from tacit.recommend._facts import RatingFacts
from tacit.recommend._side import ItemSide
from tacit.solvers import Plan

if TYPE_CHECKING:
    from tacit.recommend._ratings import Ratings

__all__ = ["CompletionSolver"]

P = TypeVar("P", bound=Plan)


class CompletionSolver(Protocol[P]):
    """One private algorithm: ``plan`` never sees a rating, ``run`` never a budget.

    ``run`` publishes the item side. It reads ratings through sums over users in whole
    numbers, to which a mechanism adds noise, and through nothing else.
    """

    def plan(self, facts: RatingFacts, budget: Budget) -> P: ...
    def run(self, plan: P, ratings: Ratings, rng: Generator) -> ItemSide: ...
