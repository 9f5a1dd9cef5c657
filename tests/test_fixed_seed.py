"""Reports flag a fixed seed, whatever was released with it."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tacit._random import as_generator
from tacit.ensemble import PrivateLabeler
from tacit.fairness import private_certificate
from tacit.feature_selection import PeelingSelector
from tacit.linear_model import LogisticRegression
from tacit.model_selection import PrivateSearchCV, private_choice
from tacit.streaming import OnlineLinearRegression

X = as_generator(0).uniform(-0.5, 0.5, (60, 2))
TARGETS = X[:, 0] + 0.5
LABELS = (X[:, 0] > 0).astype(int)


def stream(seed):
    model = OnlineLinearRegression(
        1.0, 1e-6, horizon=2, y_range=(0.0, 1.0), random_state=seed, x_norm=1.0
    )
    return model.partial_fit(X, TARGETS).privacy_


def labeler(seed):
    model = PrivateLabeler(
        GaussianNB(), 5, 4.0, 1e-5, classes=[0, 1], random_state=seed
    )
    return model.fit(X, LABELS).privacy_


def selector(seed):
    model = PeelingSelector(
        2.0,
        1e-6,
        n_features_to_select=1,
        feature_bounds=1.0,
        y_range=(0.0, 1.0),
        random_state=seed,
    )
    return model.fit(X, TARGETS).privacy_


def search(seed):
    model = PrivateSearchCV(
        LogisticRegression(classes=[0, 1], x_norm=1.0),
        {"ridge": [1.0, 10.0]},
        epsilon=2.0,
        mean_repeats=2,
        random_state=seed,
    )
    return model.fit(X, LABELS).privacy_


def fitted():
    return LogisticRegression(1.0, 1e-6, classes=[0, 1], x_norm=1.0).fit(X, LABELS)


def choice(seed):
    models = [fitted(), fitted()]
    return private_choice(models, X, LABELS, epsilon=1.0, random_state=seed).privacy


def certificate(seed):
    return private_certificate(
        fitted(),
        X,
        LABELS,
        sensitive_features=np.arange(60) % 2,
        groups=[0, 1],
        epsilon=1.0,
        distance=0.1,
        random_state=seed,
    ).privacy


@pytest.mark.parametrize(
    "release", [stream, labeler, selector, search, choice, certificate]
)
def test_a_report_says_whether_the_seed_was_fixed(release):
    assert release(0).seeded
    assert not release(None).seeded
