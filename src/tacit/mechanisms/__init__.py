"""The only code that draws noise."""

from tacit.mechanisms.additive import Gaussian, L2Laplace, Laplace, SymmetricGaussian
from tacit.mechanisms.selection import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.threshold import (
    AboveThreshold,
    AboveThresholdState,
    StableRelease,
)
from tacit.mechanisms.tree import TreeState, TreeSum

__all__ = [
    "AboveThreshold",
    "AboveThresholdState",
    "Exponential",
    "Gaussian",
    "L2Laplace",
    "Laplace",
    "NoisyMax",
    "PermuteAndFlip",
    "StableRelease",
    "SymmetricGaussian",
    "TreeState",
    "TreeSum",
]
