"""
Which columns matter, released exactly or not at all
====================================================

A lasso keeps a few of many columns. Which ones it keeps says something about the rows,
but if hundreds of rows would have to change before the answer did, it says next to
nothing about any one of them. How many rows does it take until the answer can be
released, and what can be had with fewer?

The measurements are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.feature_selection import (
    BlockVoteSelector,
    ExponentialSelector,
    HuberLassoSupport,
    LassoStabilitySelector,
)
from tacit.mechanisms import as_generator
from tacit.stability import release_probability

N_COLUMNS, RELEVANT = 40, (3, 17)
EPSILON, DELTA = 1.0, 1e-6
PUBLIC = {
    "n_features_to_select": len(RELEVANT),
    "feature_bounds": (0, 10),
    "y_range": (-10, 10),
}


def measurements(n, seed):
    """Return forty readings of each machine, and the wear that two of them drive."""
    rng = as_generator(seed)
    X = rng.uniform(0, 10, (n, N_COLUMNS))
    wear = X[:, RELEVANT[0]] - X[:, RELEVANT[1]] + rng.standard_normal(n)
    return X, wear


# %%
# With plenty of rows the columns come out as they are, without noise. The plan is made
# before any row is read, from the budget and public facts alone.

X, wear = measurements(10_000, 0)
selector = LassoStabilitySelector(EPSILON, DELTA, random_state=Seed(0), **PUBLIC)
print(selector.plan(10_000, N_COLUMNS).plan)
selector.fit(X, wear)
print(selector.selection_, selector.released_)
print(selector.privacy_)

# %%
# What decides is how many rows would have to change. Behind the scenes the lasso is
# solved exactly, and the number is a lower bound that one row moves by at most one. The
# bound is private: only the answer, or that there is none, leaves the fit. On synthetic
# rows we may look.

ROWS = [2_000, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000]
found = []
for n in ROWS:
    X, wear = measurements(n, n)
    plan = selector.plan(n, N_COLUMNS)
    units = plan.features.to_unit(X)
    support, distance = plan.plan.facts.distance(units, wear / 10)
    found.append(distance if support == RELEVANT else 0.0)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(ROWS, found, "o-")
right.plot(ROWS, [release_probability(EPSILON, DELTA, d) for d in found], "o-")
left.set(xlabel="rows", ylabel="rows that would have to change")
right.set(xlabel="rows", ylabel="chance of the right answer")
plt.tight_layout()
plt.show()

# %%
# With too few rows for the penalty that an answer needs, no column is strong enough,
# and the default releases that. With a smaller penalty there is no answer, which costs
# as much. A ``fallback`` says what to use then.

X, wear = measurements(3_000, 1)
short = LassoStabilitySelector(
    EPSILON, DELTA, penalty=100.0, fallback="all", random_state=Seed(0), **PUBLIC
).fit(X, wear)
print(short.selection_, short.transform(X).shape)

# %%
# The exponential mechanism always answers. It scores all pairs of columns by least
# squares and draws one, the better ones more often. It needs no delta, and far fewer
# rows here, but it may draw a wrong pair, and does not say so.

for n in (30, 100, 300, 1_000):
    X, wear = measurements(n, 2)
    drawn = [
        ExponentialSelector(EPSILON, random_state=Seed(seed), **PUBLIC).fit(X, wear)
        for seed in range(10)
    ]
    right_ones = np.mean([s.selection_ == RELEVANT for s in drawn])
    print(f"{n:5} rows: right in {right_ones:.0%} of ten draws")

# %%
# One reading of wear in 25 that is far off misleads a lasso. Blocks of rows may vote by
# any selector, and one that counts large residuals less is not misled.

X, wear = measurements(10_000, 3)
wear[::25] += 40 * X[::25, 0]
for selector in (None, HuberLassoSupport(len(RELEVANT))):
    voted = BlockVoteSelector(
        EPSILON,
        DELTA,
        n_features_to_select=len(RELEVANT),
        selector=selector,
        random_state=Seed(0),
    ).fit(X, wear)
    print(selector or "lasso path", voted.selection_)
