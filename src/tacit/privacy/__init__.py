"""Privacy accounting: budgets, events, privacy curves, ledgers and reports."""

from tacit.privacy.attacker import TradeOff
from tacit.privacy.budget import Budget, Neighbors
from tacit.privacy.combined import PoissonSampled
from tacit.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
    calibrate,
)
from tacit.privacy.ledger import Ledger, Shares
from tacit.privacy.report import PrivacyReport

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "Budget",
    "Composed",
    "Event",
    "GaussianNoise",
    "LaplaceNoise",
    "Ledger",
    "Neighbors",
    "PoissonSampled",
    "PrivacyReport",
    "PureDP",
    "Repeated",
    "Shares",
    "TradeOff",
    "calibrate",
]
