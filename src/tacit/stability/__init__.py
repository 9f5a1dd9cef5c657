"""Results of any function, released where no single row can change them."""

from tacit.stability._base import private_answer
from tacit.stability._stable import ProposeTestRelease, StableValue
from tacit.stability._subsamples import SubsampleVote
from tacit.stability._votes import (
    BlockVote,
    blocks_needed,
    release_probability,
    winner_and_distance,
)

__all__ = [
    "BlockVote",
    "ProposeTestRelease",
    "StableValue",
    "SubsampleVote",
    "blocks_needed",
    "private_answer",
    "release_probability",
    "winner_and_distance",
]
