"""Mechanisms: the only code that draws noise, and its generators."""

from tacit._random import as_generator, spawn
from tacit.mechanisms._votes._noisy import ConfidentVotes, NoisyVotes
from tacit.mechanisms._votes._numbers import VoteMean, VoteMedian
from tacit.mechanisms._votes._published import PublishedVotes
from tacit.mechanisms._votes._stable import StableVotes
from tacit.mechanisms.additive import Gaussian, L2Laplace, Laplace, SymmetricGaussian
from tacit.mechanisms.continual import TreeSum
from tacit.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tacit.mechanisms.repeats import RandomRepeats
from tacit.mechanisms.selection import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.threshold import (
    NO_ANSWER,
    AboveThreshold,
    NoAnswer,
    StableRelease,
)

__all__ = [
    "NO_ANSWER",
    "AboveThreshold",
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
    "StableRelease",
    "StableVotes",
    "SymmetricGaussian",
    "TreeSum",
    "VoteMean",
    "VoteMedian",
    "as_generator",
    "spawn",
]
