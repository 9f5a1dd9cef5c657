"""Private selection of columns, with scikit-learn's interface."""

from tacit.feature_selection._block_selectors import HuberLassoSupport
from tacit.feature_selection._exponential import ExponentialSelector
from tacit.feature_selection._lasso import LassoStabilitySelector
from tacit.feature_selection._peeling_selector import PeelingSelector
from tacit.feature_selection._votes import BlockVoteSelector

__all__ = [
    "BlockVoteSelector",
    "ExponentialSelector",
    "HuberLassoSupport",
    "LassoStabilitySelector",
    "PeelingSelector",
]
