"""Teachers that each see rows of their own, and vote on public questions."""

from tacit.ensemble._durable import DurableLabeler
from tacit.ensemble._labeler import LabelerPlan, PrivateLabeler
from tacit.ensemble._labels import Labels
from tacit.ensemble._plan import TeacherPlan, plan_teachers
from tacit.ensemble._shares import VoteClassifier
from tacit.ensemble._smoothing import NeighborMap, SmoothedVotes
from tacit.ensemble._student import PrivateStudent
from tacit.mechanisms import NO_ANSWER, NoAnswer

__all__ = [
    "NO_ANSWER",
    "DurableLabeler",
    "LabelerPlan",
    "Labels",
    "NeighborMap",
    "NoAnswer",
    "PrivateLabeler",
    "PrivateStudent",
    "SmoothedVotes",
    "TeacherPlan",
    "VoteClassifier",
    "plan_teachers",
]
