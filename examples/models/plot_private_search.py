"""
A search that is charged
========================

Which penalty, which bound, with or without an intercept? Trying them all and keeping
the best is a release of its own. How much does an honest search cost, and does it find
what a search would find that looks at the rows for free?

The census is synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from tacit import Seed
from tacit.datasets import make_census
from tacit.linear_model import LogisticRegression
from tacit.model_selection import PrivateSearchCV

census = make_census(20_000, random_state=0)
X, X_test, y, y_test = train_test_split(
    census.X, census.y, test_size=0.25, random_state=0
)
GRID = {
    "ridge": [0.0, 100.0, 3000.0],
    "x_norm": [0.3, 2.0],
    "fit_intercept": [True, False],
}
DELTA = 1 / len(y) ** 2
model = LogisticRegression(classes=[0, 1], x_norm=1.0)

# %%
# The plan reads no rows. It says what one run may spend, and how likely it is that a
# candidate is never tried.

search = PrivateSearchCV(
    model, GRID, epsilon=1.0, delta=DELTA, mean_repeats=20, random_state=Seed(0)
)
plan = search.plan(*X.shape)
print(f"runs on average: {plan.mean_repeats:.0f}")
print(f"epsilon of one run: {plan.per_run.epsilon:.2f}")
print(f"a candidate is never tried with probability {plan.miss_probability:.2f}")

# %%
# One charge for all of it, made before anything runs.

search.fit(X, y)
print(search.best_params_)
print(search.privacy_)

# %%
# How good is the model? Every candidate is fitted once more with the budget of a run,
# to be shown beside it. That is for this page only: with real rows it is a release.


def alone(params):
    fitted = LogisticRegression(
        plan.per_run.epsilon,
        plan.per_run.delta,
        classes=[0, 1],
        random_state=Seed(0),
        **params,
    )
    return fitted.fit(X, y).score(X_test, y_test)


accuracies = np.array([alone(params) for params in search.candidates_])
released = search.score(X_test, y_test)
print(f"released {released:.3f}, candidates {np.sort(accuracies).round(3)}")

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(np.sort(accuracies), "o", label="candidates, one fit each")
ax.axhline(released, color="C1", label="released by the search")
ax.set(xlabel="candidate, from worst to best", ylabel="test accuracy")
ax.legend()

# %%
# The model is an ordinary one, and guarantees what the search has spent: not the
# smaller epsilon of its own fit, which would be a false claim for the best of many.

print(search.best_estimator_)
print(search.best_estimator_.privacy_.guarantee)
