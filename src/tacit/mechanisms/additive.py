"""Mechanisms that add noise to a number, a vector or a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import release
from tacit._validate import at_least, plain, positive
from tacit.mechanisms import noise as draws
from tacit.mechanisms._base import Drawable
from tacit.mechanisms.noise import check_noise, enlarged, on_grid
from tacit.privacy import Event, GaussianNoise, LaplaceNoise
from tacit.privacy.events import L2LaplaceNoise

__all__ = ["Gaussian", "L2Laplace", "Laplace", "SymmetricGaussian"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussian(Drawable):
    """Gaussian mechanism: noise of ``multiplier`` times the L2 ``sensitivity``.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity.
    sensitivity
        How far neighbors can move the value, in L2.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for ordinary floating
        point, which is for research.

    Notes
    -----
    **Guarantee.** The value is rounded to a grid of 2^-32 noise scales and the normal,
    drawn exactly, to the same grid: their sum is the rounding of a Gaussian mechanism,
    hence a post-processing of it. What rounding the value adds to the sensitivity, one
    cell a coordinate, is compensated by more noise.
    """

    multiplier: float
    sensitivity: float
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    def scale(self, size: int) -> float:
        """Return the standard deviation of the noise on each of ``size`` numbers."""
        if self.noise == "float":
            return self.multiplier * self.sensitivity
        # [grid:gaussian]
        return enlarged(self.multiplier, self.sensitivity, sqrt(size))

    def __call__(self, value: Array, rng: Generator) -> Array:
        value = np.asarray(value, dtype=np.float64)
        scale = self.scale(value.size)

        def draw() -> Array:
            if self.noise == "float":
                return value + scale * draws.float_normal(value.shape, rng)
            return on_grid(value, scale, draws.rounded_normal(value.shape, rng))

        return release(
            "Gaussian", value=value, sensitivity=self.sensitivity, norm="l2", draw=draw
        )


@dataclass(frozen=True)
class Laplace(Drawable):
    """Laplace mechanism: noise of scale ``multiplier`` times the L1 ``sensitivity``.

    Notes
    -----
    **Guarantee.** Pure privacy with epsilon ``1 / multiplier`` (Dwork, McSherry, Nissim
    and Smith 2006), for discrete Laplace noise on the grid too (Ghosh, Roughgarden and
    Sundararajan 2012), whose distribution is drawn exactly.
    """

    multiplier: float
    sensitivity: float
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return LaplaceNoise(self.multiplier)

    def scale(self, size: int) -> float:
        """Return the scale of the noise on each of ``size`` numbers."""
        if self.noise == "float":
            return self.multiplier * self.sensitivity
        # [grid:laplace]
        return enlarged(self.multiplier, self.sensitivity, size)

    def __call__(self, value: Array, rng: Generator) -> Array:
        value = np.asarray(value, dtype=np.float64)
        scale = self.scale(value.size)

        def draw() -> Array:
            if self.noise == "float":
                return value + scale * draws.float_laplace(value.shape, rng)
            return on_grid(value, scale, draws.discrete_laplace(value.shape, rng))

        return release(
            "Laplace", value=value, sensitivity=self.sensitivity, norm="l1", draw=draw
        )


@dataclass(frozen=True)
class L2Laplace(Drawable):
    """L2-Laplace mechanism: noise of density proportional to ``exp(-|x|_2 / scale)``.

    The scale is ``multiplier`` times the L2 sensitivity; the norm of the noise is
    gamma distributed with the dimension as its shape.

    Parameters
    ----------
    multiplier
        Ratio of the scale to the sensitivity.
    sensitivity
        How far neighbors can move the value, in L2.
    size
        Number of coordinates.
    noise
        As in `Gaussian`.

    Notes
    -----
    **Guarantee.** Pure privacy with epsilon ``1 / multiplier``, by the triangle
    inequality (Chaudhuri, Monteleoni and Sarwate 2011). On the grid the noise is the
    product of the norm of ``size + 1`` exact normals and ``size`` others, computed in
    integers with 127 fractional bits and rounded; the distance from the exact
    distribution is stated in the event and enters the slack.
    """

    multiplier: float
    sensitivity: float
    size: int
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        positive(multiplier=self.multiplier, sensitivity=self.sensitivity)
        at_least(1, size=self.size)
        check_noise(self.noise)

    @property
    def event(self) -> Event:
        return L2LaplaceNoise(self.multiplier, self.size)

    def scale(self) -> float:
        """Return the scale of the noise vector."""
        if self.noise == "float":
            return self.multiplier * self.sensitivity
        # [grid:l2laplace]
        return enlarged(self.multiplier, self.sensitivity, sqrt(self.size))

    def __call__(self, value: Array, rng: Generator) -> Array:
        value = np.asarray(value, dtype=np.float64)
        if value.size != self.size:
            raise ValueError(
                f"value must have {self.size} entries, as planned, got {value.size}."
            )
        scale = self.scale()

        def draw() -> Array:
            if self.noise == "float":
                vector = draws.gamma_norm(self.size, rng).reshape(value.shape)
                return value + scale * vector
            cells = draws.rounded_gamma_norm(self.size, rng).reshape(value.shape)
            return on_grid(value, scale, cells)

        return release(
            "L2Laplace", value=value, sensitivity=self.sensitivity, norm="l2", draw=draw
        )


@dataclass(frozen=True)
class SymmetricGaussian(Drawable):
    """Gaussian mechanism for symmetric matrices.

    ``sensitivity`` is in the Frobenius norm of the whole matrix. Entries off the
    diagonal get noise of variance one half, as in the Gaussian orthogonal ensemble.

    Notes
    -----
    **Guarantee.** The upper triangle with its off-diagonal part times the root of two
    is an isometry of symmetric matrices, so this is the Gaussian mechanism on a vector
    of ``p (p + 1) / 2`` numbers.
    """

    multiplier: float
    sensitivity: float
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        Gaussian(self.multiplier, self.sensitivity, self.noise)

    @property
    def event(self) -> Event:
        return GaussianNoise(self.multiplier)

    def scale(self, size: int) -> float:
        """Return the standard deviation on the diagonal, for ``size`` columns."""
        gaussian = Gaussian(self.multiplier, self.sensitivity, self.noise)
        return gaussian.scale(size * (size + 1) // 2)

    def __call__(self, value: Array, rng: Generator) -> Array:
        value = np.asarray(value, dtype=np.float64)
        if value.ndim != 2 or value.shape[0] != value.shape[1]:
            raise ValueError(
                f"value must be a square matrix, got an array of shape {value.shape}."
            )
        upper = np.triu_indices(len(value))
        # halves of both triangles: nothing changes for a symmetric matrix, and another
        # moves no further than its sensitivity
        entries = (value / 2 + value.T / 2)[upper]
        weight = np.where(upper[0] == upper[1], 1.0, sqrt(2.0))
        # the noise is divided and not the value multiplied, which would round it
        scale = self.scale(len(value)) * (1 + 1e-15) / weight

        def draw() -> Array:
            if self.noise == "float":
                return entries + scale * draws.float_normal(entries.shape, rng)
            return on_grid(entries, scale, draws.rounded_normal(entries.shape, rng))

        noisy = np.zeros_like(value)
        noisy[upper] = release(
            "SymmetricGaussian",
            value=entries * weight,
            sensitivity=self.sensitivity,
            norm="l2",
            draw=draw,
        )
        return noisy + np.triu(noisy, 1).T
