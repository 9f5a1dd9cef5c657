"""
Columns that say the same, and a penalty for it
===============================================

Five questions of a survey ask nearly the same thing. Least squares can then trade one
weight for another, and noise sends the weights far apart. Does a ridge penalty help a
private fit, as it helps one that is not?

The answers are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.linear_model import LinearRegression, Ridge
from tacit.mechanisms import as_generator

P, N, REPEATS = 5, 2_000, 10


def survey(n, seed):
    """Return five answers in -1 to 1 that follow one opinion, and a rating of it."""
    rng = as_generator(seed)
    opinion = rng.uniform(-1, 1, n)
    X = np.clip(opinion[:, None] + rng.normal(0, 0.1, (n, P)), -1, 1)
    return X, 5 + 4 * opinion + rng.normal(0, 1, n)


X_test, y_test = survey(20_000, 1_000)
y_range, x_norm = (0, 10), P**0.5

# %%
# ``alpha`` is the least penalty. The plan takes more of it where the noise asks for
# that, from public facts alone, so a small one has no effect.

alphas = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])


def trial(model, seed):
    """Return the root mean squared error on other rows, and the spread of weights."""
    model.set_params(random_state=Seed(seed)).fit(*survey(N, seed))
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    return error, np.ptp(model.coef_)


found = {}
for epsilon in (0.3, 3.0):
    shared = {"epsilon": epsilon, "x_norm": x_norm, "y_range": y_range}
    none = [trial(LinearRegression(**shared), s) for s in range(REPEATS)]
    some = [
        np.mean([trial(Ridge(alpha=a, **shared), s) for s in range(REPEATS)], axis=0)
        for a in alphas
    ]
    found[epsilon] = np.mean(none, axis=0), np.array(some)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for epsilon, (none, some) in found.items():
    for k, ax in enumerate(axes):
        (line,) = ax.plot(alphas, some[:, k], "o-", label=f"Ridge, epsilon {epsilon:g}")
        ax.axhline(none[k], ls=":", c=line.get_color())
axes[0].set(title="error on other rows", ylabel="root mean square, rating of 0 to 10")
axes[1].set(title="largest less smallest weight")
for ax in axes:
    ax.set(xscale="log", xlabel="alpha")
axes[0].legend()
fig.tight_layout()
plt.show()

# %%
# Dotted lines are :class:`tacit.linear_model.LinearRegression`, at the same budgets.
# The noise in the ratings alone gives an error of 1, which nothing can go below.

for epsilon, (none, some) in found.items():
    print(
        f"epsilon {epsilon:g}: error {none[0]:.3f} without a penalty,",
        f"{some[:, 0].min():.3f} with the best of {len(alphas)}",
    )

# %%
# The best penalty was looked up on synthetic rows. Looked up on real rows it
# would be a choice that no one charged. Take a penalty from a table like this one,
# made for as many rows as yours, or leave ``alpha=1``.
