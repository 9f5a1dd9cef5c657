"""
Ten classes in one private fit
==============================

Can handwritten digits be distinguished by a private model, and does it matter how ten
classes are put together? A joint softmax and ten models of one class against the rest
get the same budget here. Either way it is one fit and one charge: the noise is
accounted for all classes together, and the budget is not cut in ten.

The digits come with scikit-learn: 1,797 images of 8 by 8 pixels. Few rows make privacy
dear, so the budgets are larger than in the other examples. Seeds are fixed for
reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tacit import Seed
from tacit.linear_model import LogisticRegression

X, y = load_digits(return_X_y=True)
X = X / 16  # a pixel is 0 to 16, by the way the images were made
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.25, random_state=0
)

# %%
# Sixty-four pixels of 0 to 1 have a norm of 8 at most. No digit is all ink; images of
# pen strokes on paper are half that long, which is a guess about handwriting and not a
# figure taken from these rows. Longer rows would be clipped.

epsilons = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
found = {}
for kind in ("softmax", "one_vs_rest"):
    found[kind] = [
        np.mean(
            [
                LogisticRegression(
                    epsilon,
                    x_norm=4.0,
                    classes=range(10),
                    multi_class=kind,
                    random_state=Seed(seed),
                )
                .fit(X_train, y_train)
                .score(X_test, y_test)
                for seed in range(3)
            ]
        )
        for epsilon in epsilons
    ]

fig, ax = plt.subplots(figsize=(6.5, 4))
for kind, accuracy in found.items():
    ax.plot(epsilons, accuracy, "o-", label=kind)
ax.axhline(0.1, ls=":", c="k", label="guessing")
ax.set(xscale="log", xlabel="epsilon", ylabel="test accuracy, mean of 3 draws")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.set_ylim(0, 1)
ax.legend()
plt.show()

# %%
# The weights of a class are an image too. At a small budget they are mostly noise, and
# a classifier that adds up 64 of them still works: the noise averages out in the sum.

fig, axes = plt.subplots(2, 10, figsize=(9, 2.2))
for row, epsilon in zip(axes, (1.0, 8.0), strict=True):
    model = LogisticRegression(
        epsilon, x_norm=4.0, classes=range(10), random_state=Seed(0)
    )
    model.fit(X_train, y_train)
    for digit, ax in enumerate(row):
        ax.imshow(model.coef_[digit].reshape(8, 8), cmap="RdBu_r")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"epsilon {epsilon:g}")
plt.show()

# %%
# ``classes`` is given although ``y`` has all ten digits. Left out, the labels would be
# read off ``y``, and a label that one person alone has would reveal that person.

print(model.privacy_)
