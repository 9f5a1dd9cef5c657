"""
A loss of your own: nine deliveries in ten on time
==================================================

A shop quotes each customer a delivery time. Least squares predicts the mean, which four
deliveries in ten exceed. The shop wants the time that nine in ten keep, which minimizes
another loss. :class:`tacit.linear_model.GeneralizedLinearModel` fits any convex loss
whose gradient is bounded. Does it give the shop its nine in ten, and with what budget?

The deliveries are synthetic. Seeds are fixed for reproduction only.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.linear_model import GeneralizedLinearModel, LinearRegression
from tacit.mechanisms import as_generator
from tacit.preprocessing import PublicScaler

RANGES, Y_RANGE = [(0, 30), (0, 10)], (0, 120)  # km, number of stops; minutes

# %%
# The loss of a quantile is the pinball loss: a residual counts ``q`` times where the
# prediction is too low, and ``1 - q`` times where it is too high. It has a kink at
# zero, and the solvers need a bounded second derivative, so it is rounded over a window
# of half-width ``h`` (Fernandes, Guerre and Horta, "Smoothing quantile regressions",
# 2021).
#
# The bounds on the derivatives are what the guarantee rests on: the noise is computed
# from ``max_derivative`` and ``max_curvature``. State them as they are proved, not as
# they look on some rows. Gradient descents clip each derivative to what is stated; AMP
# and other solvers cannot, so the report lists what the guarantee takes from the loss.


@dataclass(frozen=True)
class SmoothPinball:
    """Pinball loss of the residual, convolved with a uniform kernel."""

    targets = "numbers"  # so that the model is a regressor

    q: float = 0.5
    h: float = 0.1  # targets are scaled to [-1, 1]

    n_outputs = 1

    def value(self, y, Z):
        r = Z[:, 0] - y
        near = r**2 / (4 * self.h) + self.h / 4
        rounded = np.where(np.abs(r) <= self.h, near, np.abs(r) / 2)
        return rounded + (0.5 - self.q) * r

    def derivative(self, y, Z):
        r = Z - y[:, None]
        return np.clip(r / (2 * self.h), -0.5, 0.5) + 0.5 - self.q

    def curvature(self, y, Z):
        return (np.abs(Z - y[:, None]) <= self.h) / (2 * self.h)

    def curvature_product(self, y, Z, V):
        return self.curvature(y, Z) * V

    def max_derivative(self, reach, y_range):
        return max(self.q, 1 - self.q)

    def max_curvature(self):
        return 1 / (2 * self.h)

    max_trace = max_curvature

    def derivative_rank(self):
        return 1


def deliveries(n, seed):
    """Return distances and stops, and the minutes that the deliveries took."""
    rng = as_generator(seed)
    X = np.column_stack([rng.uniform(0, 30, n), rng.integers(0, 11, n)])
    usual = 8 + 1.5 * X[:, 0] + 2 * X[:, 1]
    return X, usual * (0.8 + rng.gamma(1.5, 0.2, n))


# %%
# How many deliveries keep the quoted time? 20,000 rows to learn from, 5,000 others to
# count on, and five draws of rows and noise for each budget.

scaler = PublicScaler(RANGES)
shared = {"x_norm": 1.5, "y_range": Y_RANGE}
models = {
    "nine in ten": GeneralizedLinearModel(loss=SmoothPinball(0.9, 0.05), **shared),
    "half": GeneralizedLinearModel(loss=SmoothPinball(0.5, 0.05), **shared),
    "least squares": LinearRegression(**shared),
}


def on_time(model, epsilon, seed):
    """Return the fraction of other deliveries that keep the predicted time."""
    X, y = deliveries(20_000, seed)
    model.set_params(epsilon=epsilon, random_state=Seed(seed))
    model.fit(scaler.fit_transform(X), y)
    X_test, y_test = deliveries(5_000, 10_000 + seed)
    return np.mean(y_test <= model.predict(scaler.transform(X_test)))


epsilons = (0.1, 0.3, 1.0, 3.0)
fig, ax = plt.subplots(figsize=(6.4, 3.8))
for name, model in models.items():
    kept = 100 * np.array(
        [[on_time(model, epsilon, seed) for seed in range(5)] for epsilon in epsilons]
    )
    ax.errorbar(
        epsilons, kept.mean(axis=1), kept.std(axis=1), marker="o", capsize=4, label=name
    )
    print(f"{name:14}", kept.mean(axis=1).round(1))
ax.axhline(90, color="gray", linestyle=":")
ax.set(xscale="log", xlabel="epsilon", ylabel="deliveries on time, percent")
ax.legend()
fig.tight_layout()
plt.show()

# %%
# From epsilon 1 on the shop gets its nine in ten to within a percent; with a tenth of
# that budget it quotes times that are a little too long. Least squares keep six in ten.
#
# What the last fit was charged, with the assumptions that its guarantee
# rests on:

print(models["nine in ten"].privacy_)
