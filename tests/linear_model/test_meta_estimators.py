"""What scikit-learn's meta-estimators fit without privacy is named where it happens."""

import pytest
from sklearn.base import is_classifier

from tacit import linear_model

MODELS = [name for name in linear_model.__all__ if name != "SelectionPath"]


@pytest.mark.parametrize("name", MODELS)
def test_the_docstring_says_what_has_no_noise_and_no_charge(name):
    kind = getattr(linear_model, name)
    words = " ".join(kind.__doc__.split())
    assert "without noise and without a charge" in words
    classifier = is_classifier(kind.__new__(kind))
    named = ("Calibrated", "TunedThreshold") if classifier else ("StackingRegressor",)
    assert all(part in words for part in named)
