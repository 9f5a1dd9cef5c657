"""
Who was in the training set
===========================

A membership attack takes a fitted model and a row, and says whether the model was
trained on it. It is what people fear of a published model. How well does it work on a
model without privacy, and on one with it?

The rows are synthetic, and a coin for each of them settled whether it is a member.

Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression as PlainRegression

from tacit import Seed
from tacit.audit import membership_attack
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import as_generator

rng = as_generator(0)
X = rng.normal(size=(600, 120))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = np.where(X[:, 0] + 0.1 * rng.normal(size=600) > 0, 1, -1)
inside = rng.random(600) < 0.5
members, others = (X[inside], y[inside]), (X[~inside], y[~inside])

# %%
# Two models of the same members: one fitted without privacy and with little
# regularization, and one that is private for an epsilon of 1.

models = {
    "plain": PlainRegression(C=100.0).fit(*members),
    "private": LogisticRegression(
        1.0, classes=[-1, 1], random_state=Seed(0), x_norm=1.0
    ).fit(*members),
}

fig, ax = plt.subplots(figsize=(5.2, 5), layout="constrained")
for name, model in models.items():
    found = membership_attack(model, members, others, assigned="coins", random_state=0)
    found.plot(ax)
    ax.lines[-2].set(label=f"{name}, AUC {found.auc:.2f}", ls="-")
    ax.lines[-2].set_color("C0" if name == "private" else "C1")
    print(f"{name}:\n{found}\n")
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# The plain model is recognized to be far from an epsilon of 1. On the private one, the
# attack does about as well as a coin.
#
# The attack by likelihood ratio trains models of the same kind on random halves of the
# rows. It asks for each row whether the attacked model looks like those with it, or
# like those without. It is stronger, and as slow as the models that it trains. What
# counts for people is the left end of the curve: how many are recognized for sure.

strong = membership_attack(
    models["plain"],
    members,
    others,
    score="lira",
    shadow=PlainRegression(C=100.0),
    n_shadows=32,
    assigned="coins",
    random_state=0,
)
print(strong)

# %%
# Such an outcome is computed on the rows of people and is private data itself, as it
# says. A weak attack proves nothing: what protects is the noise and its proof.
