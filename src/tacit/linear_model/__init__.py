"""Private linear models with scikit-learn's interface."""

from tacit.linear_model._logistic import LogisticRegression

__all__ = ["LogisticRegression"]
