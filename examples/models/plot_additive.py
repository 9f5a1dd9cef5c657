"""
Curves instead of weights: a private additive model
===================================================

Accidents are frequent among young drivers and again among old ones. A linear model has
one weight for the age, and cannot say both. :class:`tacit.additive.AdditiveClassifier`
learns a shape for each column. How close are its shapes to the truth, and do the bands
that it states for its noise contain it?

The drivers are synthetic, so that the truth is known. Seeds are fixed for reproduction
only.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tacit import Seed
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.mechanisms import as_generator
from tacit.plots import plot_shapes

rng = as_generator(0)
n = 40_000
drivers = pd.DataFrame(
    {
        "age": rng.uniform(18, 90, n),
        "thousand_km": rng.gamma(2, 7, n),
        "area": rng.choice(["city", "suburb", "country"], n, p=[0.5, 0.3, 0.2]),
    }
)


def truth(age):
    return ((age - 50) / 22) ** 2


risk = truth(drivers["age"]) + 0.8 * np.log1p(drivers["thousand_km"])
risk = risk + drivers["area"].map({"city": 0.6, "suburb": 0.0, "country": -0.4}) - 4
accident = np.where(rng.logistic(size=n) < risk, "yes", "no")
drivers.loc[rng.random(n) < 0.1, "thousand_km"] = np.nan

# %%
# Ranges and categories are public. Missing cells need nothing: they have a bin of
# their own in each column.

PUBLIC = {
    "ranges": {"age": (18, 90), "thousand_km": (0, 100)},
    "categories": {"area": ["city", "suburb", "country"]},
}
model = AdditiveClassifier(
    1.0, 1e-9, classes=["no", "yes"], random_state=Seed(0), **PUBLIC
)
model.fit(drivers, accident)
print(model.explain(drivers.iloc[[0]]))
print({name: round(size, 2) for name, size in model.importances_.items()})

# %%
# The shapes with bands of 95% for the noise. The dashed line is the truth for the age,
# with mean zero as shapes have. Gray shows where the drivers are.

axes = plot_shapes(model, ["age", "thousand_km", "area"])
ages = np.linspace(18, 90, 200)
margin = truth(ages) - truth(drivers["age"]).mean()
axes[0].plot(ages, margin, "k--", lw=1)
plt.show()

# %%
# Whoever drives more has more accidents, everyone agrees. ``monotone`` states it before
# the fit: values are put in order, which costs nothing.

ordered = AdditiveClassifier(
    1.0,
    1e-9,
    classes=["no", "yes"],
    monotone={"thousand_km": 1},
    random_state=Seed(0),
    **PUBLIC,
)
ordered.fit(drivers, accident)
rises = np.diff(ordered.shapes_[1].values[:-1, 0])
print("falls somewhere:", bool((rises < 0).any()))
print(ordered.scoring_table(points=20, cells=5))

# %%
# An expert may replace a shape after the fit. The report says so.

ordered.set_shape("age", lambda age: 2 * truth(age) - 1.5)
print(ordered.privacy_.notes[-1])

# %%
# Numbers as targets work alike.

claim = 100 * np.exp(0.3 * risk) + rng.gamma(2, 20, n)
regression = AdditiveRegressor(
    1.0, 1e-9, y_range=(0, 1000), random_state=Seed(0), **PUBLIC
)
regression.fit(drivers, claim)
print(f"R2 on the same rows, not charged: {regression.score(drivers, claim):.2f}")
