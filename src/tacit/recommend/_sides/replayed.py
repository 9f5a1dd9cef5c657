"""An item side that users replay: projections, one after each step of descent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.recommend._ratings.rating_limits import kept
from tacit.recommend._sides.base import ItemSide
from tacit.recommend._sides.local import Block
from tacit.recommend._sides.unit_rows import unit_rows

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

__all__ = ["ReplayedItems"]

Array = NDArray[np.float64]

# Numbers in the dense rows of a block, which is 32 megabytes
BLOCK_NUMBERS = 2**22


@dataclass(frozen=True, eq=False, repr=False)
class ReplayedItems(ItemSide):
    """Public projections, through which each user takes her own row.

    A row starts from zero. Each step moves it towards the user's ratings, clips it,
    and multiplies it by a public matrix ``V diag(shrink) V^T``.

    Parameters
    ----------
    projections
        Directions of all steps, one step's columns after the other's.
    shrinks
        What each direction is multiplied by.
    ranks
        Number of directions of each step that was made.
    step_sizes, radii
        Size of each step, and the norm a row is clipped to after it, where one is that
        of the longest row of ratings.
    row_norm
        Norm that rows of ratings are clipped to, in ratings.
    max_ratings
        Most ratings of a user that are used.
    key
        What decides on these, the same for all users.

    Notes
    -----
    **Guarantee.** Fields are public, and a user's row is a function of them and of her
    own ratings: the very row of the fit, bit for bit, since the fit replays too.
    """

    projections: Array
    shrinks: Array
    ranks: NDArray[np.int64]
    step_sizes: Array
    radii: Array
    row_norm: float
    max_ratings: int
    key: NDArray[np.uint8]

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
        """Yield what makes users' rows after another step, over its radius.

        They are secret.
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
        # rows that were clipped are made long again: that is up to each user
        return levels, coefficients / scales[:, None]

    def _descend(self, block: Ratings, rows: Array) -> tuple[Array, Array, Array]:
        """Fill ``rows``; return levels, scales, and coefficients of scaled rows."""
        from tacit.recommend._sides import replay_kernels  # noqa: PLC0415 - numba

        block = kept(block, self.max_ratings, self.key.tobytes())
        middle = self.low / 2 + self.high / 2
        parts, levels, scales = unit_rows(block, middle, self.row_norm)
        last = int(self.ranks[-1]) if len(self.ranks) else 0
        coefficients = np.empty((len(levels), last))
        replay_kernels.descend(
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
