"""
Which forecasters to listen to, privately
=========================================

Forty public forecasts of a household's use of power are at hand, some good and most
not. A mixture of them, with weights that are not negative and sum to one, is to be
learned from the meters of private households.
:class:`tacit.linear_model.SimplexRegressor` does that, and its noise hardly grows with
the number of forecasts. Does it find the good ones?

The households are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.linear_model import SimplexRegressor
from tacit.mechanisms import as_generator

N_FORECASTS, GOOD = 40, {3: 0.5, 17: 0.3, 29: 0.2}


def households(n, seed):
    """Return forecasts of power, 0 to 1 of what a fuse allows, and what was used."""
    rng = as_generator(seed)
    X = rng.beta(2, 3, (n, N_FORECASTS))
    truth = sum(weight * X[:, j] for j, weight in GOOD.items())
    return X, np.clip(truth + rng.normal(0, 0.05, n), 0, 1)


# %%
# Entries are bounded one by one by ``x_max``, and not the length of a row: forty
# columns of 0 to 1 would make rows of length six.

X, y = households(50_000, 0)
X_test, y_test = households(5_000, 1)
epsilons = (0.1, 1.0, 10.0)
models = {
    epsilon: SimplexRegressor(
        epsilon, x_max=1.0, y_range=(0, 1), random_state=Seed(0)
    ).fit(X, y)
    for epsilon in epsilons
}

fig, axes = plt.subplots(len(epsilons), 1, figsize=(7, 5), sharex=True)
for ax, (epsilon, model) in zip(axes, models.items(), strict=True):
    colors = ["C1" if j in GOOD else "C0" for j in range(N_FORECASTS)]
    ax.bar(range(N_FORECASTS), model.coef_, color=colors)
    ax.set(ylabel="weight", title=f"epsilon {epsilon:g}", ylim=(0, 0.6))
axes[-1].set_xlabel("forecast; those that matter are orange")
fig.tight_layout()
plt.show()

# %%
# At a budget of 0.1 the choice of forecasts is next to random; at 10 most of the weight
# is where it belongs. One draw of the noise is one outcome, so here are means over
# five.


def judged(model):
    """Return the weight on the three good forecasts, and the error on other rows."""
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    return model.coef_[list(GOOD)].sum(), error


for epsilon, model in models.items():
    draws = [judged(model.set_params(random_state=Seed(s)).fit(X, y)) for s in range(5)]
    weight, error = np.mean(draws, axis=0)
    print(f"epsilon {epsilon:4g}: weight on the three {weight:.2f}, error {error:.3f}")
mean = np.sqrt(np.mean((X_test.mean(axis=1) - y_test) ** 2))
print(f"plain mean of all forty, which costs nothing: error {mean:.3f}")

# %%
# The plain mean is the thing to beat, and a small budget does not beat it.
#
# Each step of the fit goes some way towards one forecast, chosen at random with odds
# that favor the better ones. So weights are sums of steps, and a forecast that was
# never chosen has a weight of exactly zero.

print(models[0.1].privacy_)
