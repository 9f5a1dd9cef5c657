"""
What does privacy cost a classifier?
====================================

A statistics office wants to publish a model that predicts high incomes. How small may
``epsilon`` be before the model is useless? The answer depends on the number of rows, so
it is measured here on a synthetic census of the same kind, at no cost. On the real rows
every fit would have to be charged.

Seeds are fixed so that the results can be reproduced. A fit that protects people must
not have one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.model_selection import train_test_split

from tacit import Seed
from tacit.datasets import make_census
from tacit.linear_model import LogisticRegression

census = make_census(n_rows=25_000)
X_train, X_test, y_train, y_test = train_test_split(
    census.X, census.y, test_size=0.2, random_state=0
)

# %%
# Three public facts are needed beside ``epsilon``: how long a row can be, which labels
# there are, and how many rows there are, which sets ``delta`` to one over its square.
# The length comes from the questionnaire and not from the answers.

print(f"rows {len(y_train)}, columns {X_train.shape[1]}, x_norm {census.x_norm:.3f}")

# %%
# Each budget is tried with five different draws of the noise. One draw alone says
# little where the noise is large.

epsilons = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
scores = np.array(
    [
        [
            LogisticRegression(
                epsilon, x_norm=census.x_norm, classes=[0, 1], random_state=Seed(seed)
            )
            .fit(X_train, y_train)
            .score(X_test, y_test)
            for seed in range(5)
        ]
        for epsilon in epsilons
    ]
)
plain = PlainLogisticRegression(max_iter=1000).fit(X_train, y_train)

# %%
# Two lines to compare with: the same model without privacy, and the share of the larger
# class, which a model gets right that has learned nothing.

fig, ax = plt.subplots(figsize=(6.5, 4))
ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), alpha=0.25)
ax.plot(epsilons, scores.mean(axis=1), "o-", label="private, mean of 5 draws")
ax.axhline(plain.score(X_test, y_test), ls="--", c="k", label="not private")
ax.axhline(max(np.mean(y_test), 1 - np.mean(y_test)), ls=":", c="k", label="no model")
ax.set(xscale="log", xlabel="epsilon", ylabel="test accuracy")
ax.set_title(f"{len(y_train)} rows, delta = 1 / rows squared")
ax.legend(loc="lower right")
plt.show()

# %%
# The band is the range of the five draws. Read the curve from the right: the price is
# small down to some budget and rises steeply below it. With ten times as many rows the
# same accuracy is reached at about a tenth of the budget, since noise is a fixed amount
# that more rows outweigh.
#
# The report of a fit states the guarantee and its assumptions. The last line shows that
# a seed was used.

model = LogisticRegression(
    1.0, x_norm=census.x_norm, classes=[0, 1], random_state=Seed(0)
)
print(model.fit(X_train, y_train).privacy_)
