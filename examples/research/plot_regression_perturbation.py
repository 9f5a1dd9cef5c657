"""
Least squares with a random linear term: the risk before the rows
=================================================================

Two ways to perturb the exact quadratic of least squares, next to noise on its moments.
How good are they, and how much of that is known before any row is read?

Rows are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.evaluation import noise_at, regression_risk, rows_for_risk
from tacit.linear_model import LinearRegression
from tacit.mechanisms import as_generator

EPSILON, DELTA, P = 1.0, 1e-6, 8
NAMES = ("quadratic_perturbation", "adaptive_ridge", "ada_ssp")


def synthetic(n, seed):
    """Return rows of half their largest norm, of a spectrum that falls like 1/i."""
    rng = as_generator(seed)
    falling = 1 / np.arange(1.0, P + 1)
    stds = 0.5 * np.sqrt(falling / falling.sum())
    X = rng.choice([-1.0, 1.0], size=(n, P)) * stds
    return X, np.clip(X @ np.full(P, 0.6) + 0.05 * rng.normal(size=n), -1, 1)


# %%
# :func:`tacit.evaluation.regression_risk` is a formula: what privacy adds to the mean
# squared error, for guesses of the spectrum and of the signal. The rows above are as
# guessed, so that the points should lie on the lines.

rows = np.array([1_000, 4_000, 16_000, 64_000])
fig, ax = plt.subplots(figsize=(6.2, 4))
for name in NAMES:
    predicted = [
        regression_risk(n, P, epsilon=EPSILON, delta=DELTA, solver=name) for n in rows
    ]
    found = []
    for n in rows:
        X, y = synthetic(n, seed=0)
        best = np.mean((y - X @ np.linalg.lstsq(X, y)[0]) ** 2)
        model = LinearRegression(
            EPSILON,
            DELTA,
            y_range=(-1, 1),
            fit_intercept=False,
            solver=name,
            x_norm=1.0,
        )
        errors = [
            np.mean(
                (y - model.set_params(random_state=Seed(s)).fit(X, y).predict(X)) ** 2
            )
            for s in range(12)
        ]
        found.append(np.mean(errors) - best)
    (line,) = ax.loglog(rows, predicted, label=name)
    ax.loglog(rows, found, "o", c=line.get_color())
    print(
        f"{name:24}", "predicted", np.round(predicted, 6), "found", np.round(found, 6)
    )
ax.axhline(0.3**2, ls=":", c="k", lw=1, label="weights of zero")
ax.set(xlabel="rows", ylabel="squared error added by privacy")
ax.legend()
plt.show()

# %%
# The risk falls like one over the square of the rows once there are enough of them: the
# bias of a plain ridge is of second order. The ridge that depends on the rows has no
# bias there, but needs more noise, and is never ahead by much.
#
# The same formula says how many rows a target takes.

for name in NAMES:
    n = rows_for_risk(0.001, P, epsilon=EPSILON, delta=DELTA, solver=name)
    print(f"{name:24} {n:>8,} rows for an added error of 0.001")

# %%
# And the noise of one number, for comparison: what hides one row at this budget.

for epsilon in (0.1, 1.0, 10.0):
    gaussian = noise_at(epsilon, DELTA)
    laplace = noise_at(epsilon, law="laplace")
    print(f"epsilon {epsilon:4}: Gaussian {gaussian:7.3f}, Laplace {laplace:7.3f}")
