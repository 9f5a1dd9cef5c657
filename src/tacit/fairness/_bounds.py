"""Bounds on how figures differ between models with similar weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.fairness._groups import Cells
from tacit.fairness._notions import FairnessForm

__all__ = ["BOUNDS", "Fragile", "changes", "fragile_rows"]

Floats = NDArray[np.float64]

BOUNDS = ("one_sided", "count", "markov", "corollary", "corollary_count")
# Margins and norms have rounding errors; rows this close to the edge count as inside
SLACK = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Fragile:
    """Answers that another model within some distance may change.

    Parameters
    ----------
    right
        Whether the answer of the reference is right, ties as it decides them.
    losable
        Whether a right answer may become wrong; true for a tie.
    winnable
        Whether a wrong answer may become right; true for a tie.
    reach
        How far each margin can move.
    """

    right: NDArray[np.bool_]
    losable: NDArray[np.bool_]
    winnable: NDArray[np.bool_]
    reach: Floats

    @property
    def either(self) -> NDArray[np.bool_]:
        """Whether the answer may turn at all."""
        return self.losable | self.winnable

    @property
    def surely_right(self) -> NDArray[np.bool_]:
        """Whether every model within the distance is right."""
        return self.right & ~self.either

    @property
    def possibly_right(self) -> NDArray[np.bool_]:
        """Whether some model within the distance may be right."""
        return self.right | self.winnable


def fragile_rows(
    margins: ArrayLike,
    lipschitz: ArrayLike,
    distance: float,
    n_rows: int,
    right: ArrayLike | None = None,
) -> Fragile:
    """Return which answers can turn when weights move by ``distance``.

    ``right`` is whether the reference is right, for ties; None takes them as wrong.
    """
    rho = np.asarray(margins, dtype=np.float64)
    derivative = np.asarray(lipschitz, dtype=np.float64)
    if rho.shape != (n_rows,) or derivative.shape not in ((), (n_rows,)):
        raise ValueError(
            "margins must have one number for each row of y_true, and lipschitz one "
            "or as many."
        )
    ties = np.asarray(False if right is None else right, dtype=bool)
    if ties.shape not in ((), (n_rows,)):
        raise ValueError("right must be one boolean for each row of y_true.")
    if (
        not np.isfinite(rho).all()
        or not (np.isfinite(derivative) & (derivative >= 0)).all()
    ):
        raise ValueError(
            "margins must be finite, and lipschitz must be finite and >= 0."
        )
    # zero for rows of zeros, also for an infinite distance
    reach = np.where(derivative > 0, derivative * distance * SLACK, 0.0)
    # [fairness:fragile] a larger margin keeps its sign
    near = np.abs(rho) <= reach
    # [fairness:ties] another model may decide a tie either way: it counts both ways
    happens = np.where(rho == 0, ties, rho > 0)
    return Fragile(happens, near & (rho >= 0), near & (rho <= 0), reach)


def changes(
    form: FairnessForm, cells: Cells, fragile: Fragile, rho: ArrayLike, bound: str
) -> tuple[Floats, Floats]:
    """Return the least and the largest possible change of each figure."""
    if bound == "one_sided":
        lost, won = cells.means(fragile.losable), cells.means(fragile.winnable)
        # [fairness:one-sided] a cell's accuracy falls by lost or grows by won at most
        ends = np.stack([form.C * won, -form.C * lost])
        return ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
    if bound in ("count", "corollary_count"):
        turned = cells.means(fragile.either)
    else:
        # [fairness:markov] infinite where a margin is zero
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = fragile.reach / np.abs(np.asarray(rho, dtype=np.float64))
        turned = cells.means(np.where(np.isnan(ratio), np.inf, ratio))
    printed = bound.startswith("corollary")
    # [fairness:exact-sums] the corollary adds what cancels in these
    weights = form.own + form.average if printed else np.abs(form.C)
    # a weight of zero takes no part, however large the ratio
    most = np.where(weights > 0, weights * turned, 0.0).sum(axis=1)
    return -most, most
