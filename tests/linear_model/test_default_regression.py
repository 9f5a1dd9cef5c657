"""The default for least squares on the synthetic tables where it once failed."""

import numpy as np
import pytest
from benchmarks.regression.grid import fitted, table

from tacit.linear_model import LinearRegression

RIVALS = ("preconditioned_gd", "ada_ssp", "noisy_gd")
# Kind, rows, columns, epsilon and least R2: half to two thirds of what was measured
WORST = [
    ("bins", 6000, 264, 1.0, 0.25),
    ("bins", 1000, 40, 10.0, 0.2),
    ("bins", 5000, 24, 100.0, 0.0),
    ("uniform", 6000, 264, 1.0, 0.5),
    ("correlated", 6000, 264, 1.0, 0.55),
    ("narrow", 5000, 16, 1.0, 0.6),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "n", "p", "epsilon", "least"), WORST)
def test_the_default_is_not_far_behind_any_solver(kind, n, p, epsilon, least, seed):
    data = table(kind, n, p, seed)
    scores = {
        solver: np.mean(
            [
                data.r2(fitted(data, epsilon, solver, seed + k)[0].predict(data.X_test))
                for k in range(2)
            ]
        )
        for solver in ("auto", *RIVALS)
    }
    default = scores.pop("auto")
    assert default > least
    assert default > max(scores.values()) - 0.15


@pytest.mark.parametrize(("n", "p"), [(50_000, 200), (200_000, 24), (500_000, 5)])
def test_a_fit_of_many_rows_takes_few_passes(n, p):
    planned = LinearRegression(1.0, x_norm=p**0.5, y_range=(-1, 1)).plan(n, p)
    assert planned.plan.descent.n_steps <= 10
