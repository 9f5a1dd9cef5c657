"""
Interactions from public random features
========================================

A linear model adds up the effects of columns. Where one column matters only together
with another, it learns nothing. Random features of all columns let it learn such
interactions. Their structure is drawn without data, so they cost no budget. How much
of the accuracy is left with a small one?

The readings of greenhouses are synthetic. Seeds are fixed for reproduction only.
"""

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from tacit import Seed
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import as_generator
from tacit.preprocessing import (
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)


def greenhouses(n, seed):
    """Return readings, and where mold grew: warm and humid, or cold and dry."""
    rng = as_generator(seed)
    table = pd.DataFrame(
        {
            "temperature": rng.uniform(5, 35, n),
            "humidity": rng.uniform(20, 100, n),
            "watering": rng.uniform(0, 10, n),
        }
    )
    both = (table["temperature"] - 20) / 15 * (table["humidity"] - 60) / 40
    return table, rng.random(n) < 1 / (1 + np.exp(-12 * both))


table, mold = greenhouses(10_000, 0)
other, other_mold = greenhouses(4_000, 1)
RANGES = {"temperature": (5, 35), "humidity": (20, 100), "watering": (0, 10)}

# %%
# Every row of random features has norm 1, whatever its values are. So this bound
# clips no row, and no row is shorter than the bound that noise is calibrated to.

steps = {
    "columns": PublicScaler(RANGES),
    "cosines and sines": RandomFourierFeatures(RANGES),
    "leaves of trees": RandomPartitionTrees(RANGES),
}
for name, step in steps.items():
    norms = np.linalg.norm(step.fit_transform(table), axis=1)
    n_features = len(step.get_feature_names_out())
    print(f"{name:18} {step.n_features_in_} columns become {n_features}")
    print(f"{'':18} norms from {norms.min():.2f} to {norms.max():.2f}")

# %%
# The same model, behind each of them. Nothing is charged but its fit.

for name, step in steps.items():
    for epsilon in (0.3, 1.0, 3.0):
        # the bound on rows is what the step declares
        model = LogisticRegression(epsilon, classes=[False, True], random_state=Seed(0))
        pipeline = make_pipeline(step, model).fit(table, mold)
        accuracy = pipeline.score(other, other_mold)
        print(f"{name:18} epsilon {epsilon}: {accuracy:.3f}")

# %%
# What the model learned of a temperature of 30 degrees: mold is likely where the air is
# humid, and unlikely where it is dry.

grid = pd.DataFrame(
    {"temperature": 30.0, "humidity": [30.0, 60.0, 90.0], "watering": 5.0}
)
print(pipeline.predict_proba(grid)[:, 1].round(2))
