"""
How often should a model be fitted again?
=========================================

Some models have no form that learns row by row. They can still follow a stream: fitted
anew to all rows so far after some of the steps, while the last model stands in between.
Each fit takes a share of one budget. How often is best, and how does it compare with a
model that learns at every step?

The census is synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit.datasets import make_census
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.streaming import IncrementalERM, OnlineLogisticRegression

census = make_census(n_rows=20_000, random_state=0)
X_test, y_test = census.X[16_000:], census.y[16_000:]
STEPS, ROWS = 64, 250


def over_time(model):
    """Return the test accuracy after each step, and the model."""
    scores = []
    for step in range(STEPS):
        rows = slice(ROWS * step, ROWS * (step + 1))
        model.partial_fit(census.X[rows], census.y[rows])
        scores.append(model.score(X_test, y_test))
    return scores


# %%
# ``update_every`` is a number of steps, or ``"doubling"`` for fits after the last
# step, half as many, a quarter and so on. Few fits have large shares of the budget, and
# those that come after many rows need little of it.

STREAM = {"horizon": STEPS, "rows_per_step": ROWS, "random_state": 0}
svc = LinearSVC(x_norm=census.x_norm, classes=[0, 1])
fig, ax = plt.subplots(figsize=(7, 4))
for every in ("doubling", 32, 8, 2):
    model = IncrementalERM(svc, 1.0, 1e-9, update_every=every, **STREAM)
    scores = over_time(model)
    ax.step(range(1, STEPS + 1), scores, where="post", label=f"{every}")
    print(
        f"every {every!s:9} mean accuracy {np.mean(scores):.3f}, last {scores[-1]:.3f}"
    )
ax.set(
    xlabel="step", ylabel="test accuracy", title="a support vector machine, refitted"
)
ax.legend(title="update_every", loc="lower right")
plt.show()

# %%
# Where a learner for streams exists, compare. The logistic regression that is refitted
# keeps all rows so far; the one that learns at each step keeps a few sums.

logistic = {"x_norm": census.x_norm, "classes": [0, 1]}
refitted = IncrementalERM(LogisticRegression(**logistic), 1.0, 1e-9, **STREAM)
online = OnlineLogisticRegression(1.0, 1e-9, **logistic, **STREAM)
for words, model in {"refitted": refitted, "online": online}.items():
    scores = over_time(model)
    print(f"{words:9} mean accuracy {np.mean(scores):.3f}, last {scores[-1]:.3f}")

# %%
# One charge covers all fits of the horizon, and the last model carries the guarantee of
# the whole stream.

print(refitted.last_refit_, refitted.estimator_.privacy_)
