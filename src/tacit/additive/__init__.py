"""Private additive models: a shape function for each column.

What boosted trees and explainable boosting are used for, on tables with numbers,
categories and missing cells: `AdditiveClassifier` and `AdditiveRegressor` take a data
frame with public ranges and categories, and release all shapes for one charge.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.additive._estimators import AdditiveClassifier, AdditiveRegressor
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AdditiveClassifier", "AdditiveRegressor"]
