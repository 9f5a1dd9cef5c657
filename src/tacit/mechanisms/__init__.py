"""The only code that draws noise, and the generator it draws from."""

from tacit._random import as_generator, spawn
from tacit.mechanisms.additive import Gaussian, L2Laplace, Laplace, SymmetricGaussian
from tacit.mechanisms.continual import TreeState, TreeSum
from tacit.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tacit.mechanisms.repeats import RandomRepeats
from tacit.mechanisms.selection import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.subsets import (
    fixed_subset,
    permutation,
    poisson_subset,
    random_blocks,
)
from tacit.mechanisms.threshold import (
    NO_ANSWER,
    AboveThreshold,
    AboveThresholdState,
    NoAnswer,
    StableRelease,
)
from tacit.mechanisms.votes import (
    CLASS_VOTES,
    NUMBER_VOTES,
    VOTES,
    ConfidentVotes,
    NoisyVotes,
    PublishedVotes,
    Remaining,
    StableVotes,
    VoteAnswer,
    VoteMean,
    VoteMechanism,
    VoteMedian,
    VoteTerms,
    vote_mechanism,
)

__all__ = [
    "CLASS_VOTES",
    "NO_ANSWER",
    "NUMBER_VOTES",
    "VOTES",
    "AboveThreshold",
    "AboveThresholdState",
    "ConfidentVotes",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "L2Laplace",
    "Laplace",
    "NoAnswer",
    "NoisyMax",
    "NoisyVotes",
    "PermuteAndFlip",
    "PublishedVotes",
    "RandomRepeats",
    "Remaining",
    "StableRelease",
    "StableVotes",
    "SymmetricGaussian",
    "TreeState",
    "TreeSum",
    "VoteAnswer",
    "VoteMean",
    "VoteMechanism",
    "VoteMedian",
    "VoteTerms",
    "as_generator",
    "fixed_subset",
    "permutation",
    "poisson_subset",
    "random_blocks",
    "spawn",
    "vote_mechanism",
]
