"""Noise in integers, for sums of integers.

A row's part of a sum is an integer of at most `units`, so the sum has no round-off
and its sensitivity is known exactly. Noise of `GRID` integers is added: the scale
of the noise is fixed, and the multiplier decides how many units a row has.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import at_least, plain, positive
from tacit.exceptions import PlanError
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.noise import GRID, check_noise
from tacit.privacy import Event, GaussianNoise, LaplaceNoise

__all__ = [
    "MAX_INTEGER_ROWS",
    "MOST_UNITS",
    "ROW_LIMIT_ASSUMPTION",
    "DiscreteGaussian",
    "DiscreteLaplace",
]

Integers = NDArray[np.int64]

# Parts of at most this many units are exact in floating point, with 16 bits to spare
MOST_UNITS = 2**36
# With fewer, the rounding of a row's part would be visible in the sum
LEAST_UNITS = 2**8
# Up to this many rows a sum stays below 2^62; more wrap around, which is harmless to
# privacy and useless
MAX_INTEGER_ROWS = 2**26
# The assumption as reports print it
ROW_LIMIT_ASSUMPTION = f"there are at most 2^{MAX_INTEGER_ROWS.bit_length() - 1} rows"


@lru_cache
def integer_units(multiplier: float, sensitivity: float) -> int:
    """Return the units that make noise of `GRID` at least ``multiplier`` times."""
    # roots and other fractions may have been rounded down, by less than one ulp
    exact = sensitivity == int(sensitivity)
    bound = sensitivity if exact else nextafter(sensitivity, inf)
    # [whole:units] in rational numbers, so that the floor is on the safe side
    units = int(Fraction(GRID) / (Fraction(multiplier) * Fraction(bound)))
    if units < LEAST_UNITS:
        raise PlanError(
            f"A noise multiplier of {multiplier:.3g} is too large for integers; "
            "raise epsilon or delta, or make fewer updates."
        )
    return min(MOST_UNITS, units)


@dataclass(frozen=True)
class _Discrete(Drawable):
    """Base of both kinds of integer noise."""

    multiplier: float
    sensitivity: float = 2.0
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        check_noise(self.noise)
        integer_units(self.multiplier, self.sensitivity)

    @property
    def units(self) -> int:
        """Largest integer that a row may add to an entry of the sum."""
        return integer_units(self.multiplier, self.sensitivity)

    @property
    def scale(self) -> float:
        """Scale of the noise, in integers."""
        return float(GRID)

    def draws(self, n: int, rng: Generator) -> Integers:
        """Return ``n`` integers to add, for a kernel that adds them itself."""
        at_least(0, n=n)
        return self._noise((int(n),), rng)

    @abstractmethod
    def _noise(self, shape: tuple[int, ...], rng: Generator) -> Integers: ...

    def _released(
        self, label: str, norm: str, total: NDArray[Any], rng: Generator
    ) -> Integers:
        value = np.asarray(total)
        if value.dtype.kind != "i":
            raise ValueError(
                f"total must be an array of signed integers, got dtype {value.dtype}."
            )
        value = value.astype(np.int64, copy=False)

        def draw() -> Integers:
            return np.asarray(value + self._noise(value.shape, rng), dtype=np.int64)

        return release(
            label,
            value=value,
            sensitivity=self.sensitivity * self.units,
            norm=norm,
            draw=draw,
        )


@dataclass(frozen=True)
class DiscreteGaussian(_Discrete):
    """Discrete Gaussian mechanism for sums of integers.

    The noise has a standard deviation of 2^32 integers. A row may add up to `units` of
    them to a sum, as many as make the noise ``multiplier`` times the sensitivity.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity.
    sensitivity
        How far neighbors can move the sums, in L2 and in units: 2 for one sum of parts
        between ``-units`` and ``units`` of which one is replaced, and the root of the
        number of sums for parts between 0 and ``units``.
    noise
        ``"grid"`` for exact draws, ``"float"`` for ordinary floating point, which is
        for research.

    Notes
    -----
    **Guarantee.** An integer plus a rounded normal is the rounding of their sum,
    hence a post-processing of the Gaussian mechanism of this multiplier (Dong, Roth and
    Su 2022, Theorem 2.7). Nothing is rounded that depends on other rows, so nothing is
    added to the sensitivity. Sums that leave 64 bits wrap around, which is
    post-processing too.
    """

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    def _noise(self, shape: tuple[int, ...], rng: Generator) -> Integers:
        if self.noise == "float":
            return np.rint(GRID * draws.float_normal(shape, rng)).astype(np.int64)
        return draws.rounded_normal(shape, rng)

    def __call__(self, total: NDArray[Any], rng: Generator) -> Integers:
        return self._released("DiscreteGaussian", "l2", total, rng)


@dataclass(frozen=True)
class DiscreteLaplace(_Discrete):
    """Discrete Laplace mechanism for sums of integers.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity.
    sensitivity
        How far neighbors can move the sums, in L1 and in units.
    noise
        As in `DiscreteGaussian`.

    Notes
    -----
    **Guarantee.** Pure privacy with epsilon ``1 / multiplier``: probabilities are
    proportional to ``exp(-|i| / 2^32)`` and sums move by at most ``2^32 / multiplier``
    integers in L1 (Ghosh, Roughgarden and Sundararajan 2012).
    """

    @property
    def event(self) -> Event:
        return LaplaceNoise(self.multiplier)

    def _noise(self, shape: tuple[int, ...], rng: Generator) -> Integers:
        if self.noise == "float":
            return np.rint(GRID * draws.float_laplace(shape, rng)).astype(np.int64)
        return draws.discrete_laplace(shape, rng)

    def __call__(self, total: NDArray[Any], rng: Generator) -> Integers:
        return self._released("DiscreteLaplace", "l1", total, rng)
