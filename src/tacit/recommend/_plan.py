"""What a fit will do and spend, from parameters and public facts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from tacit._estimators import guaranteed_budget, planning_rows
from tacit._validate import at_least, shown
from tacit.exceptions import PlanError
from tacit.mechanisms.grid import check_noise
from tacit.privacy import Budget, Event, Neighbors
from tacit.privacy.report import in_words
from tacit.recommend.ratings.facts import Catalogue, RatingFacts, checked_range
from tacit.recommend.solvers.als import ALSPlan, PrivateALS
from tacit.recommend.solvers.frank_wolfe import (
    FrankWolfeCompletion,
    FrankWolfeCompletionPlan,
)
from tacit.recommend.solvers.gradient import (
    ProjectedGradientCompletion,
    ProjectedGradientCompletionPlan,
)
from tacit.recommend.solvers.item_means import ItemMeans
from tacit.recommend.solvers.moments import NoisyMoments
from tacit.recommend.solvers.svd import CleansedSVD, SVDCompletion
from tacit.solvers import Plan

__all__ = [
    "SOLVERS",
    "SUMS",
    "CompletionPlan",
    "check_parameters",
    "planned_completion",
]


# Most ratings of a user that are used, unless she or the catalogue has fewer. Noise
# grows with it and so does what is learned of people who rate much; published figures
# for private completion are for 50 to 100
USUAL_MAX_RATINGS = 80
# Ratings of a user for which a plan tells the noise on the mean of an item
USUAL_RATINGS = 20

USER_LEVEL = (
    "protects a user: all her ratings together, how many there are and of which items"
)
JOINT = (
    "joint privacy: what is published is the item side alone; a user's completed row "
    "follows from it and from her own ratings, and is for her alone"
)
PUBLIC = "the catalogue of items and the range of ratings are public"


@dataclass(frozen=True)
class CompletionPlan:
    """What a private completion will do and spend, before any rating is read.

    Parameters
    ----------
    budget
        What the item side promises.
    facts
        What is public about the ratings.
    solver
        Name of the solver.
    plan
        Its own plan: sums over users, noise and steps.
    sums
        The sums over users that will be published, in words.
    assumptions
        What the promise rests on, in words.
    """

    budget: Budget
    facts: RatingFacts
    solver: str
    plan: Plan
    sums: str
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """What the ledger is charged, once, before the first sum over users."""
        return self.plan.event

    @property
    def mean_scale(self) -> float | None:
        """Deviation of the noise on the mean of an item, in ratings; None without any.

        It is that for users who each rate as many items as is usual, evenly. What is
        rated less has more.
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
        """Ratings of a user that the noise on a mean is told for."""
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
                f"noise        deviation {self.mean_scale:.2g} on the mean rating of "
                f"an item, if each user rates {self._rated:,} items, evenly"
            )
        others = (words for words in self.assumptions if self.sums not in words)
        return "\n".join([*lines, *(f"assumes      {words}" for words in others)])


def check_parameters(model: Any) -> None:
    """Refuse what no ratings could go with."""
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
    # what is wrong with the budget itself, whatever the number of users
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
    """Make the plan of a fit to so many users; reads no rating.

    Where the number of users is private, ``n_users`` counts if it was ``guessed``.
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
    low, high = checked_range(model.rating_range)
    solver = chosen_solver(model)
    usual = getattr(solver, "usual_max_ratings", USUAL_MAX_RATINGS)
    most = usual if model.max_ratings is None else model.max_ratings
    facts = RatingFacts(
        n_items=len(catalogue),
        low=low,
        high=high,
        n_users=planning_rows(budget, n_users, expected, counted="users"),
        max_ratings=min(len(catalogue), most or len(catalogue)),
    )
    plan = solver.plan(facts, budget)
    known = next((n for n, kind in SOLVERS.items() if type(solver) is kind), None)
    name = type(solver).__name__ if known is None else known
    sums = f"those of {name}" if known is None else SUMS[name](solver, plan)
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


def chosen_solver(model: Any) -> Any:
    """Return the solver of this name, or the object itself; refuse what is neither."""
    solver, noise = model.solver, model.noise
    check_noise(noise)
    names = ", ".join(repr(name) for name in SOLVERS)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {names}, got {shown(solver)}.")
        return SOLVERS[solver](noise=noise)
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
    return solver


SOLVERS: dict[str, Any] = {
    "als": PrivateALS,
    "frank_wolfe": FrankWolfeCompletion,
    "svd": SVDCompletion,
    "gradient": ProjectedGradientCompletion,
    "cleansed_svd": CleansedSVD,
}


def _of_als(solver: PrivateALS, plan: ALSPlan) -> str:
    rounds = len(plan.rounds)
    gains = "" if plan.choice is None else ", and how much candidate vectors gain users"
    if not rounds:
        return f"counts and means of items, once, and no direction (rank 0){gains}"
    return (
        f"counts and means of items, then in up to {_times(rounds, 'round')} products "
        "of ratings with users' coefficients and second moments of these, for up to "
        f"{_times(plan.rank, 'direction')} (rank), or counts and means again where "
        f"these would be noise{gains}"
    )


def _of_frank_wolfe(
    solver: FrankWolfeCompletion, plan: FrankWolfeCompletionPlan
) -> str:
    means = "" if plan.means is None else "counts and means of items, then "
    many = any(isinstance(each, NoisyMoments) for each in plan.directions)
    what = "second moments of" if many else f"{solver.n_products:,} products with"
    lengths = len(plan.lengths)
    length = f", and lengths of {lengths:,} of them" if lengths else ""
    # the published walk pays for a step that it does not take
    taken = plan.n_iter - (solver.step == "published")
    return f"{means}in up to {_times(taken, 'step')} {what} users' residuals{length}"


def _of_svd(solver: SVDCompletion, plan: Plan) -> str:
    return (
        "second moments of users' ratings, once, for up to "
        f"{_times(solver.rank, 'direction')} (rank)"
    )


def _of_gradient(
    solver: ProjectedGradientCompletion, plan: ProjectedGradientCompletionPlan
) -> str:
    return f"second moments of users' rows, in {_times(len(plan.step_sizes), 'step')}"


def _of_cleansed(solver: CleansedSVD, plan: Plan) -> str:
    return (
        "counts and means of items, then second moments of what is left and their "
        f"weights, once, for up to {_times(solver.rank, 'direction')} (rank)"
    )


def _times(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# What a plan of each of them publishes of users, in words for plan and report
SUMS: dict[str, Callable[[Any, Any], str]] = {
    "als": _of_als,
    "frank_wolfe": _of_frank_wolfe,
    "svd": _of_svd,
    "gradient": _of_gradient,
    "cleansed_svd": _of_cleansed,
}
