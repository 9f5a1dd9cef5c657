"""Populations of a few atoms, whose best weights are known."""

from functools import cache

import numpy as np
from scipy.optimize import minimize

from tacit._random import as_generator
from tacit.solvers.ada_ssp import RIDGE_FACTOR, AdaSSPPlan
from tacit.solvers.amp import AMPPlan


@cache
def population(p, kind, atoms=1000):
    """Return atoms and their labels or targets, all as likely."""
    rng = as_generator(p)
    X = rng.standard_normal((atoms, p)) / np.sqrt(p)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    z = X @ rng.standard_normal(p)
    z *= 2 / z.std()
    if kind == "labels":
        return X, (rng.random(atoms) < 1 / (1 + np.exp(-z - 0.3))).astype(int)
    return X, np.clip(z / 6 + 0.3 * rng.standard_normal(atoms), -1, 1)


def planned_ridge(plan):
    if isinstance(plan, AMPPlan):
        return plan.tilted.ridge
    if isinstance(plan, AdaSSPPlan) and plan.ridge is None:
        size = plan.problem.n_features
        return (
            RIDGE_FACTOR
            * (1 + np.sqrt(size))
            * plan.noise_level
            * plan.problem.bounds.x_norm**2
        )
    return plan.ridge


def best_coefficients(model, X, y, n_rows):
    """Return those of the penalized risk of ``n_rows`` rows of the population."""
    setting, problem = model._facts.setting, model._facts.planned.problem
    rows = np.column_stack([X, np.full(len(X), setting.intercept)])
    y = model._solver_targets(y, setting)
    ridge = planned_ridge(model._facts.planned.plan)
    each = n_rows / len(X)

    def risk(w):
        W = w.reshape(problem.shape)
        Z = rows @ W
        value = each * problem.loss.value(y, Z).sum() + ridge / 2 * w @ w
        derivative = each * rows.T @ problem.loss.derivative(y, Z) + ridge * W
        return value, derivative.ravel()

    found = minimize(
        risk,
        np.zeros(problem.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    coef, _ = model._shaped(*model._parts(found.x.reshape(problem.shape)))
    return np.ravel(coef)
