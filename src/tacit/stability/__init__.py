"""Results of any function, released where no single row can change them."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.stability._base import private_answer
    from tacit.stability._stable import ProposeTestRelease, StableValue
    from tacit.stability._subsamples import SubsampleVote
    from tacit.stability._votes import (
        BlockVote,
        blocks_needed,
        release_probability,
        winner_and_distance,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
