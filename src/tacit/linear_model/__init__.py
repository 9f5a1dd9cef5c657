"""Private linear models with scikit-learn's interface."""

from tacit.linear_model._huber import HuberRegressor
from tacit.linear_model._linear import LinearRegression, Ridge
from tacit.linear_model._logistic import LogisticRegression
from tacit.linear_model._simplex import SimplexRegressor
from tacit.linear_model._svm import LinearSVC

__all__ = [
    "HuberRegressor",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Ridge",
    "SimplexRegressor",
]
