"""
Votes that are numbers
======================

Nearest neighbors repeat rows, so no model of that kind can be published as it is. Can
three hundred of them, each with rows of its own, teach one that can? Their numbers are
averaged with noise, or a number near their median is drawn. Which is better, and when?

Rows are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from tacit import Seed
from tacit.ensemble import PrivateLabeler, PrivateStudent, plan_teachers
from tacit.mechanisms import as_generator

rng = as_generator(0)


def rent(x):
    """Return the rent of a home by its distance from the center, in thousands."""
    return 1.0 + 1.5 * np.exp(-((x[:, 0] - 3) ** 2)) + 0.6 * np.sin(2 * x[:, 0])


X = rng.uniform(0, 10, (20_000, 1))
y = rent(X) + rng.normal(0, 0.2, 20_000)
X_public = rng.uniform(0, 10, (100, 1))
X_test = np.linspace(0, 10, 500)[:, None]

# %%
# ``y_range`` is public. A teacher can move the mean by the width of the range over the
# number of teachers, so a range that is twice as wide has twice the noise.


def labeler(mechanism):
    return PrivateLabeler(
        KNeighborsRegressor(3),
        300,
        4.0,
        1e-6,
        mechanism=mechanism,
        y_range=(0.0, 4.0),
        n_queries=100,
        random_state=Seed(0),
    )


found = {}
for mechanism in ("mean", "median"):
    found[mechanism] = PrivateStudent(labeler(mechanism)).fit(X, y, X_public=X_public)

fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
for ax, (mechanism, model) in zip(axes, found.items(), strict=True):
    ax.plot(X_public[:, 0], model.labels_.values, ".", c="0.7", label="released")
    ax.plot(X_test[:, 0], rent(X_test), "k--", lw=1, label="truth")
    ax.plot(X_test[:, 0], model.predict(X_test), c="tab:red", label="student")
    ax.set(title=f"{mechanism}, epsilon 4", xlabel="distance")
axes[0].set_ylabel("rent")
axes[0].legend()
plt.show()

# %%
# The student never saw a private row. It averages the noise of the answers out, which
# costs nothing, as it is computed from what was released.

for mechanism, model in found.items():
    off = np.mean(np.abs(model.predict(X_test) - rent(X_test)))
    released = np.mean(np.abs(model.labels_.values - rent(X_public)))
    print(
        f"{mechanism}: answers off by {released:.2f}, student by {off:.2f} on average"
    )

# %%
# **Outliers.** Now one home in six is a typing error, a rent a thousand times too high,
# which the range clips to its end. Teachers that ask one neighbor each repeat such
# rows, and the mean follows them. The median does not mind.

spoilt = np.where(rng.uniform(0, 1, 20_000) < 1 / 6, 1000 * y, y)
for mechanism in ("mean", "median"):
    votes = labeler(mechanism).set_params(estimator=KNeighborsRegressor(1))
    model = PrivateStudent(votes).fit(X, spoilt, X_public=X_public)
    off = np.mean(np.abs(model.predict(X_test) - rent(X_test)))
    print(f"{mechanism}: off by {off:.2f} on average")

# %%
# **Budgets.** The error of one answer is known before there is a row. That of a mean
# depends on the range alone. That of a median depends on how far teachers differ, here
# a tenth of the range. With too little budget it is anywhere in the range, and with
# enough it is much nearer than the mean.

epsilons = [0.3, 1.0, 2.0, 4.0, 8.0]
fig, ax = plt.subplots(figsize=(5.5, 3.8))
for mechanism in ("mean", "median"):
    errors = [
        plan_teachers(
            20_000,
            100,
            epsilon,
            1e-6,
            y_range=(0.0, 4.0),
            spread=0.1,
            mechanism=mechanism,
            n_teachers=300,
        ).error
        for epsilon in epsilons
    ]
    ax.loglog(epsilons, errors, "o-", label=mechanism)
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.set(xlabel="epsilon", ylabel="expected error of one answer")
ax.minorticks_off()
ax.legend()
plt.show()

print(found["mean"].privacy_)
