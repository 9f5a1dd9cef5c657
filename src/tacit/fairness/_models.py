"""Certificates of fitted models, from the noise in their plans."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from scipy import special

from tacit._validate import fraction
from tacit.convex import GroupL1
from tacit.convex.regularizers import makes_zeros
from tacit.fairness._certificate import FairnessCertificate, certify
from tacit.fairness._distances import Distance, output_perturbation_distance
from tacit.fairness._margins import linear_margins

__all__ = [
    "WeightDistance",
    "certify_model",
    "distance_and_constant",
    "weight_distance",
]

NO_PLAN = (
    "distance must be given for this model: only fits by output perturbation, AMP or "
    "objective perturbation state how far noise moves their weights. For a model read "
    "from a folder, give distance=weight_distance(model, model.plan(n_rows, "
    "n_features)); for a pipeline, give its last step and the X of that step."
)


@dataclass(frozen=True)
class WeightDistance:
    """Distance of the weights of a private model from those without noise.

    Called with a probability, it returns the distance that holds except with it, in
    the units in which the noise was drawn.

    Parameters
    ----------
    size
        Number of weights, those of the constant feature included.
    distribution
        ``"gaussian"``, ``"gamma"`` or ``"laplace"``.
    scales
        Scale of each noise that moved the weights, in their units. They add up.
    gap
        How far the computed minimum can be from the exact one.
    constant
        Value of the constant feature whose weight gives the intercept; zero for none.
    derivative
        Largest derivative of the loss that the plan minimizes; None where it is not
        known.

    Notes
    -----
    **Bound.** For each noise the exact quantile of its norm, or of a norm that is no
    smaller: chi for Gaussian noise, gamma for the gamma distribution, and gamma for the
    L1 norm of Laplace noise. A tilt ``b`` of an objective of strong convexity ``m``
    moves its minimum by at most ``|b| / m``. The failure probability is divided evenly.

    The weights without noise minimize the objective of the plan, its ridge included,
    over the ball of the plan. That objective is not always the textbook one: unless
    noise is negligible, the logistic loss of a private fit has derivatives of at most
    one half, where the usual one has derivatives of up to one.
    """

    size: int
    law: str
    scales: tuple[float, ...]
    gap: float = 0.0
    constant: float = 0.0
    derivative: float | None = None

    @property
    def other(self) -> str:
        """Description of the model without noise."""
        least = "the minimum of the objective of the plan, its ridge included"
        if self.derivative is None:
            return least
        return f"{least}, whose loss has derivatives of at most {self.derivative:g}"

    def __call__(self, failure: float) -> float:
        fraction(closed=False, failure=failure)
        each = failure / len(self.scales)
        return sum(self._norm(scale, each) for scale in self.scales) + self.gap

    def _norm(self, scale: float, failure: float) -> float:
        if self.law == "gaussian":
            return output_perturbation_distance(scale, self.size, failure=failure)
        # [fairness:gamma] the L2 norm of gamma noise, or the L1 norm of Laplace noise
        return scale * float(special.gammainccinv(self.size, failure))


def weight_distance(model: Any, planned: Any = None) -> WeightDistance:
    """Return how far noise has moved the weights of a fitted model.

    Parameters
    ----------
    model
        A linear classifier of this library, fitted by output perturbation, AMP or
        objective perturbation.
    planned
        What ``model.plan`` returns for the rows of the fit. A model that was just
        fitted has it; one read from a folder needs it, unless its ``noise_`` is exact,
        as after output perturbation.

    Notes
    -----
    **Bound.** That of `WeightDistance`, from public facts alone: nothing is charged.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.fairness import weight_distance
    >>> from tacit.linear_model import LogisticRegression
    >>> census = make_census(5000, random_state=0)
    >>> model = LogisticRegression(
    ...     1.0, solver="output_perturbation", classes=[0, 1], x_norm=1.0
    ... )
    >>> moved = weight_distance(model.fit(census.X, census.y))
    >>> moved(0.01) > moved(0.1)
    True
    """
    if planned is None:
        planned = getattr(getattr(model, "_facts", None), "planned", None)
    if planned is not None:
        return _from_plan(planned)
    return _from_noise(model)


def _from_plan(planned: Any) -> WeightDistance:
    plan, problem = planned.plan, planned.problem
    zeroed = 0.0
    tilt = getattr(plan, "tilted", plan)  # AMP adds noise to a tilted minimum
    kind = type(plan).__name__
    if kind == "OutputPerturbationPlan":
        scales: tuple[float, ...] = (plan.scale(),)
    elif kind == "ObjectivePerturbationPlan":
        scales = (tilt.scale() / tilt.ridge,)
    elif kind == "AMPPlan":
        # [fairness:tilt] strong convexity bounds how far a linear term moves the
        # minimum
        scales = (tilt.scale() / tilt.ridge, plan.output_scale())
        zeroed = _zeroed(plan)
    else:
        raise ValueError(NO_PLAN)
    return WeightDistance(
        problem.size,
        tilt.law,
        scales,
        # [fairness:gap] the gradient at the point found, over the strong convexity
        tilt.gradient_tolerance / tilt.ridge + zeroed,
        problem.constant or 0.0,
        float(problem.max_derivative),
    )


def _zeroed(plan: Any) -> float:
    """Return how far AMP moves weights that it sets to zero after its final noise."""
    penalty = plan.tilted.problem.regularizer
    if not (makes_zeros(penalty) or isinstance(penalty, GroupL1)):
        return 0.0
    # [fairness:zeroed] each weight by no more than the largest noise
    reach = plan.tilted.noise_distribution.furthest(plan.output_scale())
    return sqrt(plan.tilted.problem.size) * float(reach)


def _from_noise(model: Any) -> WeightDistance:
    """Return the noise of output perturbation from what a saved model states."""
    noise = getattr(model, "noise_", None)
    if noise is None or not noise.how.startswith("exact"):
        raise ValueError(NO_PLAN)
    std = float(np.min(noise.coef))
    intercept = float(np.max(noise.intercept))
    size = np.size(noise.coef) + (np.size(noise.intercept) if intercept > 0 else 0)
    # standard deviation of a coordinate, in scales of each distribution
    units = {"gaussian": 1.0, "laplace": sqrt(2), "gamma": sqrt(size + 1)}
    scale = std / units[noise.law]
    return WeightDistance(
        size,
        noise.law,
        (scale,),
        # [fairness:gap-unknown] the sensitivity includes twice the gap, hence this
        # bound
        scale / (2 * _multiplier(model)),
        intercept / std,
        float(model.loss_.max_derivative(inf, model.bounds_.y_range)),
    )


def _multiplier(model: Any) -> float:
    """Return the ratio of scale to sensitivity in the charge of a fit."""
    event = model.privacy_.entries[-1].event
    multiplier = getattr(event, "multiplier", None)
    if multiplier is None:
        raise ValueError(NO_PLAN)
    return float(multiplier)


def certify_model(
    model: Any,
    X: Any,
    y_true: Any,
    *,
    sensitive_features: Any,
    distance: Distance | None = None,
    notion: str = "equalized_odds",
    desirable: Any = None,
    failure: float = 0.01,
    sampling: float | None = None,
    bound: str = "one_sided",
) -> FairnessCertificate:
    """Return intervals for the fairness of a fitted model without its noise.

    Parameters
    ----------
    model
        A fitted linear classifier. One of this library that was fitted by output
        perturbation, AMP or objective perturbation has its distance from the model
        without noise in its plan; for any other give ``distance``.
    X, y_true
        Rows to measure on, and their labels; public ones cost nothing.
    sensitive_features
        Group of each row; with several columns, groups are their combinations.
    distance
        Distance of the weights of the two models, as in `certify`; None takes
        `weight_distance` of the model.
    notion, desirable, failure, sampling, bound
        As in `certify`.

    Notes
    -----
    **Bound.** That of `certify` with the private model as the reference: its figures
    are known, and those of the model without noise are in the intervals with
    probability ``1 - failure`` over the noise of the fit.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.fairness import certify_model
    >>> from tacit.linear_model import LogisticRegression
    >>> X, y = (census := make_census(5000, random_state=0)).X, census.y
    >>> model = LogisticRegression(
    ...     8.0, x_norm=3.4, solver="output_perturbation", classes=[0, 1]
    ... )
    >>> certificate = certify_model(
    ...     model.fit(X, y), X, y, sensitive_features=X[:, 5], notion="accuracy_parity"
    ... )
    >>> len(certificate.groups)
    2
    """
    moved, constant = distance_and_constant(model, distance)
    found = linear_margins(model, X, y_true, constant=constant)
    return certify(
        y_true,
        sensitive_features=sensitive_features,
        margins=found.margins,
        lipschitz=found.lipschitz,
        right=found.right,
        distance=moved,
        notion=notion,
        desirable=desirable,
        failure=failure,
        sampling=sampling,
        bound=bound,
    )


def distance_and_constant(
    model: Any, distance: Distance | None
) -> tuple[Distance, float | None]:
    """Return the distance, and the constant feature in whose units it is."""
    moved = weight_distance(model) if distance is None else distance
    constant = moved.constant if isinstance(moved, WeightDistance) else None
    return moved, constant
