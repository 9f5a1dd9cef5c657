"""What to expect of a private release, from public facts and made-up rows."""

from tacit.forecast._regression import noise_at, regression_risk, rows_for_risk
from tacit.forecast._scores import Forecast, Outlook, expected_score, least_rows
from tacit.forecast._selection import rows_for_support

__all__ = [
    "Forecast",
    "Outlook",
    "expected_score",
    "least_rows",
    "noise_at",
    "regression_risk",
    "rows_for_risk",
    "rows_for_support",
]
