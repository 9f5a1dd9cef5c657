"""Votes of teachers, and private answers from them."""

from tacit.mechanisms.votes._base import (
    FAILURE,
    AskedState,
    ClassVotes,
    Remaining,
    VoteAnswer,
    VoteMechanism,
)
from tacit.mechanisms.votes._counting import (
    distance_of_lead,
    lead_of,
    published_distance,
)
from tacit.mechanisms.votes._noisy import ConfidentState, ConfidentVotes, NoisyVotes
from tacit.mechanisms.votes._numbers import NumberVotes, VoteMean, VoteMedian
from tacit.mechanisms.votes._published import PublishedVotes
from tacit.mechanisms.votes._stable import SparseVotes, StableState, StableVotes
from tacit.mechanisms.votes._stable_plan import stable_votes
from tacit.mechanisms.votes._terms import (
    CLASS_VOTES,
    NUMBER_VOTES,
    VOTES,
    VoteKind,
    VoteTerms,
    vote_mechanism,
)
from tacit.mechanisms.votes._vote_distribution import Told, VoteDistribution

__all__ = [
    "CLASS_VOTES",
    "FAILURE",
    "NUMBER_VOTES",
    "VOTES",
    "AskedState",
    "ClassVotes",
    "ConfidentState",
    "ConfidentVotes",
    "NoisyVotes",
    "NumberVotes",
    "PublishedVotes",
    "Remaining",
    "SparseVotes",
    "StableState",
    "StableVotes",
    "Told",
    "VoteAnswer",
    "VoteDistribution",
    "VoteKind",
    "VoteMean",
    "VoteMechanism",
    "VoteMedian",
    "VoteTerms",
    "distance_of_lead",
    "lead_of",
    "published_distance",
    "stable_votes",
    "vote_mechanism",
]
