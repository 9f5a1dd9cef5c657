"""
Penalties and sets for the weights
==================================

A penalty says what weights should look like: few of them, or none too large. It is
known before the rows are read, so it costs nothing, and it can keep noise out. What do
lasso, an L1 ball, an L2 ball and a box make of the same rows?

Five of 40 columns matter in these synthetic rows. Seeds are fixed for reproduction
only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.convex import L1, Box, L1Ball, L2Ball
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import as_generator

N, P, K = 8_000, 40, 5


def draw(n, seed):
    """Return rows on a sphere of length 1, and labels that five columns decide."""
    rng = as_generator(seed)
    X = rng.normal(size=(n, P))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    odds = 8 * X[:, :K].sum(axis=1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


X, y = draw(N, 0)
X_test, y_test = draw(20_000, 1)

# %%
# ``penalty=`` takes one object. ``L1`` is in units of the summed loss, so it grows with
# the number of rows; the sizes of sets are in units of the weights.

penalties = {
    "none": None,
    "L1(20)": L1(20.0),
    "L1(80)": L1(80.0),
    "L1Ball(20)": L1Ball(20.0),
    "L2Ball(5)": L2Ball(5.0),
    "Box(-1, 3)": Box(-1.0, 3.0),
}
fig, axes = plt.subplots(2, 3, figsize=(9, 4.6), sharex=True, sharey=True)
for ax, (name, penalty) in zip(axes.flat, penalties.items(), strict=True):
    scores = []
    for seed in range(3):
        model = LogisticRegression(
            1.0, penalty=penalty, classes=[0, 1], random_state=Seed(seed), x_norm=1.0
        ).fit(X, y)
        scores.append(model.score(X_test, y_test))
    weights = model.coef_[0]
    zeros = np.count_nonzero(weights == 0)
    ax.bar(range(P), weights, color=["C1"] * K + ["C0"] * (P - K))
    ax.set_title(f"{name}: accuracy {np.mean(scores):.3f}", fontsize=9)
    print(f"{name:12} accuracy {np.mean(scores):.3f}, {zeros} weights are zero")
fig.supylabel("weight, epsilon 1")
fig.supxlabel("column; those that matter are orange")
fig.tight_layout()
plt.show()

# %%
# Scores are means of three draws, bars show the last. A zero in a private model is no
# proof that the column does not matter, nor is a large weight proof that it does: both
# hold noise.
#
# The constant column counts like any other, so a ball holds the intercept too. Which
# penalty is right is a question to public knowledge. Trying several on private rows and
# keeping the best is not free.
