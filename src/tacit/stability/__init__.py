"""Any function of the rows, told where no single row can change what it says."""

from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.mechanisms.subsets import block_members
from tacit.stability._base import Answer, Procedure, private_answer
from tacit.stability._stable import (
    ProposeTestRelease,
    ProposeTestReleasePlan,
    StableValue,
    StableValuePlan,
)
from tacit.stability._subsamples import SubsampleVote, SubsampleVotePlan
from tacit.stability._votes import (
    BlockVote,
    BlockVotePlan,
    blocks_needed,
    distance_needed,
    release_probability,
    winner_and_distance,
)

__all__ = [
    "NO_ANSWER",
    "Answer",
    "BlockVote",
    "BlockVotePlan",
    "NoAnswer",
    "Procedure",
    "ProposeTestRelease",
    "ProposeTestReleasePlan",
    "StableValue",
    "StableValuePlan",
    "SubsampleVote",
    "SubsampleVotePlan",
    "block_members",
    "blocks_needed",
    "distance_needed",
    "private_answer",
    "release_probability",
    "winner_and_distance",
]
