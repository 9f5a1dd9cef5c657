"""What a fit will release and charge, from parameters and public facts only."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from tacit._discovery import classes_by
from tacit._estimators import guaranteed_budget, planning_rows
from tacit._validate import at_least, shown
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Budget, Event, Neighbors
from tacit.privacy.report import in_words
from tacit.recommend.ratings.columns import Catalogue
from tacit.recommend.ratings.table import RatingFacts, checked_range
from tacit.recommend.solvers.base import CompletionSolver
from tacit.recommend.solvers.item_means import ItemMeans
from tacit.solvers import Plan

__all__ = ["SOLVERS", "CompletionPlan", "check_parameters", "planned_completion"]

# Solvers of the library by the names that `MatrixCompletion` takes
SOLVERS = classes_by("name", "tacit.recommend.solvers")

# Number of ratings of a user for which a plan reports the noise on the mean of an item
USUAL_RATINGS = 20

USER_LEVEL = (
    "protects a user: all their ratings together, how many there are and of which items"
)
JOINT = (
    "joint privacy: only the item side is published; a user's completed row follows "
    "from it and from their own ratings, and is for them only"
)
PUBLIC = "the catalogue of items and the range of ratings are public"


@dataclass(frozen=True)
class CompletionPlan:
    """Plan of a private completion: releases and charge, before any rating is read.

    Parameters
    ----------
    budget
        The (epsilon, delta) guarantee of the item side.
    facts
        Public facts about the ratings.
    solver
        Name of the solver.
    plan
        Its own plan: sums over users, noise and steps.
    sums
        Description of the sums over users that will be published.
    assumptions
        The assumptions of the guarantee, in words.
    """

    budget: Budget
    facts: RatingFacts
    solver: str
    plan: Plan
    sums: str
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """Event that the ledger is charged, once, before the first sum over users."""
        return self.plan.event

    @property
    def mean_scale(self) -> float | None:
        """Standard deviation of the noise on the mean rating of an item, if any.

        It holds for users who each rate a usual number of items, evenly. The mean of an
        item with fewer ratings has more noise.
        """
        means = getattr(self.plan, "means", None)
        if not isinstance(means, ItemMeans):
            return None
        noise = means.mechanism
        # a rating weighs one over the root of the number of its user's
        weight = self.facts.n_users * sqrt(self._rated) / self.facts.n_items
        return means.bound * noise.scale / noise.units / weight

    @property
    def _rated(self) -> int:
        """Number of ratings of a user that `mean_scale` is for."""
        return min(USUAL_RATINGS, self.facts.max_ratings)

    def __str__(self) -> str:
        budget, facts = self.budget, self.facts
        lines = [
            f"solver       {self.solver}: epsilon {budget.epsilon:g}, delta "
            f"{budget.delta:.3g}, neighbors {budget.neighbors.value}, of whole users",
            f"ratings      of {facts.n_items:,} items, from {facts.low:g} to "
            f"{facts.high:g}, up to {facts.max_ratings:,} of a user",
            f"users        planned for {facts.n_users:,}; another number costs "
            "accuracy only",
            f"published    noisy sums over users: {self.sums}",
            f"spent        {in_words(self.event)}",
        ]
        if self.mean_scale is not None:
            lines.append(
                f"noise        standard deviation {self.mean_scale:.2g} on the mean "
                f"rating of an item, if each user rates {self._rated:,} items, evenly"
            )
        others = (words for words in self.assumptions if self.sums not in words)
        return "\n".join([*lines, *(f"assumes      {words}" for words in others)])


def check_parameters(model: Any) -> None:
    """Reject parameters that are invalid whatever the ratings."""
    chosen_solver(model)
    if model.rating_range is None and model.items is None:
        raise ValueError(
            "rating_range must be given: the lowest and highest rating there can be; "
            "and so must items, the public catalogue, unless ratings come as a sparse "
            "matrix."
        )
    checked_range(model.rating_range)
    if model.max_ratings is not None:
        at_least(1, max_ratings=model.max_ratings)
    if not isinstance(model.verbose, bool):
        at_least(0, verbose=model.verbose)
    # what is invalid in the budget itself, whatever the number of users
    budget = guaranteed_budget(
        model.epsilon, model.delta, model.neighbors, 2, counted="users"
    )
    if budget.delta == 0:
        raise PlanError(
            "delta must be above 0 for MatrixCompletion, whose noise is Gaussian; "
            "1 / (users you expect)^2 is usual."
        )
    planning_rows(budget, 1, model.expected_users, counted="users")


def planned_completion(
    model: Any, catalogue: Catalogue, n_users: int, *, guessed: bool = False
) -> CompletionPlan:
    """Return the plan of a fit to a number of users; reads no rating.

    Where the number of users is private, ``n_users`` is used only if ``guessed``.
    """
    if model.delta is None and n_users < 2:
        raise ValueError(
            "delta must be given for fewer than two users; the usual 1 / users^2 is "
            "for more."
        )
    budget = guaranteed_budget(
        model.epsilon, model.delta, model.neighbors, n_users, counted="users"
    )
    expected = model.expected_users
    if guessed and expected is None and budget.neighbors is not Neighbors.REPLACE_ONE:
        expected = n_users
    solver = chosen_solver(model)
    n_users = planning_rows(budget, n_users, expected, counted="users")
    facts = _facts(model, solver, len(catalogue), n_users)
    plan = solver.plan(facts, budget)
    # facts that a class inherits need not hold for it
    own = vars(type(solver))
    name = own.get("name", type(solver).__name__)
    sums = solver.sums(plan) if "sums" in own else f"those of {name}"
    return CompletionPlan(
        budget,
        facts,
        name,
        plan,
        sums,
        (
            USER_LEVEL,
            JOINT,
            f"published: noisy sums over users, {sums}",
            PUBLIC,
            f"items are {catalogue.in_words()}; ratings of other labels are left out",
            *plan.assumptions,
        ),
    )


def _facts(
    model: Any, solver: CompletionSolver, n_items: int, n_users: int
) -> RatingFacts:
    low, high = checked_range(model.rating_range)
    usual = getattr(solver, "usual_max_ratings", CompletionSolver.usual_max_ratings)
    most = usual if model.max_ratings is None else model.max_ratings
    return RatingFacts(n_items, low, high, n_users, min(n_items, most or n_items))


def chosen_solver(model: Any) -> CompletionSolver:
    """Return the solver of this name, or the given object after a check."""
    solver, noise = model.solver, model.noise
    check_noise(noise)
    names = ", ".join(repr(name) for name in SOLVERS)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {names}, got {shown(solver)}.")
        named: CompletionSolver = SOLVERS[solver](noise=noise)
        return named
    if isinstance(solver, type) or not all(
        callable(getattr(solver, method, None)) for method in ("plan", "run")
    ):
        raise ValueError(
            f"solver must be one of {names}, or an object with plan and run, got "
            f"{type(solver).__name__}."
        )
    if noise != "grid":
        raise ValueError(
            f"noise={noise!r} is for solvers given by name; set it on the solver."
        )
    given: CompletionSolver = solver
    return given
