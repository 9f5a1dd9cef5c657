"""Noisy directions and step lengths of private Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import PlainNumbers, at_least, one_of, plain
from tacit.mechanisms import DiscreteGaussian
from tacit.mechanisms.noise import float_normal
from tacit.privacy import Event, Neighbors, Repeated
from tacit.recommend.items.steps import Visited
from tacit.recommend.ratings.table import summed
from tacit.recommend.solvers.moments import MARGIN, Blocks, factor_with_room

__all__ = ["NOISES", "PRODUCT_SOLVERS", "NoisyProducts", "StepLength"]


Array = NDArray[np.float64]

# Methods without the matrix: by noisy products of it with vectors
PRODUCT_SOLVERS = ("oja", "power")


@dataclass(frozen=True)
class NoisyProducts:
    """Release of the leading direction, by noisy products with vectors.

    The matrix is never formed: memory and time are those of the ratings. With the same
    budget a noisy matrix is better, so this is for catalogues too large for a matrix.
    The method ``"power"`` normalizes each product to the next vector; ``"oja"`` adds it
    to the vector, times one over the noise's scale and the root of items times
    products. The multiplier is that of each product and of the eigenvalue.

    Notes
    -----
    **Guarantee.** Each of ``n_products + 1`` releases is a Gaussian mechanism of the
    multiplier. The product of a unit vector with ``a a^T - b b^T`` is at most the
    longer of ``a`` and ``b`` squared, for the eigenvalues of the difference are between
    ``-|b|^2`` and ``|a|^2``: so a user within the unit ball moves a product by one, and
    the eigenvalue by one, whether they are replaced, added or removed. The start is a
    unit vector too. After M. Hardt and E. Price, "The noisy power method", NIPS 2014,
    and O. Thakkar, PhD thesis, Boston University 2019, Algorithm 14, whose start had no
    bounded length and whose step shrank with the number of products.
    """

    n_items: int
    n_products: int
    multiplier: float
    method: str = "oja"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, n_items=self.n_items, n_products=self.n_products)
        one_of(PRODUCT_SOLVERS, method=self.method)
        # noise that integers cannot represent is rejected before the charge
        self.factor  # noqa: B018

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on a product, and on the eigenvalue."""
        # [completion:product] one for either relation
        return DiscreteGaussian(self.multiplier, 1.0, self.noise)

    @property
    def event(self) -> Event:
        """Event of all releases."""
        return Repeated(self.mechanism.event, self.n_products + 1)

    @property
    def factor(self) -> float:
        """Factor of products of rows within the unit ball."""
        # [completion:product-room] truncation moves two products apart by less than one
        # more in each entry that both have
        return factor_with_room(
            self.mechanism.units,
            sqrt(self.n_items),
            f"products with {self.n_items} items",
            "make fewer products",
        )

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on a product's entries and the eigenvalue."""
        return self.mechanism.scale / self.factor

    def run(self, blocks: Callable[[], Blocks], rng: Generator) -> tuple[float, Array]:
        """Return the eigenvalue and the unit vector, both with their noise.

        ``blocks`` gives the users anew for each product, as for `second_moments`.
        """
        from tacit.recommend.solvers import _kernels as kernels  # noqa: PLC0415 - numba

        # [completion:start] of norm one, or the first product would have no bound
        vector = _unit(float_normal(self.n_items, rng))
        for _ in range(self.n_products):
            total = summed(
                kernels.add_product, blocks(), self.n_items, vector, self.factor
            )
            product = self.mechanism(total, rng) / self.factor
            if self.method == "oja":
                step = 1 / (self.scale * sqrt(self.n_items * self.n_products))
                product = vector + step * product
            vector = _unit(product)
        total = summed(kernels.add_square, blocks(), 1, vector, self.factor)
        return float(self.mechanism(total, rng)[0] / self.factor), vector


def _unit(vector: Array) -> Array:
    norm = float(np.linalg.norm(vector))
    if norm > 0:
        return vector / norm
    return np.full(len(vector), 1 / sqrt(len(vector)))


# Standard deviations of noise that a number must exceed to be significant
NOISES = 3.0


@dataclass(frozen=True)
class StepLength(PlainNumbers):
    """Release of the length of a step, by leave-one-out errors of users.

    Each user predicts each of their ratings from their others, with and without the
    step. The sum over users of the derivative and the curvature of the squared error
    along the step gives its best length. A direction of pure noise does not help to
    predict a rating that was left out, so that it gets a length of about zero.

    Notes
    -----
    **Guarantee.** A Gaussian mechanism of this multiplier on two numbers. Those of a
    user are scaled together into a disk of radius one, so two users are at most two
    apart (Dong, Roth and Su 2022, Theorem 2.7).
    """

    multiplier: float
    neighbors: Neighbors
    noise: str = "grid"

    @property
    def mechanism(self) -> DiscreteGaussian:
        """Noise on derivative and curvature."""
        # [completion:length-sensitivity] two points of a disk, or one
        return DiscreteGaussian(
            self.multiplier, float(self.neighbors.rows_changed), self.noise
        )

    @property
    def event(self) -> Event:
        """Event of the release."""
        return self.mechanism.event

    def run(
        self,
        blocks: Iterable[Callable[[], Visited]],
        vector: Array,
        reach: float,
        max_ratings: int,
        bound: float,
        rng: Generator,
    ) -> float:
        """Return the length as a fraction of the full step, between zero and one.

        ``blocks`` are users after the steps so far, and ``reach`` is the factor of
        products in the full step. ``max_ratings`` of a user, and a row of residuals of
        norm ``bound``, count in full.
        """
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - Numba

        mechanism = self.mechanism
        total = summed(
            kernels.add_lengths,
            (partial(_arrays, block) for block in blocks),
            2,
            vector,
            reach,
            float(max_ratings),
            bound,
            mechanism.units * (1 - MARGIN),
        )
        derivative, curvature = mechanism(total, rng).tolist()
        # with a curvature below its noise, the length would be arbitrary
        full = max(curvature, NOISES * mechanism.scale)
        fraction: float = derivative / full / reach
        return min(max(fraction, 0.0), 1.0)


def _arrays(block: Callable[[], Visited]) -> tuple[NDArray[Any], ...]:
    at = block()
    return at.indptr, at.items, at.values, at.predicted, at.others
