"""
A private model inside river
============================

`river <https://riverml.xyz>`_ learns from streams one row at a time, and judges models
by predictions that they made before they saw the answer. What does a model that
protects every row lose there against one that does not?
:class:`tacit.streaming.river.RiverClassifier` lets river use the models of
:mod:`tacit.streaming`.

The rows are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
from river import linear_model, metrics

from tacit import Seed
from tacit.mechanisms import as_generator
from tacit.streaming import OnlineLogisticRegression
from tacit.streaming.river import RiverClassifier

NAMES = ["age", "pressure", "weight"]
N_ROWS, A_STEP = 10_000, 50


def stream(n=N_ROWS):
    """Yield features that were scaled by public ranges, and whether someone is ill."""
    rng = as_generator(0)
    for x in rng.uniform(-0.5, 0.5, (n, 3)):
        ill = rng.random() < 1 / (1 + 2.718 ** (-8 * x[0] - 4 * x[1]))
        yield dict(zip(NAMES, x.tolist(), strict=True)), bool(ill)


# %%
# A row waits until there are ``rows_per_step`` of them; then the model takes one step
# and releases new coefficients. Learning ends with the horizon.

private = RiverClassifier(
    OnlineLogisticRegression(
        1.0,
        1e-8,
        horizon=N_ROWS // A_STEP,
        rows_per_step=A_STEP,
        classes=[False, True],
        random_state=Seed(0),
        x_norm=1.0,
    ),
    NAMES,
    after_horizon="stop",
)
models = {"private, epsilon 1": private, "river": linear_model.LogisticRegression()}
curves = {}
for name, model in models.items():
    metric, curves[name] = metrics.Accuracy(), []
    for x, ill in stream():
        predicted = model.predict_one(x)
        if predicted is not None:
            metric.update(ill, predicted)
        model.learn_one(x, ill)
        curves[name].append(metric.get())
    print(f"{name:20} {metric}")

fig, ax = plt.subplots(figsize=(7, 3.5))
for name, curve in curves.items():
    ax.plot(curve, label=name)
ax.set(xlabel="rows", ylabel="share of right answers so far", ylim=(0.5, 1))
ax.legend()
fig.tight_layout()
plt.show()

# %%
# The model that was given to the adapter stays as it is; ``stream`` is the one that
# learned, and holds the report.

print(private.stream.coef_.round(2), private.n_steps)
print(private.stream.privacy_)

# %%
# Here rows were scaled by public ranges. River's own scalers, in front of the model as
# in ``StandardScaler() | private``, would follow the rows themselves, and what they
# learn is in no ledger.
