"""
An audit by one training
========================

Many trainings on two data sets show much of what a mechanism gives away, and cost many
trainings. One training on many canaries shows less and costs one. A canary is a
synthetic row of which a fair coin settles the label. After the training, the coins are
guessed from what was published. How many of the guesses can be right under a guarantee,
and what does that show of an estimator?

Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit.audit import audit_one_run, one_run_bound, one_run_p_value
from tacit.linear_model import LinearSVC

# %%
# First the rule. Say that 200 canaries were guessed. How many of the guesses may be
# right, at most, before a guarantee is refuted with confidence 0.95?

guesses = np.arange(100, 201)
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for epsilon in (0.5, 1.0, 2.0):
    chance = [one_run_p_value(v, 200, 200, epsilon=epsilon) for v in guesses]
    ax.semilogy(guesses, np.maximum(chance, 1e-12), label=f"epsilon {epsilon:g}")
ax.axhline(0.05, color="0.5", ls="--")
ax.set(xlabel="right guesses of 200", ylabel="largest chance", ylim=(1e-10, 2))
ax.legend(frameon=False)
plt.show()

# %%
# Where a curve is below the dashed line, that guarantee is refuted. Any guesser can be
# judged in this way:

truth = np.array([1, -1] * 100)
guessed = np.where(np.arange(200) < 170, truth, -truth)
print(one_run_bound(guessed, truth))

# %%
# Now an estimator. The canaries are orthogonal rows at its public bounds, half of them
# choose how to guess, and the other half judge.

honest = audit_one_run(
    LinearSVC(4.0, 1e-5, solver="output_perturbation", x_norm=1.0), random_state=0
)
print(honest)
honest.plot()
plt.show()

# %%
# The attack stays out of the forbidden region, and the bound stays below the guarantee.
# A model that adds almost no noise does not. Here it guarantees an epsilon of 4 and
# runs with that of 40:


class Careless(LinearSVC):
    """Guarantees one thing and does another."""

    def fit(self, X, y):
        inner = LinearSVC(
            10 * self.epsilon, self.delta, classes=self.classes, x_norm=1.0
        )
        inner.set_params(solver=self.solver, random_state=self.random_state)
        self.coef_ = inner.fit(X, y).coef_
        return self


careless = audit_one_run(
    Careless(4.0, 1e-5, solver="output_perturbation"), random_state=0
)
print(careless)
careless.plot()
plt.show()

# %%
# What one run cannot show: canaries share one training, and a mechanism may treat them
# all alike. The bound allows for the worst such mechanism, so even against exactly
# Gaussian noise it stays well below the truth. Many trainings come closer:
# :func:`tacit.audit.audit_estimator`.
