"""What tests of solvers do with each of them: run it, also on neighbors."""

import numpy as np
from tests.strategies import targets

from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.convex import Objective, minimize
from tacit.data import bounded_rows

__all__ = [
    "assert_reported",
    "assert_seed_decides",
    "assert_tight",
    "coefficients",
    "exact_minimum",
    "fit",
    "replayed",
    "sample",
    "straight_pair",
]


def coefficients(solver, plan, rows, seed):
    """Return what one run releases."""
    return solver.run(plan, rows, as_generator(seed)).coefficients


def fit(solver, problem, budget, X, y, seed):
    """Return what a plan and its run release of rows."""
    plan = solver.plan(problem, budget)
    return coefficients(solver, plan, bounded_rows(X, y, problem.bounds), seed)


def sample(loss, seed, n=40, p=2):
    """Return rows and targets that follow from two columns."""
    rng = as_generator(seed)
    X = rng.normal(size=(n, p))
    codes = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 0, 1 + (X[:, 1] > 0))
    return X, targets(loss, codes)


def straight_pair(n, position):
    """Return neighbors with derivatives +1 and -1 for Huber(1), zero elsewhere.

    All but one row are at zero: their gradients vanish and their losses are straight.
    """
    X, y = np.zeros((n, 2)), np.zeros(n)
    X[position, 0], y[position] = 1.0, 1e6
    other = y.copy()
    other[position] = -1e6
    return (X, y), (X, other)


def assert_tight(plan, budget, less):
    """Assert that a plan fits its budget, and that it does not with ``less`` noise."""
    assert plan.event.curve(budget.neighbors).fits(budget)
    assert not less.event.curve(budget.neighbors).fits(budget)


def assert_seed_decides(solver, plan, rows, seed):
    """Assert that equal seeds give equal bits and others others; return the first."""
    problem = getattr(plan, "tilted", plan).problem
    first, again, other = (
        coefficients(solver, plan, rows, s) for s in (seed, seed, seed + 1)
    )
    assert first.shape == (problem.n_features, problem.loss.n_outputs)
    assert first.dtype == np.float64
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)
    return first


def exact_minimum(loss, rows, ridge, tolerance=1e-9, x_norm=1.0):
    """Return the weights without privacy."""
    objective, y_range = Objective(loss, ridge=ridge), (-1.0, 1.0)
    return minimize(
        objective, rows, tolerance=tolerance, x_norm=x_norm, y_range=y_range
    ).W


def replayed(solver, plan, pair, judge=assert_replays, seed=0, layout=np.asarray):
    """Return what a judge says of a run on both sides of a pair."""
    bounds = getattr(plan, "tilted", plan).problem.bounds
    sides = [
        (bounded_rows(layout(X), y, bounds),) for X, y in (pair.first, pair.second)
    ]
    return judge(lambda rows: coefficients(solver, plan, rows, seed), *sides)


def assert_reported(*reports):
    """Assert that some report says that a release moved further than declared."""
    found = [sentence for report in reports for sentence in report.violations]
    assert any("over the declared sensitivity" in sentence for sentence in found)
