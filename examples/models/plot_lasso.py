"""
Which of a hundred measurements matter, privately?
==================================================

A laboratory has a hundred measurements of each patient, and the days until recovery.
Six of the measurements matter. :class:`tacit.linear_model.Lasso` looks for them, and
has two ways to: ``"cd"`` moves every weight again and again with a little noise,
``"gcd"`` spends its budget on choosing a few weights. Which measurements come out, and
how far are the predictions from those without privacy?

The patients are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Lasso as PlainLasso

from tacit import Seed
from tacit.linear_model import Lasso
from tacit.mechanisms import as_generator

N_ROWS, N_COLUMNS = 5_000, 100
MATTER = {4: 3.0, 18: -2.5, 37: 2.0, 52: -1.5, 71: 1.0, 90: -0.5}
FEW = np.array([MATTER.get(j, 0.0) for j in range(N_COLUMNS)])


def patients(n, weights, seed):
    """Return measurements from -1 to 1, and days until recovery, 0 to 30."""
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, N_COLUMNS))
    return X, np.clip(15 + X @ weights + rng.normal(0, 2, n), 0, 30)


X, y = patients(N_ROWS, FEW, 0)
X_test, y_test = patients(5_000, FEW, 1)

# %%
# The range of each measurement is public, and so is that of the days: they stand in the
# manual of the laboratory and are not read off the patients. The objective and its
# ``alpha`` are those of scikit-learn.

ALPHA = 0.1
PUBLIC = {"alpha": ALPHA, "feature_bounds": 1.0, "y_range": (0, 30)}
plain = PlainLasso(alpha=ALPHA).fit(X, y)
epsilons = (0.3, 1.0, 3.0)
models = {
    (solver, epsilon): Lasso(
        epsilon, solver=solver, random_state=Seed(0), **PUBLIC
    ).fit(X, y)
    for solver in ("cd", "gcd")
    for epsilon in epsilons
}

fig, axes = plt.subplots(len(epsilons), 2, figsize=(9, 6), sharex=True, sharey=True)
colors = ["C1" if j in MATTER else "C0" for j in range(N_COLUMNS)]
for (solver, epsilon), model in models.items():
    ax = axes[epsilons.index(epsilon), ("cd", "gcd").index(solver)]
    ax.bar(range(N_COLUMNS), model.coef_, color=colors, width=1.0)
    ax.plot(list(MATTER), plain.coef_[list(MATTER)], "k_", ms=8)
    ax.set_title(f"{solver}, epsilon {epsilon:g}", fontsize="medium")
for ax in axes[-1]:
    ax.set_xlabel("measurement")
for ax in axes[:, 0]:
    ax.set_ylabel("weight")
fig.tight_layout()
plt.show()

# %%
# Orange are the six that matter, and dashes are scikit-learn's weights for them.
#
# A picture is one draw of the noise. In numbers, as means of five draws: how many
# measurements were selected, how many of the six are among them, and how far
# predictions for other patients are from the truth and from scikit-learn's, in days.


def judged(model):
    """Return how many were selected, how many rightly so, and both distances."""
    chosen = set(model.selected_features_.tolist())
    found = model.predict(X_test)
    error = np.sqrt(np.mean((found - y_test) ** 2))
    apart = np.sqrt(np.mean((found - plain.predict(X_test)) ** 2))
    return len(chosen), len(chosen & set(MATTER)), error, apart


print("                selected  of the six  error  from scikit-learn")
for (solver, epsilon), model in models.items():
    draws = [judged(model.set_params(random_state=Seed(s)).fit(X, y)) for s in range(5)]
    many, right, error, apart = np.mean(draws, axis=0)
    name = f"{solver:4} epsilon {epsilon:g}"
    print(f"{name:17}{many:7.1f}{right:12.1f}{error:7.2f}{apart:12.2f}")
error = np.sqrt(np.mean((plain.predict(X_test) - y_test) ** 2))
many, right = np.count_nonzero(plain.coef_), np.count_nonzero(plain.coef_[list(MATTER)])
print(f"{'not private':17}{many:7.1f}{right:12.1f}{error:7.2f}{0:12.2f}")
middle = np.sqrt(np.mean((15 - y_test) ** 2))
print(f"the middle of the range for all: error {middle:.2f}")

# %%
# Where few measurements matter, choosing them is the better way. ``"cd"`` has noise on
# all hundred weights, and lets go of the small ones by way of ``alpha`` only. At a
# small budget both select measurements that mean nothing, and miss some that do: the
# selection is as noisy as the weights are.
#
# And where all hundred matter a little? A greedy fit moves no more weights than it has
# choices.

ALL = as_generator(2).choice([-0.45, 0.45], N_COLUMNS)
X, y = patients(N_ROWS, ALL, 3)
X_test, y_test = patients(5_000, ALL, 4)
PUBLIC["alpha"] = 0.01
for solver in ("cd", "gcd"):
    model = Lasso(3.0, solver=solver, **PUBLIC)
    errors = []
    for seed in range(5):
        found = model.set_params(random_state=Seed(seed)).fit(X, y).predict(X_test)
        errors.append(np.sqrt(np.mean((found - y_test) ** 2)))
    chosen = len(model.selected_features_)
    print(f"{solver:4} epsilon 3: error {np.mean(errors):.2f}, {chosen} selected")
middle = np.sqrt(np.mean((15 - y_test) ** 2))
print(f"the middle of the range for all: error {middle:.2f}")

# %%
# ``solver="auto"`` goes by the number of columns, rows and the budget, which are
# public. It cannot know how many columns matter. Who does, from earlier work, names the
# solver.
