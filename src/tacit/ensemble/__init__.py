"""Teachers that each see rows of their own, and vote on public questions."""

from tacit.ensemble._answers import Labels
from tacit.ensemble._durable import DurableLabeler
from tacit.ensemble._labeler import PrivateLabeler
from tacit.ensemble._labeler_plan import LabelerPlan
from tacit.ensemble._planning import compare_mechanisms, plan_teachers
from tacit.ensemble._shares import VoteClassifier
from tacit.ensemble._smoothing import NeighborMap, SmoothedVotes
from tacit.ensemble._student import PrivateStudent
from tacit.ensemble._teacher_plan import TeacherPlan

__all__ = [
    "DurableLabeler",
    "LabelerPlan",
    "Labels",
    "NeighborMap",
    "PrivateLabeler",
    "PrivateStudent",
    "SmoothedVotes",
    "TeacherPlan",
    "VoteClassifier",
    "compare_mechanisms",
    "plan_teachers",
]
