"""
Did privacy change who is treated worse?
========================================

Noise makes a model less accurate, and small groups may pay more of that than others. A
team has a private model and no other: how far can its treatment of women and men be
from that of the model without noise, which nobody may see? A certificate answers that
from the private model alone.

Seeds are fixed so that the figures repeat. A fit that protects anyone must not have
one.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.datasets import make_census
from tacit.fairness import certify_model, compare_models, private_certificate
from tacit.linear_model import LogisticRegression
from tacit.solvers import OutputPerturbation

census, n = make_census(n_rows=60_000), 50_000
sex = np.where(census.X[:, 5] == 1, "female", "male")
X_train, y_train = census.X[:n], census.y[:n]
X, y, sex = census.X[n:], census.y[n:], sex[n:]

# %%
# Output perturbation finds the exact model and adds noise to its weights. How much is
# public, and so is how far the weights can have moved. A larger ridge means less noise.


def fitted(epsilon, seed=0):
    model = LogisticRegression(
        epsilon,
        x_norm=census.x_norm,
        classes=[0, 1],
        solver=OutputPerturbation(ridge=0.01 * n),
        random_state=Seed(seed),
    )
    return model.fit(X_train, y_train)


model = fitted(1.0)
certificate = certify_model(
    model, X, y, sensitive_features=sex, notion="accuracy_parity"
)
print(certificate)

# %%
# Dots are the figures of the private model: how much more often than on average its
# answers are right in a group. Bars are where those of the model without noise lie.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
certificate.plot(axes[0])

# %%
# The certificate grows narrower with epsilon. As the people here do not exist, the
# model without noise may be looked at: a fit of the same objective with hardly any
# noise stands for it. The true change is far below the bound, since noise in many
# directions seldom points along a row.

epsilons = np.geomspace(0.25, 8, 6)
plain = fitted(100.0)


def true_change(private):
    both = compare_models(
        y,
        sensitive_features=sex,
        first=private,
        second=plain,
        X=X,
        notion="accuracy_parity",
    )
    return np.abs(both.first.values - both.second.values).max()


bounds, changes = [], []
for epsilon in epsilons:
    models = [fitted(epsilon, seed) for seed in range(5)]
    found = certify_model(
        models[0], X, y, sensitive_features=sex, notion="accuracy_parity"
    )
    bounds.append(found.largest_change)
    changes.append(max(map(true_change, models)))
axes[1].plot(epsilons, bounds, "o-", label="certified")
axes[1].plot(epsilons, changes, "s--", label="true, largest of five draws")
axes[1].set(xscale="log", yscale="log", xlabel="epsilon", ylabel="largest change")
axes[1].set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes[1].minorticks_off()
axes[1].legend()
plt.show()

# %%
# All of this was computed from rows without noise: of real people it would be private
# data. A certificate that may be published is made of noisy counts, and is charged.

paid = private_certificate(
    model,
    X,
    y,
    sensitive_features=sex,
    groups=["female", "male"],
    notion="accuracy_parity",
    epsilon=0.5,
    random_state=Seed(0),
)
print(paid)
