"""
Attacking a mechanism: what is guaranteed, and what can be shown
================================================================

A mechanism claims ``epsilon = 1``. An attacker who knows everything but one row runs it
many times on two neighboring data sets and tries to distinguish them. How close does
the best such attack come to the guarantee, and would it detect a mechanism with too
little noise?

Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Seed
from tacit.audit import audit, precision_attack, worst_case_pair
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import Gaussian, Laplace, as_generator
from tacit.privacy import Budget, GaussianNoise, calibrate

EPSILON, DELTA = 1.0, 1e-5
multiplier = calibrate(GaussianNoise, Budget(EPSILON, DELTA))

# %%
# First one number: a count that is 0 for one data set and 1 for the other. The attacker
# says "the second" when the output is above a threshold. Every threshold has a rate of
# false alarms and a rate of detections. Privacy is a bound on this curve: no attack may
# be above it.

rng = as_generator(0)
n = 20_000
honest = Gaussian(multiplier, sensitivity=1.0)
careless = Gaussian(multiplier / 4, sensitivity=1.0)
alarm = np.linspace(0, 1, 401)
bound = np.minimum(np.exp(EPSILON) * alarm + DELTA, 1)
other = np.clip(1 - np.exp(-EPSILON) * (1 - DELTA - alarm), 0, 1)

fig, ax = plt.subplots(figsize=(5.2, 5))
ax.fill_between(alarm, np.minimum(bound, other), 1, color="0.9")
ax.plot(alarm, np.minimum(bound, other), "k", label="no attack may be above")
for name, mechanism in (("as planned", honest), ("a quarter of it", careless)):
    without = mechanism(np.zeros(n), rng)
    with_one = mechanism(np.ones(n), rng)
    thresholds = np.quantile(without, 1 - alarm)
    detected = [(with_one > t).mean() for t in thresholds]
    ax.plot(alarm, detected, label=f"noise {name}")
ax.plot([0, 1], [0, 1], ls=":", c="k", lw=1)
ax.set(xlabel="false alarms", ylabel="detections", aspect="equal")
ax.legend(loc="lower right")
plt.show()

# %%
# The careless mechanism is above the line: its claim is false. The honest one is well
# below it. With ``delta`` as small as this the line is reached only in corners of the
# curve that so few runs do not see.
#
# :func:`tacit.audit.audit` turns such runs into a number: a lower bound on epsilon that
# holds with a stated confidence. Half of the runs choose the attack, the others judge
# it.

pair = (np.zeros(1), np.ones(1))
for name, mechanism in (("as planned", honest), ("a quarter", careless)):
    found = audit(
        lambda value, seed, mechanism=mechanism: mechanism(value, as_generator(seed)),
        pair,
        n_runs=2_000,
        delta=DELTA,
        confidence=0.99,
        random_state=0,
    )
    print(f"{name}: {found}")
    print(f"  refutes epsilon {EPSILON:g}: {found.refutes(EPSILON)}")

# %%
# The same for a whole fit, on a pair of data sets made to be distinguished.


def train(data, seed):
    """Return the weights that a fit releases."""
    model = LogisticRegression(
        EPSILON,
        DELTA,
        classes=[-1.0, 1.0],
        random_state=Seed(seed),
        fit_intercept=False,
        x_norm=1.0,
    )
    return model.fit(*data).coef_


pair = worst_case_pair("logistic", n_rows=20, n_features=2)
found = audit(train, pair, n_runs=150, delta=DELTA, confidence=0.95, random_state=0)
print(found)

# %%
# A bound of zero or little more is what an honest fit and few runs give. It proves
# nothing: a better attack may exist. The guarantee comes from the proof, and an audit
# can only ever refute it.
#
# Noise can also fail in its last digits. Floating-point noise leaves gaps between its
# outputs that depend on the value it hides; noise on a public grid does not.

for noise in ("grid", "float"):
    mechanism = Laplace(multiplier=1.0, sensitivity=1.0, noise=noise)
    attack = precision_attack(lambda v, m=mechanism: m(v, rng), n=20_000)
    print(f"noise={noise!r}: broken {attack.broken}")
