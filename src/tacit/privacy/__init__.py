"""Privacy accounting: budgets, events, privacy curves, ledgers and reports."""

from tacit.privacy.attacker import TradeOff
from tacit.privacy.budget import Budget, Neighbors
from tacit.privacy.combined import (
    FixedSizeSampled,
    OneOf,
    Parallel,
    PoissonSampled,
    RepeatAndSelect,
)
from tacit.privacy.curve import PrivacyCurve, calibrate
from tacit.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    Event,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
    TiltedMinimum,
)
from tacit.privacy.ledger import Ledger, Shares, labelled
from tacit.privacy.report import Entry, PrivacyReport

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "Budget",
    "Composed",
    "Entry",
    "Event",
    "FixedSizeSampled",
    "GaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "Ledger",
    "Neighbors",
    "OneOf",
    "Parallel",
    "PoissonSampled",
    "PrivacyCurve",
    "PrivacyReport",
    "PureDP",
    "RepeatAndSelect",
    "Repeated",
    "Shares",
    "TiltedMinimum",
    "TradeOff",
    "calibrate",
    "labelled",
]
