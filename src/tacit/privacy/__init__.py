"""Privacy accounting: budgets, events, privacy curves, ledgers and reports."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
