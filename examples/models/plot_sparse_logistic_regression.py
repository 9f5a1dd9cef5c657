"""
Which features were selected, and how sure may one be?
======================================================

A hospital asks which of two hundred yes/no codes in its records go along with patients
coming back within a month. :class:`tacit.linear_model.SparseLogisticRegression` selects
a few codes, privately. How sure may one be of those that it selected, and of those that
it did not?

The patients are synthetic: five codes matter. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tacit import Budget, Ledger, Seed
from tacit.linear_model import SparseLogisticRegression
from tacit.mechanisms import as_generator

N_ROWS, N_CODES = 10_000, 200
TRUTH = {
    "heart_failure": 1.6,
    "chemotherapy": 1.2,
    "follow_up_call": -1.2,
    "lives_alone": 0.9,
    "anticoagulant": 0.6,
}
NAMES = [*TRUTH, *(f"code_{j:03}" for j in range(len(TRUTH), N_CODES))]


def patients(rng, weights):
    """Return codes of patients, and whether they came back, as half of them did."""
    often = rng.uniform(0.1, 0.4, N_CODES)
    codes = (rng.random((N_ROWS, N_CODES)) < often).astype(float)
    table = pd.DataFrame(codes, columns=NAMES)
    score = table[list(weights)].to_numpy() @ np.array(list(weights.values()))
    return table, rng.random(N_ROWS) < 1 / (1 + np.exp(score.mean() - score))


table, came_back = patients(as_generator(0), TRUTH)

# %%
# A code is 0 or 1. That is public, and the pair says it better than the number 1, which
# would stand for a range from -1 to 1. ``solver="gcd"`` chooses codes one by one. The
# ledger has twice the budget of this fit, for later.

model = SparseLogisticRegression(
    epsilon=1.0,
    alpha=0.005,
    feature_bounds=[(0, 1)] * N_CODES,
    classes=[False, True],
    solver="gcd",
    random_state=Seed(0),
)
ledger = Ledger(Budget(epsilon=2.0, delta=1e-6))
model.fit(table, came_back, ledger=ledger)
print("selected:", *model.selected_names_)

# %%
# What is certain
# ---------------
# ``path_`` has the release of each update: the code that was updated, its noisy
# derivative, and the standard deviation of the noise, which is public and exact.
# ``signal`` is the ratio of the two. Each chosen code is updated several times; the
# first derivative is the most informative, as the code has no weight yet.


def first_signals(model):
    """Return the signal of each chosen code at its first update."""
    path = model.path_
    positions, first = np.unique(path.features, return_index=True)
    return {
        int(j): path.signal[k] for j, k in zip(positions, first, strict=True) if j >= 0
    }


signals = first_signals(model)
print(f"{len(model.path_)} updates, {len(signals)} codes chosen\n")
print("code             signal  weight")
for j in sorted(signals, key=lambda j: -abs(signals[j])):
    print(f"{NAMES[j]:15}{signals[j]:8.1f}{model.coef_[0, j]:8.2f}")

# %%
# All of this is part of the charge, so it costs no more budget to look at it. A signal
# of ten standard deviations is not noise: these patients have a derivative for the code
# at the weights of that update. A signal of one or two may be only noise. The weight of
# a chosen code can be zero because of the penalty ``alpha``.
#
# What is not certain
# -------------------
# The noise is not all that varies. The patients are a sample, so codes without any
# effect go along with coming back a little, by chance, and a choice looks for the
# largest of two hundred. What does that look like? Make up patients for whom no code
# matters, and fit those. No record of a real patient is used, so it is free and can be
# repeated at will.


def repeated(weights, n_fits=25):
    """Fit synthetic patients again and again; return the fitted models."""
    synthetic = SparseLogisticRegression(**model.get_params())
    for seed in range(n_fits):
        rows, labels = patients(as_generator(1_000 + seed), weights)
        yield synthetic.set_params(random_state=Seed(seed)).fit(rows, labels)


nothing = [
    (list(first_signals(fit).values()), len(fit.selected_features_))
    for fit in repeated({})
]
by_chance = np.abs([found for found, _ in nothing]).ravel()
largest = np.quantile([np.abs(found).max() for found, _ in nothing], 0.95)
wrong = np.mean([count for _, count in nothing])
print(f"no code matters: {wrong:.1f} of {N_CODES} codes are selected all the same")
print(f"largest signal in a fit, in 95 of 100 fits: below {largest:.1f}")

fig, ax = plt.subplots(figsize=(7, 3.6))
ax.hist(by_chance, bins=30, density=True, alpha=0.6, label="synthetic, no code matters")
for k, (j, signal) in enumerate(signals.items()):
    color = "C1" if NAMES[j] in TRUTH else "C3"
    ax.plot(abs(signal), 0.03 + 0.03 * (k % 3), "v", c=color)
ax.plot([], [], "C1v", label="chosen by the fit, and matter")
ax.plot([], [], "C3v", label="chosen by the fit, and do not")
ax.axvline(largest, ls="--", c="k", lw=1)
ax.set(xlabel="absolute signal at the first update", ylabel="density")
ax.legend()
fig.tight_layout()
plt.show()

# %%
# Codes far to the right of the dashed line would never be seen if nothing mattered. But
# some codes do matter, and while those find their weights the others are pulled along.
# So make up patients once more, for whom the clear codes have the weights that were
# released, and nothing else matters but six small effects that we plant for later.

clear = {
    NAMES[j]: model.coef_[0, j]
    for j, signal in signals.items()
    if abs(signal) > largest
}
spare = [name for name in reversed(NAMES) if name not in model.selected_names_]
planted = dict(zip(spare, (0.1, 0.2, 0.3, 0.4, 0.6, 0.8), strict=False))
fits = [
    (first_signals(fit), set(fit.selected_names_)) for fit in repeated(clear | planted)
]
at_rest = [
    max(abs(x) for j, x in found.items() if NAMES[j] not in clear | planted)
    for found, _ in fits
]
limit = np.quantile(at_rest, 0.95)
print(f"largest signal of a code without effect, in 95 of 100 fits: below {limit:.1f}")
sure = [NAMES[j] for j, signal in signals.items() if abs(signal) > limit]
print("to speak of:", *sure)

# %%
# These codes are findings. The others are not, though they are selected.
#
# The synthetic patients have codes that are independent of each other and about as
# frequent as the real ones. Real codes are correlated, and then a code may be chosen
# instead of another one; a larger budget does not help with that. And half of the
# patients came back, in the synthetic data too. This fraction must be similar: where
# few come back, the intercept takes several updates to converge, and codes are chosen
# instead meanwhile.
#
# What was not selected
# ---------------------
# A code that was not selected is not shown to be irrelevant. The plan knows how far a
# choice may be off: with probability 0.95 no code that lost had a sum larger than the
# chosen one's by the votes of more patients than this.

for epsilon in (0.3, 1.0, 3.0):
    planned = SparseLogisticRegression(**model.get_params() | {"epsilon": epsilon})
    rows = planned.plan(N_ROWS, N_CODES).plan.within(0.95)
    print(f"epsilon {epsilon:3g}: within {rows:5.0f} of {N_ROWS} patients")

# %%
# That bound is for any data, and so it is wide. How large an effect would have been
# found is again a question for patients who do not exist. Six effects were planted
# above; how often were they selected, and how often were they beyond the limit?

for name, weight in planted.items():
    j = NAMES.index(name)
    selected = np.mean([name in names for _, names in fits])
    beyond = np.mean([abs(found.get(j, 0.0)) > limit for found, _ in fits])
    print(
        f"odds times {np.exp(weight):.2f}: selected in {100 * selected:3.0f} of 100 "
        f"fits, beyond the limit in {100 * beyond:3.0f}"
    )

# %%
# The hospital then knows what it may write: an effect as large as the last would most
# likely have been selected, one as small as the first would not. To be sure of an
# effect takes more than to select it.
#
# Once more, with the selected codes only
# ---------------------------------------
# It is tempting to fit the codes to speak of again, without a penalty. That reads the
# patients again, so it is charged again.

again = SparseLogisticRegression(
    epsilon=0.9,
    alpha=0.0,
    feature_bounds=[(0, 1)] * len(sure),
    classes=[False, True],
    solver="cd",
    random_state=Seed(0),
)
again.fit(table[sure], came_back, ledger=ledger)
print("code               first  again  truth")
for name, weight in zip(sure, again.coef_[0], strict=True):
    first = model.coef_[0, NAMES.index(name)]
    print(f"{name:15}{first:8.2f}{weight:8.2f}{TRUTH.get(name, 0.0):8.2f}")
print(ledger.report())

# %%
# Four sentences to take along. Report the codes whose signals are beyond what synthetic
# patients without any effect give, and not all that were selected. Say with them how
# large an effect would have been found, as a code that is missing may only have been
# lost to noise. Do not fit again and again until the list looks right: each fit is
# charged, and choosing between their lists is not free of chance either. And a code
# that is selected goes along with coming back; whether it is a cause no model of this
# kind says.
