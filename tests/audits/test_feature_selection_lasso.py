"""Supports released when stable and sets drawn by their losses, attacked end to end.

The distance of the lasso is chosen where one row changes it most; the control draws
with half the noise, which is twice the epsilon.
"""

from dataclasses import replace
from math import floor

import numpy as np
import pytest
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases

from tacit.feature_selection import ExponentialSelector, LassoStabilitySelector
from tacit.mechanisms import StableRelease

SHARED_CASES = Cases(audits="ExponentialSelector LassoStabilitySelector")

DELTA = 1e-3
N = 200


class SharperLasso(LassoStabilitySelector):
    """A planted bug: half the noise."""

    def select(self, plan, X, y, rng):
        told = plan.release
        sharper = StableRelease(2 * told.epsilon, told.delta)
        return super().select(replace(plan, release=sharper), X, y, rng)


class SharperExponential(ExponentialSelector):
    """A planted bug: half the noise."""

    def select(self, plan, X, y, rng):
        return super().select(replace(plan, epsilon=2 * plan.epsilon), X, y, rng)


def lasso(kind, seed=None):
    return kind(
        1.0,
        DELTA,
        n_features_to_select=1,
        feature_bounds=1.0,
        y_range=(-1, 1),
        penalty=60.0,
        coef_bound=1e-3,
        incoherence=1e-3,
        fit_intercept=False,
        neighbors="add_or_remove_one",
        expected_rows=N,
        random_state=seed,
    )


def marked_rows(n_marked, n):
    marks = np.r_[np.ones(n_marked), np.zeros(n - n_marked)]
    return marks[:, None], marks


def lasso_pair(epsilon):
    """Return neighbors whose distances are either side of where half are told."""
    facts = lasso(LassoStabilitySelector).plan(N, 1).plan.facts
    law = StableRelease(epsilon, DELTA)
    middle = next(d for d in range(100) if law.release_probability(d) > 0.5)
    for marked in range(1, 60):
        pair = marked_rows(marked, N), marked_rows(marked - 1, N - 1)
        near, far = (facts.distance(*side) for side in pair)
        assert near[0] == far[0] == ()
        if floor(far[1]) == middle == floor(near[1]) + 1:
            return pair
    raise AssertionError("no pair is where the distance passes a whole number")


def lasso_bound(kind, epsilon, n_runs, seed):
    def train(rows, seed):
        return np.array([float(lasso(kind, seed).fit(*rows).released_)])

    return bound_of_runs(
        train,
        lasso_pair(epsilon),
        n_runs,
        DELTA,
        seed,
        method="clopper-pearson",
        score=lambda told: told[0],
    )


def exponential_bound(kind, n_runs, seed):
    """Bound the epsilon of a draw whose scores one row moves as far as it can."""
    # at weights of one, a row of the first kind is lost on one column and its
    # opposite on the other
    fixed = [((1.0, 1.0), 1.0)] * N
    first, second = ((1.0, -1.0), 1.0), ((-1.0, 1.0), 1.0)
    pair = [[*fixed, first, second], [*fixed, second, second]]

    def train(rows, seed):
        selector = kind(
            2.0,
            n_features_to_select=1,
            feature_bounds=[1.0, 1.0],
            y_range=(-1, 1),
            fit_intercept=False,
            random_state=seed,
        )
        X, y = (np.array(column) for column in zip(*rows, strict=True))
        return np.array([float(selector.fit(X, y).selection_ == (0,))])

    return bound_of_runs(
        train,
        pair,
        n_runs,
        0.0,
        seed,
        method="clopper-pearson",
        score=lambda chosen: chosen[0],
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_supports_told_by_stability_keep_their_claim(seed):
    planned = lasso_bound(LassoStabilitySelector, 1.0, 1500, seed)
    control = lasso_bound(SharperLasso, 2.0, 1500, seed)
    assert_refutes_the_control("LassoStabilitySelector", 1.0, planned, control)


@pytest.mark.slow
@pytest.mark.statistical
def test_sets_drawn_by_their_losses_keep_their_claim(seed):
    planned = exponential_bound(ExponentialSelector, 2500, seed)
    control = exponential_bound(SharperExponential, 2500, seed)
    assert_refutes_the_control("ExponentialSelector", 2.0, planned, control)
