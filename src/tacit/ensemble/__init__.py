"""Teachers trained on disjoint rows, whose votes label public rows."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.ensemble._answers import Labels
    from tacit.ensemble._durable import DurableLabeler
    from tacit.ensemble._labeler import PrivateLabeler
    from tacit.ensemble._planning import compare_mechanisms, plan_teachers
    from tacit.ensemble._shares import VoteClassifier
    from tacit.ensemble._smoothing import NeighborMap, SmoothedVotes
    from tacit.ensemble._student import PrivateStudent
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DurableLabeler",
    "Labels",
    "NeighborMap",
    "PrivateLabeler",
    "PrivateStudent",
    "SmoothedVotes",
    "VoteClassifier",
    "compare_mechanisms",
    "plan_teachers",
]
