"""
Noise for a number of your own
==============================

Not everything is a model. A city wants to publish the mean age of its library users,
how many of them come on each day of the week, and which branch is the most used. The
parts that models are made of do that: bound, budget, noise, ledger. How large is the
error?

The users are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Budget, Ledger
from tacit.mechanisms import Gaussian, PermuteAndFlip, as_generator
from tacit.privacy import GaussianNoise, calibrate

rng = as_generator(0)  # as_generator(None) takes the operating system's randomness
N = 3_000
age = np.clip(rng.normal(42, 17, N), 5, 100)
day = rng.choice(6, N, p=[0.1, 0.1, 0.15, 0.15, 0.2, 0.3])  # each user's usual day
branch = rng.choice(4, N, p=[0.3, 0.28, 0.22, 0.2])

# %%
# **How far can one person move it?** That is the sensitivity, from public facts alone.
# Replacing a user moves the sum of ages by at most 95, if ages are clipped to 5 to 100;
# moves one user from one day to another, which is a length of the root of two; and
# moves the count of a branch by at most 1.
#
# **How much noise?** ``calibrate`` finds the least multiplier whose privacy curve fits
# a budget. The budget is divided first.

whole = Budget(epsilon=1.0, delta=1e-6)
for_age, for_days, for_branch = whole.split(1, 2, 1)
ledger = Ledger(whole)

# %%
# **Charge, then draw.** In this order, so that an answer that is not charged is never
# computed.

mean_age = Gaussian(calibrate(GaussianNoise, for_age), sensitivity=95.0)
ledger.charge(mean_age.event, "sum of ages", for_age, seeded=True)
noisy_mean = mean_age(np.array([np.clip(age, 5, 100).sum()]), rng)[0] / N
print(f"mean age {noisy_mean:.1f} years, noise of {mean_age.scale(1) / N:.2f} years")

counts = np.bincount(day, minlength=6).astype(float)
days = Gaussian(calibrate(GaussianNoise, for_days), sensitivity=2**0.5)
ledger.charge(days.event, "users by day", for_days, seeded=True)
noisy_counts = days(counts, rng)

choice = PermuteAndFlip(for_branch.epsilon, sensitivity=1.0)
ledger.charge(choice.event, "most used branch", for_branch, seeded=True)
print("most used branch:", choice(np.bincount(branch, minlength=4).astype(float), rng))

# %%
# The size of the noise is public, so bars of two standard deviations can be published
# along with the counts. They cover the noise and not the chance of who took part.

fig, ax = plt.subplots(figsize=(6.5, 3.8))
at = range(6)
ax.bar(at, counts, color="0.85", label="exact, not for publication")
ax.errorbar(at, noisy_counts, 2 * days.scale(6), fmt="o", capsize=4, label="released")
ax.set_xticks(at, ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"])
ax.set_ylabel("users")
ax.legend()
plt.show()

# %%
# The ledger has all three. Together they spend less than the sum of their parts.

print(ledger.report())

# %%
# Which branch is the most used is a choice and not a number, so it has a mechanism of
# its own, and no error bar. How often is it right? The draws below are for this page;
# each of them would be a release of its own.

used = np.bincount(branch, minlength=4).astype(float)
picks = np.bincount([choice(used, rng) for _ in range(2_000)], minlength=4) / 2_000
print("share of draws by branch:", picks.round(3), "users:", used.astype(int))
