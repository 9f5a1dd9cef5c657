"""
Bounds for incomes that no one can name
=======================================

Incomes have no natural upper end. A public range must be absurdly wide to be safe, and
scaled by it nearly everyone is at zero.
:class:`tacit.preprocessing.PrivateQuantileBounds` finds two quantiles with noise and
scales by them. How wide may the public range be, and what does the noise do?

The incomes are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.mechanisms import as_generator
from tacit.preprocessing import PrivateQuantileBounds

rng = as_generator(0)
incomes = np.exp(rng.normal(10.3, 0.7, (5_000, 1)))
QUANTILES = (0.05, 0.95)
truth = np.quantile(incomes, QUANTILES)

# %%
# The range of 0 to 10 million is clipped into cells, and bounds are ends of cells. A
# wider range needs more cells for the same fineness, which costs a few rows in rank.


def bounds(epsilon, top, n_cells, seed):
    """Return the two private quantiles."""
    found = PrivateQuantileBounds(
        epsilon,
        quantiles=QUANTILES,
        ranges=(0, top),
        n_cells=n_cells,
        least_width=1e-4,
        random_state=Seed(seed),
    ).fit(incomes)
    return found.lower_[0], found.upper_[0]


for top, n_cells in ((200_000, 1_024), (1_000_000, 4_096), (10_000_000, 65_536)):
    draws = np.array([bounds(0.5, top, n_cells, seed) for seed in range(10)])
    low, high = draws.T
    print(
        f"range to {top:>10,}, {n_cells:>6,} cells:",
        f"lower {low.min():7,.0f} to {low.max():7,.0f},",
        f"upper {high.min():7,.0f} to {high.max():7,.0f}",
    )
print(f"quantiles of these rows: {truth[0]:,.0f} and {truth[1]:,.0f}")

# %%
# The result hardly depends on the range: noise is in ranks and not in euros. It does
# depend on the budget.

epsilons = np.array([0.02, 0.05, 0.1, 0.5, 2.0])
found = np.array(
    [[bounds(e, 1_000_000, 4_096, seed) for seed in range(20)] for e in epsilons]
)
fig, ax = plt.subplots(figsize=(6.5, 4))
for k, name in enumerate(("lower", "upper")):
    low, middle, high = np.quantile(found[:, :, k], [0, 0.5, 1], axis=1)
    ax.fill_between(epsilons, low, high, alpha=0.25, color=f"C{k}")
    ax.plot(epsilons, middle, "o-", color=f"C{k}", label=f"private {name} bound")
    ax.axhline(truth[k], ls="--", c="k")
ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="income, 20 draws")
ax.set_ylim(100, 1_500_000)
ax.legend()
plt.show()

# %%
# Dashed lines are the quantiles without noise. With a budget too small for the rows the
# bounds fall anywhere in the range, the upper one mostly far out where no one is. Five
# percent of 5,000 are 250 rows. The error in ranks must be well below that.
#
# After that, incomes between the bounds become -1 to 1, and others are clipped.

scaler = PrivateQuantileBounds(
    0.5, quantiles=QUANTILES, ranges=(0, 1_000_000), n_cells=4_096, random_state=Seed(0)
)
print(scaler.fit(incomes).transform([[5_000.0], [30_000.0], [5_000_000.0]]).ravel())
print(scaler.privacy_)
