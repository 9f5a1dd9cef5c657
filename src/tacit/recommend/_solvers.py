"""Solvers of matrix completion, by the names that estimators take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.recommend._sums.noisy_moments import NoisyMoments
from tacit.recommend.als import ALSPlan, PrivateALS
from tacit.recommend.cleansed import CleansedSVD
from tacit.recommend.frank_wolfe import FrankWolfeCompletion, FrankWolfeCompletionPlan
from tacit.recommend.gradient import (
    ProjectedGradientCompletion,
    ProjectedGradientCompletionPlan,
)
from tacit.recommend.svd import SVDCompletion
from tacit.solvers import Plan

__all__ = ["SOLVERS", "SUMS"]

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
