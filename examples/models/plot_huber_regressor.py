"""
Outliers, and a range that must hold them
=========================================

Rents are mostly below 2,000 and sometimes above 10,000. Least squares follow the few
large ones. :class:`tacit.linear_model.HuberRegressor` counts a residual in a straight
line beyond a ``threshold``, which also limits what one row can do and so the noise. How
do the two compare as outliers get more common?

The rents are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.linear_model import HuberRegressor, LinearRegression
from tacit.mechanisms import as_generator
from tacit.preprocessing import PublicScaler

RANGES, Y_RANGE = [(10, 150), (0, 30)], (0, 10_000)  # square meters, km to the center


def flats(n, share, seed):
    """Return flats, their rents, and the rents that are usual for them."""
    rng = as_generator(seed)
    X = np.column_stack([rng.uniform(10, 150, n), rng.uniform(0, 30, n)])
    usual = 300 + 9 * X[:, 0] - 20 * X[:, 1] + rng.normal(0, 80, n)
    odd = rng.random(n) < share
    return X, np.where(odd, usual + rng.exponential(8_000, n), usual), usual


# %%
# The range of rents is public and wide, from nothing to 10,000. The threshold is a
# public number too, in units of the rent: residuals beyond 500 are unusual, says a
# landlord. Five draws of rows and noise each, epsilon 1, for few flats and for more.

shares = (0.0, 0.02, 0.05, 0.1)
models = {
    "LinearRegression": LinearRegression(1.0, x_norm=1.4, y_range=Y_RANGE),
    "HuberRegressor": HuberRegressor(1.0, x_norm=1.4, y_range=Y_RANGE, threshold=500),
}
scaler = PublicScaler(RANGES)


def error(model, n, share, seed):
    """Return the mean distance to the usual rent of other flats."""
    X, y, _ = flats(n, share, seed)
    model.set_params(random_state=Seed(seed)).fit(scaler.fit_transform(X), y)
    X_test, _, usual = flats(2_000, 0.0, 10_000 + seed)
    return np.abs(model.predict(scaler.transform(X_test)) - usual).mean()


fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for n, ax in zip((5_000, 20_000), axes, strict=True):
    for name, model in models.items():
        errors = np.array(
            [[error(model, n, share, seed) for seed in range(5)] for share in shares]
        )
        ax.errorbar(
            np.multiply(shares, 100),
            errors.mean(axis=1),
            errors.std(axis=1),
            marker="o",
            capsize=4,
            label=name,
        )
        print(f"{n:6} flats, {name:16}", errors.mean(axis=1).round(0))
    ax.set(xlabel="outliers, percent of the rows", title=f"{n:,} flats")
    ax.set_ylim(bottom=0)
axes[0].set_ylabel("mean error for a usual flat")
axes[0].legend()
fig.tight_layout()
plt.show()

# %%
# Without outliers least squares do better, the more so the fewer the rows. With a few
# outliers they are not as sensitive as the textbook says: the default counts residuals
# far beyond the usual ones for less. From one flat in twenty on the outliers pull them
# away all the same; Huber's loss stays where the usual flats are. If you expect many
# outliers, take Huber's.
#
# ``threshold`` is never estimated from the residuals, as scikit-learn does with its
# scale: that would be another look at the rows.

print(models["HuberRegressor"].loss_)
