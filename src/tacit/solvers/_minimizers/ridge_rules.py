"""Ridges chosen from public facts only.

The constants of `ridge_rule` were fitted on synthetic problems by
``benchmarks/fit_rule.py``.
"""

from __future__ import annotations

from math import exp, expm1, inf, lgamma, sqrt

from tacit.convex import Softmax
from tacit.privacy import Budget, Neighbors
from tacit.solvers._base import Problem
from tacit.solvers._gradients.descent import gradient_unit, noise_level

__all__ = ["cheap_ridge", "general_ridge_rule", "ridge_for_weights", "ridge_rule"]


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

    The loss must be Lipschitz. ``weight_norm`` is a public bound on the norm of the
    best weights, and ``std`` the noise in any one direction, in units of the
    sensitivity of the gradient.

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
