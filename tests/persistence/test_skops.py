"""Every fitted estimator can be written by skops and read back, by types one trusts."""

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB
from tests.persistence.subjects import (
    Y_RANGE,
    additive_models,
    linear_models,
    rows,
    steps,
    stream_models,
    table,
)

from tacit import (
    additive,
    ensemble,
    feature_selection,
    linear_model,
    model_selection,
    preprocessing,
    recommend,
    streaming,
)
from tacit.ensemble import (
    NeighborMap,
    PrivateLabeler,
    PrivateStudent,
    SmoothedVotes,
    VoteClassifier,
)
from tacit.feature_selection import (
    BlockVoteSelector,
    ExponentialSelector,
    HuberLassoSupport,
    LassoStabilitySelector,
    PeelingSelector,
)
from tacit.linear_model import LogisticRegression
from tacit.model_selection import PrivateSearchCV
from tacit.privacy import Neighbors
from tacit.recommend import MatrixCompletion

PACKAGES = (
    *(additive, ensemble, feature_selection, linear_model),
    *(model_selection, preprocessing, recommend, streaming),
)
X = rows()
LABELS = (X[:, 0] > 0).astype(int)
NUMBERS = X @ np.array([3.0, -1.0, 0.0])
BOUNDS = {"feature_bounds": 1.0, "y_range": Y_RANGE}


def others():
    """Return fitted estimators that have no folder of their own."""
    columns = {"n_features_to_select": 1, **BOUNDS}
    labeler = PrivateLabeler(GaussianNB(), 5, 20.0, 1e-3, classes=[0, 1], n_queries=50)
    kept = labeler.fit(X, LABELS)
    kept.label(X[:60])
    shares = np.eye(2)[LABELS]
    search = PrivateSearchCV(
        LogisticRegression(classes=[0, 1], x_norm=1.0), {"ridge": [0.0, 1.0]}, 8.0, 1e-3
    )
    ratings = [("ann", 0, 1.0), ("bob", 1, 5.0), ("cyd", 1, 4.0)]
    return {
        "peeling": PeelingSelector(**columns).fit(X, NUMBERS),
        "votes": BlockVoteSelector(5.0, 1e-3, fallback="all", **columns).fit(
            X, NUMBERS
        ),
        "exponential": ExponentialSelector(**columns).fit(X, NUMBERS),
        "stability": LassoStabilitySelector(
            5000.0, 1e-3, fallback="all", **columns
        ).fit(X, NUMBERS),
        "support": HuberLassoSupport(1).fit(X, NUMBERS),
        "labeler": kept,
        "student": PrivateStudent(labeler, GaussianNB()).fit(X, LABELS, X_public=X),
        "map": NeighborMap(n_components=5).fit(X),
        "smoothed": SmoothedVotes(n_components=5).fit(X, shares),
        "classifier": VoteClassifier(SmoothedVotes(5), [0, 1]).fit(X, shares),
        "search": search.fit(X, LABELS),
        "ratings": MatrixCompletion("svd", 5.0, 1e-3, items=2, rating_range=(1, 5)).fit(
            ratings
        ),
    }


@pytest.fixture(scope="module")
def fitted():
    subjects = (linear_models(), additive_models(), steps(), stream_models(), others())
    return {name: model for part in subjects for name, model in part.items()}


def read_again(model):
    written = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=written)
    return skops.io.loads(written, trusted=trusted)


def shown(model):
    """What a fitted estimator predicts, transforms or selects, where it does."""
    found = {"parameters": repr(model), "privacy": getattr(model, "privacy_", None)}
    if isinstance(model, PrivateLabeler):
        return found | {"labels": list(model.labels_)}
    for method in ("predict", "transform"):
        if hasattr(model, method) and not isinstance(model, MatrixCompletion):
            found[method] = np.asarray(getattr(model, method)(table(model, X))).tolist()
    return found


def test_every_estimator_is_among_the_subjects(fitted):
    public = {
        kind
        for package in PACKAGES
        for kind in map(package.__dict__.get, package.__all__)
        if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    }
    assert {type(model) for model in fitted.values()} == public


def test_skops_reads_every_fitted_estimator_again(fitted):
    for name, model in fitted.items():
        again = read_again(model)
        assert type(again) is type(model), name
        assert shown(again) == shown(model), name


@pytest.mark.parametrize("relation", Neighbors)
def test_skops_reads_the_one_relation_again(relation):
    assert read_again(relation) is relation
