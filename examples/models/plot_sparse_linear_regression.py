"""
Four questions out of two hundred: which ones, and with what weights?
=====================================================================

A survey had two hundred questions, and for how many days each person was ill. A doctor
has time for only four of the questions. Which four, and with what weights?

:class:`tacit.linear_model.SparseLinearRegression` spends one part of the budget on
choosing the questions, and the rest on weights for these alone. Does that find them,
and what is it worth beside a private fit of all two hundred?

The people are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.linear_model import LinearRegression, SparseLinearRegression
from tacit.mechanisms import as_generator

N_PEOPLE, N_QUESTIONS = 8_000, 200
MATTER = {17: 6.0, 60: -4.0, 121: 5.0, 188: 3.0}


def people(n, seed):
    """Return answers, 0 for no and 1 for yes, and days of illness from 0 to 60."""
    rng = as_generator(seed)
    yes = rng.uniform(0.1, 0.5, N_QUESTIONS)
    X = (rng.random((n, N_QUESTIONS)) < yes).astype(float)
    days = 12 + X[:, list(MATTER)] @ list(MATTER.values()) + rng.normal(0, 3, n)
    return X, np.clip(days, 0, 60)


X, y = people(N_PEOPLE, 0)
X_test, y_test = people(5_000, 1)

# %%
# What is public: answers are 0 or 1, nobody is ill for more than 60 days, and four
# questions are wanted.

PUBLIC = {"feature_bounds": [(0, 1)] * N_QUESTIONS, "y_range": (0, 60)}
model = SparseLinearRegression(
    1.0, n_features_to_select=4, random_state=Seed(0), **PUBLIC
)

# %%
# The plan says how the budget will be divided, without a look at the answers.

plan = model.plan(N_PEOPLE, N_QUESTIONS).plan
print("the selection gets", round(plan.share, 2), "of epsilon, then scaled to fit")
print("weights by", type(plan.solver).__name__, "on", plan.n_selected, "columns")

# %%
# One charge covers both.

model.fit(X, y)
print("selected", model.selection_, "of", sorted(MATTER))
print("weights ", model.coef_[list(model.selection_)].round(2))
print(model.privacy_)

# %%
# Over ten draws of the noise, at several budgets: how often all four questions are
# found, and the error in days on other people. Beside it, private least squares on all
# questions, whose rows are as long as two hundred answers allow.


def error(fitted):
    return float(np.sqrt(np.mean((fitted.predict(X_test) - y_test) ** 2)))


EPSILONS = (0.1, 0.3, 1.0, 3.0)
found, few, all_of_them = [], [], []
for epsilon in EPSILONS:
    draws = [
        SparseLinearRegression(
            epsilon, n_features_to_select=4, random_state=Seed(seed), **PUBLIC
        ).fit(X, y)
        for seed in range(10)
    ]
    found.append(np.mean([draw.selection_ == tuple(sorted(MATTER)) for draw in draws]))
    few.append(np.mean([error(draw) for draw in draws]))
    whole = LinearRegression(
        epsilon, x_norm=np.sqrt(N_QUESTIONS / 2), y_range=(0, 60), random_state=Seed(0)
    )
    all_of_them.append(error(whole.fit(X, y)))

best = np.linalg.lstsq(np.c_[X[:, list(MATTER)], np.ones(N_PEOPLE)], y, rcond=None)[0]
exact = np.c_[X_test[:, list(MATTER)], np.ones(5_000)] @ best
limit = float(np.sqrt(np.mean((exact - y_test) ** 2)))
mean = float(np.std(y_test))

fig, ax = plt.subplots(figsize=(6, 3.6))
ax.semilogx(EPSILONS, all_of_them, "o-", label="all questions")
ax.semilogx(EPSILONS, few, "o-", label="four, selected privately")
ax.axhline(limit, color="k", lw=1, label="the right four, without privacy")
ax.axhline(mean, color="k", lw=1, ls=":", label="one answer for all")
ax.set_xlabel("epsilon")
ax.set_ylabel("error in days")
ax.legend()
fig.tight_layout()
plt.show()

print("epsilon  all four found  error  with all questions")
for row in zip(EPSILONS, found, few, all_of_them, strict=True):
    print("{:7g}{:15.0%}{:8.2f}{:16.2f}".format(*row))
print(f"without privacy {limit:.2f}, one answer for all {mean:.2f}")

# %%
# With too small a budget some of the four are chosen by chance, and the model says
# nothing of that: it always has an answer. Other selectors would rather say nothing.
# With ``"votes"``, blocks of people vote for their four questions, and what most
# of them say is released only where one person could not have turned the vote.

for epsilon in (0.3, 3.0):
    careful = SparseLinearRegression(
        epsilon,
        n_features_to_select=4,
        selector="votes",
        random_state=Seed(0),
        **PUBLIC,
    ).fit(X, y)
    print(f"epsilon {epsilon:g}: {careful.selection_}, error {error(careful):.2f}")

# %%
# Without an answer the model is a private mean: better than four questions by chance,
# and honest about it. It costs what an answer would have cost.
