"""
A classifier after every day, for one charge
============================================

A hospital publishes a model of who comes back within a month, and a new one after every
day. Fitting anew each day is charged each day. A model that learns on the stream is
charged once. How much better is it, and does it matter how many rows come in a day?

The census stands in for patients, and nobody in it exists. Seeds are fixed so that the
figures repeat; where anyone is to be protected there must be none.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from tacit import Budget, Ledger, Seed
from tacit.datasets import make_census
from tacit.linear_model import LogisticRegression
from tacit.streaming import OnlineLogisticRegression

EPSILON, DELTA = 1.0, 1e-9
census = make_census(n_rows=30_000, random_state=0)
X, y = census.X[:20_000], census.y[:20_000]
X_test, y_test = census.X[20_000:], census.y[20_000:]
DAYS, A_DAY = 100, 200
days = [slice(A_DAY * day, A_DAY * (day + 1)) for day in range(DAYS)]

# %%
# Besides the public facts that every classifier needs, a stream needs the maximum
# number of steps, and the usual number of rows in a step. Each call of ``partial_fit``
# is one step. The first charges for all of them.

ledger = Ledger(Budget(EPSILON, DELTA))
model = OnlineLogisticRegression(
    EPSILON,
    DELTA,
    horizon=DAYS,
    rows_per_step=A_DAY,
    x_norm=census.x_norm,
    classes=[0, 1],
    random_state=Seed(0),
)
online = []
for rows in days:
    model.partial_fit(X[rows], y[rows], ledger=ledger)
    online.append(model.score(X_test, y_test))
print(model.privacy_)

# %%
# The other way: a private fit to all rows so far on every tenth day, with ten fits that
# share one budget; and, for comparison only, fits without privacy.

again = [10 * k for k in range(1, 11)]
share = Budget(EPSILON, DELTA).split(*[1] * 10)[0]
refits = [
    LogisticRegression(
        share.epsilon,
        share.delta,
        x_norm=census.x_norm,
        classes=[0, 1],
        random_state=Seed(day),
    )
    .fit(X[: A_DAY * day], y[: A_DAY * day])
    .score(X_test, y_test)
    for day in again
]
plain = [
    PlainLogisticRegression(max_iter=1000)
    .fit(X[: A_DAY * day], y[: A_DAY * day])
    .score(X_test, y_test)
    for day in again
]

fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(range(1, DAYS + 1), online, label="on the stream, a model a day")
ax.plot(again, refits, "s-", label="fitted anew, ten models")
ax.plot(again, plain, "k--", label="not private")
no_model = max(np.mean(y_test), 1 - np.mean(y_test))
ax.axhline(no_model, c="k", ls=":", label="no model")
ax.set(xlabel="day", ylabel="test accuracy")
ax.legend(loc="lower right")
plt.show()

# %%
# **A step is a release.** A row changes one step, however many rows that step has, so
# that rows are what stands against the noise and steps hardly matter. Here are the same
# 20,000 rows in few and in many steps.

for steps in (10, 100, 1_000):
    again = OnlineLogisticRegression(
        EPSILON,
        DELTA,
        horizon=steps,
        rows_per_step=len(y) // steps,
        x_norm=census.x_norm,
        classes=[0, 1],
        random_state=Seed(0),
    ).fit(X, y)
    score = again.score(X_test, y_test)
    print(f"{steps:6} steps of {len(y) // steps:5} rows: accuracy {score:.3f}")

# %%
# What was published are all models in turn. Anyone may keep them, compare them, and
# look what changed on the day after a person came: that is what the guarantee is about.
