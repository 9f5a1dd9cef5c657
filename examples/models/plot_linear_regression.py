"""
Can an effect be read off private weights?
==========================================

A hospital group wants to know how many more days a patient stays for each ten years of
age, and for smoking. What is published are the weights of a regression, with noise in
them. How many patients does it take until the noise is smaller than the effect?

The patients are synthetic with a known truth, so that the error can be seen. Seeds are
fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.linear_model import LinearRegression
from tacit.mechanisms import as_generator
from tacit.preprocessing import PublicScaler

RANGES = [(18, 98), (90, 190), (0, 1)]  # years, mmHg, no or yes
TRUTH = {"10 years of age": 0.8, "smoking": 2.0}


def patients(n, seed):
    """Return a table of patients and the days that each of them stayed."""
    rng = as_generator(seed)
    age, pressure = rng.uniform(18, 98, n), rng.normal(135, 15, n)
    smoker = rng.random(n) < 0.25
    days = 3 + 0.08 * (age - 18) + 2.0 * smoker + rng.gamma(4.0, 0.7, n)
    return np.column_stack([age, pressure, smoker]), days


# %%
# Bounds come from what a form allows: the ranges above, and stays from 0 to 30 days,
# the longest that the ward keeps anyone. Columns become -1 to 1, so no row is longer
# than the root of three, and stays beyond 30 days would be cut.

scaler = PublicScaler(RANGES)
x_norm = 3**0.5


def effects(model):
    """Return days for ten years of age, and for smoking, in the units of the form."""
    per_unit = model.coef_ * 2 / np.ptp(np.array(RANGES), axis=1)
    return per_unit[0] * 10, per_unit[2]


# %%
# Twenty fits for each number of patients, each of rows and noise of its own. A real
# study has one fit and one budget.

sizes = (500, 2_000, 8_000, 32_000)
found = np.array(
    [
        [
            effects(
                LinearRegression(
                    1.0, x_norm=x_norm, y_range=(0, 30), random_state=Seed(seed)
                ).fit(scaler.fit_transform(table), days)
            )
            for seed in range(20)
            for table, days in [patients(n, seed)]
        ]
        for n in sizes
    ]
)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for k, (ax, (name, truth)) in enumerate(zip(axes, TRUTH.items(), strict=True)):
    ax.boxplot(found[:, :, k].T, tick_labels=[f"{n:,}" for n in sizes])
    ax.axhline(truth, ls="--", c="k")
    ax.set(title=f"days for {name}", xlabel="patients, epsilon 1")
fig.tight_layout()
plt.show()

# %%
# The dashed line is the truth. The boxes hold what privacy and chance do together: rows
# are drawn anew for each fit. Rows that are few give weights that are nearly all noise,
# and nothing in the weights themselves says so.

for n, row in zip(sizes, found, strict=True):
    low, high = np.quantile(row[:, 1], [0.05, 0.95])
    print(f"{n:6} patients: smoking {low:6.2f} to {high:5.2f} days in 18 of 20 fits")

# %%
# ``coef_`` and predictions are in days. ``y_range`` is required: without a bound on
# what a patient's stay can be, no amount of noise would hide it.

table, days = patients(32_000, 0)
model = LinearRegression(1.0, x_norm=x_norm, y_range=(0, 30), random_state=Seed(0))
model.fit(scaler.fit_transform(table), days)
print(model.predict(scaler.transform([[70, 140, 1], [30, 120, 0]])).round(1))
