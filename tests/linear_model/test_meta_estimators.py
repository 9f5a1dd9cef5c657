"""What scikit-learn's meta-estimators fit without privacy is named where it happens."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.semi_supervised import SelfTrainingClassifier

from tacit import linear_model
from tacit.linear_model import LinearRegression, LinearSVC, LogisticRegression
from tacit.privacy import Budget, Ledger

X = np.cos(np.arange(480.0)).reshape(120, 4) / 2
LABELS = np.arange(120) % 2
CLASSIFIER = LogisticRegression(1.0, 1e-6, classes=[0, 1], x_norm=1.0)
MARGINS = LinearSVC(1.0, 1e-6, classes=[0, 1], x_norm=1.0)
REGRESSION = LinearRegression(1.0, 1e-6, y_range=(0, 1), x_norm=1.0)
GRID = {"epsilon": [0.5, 1.0, 2.0]}
MODELS = [name for name in linear_model.__all__ if name != "SelectionPath"]


@pytest.mark.parametrize("name", MODELS)
def test_the_docstring_says_what_has_no_noise_and_no_charge(name):
    kind = getattr(linear_model, name)
    words = " ".join(kind.__doc__.split())
    assert "without noise and without a charge" in words
    classifier = is_classifier(kind())
    named = ("Calibrated", "TunedThreshold") if classifier else ("StackingRegressor",)
    assert all(part in words for part in named)


# as docs/trust/sharp_edges.md has them
@pytest.mark.parametrize(
    ("model", "n_charges"),
    [
        (GridSearchCV(CLASSIFIER, GRID, cv=2), 7),
        (RandomizedSearchCV(CLASSIFIER, GRID, n_iter=2, cv=2), 5),
        (CalibratedClassifierCV(MARGINS, cv=3), 3),
        (RFE(CLASSIFIER, n_features_to_select=2), 3),
        (SelectFromModel(CLASSIFIER), 1),
        (TransformedTargetRegressor(REGRESSION), 1),
        (MultiOutputRegressor(REGRESSION), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_where_a_ledger_is_passed_on_every_inner_fit_is_charged(model, n_charges):
    ledger = Ledger(Budget(100.0, 1e-2))
    y = LABELS[:, None] if isinstance(model, MultiOutputRegressor) else LABELS
    model.fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == n_charges
    assert not hasattr(model, "privacy_")
    if hasattr(model, "best_estimator_"):
        assert len(model.best_estimator_.privacy_.entries) == 1


@pytest.mark.parametrize(
    "model",
    [
        StackingClassifier([("one", CLASSIFIER)]),
        TunedThresholdClassifierCV(CLASSIFIER),
        RFECV(CLASSIFIER),
        SelfTrainingClassifier(CLASSIFIER),
        RANSACRegressor(REGRESSION),
        VotingClassifier([("one", CLASSIFIER)]),
        OneVsRestClassifier(CLASSIFIER),
        AdaBoostClassifier(CLASSIFIER),
    ],
    ids=lambda model: type(model).__name__,
)
def test_where_a_ledger_is_not_passed_on_the_fit_is_rejected(model):
    ledger = Ledger(Budget(100.0, 1e-2))
    boosted = isinstance(model, AdaBoostClassifier)
    words = "unexpected keyword" if boosted else "if enable_metadata_routing=True"
    with pytest.raises(TypeError if boosted else ValueError, match=words):
        model.fit(X, LABELS, ledger=ledger)
    assert ledger.spent() == 0


@pytest.mark.parametrize("model", [CLASSIFIER, MARGINS, REGRESSION])
def test_an_option_that_fit_does_not_have_names_the_class_of_the_model(model):
    name = type(model).__name__
    with pytest.raises(TypeError, match=rf"{name}\.fit\(\) .*rows cannot have weights"):
        model.fit(X, LABELS, sample_weight=np.ones(120))
    with pytest.raises(TypeError, match=rf"{name}\.fit\(\) .* argument 'leger'\.$"):
        model.fit(X, LABELS, leger=None)
