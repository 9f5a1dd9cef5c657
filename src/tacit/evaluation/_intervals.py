"""Private confidence intervals of the coefficients of the population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    checked_shape,
    checked_targets,
    listed,
)
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import fraction
from tacit.convex import Free
from tacit.convex.regularizers import CoordinatePenalty
from tacit.data import bounded_rows
from tacit.data.row_margins import plain_rows
from tacit.evaluation._curvature import CurvaturePlan, plan_curvature
from tacit.evaluation._noise import Intervals
from tacit.linear_model._base import (
    FittedFacts,
    PlannedFit,
    PrivateLinearModel,
    checked_features,
)
from tacit.linear_model._two_stage import TwoStagePlan
from tacit.privacy import Budget, Ledger, Neighbors
from tacit.solvers._base import MinimumNoise, loss_assumptions, row_limit

__all__ = ["coefficient_intervals", "require_theory"]

Array = NDArray[np.float64]

LABEL = "coefficient intervals"
# Limit of weights, for matrices that fit in memory and exceed their noise
MOST_WEIGHTS = 2000
# Fraction of the failure probability for the noise of each matrix
MATRIX_FRACTION = 0.05

HOW = (
    "normal limit of the minimizer of the population's penalized risk, for rows and "
    "targets clipped to their bounds; noise of the fit and of both matrices included"
)


@dataclass(frozen=True, eq=False)
class _Noise:
    """Noise of a fit: on the gradient, as a covariance, and on the weights."""

    ridge: float
    pull: Array
    output: float
    response: Array | None = None


def coefficient_intervals(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    level: float = 0.95,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> Intervals:
    """Return intervals for the coefficients of the population the rows come from.

    Parameters
    ----------
    model
        A model fitted by `~tacit.solvers.OutputPerturbation`,
        `~tacit.solvers.ObjectivePerturbation` or `~tacit.solvers.AMP` with Gaussian
        noise, or by `~tacit.solvers.AdaSSP`; with no penalty but the ridge.
    X, y
        The rows of the fit.
    epsilon
        Privacy budget of the intervals, on top of that of the fit.
    delta
        Probability with which the bound may fail; None for that of the fit.
    level
        Probability with which each interval, taken alone, covers its coefficient.
    ledger
        Ledger to charge; None creates one for this call.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private for the neighbors of the fit: the Hessian
    and the sum of squared gradients at the released weights are symmetric Gaussian
    mechanisms, all else is post-processing; see the page on intervals among the
    guarantees. `~tacit.solvers.AdaSSP` has released its Hessian: one matrix is charged.

    The intervals are for the minimizer of the expected loss plus the ridge of the plan,
    with rows, targets and the loss as the fit has them, not for coefficients without a
    penalty [1]_. Noise in the two matrices makes them wider: on few rows, or with a
    small epsilon, much wider. How often they cover is measured on their page.

    References
    ----------
    .. [1] Y. Wang, D. Kifer and J. Lee, "Differentially private confidence intervals
       for empirical risk minimization", Journal of Privacy and Confidentiality 9, 2019.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.evaluation import coefficient_intervals
    >>> from tacit.linear_model import LogisticRegression
    >>> census = make_census(5000, random_state=0)
    >>> model = LogisticRegression(1.0, 1e-6, solver="amp", classes=[0, 1], x_norm=1.0)
    >>> model = model.fit(census.X, census.y)
    >>> found = coefficient_intervals(model, census.X, census.y, epsilon=1.0)
    >>> found.low.shape == model.coef_.shape
    True
    """
    # long: checks, charge and intervals, in the order of every release
    fraction(closed=False, level=level)
    facts = _facts(model)
    noise = _fit_noise(facts)
    X = listed(X)
    y = _checked_targets(model, facts, X, y)
    guarantee = model.privacy_.guarantee
    budget = Budget(
        epsilon, guarantee.delta if delta is None else delta, guarantee.neighbors
    )
    if budget.delta == 0:
        raise ValueError("delta must be > 0 for intervals; give delta=.")
    W = _weights(model, facts)
    with_hessian = noise.response is None
    plan = plan_curvature(facts.planned.problem, W, budget, with_hessian=with_hessian)
    rng = noise_generator(random_state, LABEL, plan.event, W.tobytes())
    setting = facts.setting

    def rows() -> Any:
        return bounded_rows(
            plain_rows(checked_features(X)),
            model._solver_targets(y, setting),
            setting.scaled_bounds,
            setting.intercept,
        )

    seeded = is_seeded(random_state)
    problem = facts.planned.problem
    # [intervals:rows] the noise rests on the row limit
    stated = (*setting.assumptions, *row_limit(problem), *loss_assumptions(problem))
    release = Release(plan.event, budget, LABEL, stated, seeded=seeded)
    (hessian, gradients), report = charged_run(
        release, ledger, lambda rows: plan.run(rows, rng), check=rows
    )
    std = _std(plan, noise, hessian, gradients, 1 - level)
    # the multiple of the standard deviation leaves room for both matrices
    reach = -ndtri((1 - level) * (1 - 2 * MATRIX_FRACTION) / 2)
    coef, intercept = model._shaped(*model._parts(reach * std))
    return Intervals(
        level,
        model.coef_ - coef,
        model.coef_ + coef,
        model.intercept_ - intercept,
        model.intercept_ + intercept,
        "noise and sampling",
        HOW,
        report,
    )


def _facts(model: Any) -> FittedFacts:
    """Return how a model was fitted, or reject a fit without theory."""
    if not isinstance(model, PrivateLinearModel):
        raise ValueError(
            f"model must be a private linear model, got {type(model).__name__}."
        )
    check_is_fitted(model)
    facts: FittedFacts | None = getattr(model, "_facts", None)
    if facts is None:
        raise ValueError(
            "model must be as fit left it: a model read from a folder does not have "
            "the plan of its fit; fit it again."
        )
    require_theory(facts.planned)
    return facts


def require_theory(planned: PlannedFit) -> None:
    """Reject a planned fit that no theory gives intervals for, before a charge."""
    problem, plan = planned.problem, planned.plan
    if isinstance(plan, TwoStagePlan) or isinstance(
        problem.regularizer, CoordinatePenalty
    ):
        raise ValueError(
            "Intervals are not available for sparse models, which may leave weights "
            "out; fit LinearRegression, Ridge or LogisticRegression."
        )
    if not isinstance(problem.regularizer, Free):
        raise ValueError(
            f"Intervals take no penalty but the ridge, got {problem.regularizer!r}; "
            "fit with penalty=None."
        )
    if problem.size > MOST_WEIGHTS:
        raise ValueError(
            f"Intervals take up to {MOST_WEIGHTS} weights, got {problem.size}."
        )
    if getattr(plan, "states_response", False) or _minimum_noise(plan) is not None:
        return
    raise ValueError(
        "Intervals need a fit with delta > 0 by solver='amp' or 'output_perturbation', "
        "by 'ada_ssp' for least squares, or by an ObjectivePerturbation with Gaussian "
        f"noise; this one is by {type(planned.solver).__name__}."
    )


def _minimum_noise(plan: Any) -> MinimumNoise | None:
    """Return what a plan states of the noise around a minimum, if it does."""
    stated: Callable[[], MinimumNoise | None] = getattr(
        plan, "minimum_noise", lambda: None
    )
    return stated()


def _fit_noise(facts: FittedFacts) -> _Noise:
    """Return the noise of a fit that `require_theory` accepts."""
    size, found = facts.planned.problem.size, _minimum_noise(facts.planned.plan)
    if found is not None:
        pull = found.gradient**2 * np.eye(size)
        return _Noise(found.ridge, pull, found.weights)
    noise = facts.noise
    if noise is None or noise.response is None or noise.pull is None:
        raise ValueError(
            "The moments that this fit released are too noisy for intervals; fit with "
            "more epsilon."
        )
    return _Noise(0.0, noise.pull, 0.0, noise.response)


def _checked_targets(model: Any, facts: FittedFacts, X: Any, y: Any) -> Any:
    """Return the targets of the rows of the fit, after checks of their number."""
    counted = model.privacy_.guarantee.neighbors is Neighbors.REPLACE_ONE
    n_rows, _ = checked_shape(
        model, X, fitting=False, least_rows=1 if counted else 0, accept_sparse=True
    )
    y = checked_targets(y, n_rows, labels=is_classifier(model))
    fitted = facts.planned.problem.n_rows
    if counted and model.expected_rows is None and n_rows != fitted:
        raise ValueError(
            f"X must be the rows of the fit, {fitted} of them, got {n_rows}."
        )
    return y


def _weights(model: Any, facts: FittedFacts) -> Array:
    """Return the released weights in the units of the solver, shape (p, k)."""
    coef = np.atleast_2d(model.coef_)
    center, unit = model.target_unit() if hasattr(model, "target_unit") else (0.0, 1.0)
    weights = coef.T / unit
    constant = facts.setting.intercept
    if constant is None:
        return np.asarray(weights, dtype=np.float64)
    last = (np.atleast_1d(model.intercept_) - center) / unit / constant
    return np.vstack([weights, last])


def _std(
    plan: CurvaturePlan,
    noise: _Noise,
    hessian: Array | None,
    gradients: Array,
    alpha: float,
) -> Array:
    """Return upper bounds on standard deviations of weights, but for part of ``alpha``.

    The weights are off by ``H^-1`` times the sum of centered gradients and tilt, and
    by the noise on the weights. The sum of squared gradients stands for the variance of
    the former, which is no larger.
    """
    tail, size = MATRIX_FRACTION * alpha, plan.problem.size
    if noise.response is not None:
        inverse = np.linalg.inv(noise.response)
    else:
        values, axes = np.linalg.eigh(np.asarray(hessian))
        # [intervals:shift] a high-probability bound along any one direction
        shift = -ndtri(tail) * plan.hessian.scale(size)
        least = np.maximum(values - shift, 0.0) + noise.ridge
        inverse = (axes / least) @ axes.T
    # along a direction that is independent of the noise of the gradients, that noise is
    # normal, with the squared length as its standard deviation
    unseen = -ndtri(tail) * plan.gradients.scale(size)
    lengths = np.einsum("ij,ij->j", inverse, inverse)
    # [intervals:upper] hence an upper bound for each single weight
    sampled = np.einsum("ij,ik,kj->j", inverse, gradients, inverse) + unseen * lengths
    pulled = np.einsum("ij,ik,kj->j", inverse, noise.pull, inverse)
    variance = np.maximum(sampled, 0.0) + pulled + noise.output**2
    std: Array = np.sqrt(variance).reshape(plan.problem.shape)
    return std
