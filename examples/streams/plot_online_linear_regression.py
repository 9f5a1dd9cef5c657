"""
How long will the next patient stay?
====================================

Before each day a ward predicts how long the patients of the day will stay, and after it
learns from their stays. How accurate are predictions that do not reveal how long any
single patient stayed? And what if some patients come more than once?

The patients are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.mechanisms import as_generator
from tacit.preprocessing import PublicScaler
from tacit.streaming import OnlineLinearRegression

RANGES = [(18, 98), (90, 190), (0, 1)]  # years, mmHg, no or yes
DAYS, A_DAY = 365, 40
scaler = PublicScaler(RANGES)


def patients(n, rng):
    """Return a table of patients, scaled by public ranges, and days of their stay."""
    age, pressure = rng.uniform(18, 98, n), rng.normal(135, 15, n)
    smoker = rng.random(n) < 0.25
    stay = 3 + 0.08 * (age - 18) + 2.0 * smoker + rng.gamma(4.0, 0.7, n)
    return scaler.fit_transform(np.column_stack([age, pressure, smoker])), stay


# %%
# Every day: predict, then learn. The model of the evening is released, so that it may
# predict as often as anyone likes.


def year(epsilon, rows_per_person=1):
    """Return the mean squared error of each day's predictions."""
    rng = as_generator(1)
    model = OnlineLinearRegression(
        epsilon,
        1e-9,
        horizon=DAYS,
        rows_per_step=A_DAY,
        rows_per_person=rows_per_person,
        x_norm=3**0.5,
        y_range=(0, 30),
        random_state=Seed(0),
    )
    errors = []
    for day in range(DAYS):
        X, stay = patients(A_DAY, rng)
        said = model.predict(X) if day else np.full(A_DAY, 15.0)
        errors.append(np.mean((said - stay) ** 2))
        model.partial_fit(X, stay)
    return np.array(errors), model


# %%
# The error that no model can avoid is the variance of what is not in the table, 1.96
# here. Lines are means of the last thirty days.

fig, ax = plt.subplots(figsize=(7, 4))
month = np.ones(30) / 30
for epsilon in (0.1, 1.0, 10.0):
    errors, model = year(epsilon)
    ax.plot(np.convolve(errors, month, "valid"), label=f"epsilon {epsilon}")
    print(f"epsilon {epsilon:4}: error over the year {errors.mean():.2f}")
ax.axhline(4 * 0.7**2, c="k", ls=":", label="not to be had")
ax.set(yscale="log", xlabel="day", ylabel="squared error, last 30 days")
ax.legend()
plt.show()

# %%
# ``coef_`` is in days for columns from -1 to 1, so that the effect of smoking is twice
# the last of them.

print("weights", model.coef_.round(2), "smoking", round(2 * model.coef_[2], 2), "days")

# %%
# **People who come back.** The guarantee above is for one row. If a patient may be in
# the year up to four times, say so: all four rows are then protected together, by four
# times the noise. What it costs is seen at once.

for rows in (1, 2, 4):
    errors, _ = year(1.0, rows_per_person=rows)
    print(f"{rows} rows a person: error over the year {errors.mean():.2f}")
