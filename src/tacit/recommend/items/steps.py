"""Item sides of iterative solvers: users repeat the public steps on their own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.recommend.items.side import (
    Block,
    ItemSide,
    centered,
    unit_rows,
)
from tacit.recommend.ratings.table import Ratings, kept

__all__ = ["ReplayedItems", "Visited", "WalkItems"]


Array = NDArray[np.float64]


# Numbers in the dense rows of a block, which is 32 megabytes
BLOCK_NUMBERS = 2**22
# Maximum number of steps that can be saved, and of directions of each
MOST_STEPS = 2**16


class Visited(NamedTuple):
    """Private state of some users after the public steps.

    ``values`` are ratings less the level and the offsets, ``predicted`` their
    predictions, and ``others`` the predictions of each from the user's other ratings,
    or empty.
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
    """Item side of Frank-Wolfe: vectors and lengths of all steps.

    Each user repeats the steps on their own row. In a step they multiply the residuals
    of their ratings with the vector, keep a fraction of their row, and move against the
    product along the vector.

    Parameters
    ----------
    keeps
        Fraction of a row that each step keeps.
    lengths
        Factor of the product in each step.
    strengths
        Eigenvalue of each step, less its noise, in units of the squared bound on rows.
    prior_level
        Level of a user of whom nothing is known.
    max_ratings
        Number of ratings of a user that the lengths are for. With more, the product is
        scaled down to this number.
    row_norm
        Norm to which ratings and predictions of a user are clipped. With None, ratings
        are not clipped, and predictions to the norm of the user's ratings.

    Notes
    -----
    **Guarantee.** The fields are public, and a user's row is a function of them and of
    their own ratings, computed by themselves: with the fields released privately, all
    users' rows together are jointly private (Kearns, Pai, Roth and Ullman 2014). The
    fit takes these very steps, so a row replayed from the ratings that the fit used is
    the same to the last bit.
    """

    keeps: Annotated[Array, "rank"]
    lengths: Annotated[Array, "rank"]
    strengths: Annotated[Array, "rank"]
    prior_level: float
    max_ratings: int
    row_norm: float | None = None

    def is_consistent(self) -> bool:
        return self.row_norm is None or self.row_norm > 0

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
        empty = np.empty(0)
        return cls(
            np.empty((len(offsets), 0)),
            offsets,
            low,
            high,
            empty,
            empty,
            empty,
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

    def _at_home(self, ratings: Ratings) -> tuple[Array, Array]:
        at = self.visited(ratings, with_others=False)
        return at.levels, at.coefficients

    def visited(self, ratings: Ratings, *, with_others: bool = True) -> Visited:
        """Return the state of some users after all steps."""
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - Numba

        block, levels = centered(ratings, self.prior_level, offsets=self.offsets)
        indptr, items, values = block
        predicted = np.empty_like(values)
        others = np.empty(len(values) if with_others else 0)
        coefficients = np.zeros((len(levels), len(self.keeps)))
        kernels.repeat_steps(
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
        return Visited(levels, indptr, items, values, predicted, others, coefficients)

    def unit_residuals(self, ratings: Ratings, bound: float) -> Block:
        """Return the residuals of some users over ``bound``, within the unit ball."""
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - Numba

        at = self.visited(ratings, with_others=False)
        kernels.unit_residuals(at.indptr, at.values, at.predicted, bound)
        return at.indptr, at.items, at.predicted


@dataclass(frozen=True, eq=False, repr=False)
class ReplayedItems(ItemSide):
    """Item side of projected gradient descent: the public projection of each step.

    Each user repeats the steps on their own row, which starts from zero. Each step
    moves it towards their ratings, clips it, and multiplies it by the public matrix
    ``V diag(shrink) V^T``.

    Parameters
    ----------
    projections
        Directions of all steps, one step's columns after the other's.
    shrinks
        Factor of each direction.
    ranks
        Number of directions of each step that was made.
    step_sizes, radii
        Size of each step, and the norm a row is clipped to after it, where one is that
        of the longest row of ratings.
    row_norm
        Norm that rows of ratings are clipped to, in ratings.
    max_ratings
        Maximum number of ratings of a user that are used.
    key
        Key of their selection, the same for all users.

    Notes
    -----
    **Guarantee.** Fields are public, and a user's row is a function of them and of
    their own ratings: the very row of the fit, bit for bit, since the fit replays too.
    """

    projections: Annotated[Array, "items", "directions"]
    shrinks: Annotated[Array, "directions"]
    ranks: Annotated[NDArray[np.int64], MOST_STEPS]
    step_sizes: Annotated[Array, "steps"]
    radii: Annotated[Array, "steps"]
    row_norm: float
    max_ratings: int
    key: Annotated[NDArray[np.uint8], 255]

    def is_consistent(self) -> bool:
        n_steps, ranks = len(self.ranks), self.ranks
        last = ranks[-1] if n_steps else 0
        return bool(
            ranks.sum() == self.projections.shape[1]
            and last == self.vectors.shape[1]
            and n_steps <= len(self.step_sizes)
            and (self.radii > 0).all()
            and self.row_norm > 0
        )

    def stepped(self, vectors: Array, shrinks: Array) -> ReplayedItems:
        """Return this side with one more projection."""
        return replace(
            self,
            vectors=vectors,
            projections=np.concatenate([self.projections, vectors], axis=1),
            shrinks=np.concatenate([self.shrinks, shrinks]),
            ranks=np.append(self.ranks, vectors.shape[1]),
        )

    def next_rows(self, ratings: Ratings) -> Iterator[Callable[[], Block]]:
        """Yield functions for users' rows after another step, over its radius.

        The rows are private.
        """
        users = max(1, BLOCK_NUMBERS // self.n_items)
        return (partial(self._next, block) for block in ratings.blocks(users))

    def _next(self, block: Ratings) -> Block:
        rows = np.empty((block.n_users, self.n_items))
        self._descend(block, rows)
        items = np.arange(self.n_items, dtype=np.int32)
        indptr = np.arange(block.n_users + 1, dtype=np.int64) * self.n_items
        return indptr, np.tile(items, block.n_users), rows.ravel()

    def _at_home(self, block: Ratings) -> tuple[Array, Array]:
        levels, scales, coefficients = self._descend(
            block, np.empty((block.n_users, 0))
        )
        # the clipping of their ratings is undone, which is up to each user
        return levels, coefficients / scales[:, None]

    def _descend(self, block: Ratings, rows: Array) -> tuple[Array, Array, Array]:
        """Fill ``rows``; return levels, scales, and coefficients of scaled rows."""
        from tacit.recommend.items import _kernels as kernels  # noqa: PLC0415 - numba

        block = kept(block, self.max_ratings, self.key.tobytes())
        middle = self.low / 2 + self.high / 2
        parts, levels, scales = unit_rows(block, middle, self.row_norm)
        last = int(self.ranks[-1]) if len(self.ranks) else 0
        coefficients = np.empty((len(levels), last))
        kernels.descend(
            *parts,
            np.ascontiguousarray(self.projections),
            self.shrinks,
            self.ranks,
            self.step_sizes,
            self.radii,
            rows,
            coefficients,
        )
        return levels, scales, coefficients
