"""
Which forecast to trust, day by day
===================================

Twelve public forecasts predict each day how much power households will use. One is good
from the start, and another becomes better later. Households report what they used, and
want to be protected. Can :class:`tacit.streaming.HedgeAggregator` follow the better
forecasts, and how much does it lose compared with an aggregator without privacy?

The households are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.mechanisms import as_generator
from tacit.streaming import HedgeAggregator

N_FORECASTS, DAYS, A_DAY = 12, 200, 50


def meters(day, rng):
    """Return what was forecast for the households of a day, and what they used."""
    used = rng.beta(2, 3, A_DAY)
    errors = np.full(N_FORECASTS, 0.3)
    errors[3] = 0.1  # good at all times
    errors[7] = 0.25 if day < DAYS // 5 else 0.02  # gets better than all
    said = used[:, None] + rng.normal(0, errors, (A_DAY, N_FORECASTS))
    return np.clip(said, 0, 1), used


# %%
# Each step brings the forecasts and the truth of a day. What a forecast costs is its
# absolute error, which is between 0 and 1 of what a fuse allows. One charge, made at
# the first step, covers all of them.


def year(epsilon, seed=0, **given):
    """Return the mean error of each day, predicted before the day, and the model."""
    rng, errors = as_generator(1), []
    model = HedgeAggregator(
        epsilon,
        1e-9,
        horizon=DAYS,
        rows_per_step=A_DAY,
        loss="absolute",
        temperature=20.0,
        random_state=Seed(seed),
        **given,
    )
    for day in range(DAYS):
        said, used = meters(day, rng)
        predicted = model.predict(said) if day else said.mean(axis=1)
        errors.append(np.mean(np.abs(predicted - used)))
        model.partial_fit(said, used)
    return np.array(errors), model


runs = {epsilon: year(epsilon) for epsilon in (0.1, 1.0, 1000.0)}
fig, ax = plt.subplots(figsize=(7, 3.5))
for epsilon, (errors, model) in runs.items():
    smooth = np.convolve(errors, np.ones(10) / 10, mode="valid")
    ax.plot(smooth, label=f"epsilon {epsilon:g}, {model.play_}")
ax.set(xlabel="day", ylabel="error, mean of ten days", ylim=(0, None))
ax.legend()
fig.tight_layout()
plt.show()

for epsilon, (errors, model) in runs.items():
    print(f"epsilon {epsilon:6g}: error {errors.mean():.3f}, now follows", end=" ")
    print(int(model.weights_.argmax()))

# %%
# ``temperature`` says how large a lead must be to count. The default suits rows that
# are alike at all times, and so does the bound on the regret:

model = HedgeAggregator(1.0, 1e-9, horizon=DAYS, rows_per_step=A_DAY, loss="absolute")
planned = model.plan(N_FORECASTS)
print(f"temperature {planned.learner.temperature:.0f}")
print(f"regret at most {planned.learner.regret_bound:.0f} of {DAYS * A_DAY} rows")

# %%
# One forecast can be drawn for all, which is pure where delta is 0. Each draw is
# another look at the meters, so that fewer of them, here one in ten days, are better
# informed.

errors, model = year(1.0, play="sample", hold=10)
print(model.play_, model.expert_, f"error {errors.mean():.3f}")
print(model.privacy_)
