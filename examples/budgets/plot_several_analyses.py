"""
How many analyses does a budget last for?
=========================================

A team shares one data set and one budget, and every week someone runs another analysis.
If epsilons simply added up, ten analyses of 0.1 would use up a budget of 1. A
:class:`tacit.privacy.Ledger` is a privacy filter: it adds up what is known about the
noise of each analysis, and admits more of them with the same guarantee. How many more?

No rows are needed for the answer, since a ledger never sees any. At the end a few
models are fitted to synthetic rows. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt

from tacit import Budget, BudgetExceeded, Ledger, Seed
from tacit.datasets import make_census
from tacit.linear_model import LogisticRegression
from tacit.privacy import GaussianNoise, Shares, calibrate

TOTAL = Budget(epsilon=1.0, delta=1e-6)

# %%
# Each analysis has Gaussian noise that is just enough for a guarantee of its own.


def admitted(each, shares=None):
    """Return how many such analyses are admitted, and the spend after each."""
    event = GaussianNoise(calibrate(GaussianNoise, each))
    ledger = Ledger(TOTAL, shares=shares)
    spent = []
    while len(spent) < 2_000 and ledger.admits(event, each):
        ledger.charge(event, "analysis", guarantee=each)
        if len(spent) < 150:
            spent.append(ledger.spent())
        else:  # finding the spend takes a while; after that only count
            spent.append(spent[-1])
    return len(spent), spent


basic = Shares(basic=1, gaussian=0, renyi=0, slack=0)
print("epsilon of each   admitted   if epsilons add up")
for epsilon in (0.3, 0.1, 0.03):
    each = Budget(epsilon, 1e-9)
    filtered, _ = admitted(each)
    added, _ = admitted(each, basic)
    print(f"{epsilon:15}   {filtered:8}   {added:18}")

# %%
# The smaller the analyses, the more the filter gains: squares of Gaussian noise add up,
# and not epsilons. With few large ones there is little to gain. What was spent follows
# the sum for the first few, and grows like a root after that.

fig, ax = plt.subplots(figsize=(6.5, 4))
for epsilon in (0.1, 0.03):
    _, spent = admitted(Budget(epsilon, 1e-9))
    n = range(1, len(spent[:150]) + 1)
    (line,) = ax.plot(n, spent[:150], label=f"analyses of epsilon {epsilon}")
    ax.plot(n, [epsilon * k for k in n], ls=":", c=line.get_color())
ax.axhline(TOTAL.epsilon, ls="--", c="k")
ax.set(xlabel="analyses", ylabel="epsilon spent, at delta 1e-6", ylim=(0, 1.5))
ax.legend()
plt.show()

# %%
# Dotted lines are the sums of the epsilons, and the dashed one is the budget. Each
# analysis guarantees a delta of 1e-9 of its own, so its noise is a little larger than
# what the ledger's delta would ask for, and that is part of the gain.
#
# The guarantee holds also when each analysis is chosen after seeing the results of all
# earlier ones, which is what people do. Here is a series of models on different
# columns. Three of them add up to 1.2, and are admitted; a rejection charges nothing
# and releases nothing.

census = make_census(n_rows=5_000)
ledger = Ledger(TOTAL)
questions = ("education", "sector", "region", "marital", "housing")
for k in range(10):
    question = questions[k % len(questions)]
    named = [name.startswith(question) for name in census.feature_names]
    model = LogisticRegression(
        0.4, 1e-9, classes=[0, 1], random_state=Seed(k), x_norm=1.0
    )
    try:
        model.fit(census.X[:, named], census.y, ledger=ledger)
    except BudgetExceeded as error:
        print(f"{question}: {error}")
        break
    print(f"{question}: fitted, {ledger.spent():.3f} spent so far")
