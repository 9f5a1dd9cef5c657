"""
The best fit to everything so far, with few weights
===================================================

A network of sensors in homes reports every hour, and a regression on all reports so
far is published after every hour. There are many columns and few of them matter. Does a
constraint on the weights help, and how large is the error that is to be expected before
any row is read?

The homes are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.convex import L1Ball
from tacit.mechanisms import as_generator
from tacit.streaming import IncrementalLinearRegression

HOURS, AN_HOUR, COLUMNS = 100, 1_000, 20
truth = np.zeros(COLUMNS)
truth[[2, 11]] = 8.0, -6.0


def reports(n, rng):
    """Return rows of n homes, at most one long, and their answers without error."""
    X = rng.uniform(-1, 1, (n, COLUMNS)) / COLUMNS**0.5
    return X, 10 + X @ truth


# %%
# The weights are kept within a ball of sums of absolute values. Its radius is public: a
# guess of how much all effects together can be, made before the rows are seen.


def excess(constraint):
    """Return, after each hour, the squared error on other homes, and the bound."""
    model = IncrementalLinearRegression(
        1.0,
        1e-9,
        horizon=HOURS,
        rows_per_step=AN_HOUR,
        x_norm=1.0,
        y_range=(5, 15),
        constraint=constraint,
        random_state=Seed(0),
    )
    rng, (others, answers) = as_generator(0), reports(2_000, as_generator(1))
    found, bounds = [], []
    for hour in range(1, HOURS + 1):
        X, y = reports(AN_HOUR, rng)
        model.partial_fit(X, y + rng.normal(0, 0.5, AN_HOUR))
        found.append(np.mean((model.predict(others) - answers) ** 2))
        bounds.append(model.expected_excess_risk_ / (AN_HOUR * hour))
    return np.array(found), np.array(bounds), model


fig, ax = plt.subplots(figsize=(7, 4))
hours = np.arange(1, HOURS + 1)
for words, constraint in {"no constraint": None, "sum of 16": L1Ball(16.0)}.items():
    found, bounds, model = excess(constraint)
    (line,) = ax.loglog(hours, found, label=words)
    ax.loglog(hours, bounds, ls=":", c=line.get_color(), label=f"{words}, bound")
    print(f"{words:14} excess at the end {found[-1]:.4f}, bound {bounds[-1]:.1f}")
ax.axhline(np.sum(truth**2) / (3 * COLUMNS), c="k", lw=1, ls="--", label="no columns")
ax.set(xlabel="hour", ylabel="excess squared error")
ax.legend()
plt.show()

# %%
# ``expected_excess_risk_`` is computed from the plan and holds for the worst rows there
# can be, so that it is pessimistic.

print(model.coef_[[2, 11]].round(2), "true", truth[[2, 11]])
others = np.delete(model.coef_, [2, 11])
print(f"other weights, root mean square {np.sqrt(np.mean(others**2)):.2f}")
