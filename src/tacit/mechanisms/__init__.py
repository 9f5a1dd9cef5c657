"""Mechanisms: the only code that draws noise, and its generators."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit._random import as_generator
    from tacit.mechanisms.additive import Gaussian, L2Laplace, Laplace
    from tacit.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
    from tacit.mechanisms.selection import Exponential, NoisyMax, PermuteAndFlip
    from tacit.mechanisms.threshold import (
        NO_ANSWER,
        AboveThreshold,
        NoAnswer,
        StableRelease,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "NO_ANSWER",
    "AboveThreshold",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "L2Laplace",
    "Laplace",
    "NoAnswer",
    "NoisyMax",
    "PermuteAndFlip",
    "StableRelease",
    "as_generator",
]
