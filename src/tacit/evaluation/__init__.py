"""Private scores, intervals of coefficients, and forecasts before any row is read."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.evaluation._forecast_regression import (
        noise_at,
        regression_risk,
        rows_for_risk,
    )
    from tacit.evaluation._forecast_scores import expected_score
    from tacit.evaluation._forecast_selection import rows_for_support
    from tacit.evaluation._intervals import coefficient_intervals
    from tacit.evaluation._noise import noise_intervals
    from tacit.evaluation._score import private_score
    from tacit.evaluation._split import hold_out
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "coefficient_intervals",
    "expected_score",
    "hold_out",
    "noise_at",
    "noise_intervals",
    "private_score",
    "regression_risk",
    "rows_for_risk",
    "rows_for_support",
]
