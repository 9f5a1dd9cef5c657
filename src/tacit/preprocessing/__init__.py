"""Transformers that learn nothing from the rows, or learn it privately.

`PublicScaler` and `PublicOneHot` use public facts only and cost nothing.
`RandomFourierFeatures` and `RandomPartitionTrees` let linear models learn interactions.
Their structure is drawn without data, so they cost nothing either.
`PrivateStandardScaler` and `PrivateQuantileBounds` release statistics of the rows with
noise and charge a ledger for them.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.preprocessing._private import (
        PrivateQuantileBounds,
        PrivateStandardScaler,
    )
    from tacit.preprocessing._public import PublicOneHot, PublicScaler
    from tacit.preprocessing._random_features import (
        RandomFourierFeatures,
        RandomPartitionTrees,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "PrivateQuantileBounds",
    "PrivateStandardScaler",
    "PublicOneHot",
    "PublicScaler",
    "RandomFourierFeatures",
    "RandomPartitionTrees",
]
