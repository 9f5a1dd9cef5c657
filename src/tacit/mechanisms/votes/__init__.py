"""Votes of teachers, and private answers from them."""

from tacit.mechanisms.votes._base import Remaining, VoteAnswer, VoteMechanism
from tacit.mechanisms.votes._counting import corrected_distance, published_distance
from tacit.mechanisms.votes._noisy import (
    ConfidentState,
    ConfidentVotes,
    NoisyState,
    NoisyVotes,
)
from tacit.mechanisms.votes._numbers import NumberState, VoteMean, VoteMedian
from tacit.mechanisms.votes._published import PublishedVotes, published_teachers
from tacit.mechanisms.votes._stable import SparseVotes, StableState, StableVotes
from tacit.mechanisms.votes._stable_plan import redrawn_votes, stable_votes
from tacit.mechanisms.votes._terms import (
    CLASS_VOTES,
    NUMBER_VOTES,
    VOTES,
    VoteTerms,
    vote_mechanism,
)

__all__ = [
    "CLASS_VOTES",
    "NUMBER_VOTES",
    "VOTES",
    "ConfidentState",
    "ConfidentVotes",
    "NoisyState",
    "NoisyVotes",
    "NumberState",
    "PublishedVotes",
    "Remaining",
    "SparseVotes",
    "StableState",
    "StableVotes",
    "VoteAnswer",
    "VoteMean",
    "VoteMechanism",
    "VoteMedian",
    "VoteTerms",
    "corrected_distance",
    "published_distance",
    "published_teachers",
    "redrawn_votes",
    "stable_votes",
    "vote_mechanism",
]
