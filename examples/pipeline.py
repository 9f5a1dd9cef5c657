"""A private pipeline on a census: public steps, private steps, one ledger.

Seeds are fixed so that the figures repeat; a fixed seed is for demonstrations only.
Under 30 seconds.
"""

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tacit import Budget, Ledger
from tacit.datasets import make_census
from tacit.linear_model import LogisticRegression
from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
)

# What the questionnaire says, before any answer is read.
RANGES = {
    "age": (18, 90),
    "hours_per_week": (0, 80),
    "household_size": (1, 8),
    "job_tenure": (0, 50),
    "commute_minutes": (0, 120),
}
ANSWERS = {
    "education": ["primary", "secondary", "vocational", "bachelor", "higher"],
    "sector": [
        "none", "agriculture", "manufacturing", "construction", "retail",
        "hospitality", "public", "finance", "technology",
    ],
    "region": ["north", "east", "south", "west", "center", "islands"],
    "marital": ["single", "married", "divorced", "widowed"],
    "housing": ["owner", "tenant"],
}  # fmt: skip
DELTA = 1e-6


def questionnaire(census):
    """Return the census as the table of numbers and words it came from."""
    table = pd.DataFrame(census.X, columns=list(census.feature_names))
    found = {
        name: table[name] * (high - low) + low for name, (low, high) in RANGES.items()
    }
    for question in ANSWERS:
        indicators = table.filter(regex=f"^{question}=")
        names = [column.split("=")[1] for column in indicators]
        found[question] = np.array(names)[indicators.to_numpy().argmax(axis=1)]
    return pd.DataFrame(found)


def private_model(epsilon, x_norm):
    model = LogisticRegression(
        epsilon, DELTA, x_norm=x_norm, classes=[0, 1], random_state=0
    )
    return model.set_fit_request(ledger=True)


def private_step(kind, epsilon, **parameters):
    step = kind(epsilon, DELTA, ranges=RANGES, random_state=0, **parameters)
    return step.set_fit_request(ledger=True)


def columns(numbers, words):
    return make_column_transformer((numbers, list(RANGES)), (words, list(ANSWERS)))


def main():
    sklearn.set_config(enable_metadata_routing=True)
    census = make_census()
    split = train_test_split(
        questionnaire(census), census.y, test_size=0.2, random_state=0
    )
    X_train, X_test, y_train, y_test = split
    words = PublicOneHot(ANSWERS)
    plain = columns(StandardScaler(), OneHotEncoder(handle_unknown="ignore"))
    pipelines = {
        "not private": make_pipeline(plain, Plain(max_iter=2000)),
        "public ranges": make_pipeline(
            columns(PublicScaler(RANGES), words), private_model(1.0, 2.5)
        ),
        "private mean, deviation": make_pipeline(
            columns(private_step(PrivateStandardScaler, 0.1), words),
            private_model(0.9, 3.0),
        ),
        "private quantiles": make_pipeline(
            columns(private_step(PrivateQuantileBounds, 0.2), words),
            private_model(0.8, 2.5),
        ),
    }
    print(f"{'test accuracy, 40,000 rows':28} {'accuracy':>9} {'epsilon spent':>14}")
    for name, pipeline in pipelines.items():
        ledger = Ledger(Budget(epsilon=1.0, delta=5 * DELTA))
        charged = {} if name == "not private" else {"ledger": ledger}
        pipeline.fit(X_train, y_train, **charged)
        spent = f"{ledger.spent():14.3f}" if charged else f"{'unbounded':>14}"
        print(f"{name:28} {pipeline.score(X_test, y_test):9.1%} {spent}")
    print("\nledger of the last pipeline")
    print(ledger.report())


if __name__ == "__main__":
    main()
