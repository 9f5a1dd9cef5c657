"""Private selection of columns, with scikit-learn's interface."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.feature_selection._block_selectors import HuberLassoSupport
    from tacit.feature_selection._exponential import ExponentialSelector
    from tacit.feature_selection._lasso import LassoStabilitySelector
    from tacit.feature_selection._peeling_selector import PeelingSelector
    from tacit.feature_selection._votes import BlockVoteSelector
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BlockVoteSelector",
    "ExponentialSelector",
    "HuberLassoSupport",
    "LassoStabilitySelector",
    "PeelingSelector",
]
