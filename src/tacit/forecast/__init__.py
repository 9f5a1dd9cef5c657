"""What to expect of a private release, from public facts and made-up rows."""

from tacit.forecast._scores import Forecast, Outlook, expected_score, least_rows

__all__ = ["Forecast", "Outlook", "expected_score", "least_rows"]
