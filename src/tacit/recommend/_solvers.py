"""Solvers of matrix completion, by the names that estimators take."""

from __future__ import annotations

from typing import Any

from tacit.recommend.als import PrivateALS
from tacit.recommend.cleansed import CleansedSVD
from tacit.recommend.frank_wolfe import FrankWolfeCompletion
from tacit.recommend.gradient import ProjectedGradientCompletion
from tacit.recommend.svd import SVDCompletion

__all__ = ["SOLVERS", "SUMS"]

SOLVERS: dict[str, Any] = {
    "als": PrivateALS,
    "frank_wolfe": FrankWolfeCompletion,
    "svd": SVDCompletion,
    "gradient": ProjectedGradientCompletion,
    "cleansed_svd": CleansedSVD,
}
# What each of them publishes of users, in words for the report
SUMS: dict[str, str] = {
    "als": (
        "counts and means of items, then products of ratings with users' coefficients "
        "and second moments of these"
    ),
    "frank_wolfe": (
        "second moments of users' residuals, or products with them, and lengths of "
        "steps; counts and means of items where asked for"
    ),
    "svd": "second moments of users' ratings",
    "gradient": "second moments of users' rows after each step",
    "cleansed_svd": "counts and means of items, then second moments of what is left",
}
