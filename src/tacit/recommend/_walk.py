"""The item side of a walk: public steps, which every user takes with her own row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._threads import in_order
from tacit.mechanisms import WholeGaussian
from tacit.privacy import Event, Neighbors
from tacit.recommend._local import USUAL_PRIOR_COUNT, plain_arrays
from tacit.recommend._second_moments import Block
from tacit.recommend._side import ItemSide, UserSide
from tacit.recommend._whole import MARGIN, summed

if TYPE_CHECKING:
    from tacit.recommend._ratings import Ratings

__all__ = ["StepLength", "WalkItems", "Walked"]

Array = NDArray[np.float64]

# Users in a block: their numbers stay in the cache, which halves the time of a walk
BLOCK_USERS = 1024
# Scales of noise that a number needs to be more than noise
NOISES = 3.0


class Walked(NamedTuple):
    """Where the steps took some users; it is secret.

    ``values`` are ratings less the level and the offsets, ``predicted`` what the steps
    make of them, and ``others`` what they make of each from the user's other ratings.
    """

    levels: Array
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: Array
    predicted: Array
    others: Array
    coefficients: Array


@dataclass(frozen=True, eq=False, repr=False)
class WalkItems(ItemSide):
    """Vectors and lengths of all steps, from which any user replays her own row.

    In each step a user multiplies the residuals of her ratings with the vector of the
    step, keeps a part of her row, and moves against the product along the vector.

    Parameters
    ----------
    keeps
        What is kept of a row in each step.
    lengths
        What the product is multiplied by in each step.
    strengths
        Eigenvalue of each step, less its noise, in units of the squared bound on rows.
    prior_level
        Level of a user of whom nothing is known.
    max_ratings
        Ratings of a user that the lengths are for. The product of one with more is
        that of as many, on average.
    row_norm
        Norm to which ratings and predictions of a user are clipped; None where neither
        is, and predictions are no longer than the user's ratings.

    Notes
    -----
    **Guarantee.** The fields are public, and a user's row is a function of them and of
    her own ratings, computed by herself: with the fields released privately, all users'
    rows together are jointly private (Kearns, Pai, Roth and Ullman 2014). The fit takes
    these very steps, so a row replayed from the ratings that the fit used is the same
    to the last bit.
    """

    keeps: Array
    lengths: Array
    strengths: Array
    prior_level: float
    max_ratings: int
    row_norm: float | None = None

    @classmethod
    def start(
        cls,
        offsets: Array,
        low: float,
        high: float,
        prior_level: float,
        max_ratings: int,
        row_norm: float | None = None,
    ) -> WalkItems:
        """Return the side before the first step."""
        none = np.empty(0)
        return cls(
            np.empty((len(offsets), 0)),
            offsets,
            low,
            high,
            none,
            none,
            none,
            prior_level,
            max_ratings,
            row_norm,
        )

    def moved(
        self, vector: Array, keep: float, length: float, strength: float
    ) -> WalkItems:
        """Return the side after one more step."""
        return replace(
            self,
            vectors=np.column_stack([self.vectors, vector]),
            keeps=np.append(self.keeps, keep),
            lengths=np.append(self.lengths, length),
            strengths=np.append(self.strengths, strength),
        )

    def local(self, ratings: Ratings) -> UserSide:
        """Return level and coefficients of each user, from her own ratings alone."""
        blocks = ratings.blocks(BLOCK_USERS)
        found = list(in_order(self.walked, blocks, side_by_side=True))
        none = np.empty((0, self.vectors.shape[1]))
        levels = [np.empty(0), *(walked.levels for walked in found)]
        coefficients = [none, *(walked.coefficients for walked in found)]
        return UserSide(np.concatenate(levels), np.concatenate(coefficients))

    def walked(self, ratings: Ratings) -> Walked:
        """Return where all steps take some users."""
        from tacit.recommend import (  # noqa: PLC0415 - numba loads on use
            _local_kernels,
            _walk_kernels,
        )

        indptr, items, values = plain_arrays(ratings)
        values -= self.offsets[items]
        levels = np.empty(len(indptr) - 1)
        _local_kernels.center(
            indptr, values, self.prior_level, USUAL_PRIOR_COUNT, levels
        )
        predicted, others = np.empty_like(values), np.empty_like(values)
        coefficients = np.zeros((len(levels), len(self.keeps)))
        _walk_kernels.walk(
            indptr,
            items,
            values,
            np.ascontiguousarray(self.vectors.T),
            self.keeps,
            self.lengths,
            inf if self.row_norm is None else self.row_norm,
            float(self.max_ratings),
            predicted,
            others,
            coefficients,
        )
        return Walked(levels, indptr, items, values, predicted, others, coefficients)

    def unit_residuals(self, ratings: Ratings, bound: float) -> Block:
        """Return the residuals of some users over ``bound``, within the unit ball."""
        from tacit.recommend import _walk_kernels  # noqa: PLC0415 - numba loads on use

        at = self.walked(ratings)
        _walk_kernels.unit_residuals(at.indptr, at.values, at.predicted, bound)
        return at.indptr, at.items, at.predicted


@dataclass(frozen=True)
class StepLength:
    """Release how far to go along a step, from what it does to ratings left out.

    Each user predicts each of her ratings from her others, with and without the step.
    The sum over users of slope and curvature of the squared error along the step says
    where it ends. A direction of noise helps to predict no rating that was left out, so
    it gets a length of about zero.

    Parameters
    ----------
    multiplier
        Ratio of noise to sensitivity.
    neighbors
        Whether one user is replaced, or added or removed.
    noise
        ``"grid"`` or ``"float"``.

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
    def mechanism(self) -> WholeGaussian:
        """Noise on slope and curvature."""
        # [completion:length-sensitivity] two points of a disk, or one
        return WholeGaussian(
            self.multiplier, float(self.neighbors.rows_changed), self.noise
        )

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism.event

    def run(
        self,
        blocks: Iterable[Callable[[], Walked]],
        vector: Array,
        reach: float,
        max_ratings: int,
        bound: float,
        rng: Generator,
    ) -> float:
        """Return the share of the whole step to go, between zero and one.

        Parameters
        ----------
        blocks
            What makes each block of users, walked so far.
        vector
            Direction of the step.
        reach
            What products are multiplied by in the whole step.
        max_ratings
            Ratings of a user that weigh in full.
        bound
            Norm of a row of residuals that counts in full.
        rng
            Source of the noise.
        """
        from tacit.recommend import _walk_kernels  # noqa: PLC0415 - numba loads on use

        mechanism = self.mechanism
        total = summed(
            _walk_kernels.add_lengths,
            (partial(_lengthened, block) for block in blocks),
            2,
            vector,
            reach,
            float(max_ratings),
            bound,
            mechanism.units * (1 - MARGIN),
        )
        slope, curvature = mechanism(total, rng).tolist()
        # a curvature below its noise would make any length of it
        share = slope / max(curvature, NOISES * mechanism.scale) / reach
        return min(max(share, 0.0), 1.0)


def _lengthened(block: Callable[[], Walked]) -> tuple[Array, ...]:
    at = block()
    return at.indptr, at.items, at.values, at.predicted, at.others
