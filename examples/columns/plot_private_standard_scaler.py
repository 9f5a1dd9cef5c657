"""
When a private mean and standard deviation are worth their price
================================================================

A sensor reports temperatures of -40 to 85 degrees, and rooms are mostly at 21. Scaled
by the public range, all rooms look alike.
:class:`tacit.preprocessing.PrivateStandardScaler` releases a mean and a
standard deviation with noise, for a charge. How much of a budget of 1 should go to the
scaler, and is it worth it?

The rooms are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from tacit import Budget, Ledger, Seed
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import as_generator
from tacit.preprocessing import PrivateStandardScaler, PublicScaler

RANGE = (-40, 85)


def rooms(n, seed):
    """Return three temperatures a room, and whether someone complained."""
    rng = as_generator(seed)
    X = 21 + 1.5 * rng.normal(size=(n, 3))
    odds = 1.5 * (X[:, 0] - 21) - 1.0 * (X[:, 1] - 21)
    return X, rng.random(n) < 1 / (1 + np.exp(-odds))


X, y = rooms(5_000, 0)
X_test, y_test = rooms(10_000, 1)

# %%
# What is learned, for three budgets. The truth is 21 and 1.5; the standard deviations
# are much the harder part, being small against the range.

for epsilon in (0.01, 0.1, 1.0):
    scaler = PrivateStandardScaler(
        epsilon, 1e-8, ranges=RANGE, random_state=Seed(0)
    ).fit(X)
    print(f"epsilon {epsilon:4}: means {scaler.mean_.round(1)}", end=", ")
    print(f"standard deviations {scaler.scale_.round(1)}")

# %%
# Now the whole budget is 1, kept by a ledger, and a part of it goes to the scaler. The
# model gets the rest. ``x_norm=3`` is the length of a row of three columns that are
# mostly within two standard deviations.

shares = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.7])
CLASSES = [False, True]


def with_scaler(share, seed):
    """Return the accuracy when ``share`` of the budget goes to the scaler."""
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    scaler = PrivateStandardScaler(share, 1e-8, ranges=RANGE, random_state=Seed(seed))
    model = LogisticRegression(
        1 - share, 1e-8, x_norm=3.0, classes=CLASSES, random_state=Seed(seed)
    )
    rows = scaler.fit(X, ledger=ledger).transform(X)
    model.fit(rows, y, ledger=ledger)
    return model.score(scaler.transform(X_test), y_test)


def with_range(ranges, seed):
    """Return the accuracy with public ranges and the whole budget for the model."""
    scaler = PublicScaler(ranges)
    model = LogisticRegression(
        1.0, 1e-8, x_norm=3**0.5, classes=CLASSES, random_state=Seed(seed)
    )
    model.fit(scaler.fit_transform(X), y)
    return model.score(scaler.transform(X_test), y_test)


found = np.array([[with_scaler(share, seed) for seed in range(5)] for share in shares])
wide = np.mean([with_range(RANGE, seed) for seed in range(5)])
narrow = np.mean([with_range((15, 27), seed) for seed in range(5)])

fig, ax = plt.subplots(figsize=(6.5, 4))
ax.fill_between(shares, found.min(axis=1), found.max(axis=1), alpha=0.25)
ax.plot(shares, found.mean(axis=1), "o-", label="private scaler and model")
ax.axhline(narrow, ls="--", c="C2", label="public range of 15 to 27 degrees")
ax.axhline(wide, ls="--", c="C3", label="public range of the sensor")
ax.set(xlabel="part of the budget for the scaler", ylabel="test accuracy, 5 draws")
ax.legend()
plt.show()

# %%
# With enough of the budget the private scaler does better than the range of the sensor,
# and with too little it does worse than nothing. But who knows that rooms are kept at
# 15 to 27 degrees does better still, and pays nothing. Ask what is known first; the
# private step is for where no one can say.

print(f"sensor's range {wide:.3f}, range of rooms {narrow:.3f}")
print(f"private, by part of the budget {found.mean(axis=1).round(3)}")

# %%
# Columns that are mostly zero are not centered, which would fill them. With
# ``with_mean=False`` they are divided by their private root mean square about zero and
# stay sparse. One number a column is released instead of two. How far off the roots
# are follows from public facts: the multiplier of the noise, times the root of the
# number of columns, over the number of rows and twice the squared root itself.

rng = as_generator(2)
words = sparse.csr_array(rng.random((20_000, 200)) * (rng.random((20_000, 200)) < 0.1))
truth = np.sqrt(words.power(2).mean(axis=0))
for epsilon in (0.3, 1.0, 3.0):
    scaler = PrivateStandardScaler(
        epsilon, 1e-8, ranges=(0, 1), with_mean=False, random_state=Seed(0)
    ).fit(words)
    off = np.sqrt(np.mean((scaler.scale_ / truth - 1) ** 2))
    multiplier = scaler.privacy_.entries[0].event.multiplier
    planned = np.mean(multiplier * 200**0.5 / 20_000 / (2 * truth**2))
    print(
        f"epsilon {epsilon}: root mean squares off by {off:.1%}, planned {planned:.1%}"
    )
kept = scaler.transform(words)
print(f"{kept.nnz} of {words.nnz} entries, within {scaler.feature_bounds_.max():.1f}")
