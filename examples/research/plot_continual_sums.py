"""
How much noise does a running count need?
=========================================

A clinic publishes every day how many people came so far. Noise on each day's number
adds up: after a year the total has the noise of 365 days. A continual mechanism hides
each person once for the whole year instead. How large is its error, how fast does it
grow with the horizon, and how close is that to the best there is?

The counts are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit.mechanisms import as_generator
from tacit.mechanisms.continual import prefix_sums

KINDS = {
    "tree": "binary tree",
    "honaker": "tree, averaged by Honaker",
    "square_root": "square root of the sum",
    "blt": "four buffers (default)",
}
MULTIPLIER = 1.0  # of the whole stream: noise in units of one person's mark

# %%
# **What is known before any row.** The standard deviation of every sum follows from the
# plan. It is public, and so a running total can be published with its error bar.

horizon = 1024
days = np.arange(1, horizon + 1)
fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(days, np.sqrt(days), ":", c="0.5", label="noise on each day")
for kind, words in KINDS.items():
    mechanism = prefix_sums(kind, horizon, MULTIPLIER, 1.0, largest=1_000.0)
    ax.plot(days, mechanism.std(1), lw=1, label=words)
ax.set(xlabel="day", ylabel="standard deviation of the sum", ylim=(0, 16))
ax.legend(loc="upper left", ncols=2)
plt.show()

# %%
# The error of a tree jumps with the binary digits of the day. The other two are smooth:
# they hide a person in noise that is correlated over time, and later noise takes back
# part of earlier noise.
#
# **Is it true?** The same sums are released 200 times, and their errors measured. This
# is for this page: each release of real counts would have to be charged.


def measured(kind, runs=200):
    """Return the root mean squared error of each sum, over runs of other noise."""
    mechanism = prefix_sums(kind, horizon, MULTIPLIER, 1.0, largest=1_000.0)
    rng = as_generator(0)
    # independent streams side by side would share one bound, so they run one by one
    counts = rng.poisson(30, size=(horizon, 1)).astype(float)
    errors = np.zeros(horizon)
    for _ in range(runs):
        _, sums = mechanism.steps(mechanism.init((1,)), counts, rng)
        errors += (sums[:, 0] - counts[:, 0].cumsum()) ** 2
    return np.sqrt(errors / runs)


fig, axes = plt.subplots(1, 4, figsize=(11, 2.8), sharey=True, layout="constrained")
for ax, (kind, words) in zip(axes, KINDS.items(), strict=True):
    mechanism = prefix_sums(kind, horizon, MULTIPLIER, 1.0, largest=1_000.0)
    found, planned = measured(kind), mechanism.std(1)
    ax.plot(days, found, lw=0.7, label="measured")
    ax.plot(days, planned, c="k", lw=1, label="planned")
    ax.set(title=words, xlabel="day")
    print(f"{words:28} measured / planned {np.mean(found**2 / planned**2) ** 0.5:.3f}")
axes[0].legend()
plt.show()

# %%
# **How it grows.** The largest standard deviation over the stream, against the horizon.
# The square root is the best of its family, and its constant is known: the dashed line
# is :math:`(\ln T + 0.577 + \ln 16) / \pi`. For a tree it is the root of the number of
# levels times the largest number of nodes in a sum. A million steps cost little more
# than a thousand.

horizons = 2 ** np.arange(4, 21)
fig, ax = plt.subplots(figsize=(7, 4))
ax.loglog(horizons, np.sqrt(horizons), ":", c="0.5", label="noise on each day")
for kind, words in KINDS.items():
    largest = []
    for n in horizons.tolist():
        mechanism = prefix_sums(kind, n, MULTIPLIER, 1.0, noise="float")
        # the sum of a tree has most nodes one step before a power of two
        at = n - 1 if kind in ("tree", "honaker") else n
        largest.append(mechanism.std_at(at, 1))
    ax.loglog(horizons, largest, "o-", ms=3, label=words)
    print(f"{words:28} at 2^20: {largest[-1]:.2f}")
ax.loglog(
    horizons,
    (np.log(horizons) + np.euler_gamma + np.log(16)) / np.pi,
    "k--",
    lw=1,
    label="theory of the square root",
)
ax.set(xlabel="horizon", ylabel="largest standard deviation", ylim=(1, 100))
ax.legend()
plt.show()

# %%
# Four buffers have nearly the error of the square root, and remember five numbers for
# each number of the sum, whatever the horizon. The square root has to remember all
# noise so far.
