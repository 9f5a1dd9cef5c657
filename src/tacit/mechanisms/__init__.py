"""The only code that draws noise, and the generator it draws from."""

from tacit._random import as_generator, spawn
from tacit.mechanisms.additive import Gaussian, L2Laplace, Laplace, SymmetricGaussian
from tacit.mechanisms.continual import TreeState, TreeSum
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
from tacit.mechanisms.whole import WholeGaussian, WholeLaplace

__all__ = [
    "NO_ANSWER",
    "AboveThreshold",
    "AboveThresholdState",
    "Exponential",
    "Gaussian",
    "L2Laplace",
    "Laplace",
    "NoAnswer",
    "NoisyMax",
    "PermuteAndFlip",
    "RandomRepeats",
    "StableRelease",
    "SymmetricGaussian",
    "TreeState",
    "TreeSum",
    "WholeGaussian",
    "WholeLaplace",
    "as_generator",
    "fixed_subset",
    "permutation",
    "poisson_subset",
    "random_blocks",
    "spawn",
]
