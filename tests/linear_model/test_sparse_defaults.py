"""What comes out of sparse models as they come, on tables that people have."""

import numpy as np
import pytest

from tacit.linear_model import Lasso, SparseLogisticRegression
from tacit.mechanisms import as_generator
from tacit.solvers import GreedyCoordinateDescent

N, P = 4000, 20
CODES = [(0, 1)] * P


def codes(seed):
    return (as_generator(seed).random((N, P)) < 0.3).astype(float)


def stays(X, seed):
    noise = as_generator(seed + 1).normal(0, 1, N)
    return np.clip(5 + 3 * X[:, 0] + 2 * X[:, 1] + noise, 0, 30)


def r_squared(X, y, seed, **given):
    model = Lasso(
        alpha=0.05, feature_bounds=CODES, y_range=(0, 30), random_state=seed, **given
    )
    return model.fit(X, y).score(X, y)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 3.0, "delta": 0.0},
        {"epsilon": 100.0, "solver": "gcd"},
        {"epsilon": 3.0, "solver": GreedyCoordinateDescent(smoothness="public")},
        # planned for far fewer rows than there are
        {"epsilon": 3.0, "delta": 1e-5, "neighbors": "add_or_remove_one"},
        {
            "epsilon": 3.0,
            "delta": 1e-5,
            "neighbors": "add_or_remove_one",
            "solver": "cd",
        },
    ],
)
def test_steps_do_not_overshoot_on_columns_that_fill_their_range(given, seed):
    X = codes(seed)
    y = stays(X, seed)
    assert np.median([r_squared(X, y, seed + i, **given) for i in range(3)]) > 0.4


def test_steps_that_overshoot_would_be_seen(seed):
    X = codes(seed)
    solver = GreedyCoordinateDescent(step=8.0, smoothness="public")
    assert r_squared(X, stays(X, seed), seed, epsilon=3.0, solver=solver) < 0


@pytest.mark.statistical
@pytest.mark.parametrize("solver", ["cd", "gcd"])
def test_the_mean_risk_of_a_rare_outcome_is_about_how_rare_it_is(solver, seed):
    X = codes(seed)
    z = 1.5 * X[:, 0] + 1.2 * X[:, 1] - 2.6
    y = (z + as_generator(seed + 1).logistic(size=N) > 0).astype(int)
    means = []
    for i in range(3):
        model = SparseLogisticRegression(
            5.0,
            alpha=1e-3,
            feature_bounds=CODES,
            classes=[0, 1],
            solver=solver,
            random_state=seed + i,
        )
        means.append(model.fit(X, y).predict_proba(X)[:, 1].mean())
    assert np.median(means) == pytest.approx(y.mean(), rel=0.2)
