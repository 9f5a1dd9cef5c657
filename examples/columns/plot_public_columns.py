"""
Scaling and encoding without reading the rows
=============================================

Usual preprocessing learns from the rows: a scaler keeps the largest value, an encoder
the list of categories. Both are released with the model, without noise. What does that
give away, and what does it cost to use public facts instead?

The answers of a club survey are synthetic. Seeds are fixed for reproduction only.
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from tacit import Seed
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import as_generator
from tacit.preprocessing import PublicOneHot, PublicScaler


def members(n, seed):
    """Return a table of members, and who of them renewed."""
    rng = as_generator(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "visits": rng.poisson(6, n),
            "sport": rng.choice(["swimming", "tennis", "yoga"], n, p=[0.5, 0.3, 0.2]),
        }
    )
    odds = 0.3 * (table["visits"] - 6) + 1.2 * (table["sport"] == "yoga") - 0.4
    return table, rng.random(n) < 1 / (1 + np.exp(-odds))


table, renewed = members(4_000, 0)

# %%
# One more member joins: 97 years old, and the only one who does judo.

joined = pd.concat(
    [table, pd.DataFrame({"age": [97], "visits": [2], "sport": ["judo"]})],
    ignore_index=True,
)
for name, rows in (("before", table), ("after", joined)):
    ages = MinMaxScaler().fit(rows[["age"]])
    sports = OneHotEncoder().fit(rows[["sport"]])
    print(name, ages.data_max_, list(sports.categories_[0]))

# %%
# Anyone who sees the fitted steps knows that a member of 97 does judo, whatever noise
# is put on the weights afterwards. Public steps come out of ``fit`` the same either
# way. They read the names of the columns and no value.

RANGES = {"age": (18, 100), "visits": (0, 20)}
SPORTS = {"sport": ["swimming", "tennis", "yoga"]}  # what the club's form offers
for name, rows in (("before", table), ("after", joined)):
    ages = PublicScaler(RANGES).fit(rows[["age", "visits"]])
    sports = PublicOneHot(SPORTS).fit(rows[["sport"]])
    print(name, ages.ranges_, list(sports.get_feature_names_out()))

# %%
# Values beyond a range are clipped to it, and a category that is not on the list counts
# as other.

print(ages.transform(pd.DataFrame({"age": [59, 97, 120], "visits": [10, 0, 25]})))
print(sports.transform(pd.DataFrame({"sport": ["yoga", "judo"]})))

# %%
# What does it cost? Public steps are free of charge, so the whole budget is left for
# the model. Each step knows how long its rows can be, in ``x_norm_``; two groups of
# columns side by side have the root of the sum of squares.

x_norm = float(np.hypot(ages.x_norm_, sports.x_norm_))
public = make_column_transformer(
    (PublicScaler(RANGES), ["age", "visits"]), (PublicOneHot(SPORTS), ["sport"])
)
usual = make_column_transformer(
    (MinMaxScaler(), ["age", "visits"]),
    (OneHotEncoder(handle_unknown="ignore"), ["sport"]),
)
model = LogisticRegression(
    1.0, x_norm=x_norm, classes=[False, True], random_state=Seed(0)
)
other, other_renewed = members(4_000, 1)
for name, steps in (
    ("usual steps, not private", make_pipeline(usual, PlainLogisticRegression())),
    ("public steps, not private", make_pipeline(public, PlainLogisticRegression())),
    ("public steps, epsilon 1", make_pipeline(public, model)),
):
    accuracy = steps.fit(table, renewed).score(other, other_renewed)
    print(f"{name:26} {accuracy:.3f}")
