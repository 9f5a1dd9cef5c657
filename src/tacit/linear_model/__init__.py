"""Private linear models with scikit-learn's interface."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.linear_model._classifiers import LinearSVC, LogisticRegression
    from tacit.linear_model._glm import GeneralizedLinearModel
    from tacit.linear_model._huber import HuberRegressor
    from tacit.linear_model._lasso import ElasticNet, Lasso
    from tacit.linear_model._linear import LinearRegression, Ridge
    from tacit.linear_model._selected import SparseLinearRegression
    from tacit.linear_model._simplex import SimplexRegressor
    from tacit.linear_model._sparse import SelectionPath
    from tacit.linear_model._sparse_logistic import SparseLogisticRegression
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ElasticNet",
    "GeneralizedLinearModel",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Ridge",
    "SelectionPath",
    "SimplexRegressor",
    "SparseLinearRegression",
    "SparseLogisticRegression",
]
