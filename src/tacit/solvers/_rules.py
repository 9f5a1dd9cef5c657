"""Penalties, steps and solvers chosen from public facts only.

Every rule is a function of the number of rows planned for, the number of features and
outputs, the bounds and the budget. The constants were fitted on synthetic problems:
those for labels by ``benchmarks/fit_rule.py``, those for residuals by hand on synthetic
regressions. The clip of one class against the rest was also looked at on digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, expm1, inf, isfinite, lgamma, sqrt

from tacit.convex import Logistic, Loss, OneVsRest, Softmax
from tacit.convex.losses import has_residuals
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.solvers._base import Problem

__all__ = [
    "INTERCEPT_FRACTION",
    "Descent",
    "Start",
    "at_zero",
    "capped_where_noisy",
    "cheap_ridge",
    "descent_rule",
    "general_ridge_rule",
    "gradient_unit",
    "noise_fraction",
    "noise_level",
    "ridge_for_weights",
    "ridge_rule",
    "usual_clip",
]

# Value of the constant feature, in units of the row norm
INTERCEPT_FRACTION = 0.25

# Where the noise is less than this part of the gradient, a cap moves the weights more
# than the noise that it saves: AMP then minimizes the logistic loss itself
NEGLIGIBLE = 3e-4

# Below this part, clipped derivatives of several outputs move the weights more than the
# noise that they save. Measured as error, log-loss and accuracy on synthetic softmax
# problems of 3 to 10 classes
UNCLIPPED = 1e-3


def noise_level(problem: Problem, budget: Budget, derivative: float) -> float:
    """Return the norm of the noise that hides the gradient of one row, once."""
    sensitivity = budget.neighbors.rows_changed * derivative * problem.bounds.x_norm
    size = problem.size
    return sensitivity * calibrate(GaussianNoise, budget, rtol=1e-3) * sqrt(size)


def capped_where_noisy(problem: Problem, budget: Budget) -> Loss:
    """Return the logistic loss with a cap of one half, if noise matters.

    At zero weights every derivative is one half. Letting rows on the wrong side count
    no more than that halves the sensitivity, for a loss that still ranks alike.
    """
    loss = problem.loss
    one = loss.loss if isinstance(loss, OneVsRest) else loss
    if not isinstance(one, Logistic) or budget.delta == 0:
        return loss
    level = noise_level(problem, budget, derivative=1.0) / problem.n_rows
    if level / gradient_unit(problem) <= NEGLIGIBLE:
        return loss
    capped = Logistic(cap=0.5)
    return replace(loss, loss=capped) if isinstance(loss, OneVsRest) else capped


def gradient_unit(problem: Problem) -> float:
    """Return the gradient of a row that is off by a margin of one or a largest target.

    Rules are in this unit, so that nothing depends on the units of the features.
    """
    if not has_residuals(problem.loss):
        return problem.bounds.x_norm
    return problem.bounds.x_norm * problem.largest_target


def noise_fraction(problem: Problem, budget: Budget) -> float:
    """Return the noise of one release as a part of the largest gradient of all rows."""
    derivative = problem.loss.max_derivative(inf, problem.bounds.y_range)
    return noise_level(problem, budget, derivative) / (
        problem.n_rows * gradient_unit(problem)
    )


def usual_clip(problem: Problem, budget: Budget) -> float:
    """Return the clip of descents: a typical derivative, none where noise is low."""
    start = at_zero(problem)
    steepest = problem.loss.max_derivative(inf, problem.bounds.y_range)
    if isfinite(steepest) and noise_fraction(problem, budget) < UNCLIPPED:
        return steepest
    return start.shrink * start.typical


def ridge_rule(problem: Problem, budget: Budget) -> float:
    """Return the ridge for a tilted objective, in sum units."""
    derivative = problem.loss.max_derivative(inf, problem.bounds.y_range)
    noise = noise_level(problem, budget, derivative)
    unit = gradient_unit(problem)
    ratio = noise / (problem.n_rows * unit)
    # what the noise requires, and what keeps the determinant cheap
    wanted = noise * (0.04 + 4 * ratio + 40 * ratio**2)
    wanted *= problem.bounds.x_norm**2 / unit
    curved = 0.25 if isinstance(problem.loss, Softmax) else problem.loss.max_curvature()
    cheap = 6 * curved * problem.bounds.x_norm**2 / budget.epsilon
    return max(wanted, cheap)


@dataclass(frozen=True)
class Start:
    """What a loss looks like at zero weights, where every descent begins.

    ``typical`` is the norm that derivatives have, of which the part ``shrink`` is worth
    keeping, and ``curvature`` the largest eigenvalue of a row's Hessian.
    """

    typical: float
    shrink: float
    curvature: float


def at_zero(problem: Problem) -> Start:
    """Return the derivative and curvature that descents are planned for."""
    loss = problem.loss
    if isinstance(loss, Softmax):
        return Start(sqrt(1 - 1 / loss.n_classes), 0.7, 1 / loss.n_classes)
    if isinstance(loss, OneVsRest):
        # at zero all classes pull, later on that of the row: no more than one counts
        one = loss.loss
        typical = one.max_derivative(inf, problem.bounds.y_range)
        return Start(typical, 0.7, one.max_curvature())
    return Start(
        loss.max_derivative(inf, problem.bounds.y_range), 1.0, loss.max_curvature()
    )


@dataclass(frozen=True)
class Descent:
    """Steps, step size, momentum and derivative bound of a noisy descent."""

    n_steps: int
    step: float
    momentum: float
    clip: float


def descent_rule(
    problem: Problem, budget: Budget, clip: float | None = None
) -> Descent:
    """Return the steps of a noisy descent, with a given or the usual clip."""
    start = at_zero(problem)
    typical, shrink, curvature = start.typical, start.shrink, start.curvature
    if clip is not None:
        typical, shrink = clip, 1.0
    noise = noise_level(problem, budget, typical) / sqrt(problem.loss.n_outputs)
    unit = gradient_unit(problem)
    ratio = noise / (problem.n_rows * unit)
    n_steps = int(min(max(0.6 / ratio, 30), 100))
    momentum = 1 - 6 / n_steps
    # a step that is stable where the loss is most curved at zero weights
    stable = min(4 / 0.7, 1.3 / curvature)
    stable /= problem.n_rows * problem.bounds.x_norm**2
    # how far to go in all, as the sum of step sizes
    if has_residuals(problem.loss):
        going = residual_duration(problem, noise)
    else:
        going = unit / problem.bounds.x_norm**2 / (noise * (0.1 + ratio)) / shrink
    low_noise = going * (1 - momentum) / n_steps
    bound = usual_clip(problem, budget) if clip is None else clip
    return Descent(n_steps, min(stable, low_noise), momentum, bound)


def residual_duration(problem: Problem, noise: float) -> float:
    """Return the sum of step sizes of a descent on residuals, by their noise.

    Labels only need the side of a margin, targets its size, so less noise will do. The
    longer the way, the more of the signal is learned, up to all of it after one over
    the curvature, and the more noise is gathered. Here predictions are off by at most
    a third of the largest target, and by less where not all of the signal is learned.
    """
    size, x_norm = problem.size, problem.bounds.x_norm
    # noise of a prediction after one over the curvature, where rows are spread evenly
    off = sqrt(size) * noise / (problem.n_rows * gradient_unit(problem))
    learned = size / (problem.n_rows * x_norm**2)
    return learned * max(1.0, 0.3 / off) / (1 + 11 * off**2)


def cheap_ridge(problem: Problem, epsilon: float) -> float:
    """Return the ridge at which the determinant takes a tenth of epsilon."""
    rank = problem.loss.derivative_rank()
    trace = problem.loss.max_trace() * problem.bounds.x_norm**2
    return trace / rank / expm1(min(0.1 * epsilon / rank, 500.0))


def general_ridge_rule(problem: Problem, noise_norm: float, epsilon: float) -> float:
    """Return the ridge for any tilt, and for losses bounded on a set only.

    The rule of `ridge_rule` in units of the derivative and of the row norm.
    """
    noise = noise_norm / problem.lipschitz
    ratio = noise / problem.n_rows
    wanted = noise * problem.bounds.x_norm**2 * (0.04 + 4 * ratio + 40 * ratio**2)
    return max(wanted, cheap_ridge(problem, epsilon))


def ridge_for_weights(
    problem: Problem, neighbors: Neighbors, weight_norm: float, std: float
) -> float:
    """Return the ridge with the least bound on the expected risk, whatever the width.

    Parameters
    ----------
    problem
        A problem whose loss is Lipschitz.
    neighbors
        The relation, which sets the sensitivity.
    weight_norm
        Public bound on the norm of the best weights.
    std
        Noise in any one direction, in units of the sensitivity of the gradient.

    Notes
    -----
    **Bound.** With ``LR`` the Lipschitz constant and s the noise of the tilt, or the
    ridge times the noise of the weights, the excess risk is in expectation at most
    ``ridge B^2 / (2 n) + LR (2 LR + E|z| s) / ridge``, z a normal vector of one number
    an output; see the page on output perturbation. This minimizes it.
    """
    outputs = problem.loss.n_outputs
    mean_length = sqrt(2) * exp(lgamma((outputs + 1) / 2) - lgamma(outputs / 2))
    cost = 2 + mean_length * neighbors.rows_changed * std
    # [output:ridge]
    return problem.lipschitz * sqrt(2 * problem.n_rows * cost) / weight_norm
