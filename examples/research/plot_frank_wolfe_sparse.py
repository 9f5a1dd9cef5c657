"""
Twenty thousand columns, most of them empty
===========================================

Texts as bags of words have more columns than rows, and hardly any entries. Noise on
every column would drown them all. Frank-Wolfe moves along one column at a time, chosen
by a private mechanism, so that its error grows with the logarithm of the number of
columns. What does it find, and does it make use of the empty entries?

The texts are synthetic: ten words decide. Seeds are fixed for reproduction only.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from tacit import Seed
from tacit.convex import L1Ball
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import as_generator

N, P, WORDS, LENGTH = 10_000, 50_000, 10, 200


def texts(n, seed):
    """Return which words occur, as a CSR matrix, and labels that ten words decide."""
    rng = as_generator(seed)
    message = sparse.csr_array((rng.random((n, WORDS)) < 0.3).astype(float))
    positions = np.repeat(np.arange(n), LENGTH), rng.integers(0, P - WORDS, LENGTH * n)
    others = sparse.csr_array((np.ones(LENGTH * n), positions), shape=(n, P - WORDS))
    others.sum_duplicates()
    others.data[:] = 1.0  # a word occurs or not
    signs = np.where(np.arange(WORDS) % 2, -1.0, 1.0)
    chance = 1 / (1 + np.exp(-3 * (message @ signs)))
    return sparse.hstack([message, others], format="csr"), rng.random(n) < chance


X, y = texts(N, 0)
X_test, y_test = texts(5_000, 1)
print(
    f"{X.shape[0]} rows, {X.shape[1]} columns, {X.nnz / X.shape[0]:.0f} entries a row"
)

# %%
# A word occurs or not, so entries are at most 1: ``bound_norm="linf"`` bounds entries
# instead of lengths. The weights stay in an L1 ball, whose radius is a public choice.

fig, ax = plt.subplots(figsize=(6.5, 4))
epsilons = (0.3, 1.0, 3.0)
for solver, given in {
    "frank_wolfe": {"bound_norm": "linf", "penalty": L1Ball(10.0), "x_norm": 1.0},
    "noisy_gd": {"x_norm": 15.0},  # the root of some 200 entries
}.items():
    start, scores = perf_counter(), []
    for epsilon in epsilons:
        model = LogisticRegression(
            epsilon,
            solver=solver,
            classes=[False, True],
            random_state=Seed(0),
            **given,
        ).fit(X, y)
        scores.append(model.score(X_test, y_test))
    seconds = (perf_counter() - start) / len(epsilons)
    print(f"{solver:12}", np.round(scores, 3), f"{seconds:.1f} s a fit")
    ax.plot(epsilons, scores, "o-", label=solver)
    chosen = np.flatnonzero(model.coef_[0])
    right = np.count_nonzero(chosen < WORDS)
    print(f"  at epsilon 3 {len(chosen)} words have a weight, {right} of the ten do")
ax.axhline(0.5, ls=":", c="k", label="guessing")
ax.set(xscale="log", xlabel="epsilon", ylabel="test accuracy", ylim=(0.45, 1))
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# One draw a point. At the smallest budget neither learns much. Rows stay sparse from
# the first step to the last.
#
# Frank-Wolfe pays for the largest entry of a row, and descent for its length. So the
# picture turns around where rows are short. In a trial with 20,000 texts of 30 words
# out of 20,000, one draw each, descent had 0.83 against 0.61 at the smallest budget,
# and the two were within a point of each other at the others. These rows are long on
# purpose.
