"""Which method an estimator uses, from its name or from public facts."""

from __future__ import annotations

from dataclasses import replace

from tacit.convex.losses import has_residuals
from tacit.solvers import Problem
from tacit.streaming._terms import StreamMethod, StreamTerms, is_method
from tacit.streaming.online._gradient_sums import GradientSums
from tacit.streaming.online._perturbed import PerturbedIterates
from tacit.streaming.online._perturbed_bases import (
    ImplicitGradient,
    Leader,
    ProjectedGradient,
)
from tacit.streaming.online._quadratic_leader import QuadraticLeader

__all__ = ["METHODS", "chosen_method"]

METHODS: dict[str, StreamMethod] = {
    "gradient_sums": GradientSums(),
    "quadratic_leader": QuadraticLeader(),
    # averages of what is released have far less noise and cost no privacy
    "implicit": PerturbedIterates(ImplicitGradient(), average=True),
    "gradient": PerturbedIterates(ProjectedGradient(), average=True),
    "leader": PerturbedIterates(Leader(), average=True),
}
# Steps a weight below which gradients cannot get far enough
FEW_STEPS = 10
# Weights a class beyond which moments are too many to keep
MANY_WEIGHTS = 200


def chosen_method(
    method: object, noise: str, problem: Problem, terms: StreamTerms
) -> StreamMethod:
    """Return a method object as it is, or the one of a name, with this noise."""
    if method == "auto":
        method = _automatic(problem, terms)
    if isinstance(method, str) and method in METHODS:
        named = METHODS[method]
        return replace(named, noise=noise)  # type: ignore[type-var]
    if not is_method(method):
        names = ", ".join(map(repr, ("auto", *METHODS)))
        raise ValueError(
            f"method must be one of {names}, or a method such as GradientSums(), got "
            f"{method!r}."
        )
    return method


def _automatic(problem: Problem, terms: StreamTerms) -> str:
    """Return what does best on synthetic streams of these sizes.

    Moments make the most of few steps, as they are solved for anew at each; gradients
    of the loss itself are better where there are many.
    """
    few = terms.horizon < FEW_STEPS * problem.n_features
    if problem.n_features > MANY_WEIGHTS:
        return "gradient_sums"
    return "quadratic_leader" if few or has_residuals(problem.loss) else "gradient_sums"
