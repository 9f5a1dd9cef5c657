"""Every estimator says that it is not fitted in the words of scikit-learn."""

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.persistence.test_skops import X, linear_models, others, steps, stream_models

# What a fitted estimator is asked for, and what it is asked with
QUESTIONS = {
    "predict": (X,),
    "predict_proba": (X,),
    "decision_function": (X,),
    "transform": (X,),
    "inverse_transform": (X,),
    "label": (X,),
    "answer": (X[0],),
    "score": (X, X[:, 0]),
    "get_support": (),
    "get_feature_names_out": (),
}


def test_an_estimator_that_is_not_fitted_raises_not_fitted_error():
    found = {**linear_models(), **steps(), **stream_models(), **others()}
    kinds = {type(model): clone(model) for model in found.values()}
    for model in kinds.values():
        for method, given in QUESTIONS.items():
            try:
                ask = getattr(model, method)
            except (AttributeError, NotFittedError):
                continue  # it has no such method, or not yet
            with pytest.raises(NotFittedError):
                ask(*given)
