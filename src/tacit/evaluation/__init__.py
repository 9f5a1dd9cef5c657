"""Private scores, intervals of coefficients, and forecasts before any row is read."""

from tacit.evaluation._forecast_regression import (
    noise_at,
    regression_risk,
    rows_for_risk,
)
from tacit.evaluation._forecast_scores import (
    Forecast,
    Outlook,
    expected_score,
    least_rows,
)
from tacit.evaluation._forecast_selection import rows_for_support
from tacit.evaluation._intervals import coefficient_intervals, require_theory
from tacit.evaluation._noise import Intervals, noise_intervals
from tacit.evaluation._score import PrivateScore, private_score
from tacit.evaluation._split import hold_out
from tacit.linear_model._base import CoefficientNoise

__all__ = [
    "CoefficientNoise",
    "Forecast",
    "Intervals",
    "Outlook",
    "PrivateScore",
    "coefficient_intervals",
    "expected_score",
    "hold_out",
    "least_rows",
    "noise_at",
    "noise_intervals",
    "private_score",
    "regression_risk",
    "require_theory",
    "rows_for_risk",
    "rows_for_support",
]
