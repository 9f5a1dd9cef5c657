"""
How round should the corner of a private hinge be?
==================================================

A support vector classifier has a loss with a corner. Private solvers need a smooth one,
so :class:`tacit.linear_model.LinearSVC` rounds the corner off over a width ``h``. A
small ``h`` is close to the usual hinge and has a strong curvature, which costs noise or
steps. Does the choice matter?

The rows are a synthetic census. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC as PlainLinearSVC

from tacit import Seed
from tacit.convex import HuberizedHinge
from tacit.datasets import make_census
from tacit.linear_model import LinearSVC

census = make_census(n_rows=20_000)
X_train, X_test, y_train, y_test = train_test_split(
    census.X, census.y, test_size=0.25, random_state=0
)

# %%
# The loss for three widths, beside the hinge itself.

margin = np.linspace(-1, 2.5, 400)
fig, ax = plt.subplots(figsize=(6.5, 3.6))
ax.plot(margin, np.maximum(0, 1 - margin), "k--", label="hinge")
widths = (0.05, 0.5, 1.0)
for h in widths:
    loss = HuberizedHinge(h).value(np.ones(len(margin)), margin[:, None])
    ax.plot(margin, loss, label=f"h={h}")
ax.set(xlabel="margin", ylabel="loss")
ax.legend()
plt.show()

# %%
# Accuracy for each width, as the mean of three draws.

epsilons = (0.1, 1.0, 10.0)
fig, ax = plt.subplots(figsize=(6.5, 4))
for h in widths:
    accuracy = [
        np.mean(
            [
                LinearSVC(
                    epsilon,
                    x_norm=census.x_norm,
                    classes=[0, 1],
                    h=h,
                    random_state=Seed(s),
                )
                .fit(X_train, y_train)
                .score(X_test, y_test)
                for s in range(3)
            ]
        )
        for epsilon in epsilons
    ]
    print(f"h={h:<5}", "  ".join(f"{value:.3f}" for value in accuracy))
    ax.plot(epsilons, accuracy, "o-", label=f"h={h}")
plain = PlainLinearSVC().fit(X_train, y_train).score(X_test, y_test)
ax.axhline(plain, ls="--", c="k", label="scikit-learn, not private")
ax.set(xscale="log", xlabel="epsilon", ylabel="test accuracy")
ax.legend()
plt.show()

# %%
# A corner that is nearly sharp costs accuracy at small budgets. Between the other two
# there is nothing to choose.
#
# Choosing ``h`` by such a table is fine on synthetic rows, as here. On real
# rows it would be a release that no ledger has seen; leave the default.
#
# There are no probabilities. ``decision_function`` gives margins, and
# :class:`tacit.linear_model.LogisticRegression` has ``predict_proba``.

model = LinearSVC(1.0, x_norm=census.x_norm, classes=[0, 1], random_state=Seed(0))
print(model.fit(X_train, y_train).decision_function(X_test[:3]).round(2))
