"""Plots for notebooks, with matplotlib; install the extra ``plots``.

Every function draws on the Axes it is given, or on new ones, and returns them. Plots
show values that were released before: they read no rows, draw no noise and cost no
budget.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.plots._models import coefficients, privacy_utility
    from tacit.plots._privacy import audit_roc, ledger, privacy_curve, trade_off
    from tacit.plots._shapes import plot_shapes
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "audit_roc",
    "coefficients",
    "ledger",
    "plot_shapes",
    "privacy_curve",
    "privacy_utility",
    "trade_off",
]
