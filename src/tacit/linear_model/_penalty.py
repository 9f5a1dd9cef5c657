"""Penalties of an estimator, as its private problem wants them."""

from __future__ import annotations

from dataclasses import replace

from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Free,
    GroupL1,
    L1Ball,
    L2Ball,
    Regularizer,
    Simplex,
)
from tacit.convex.proximal import CERTIFIED

__all__ = ["checked_penalty", "rescaled_penalty"]


def checked_penalty(penalty: Regularizer | None, fit_intercept: bool) -> Regularizer:
    """Return the penalty of the problem, or refuse what no problem can have."""
    if penalty is None:
        return Free()
    if not isinstance(penalty, CERTIFIED):
        names = ", ".join(kind.__name__ for kind in CERTIFIED)
        raise ValueError(
            f"penalty must be None or one of {names} from tacit.convex, got "
            f"{type(penalty).__name__}."
        )
    if isinstance(penalty, Simplex) and fit_intercept:
        raise ValueError(
            "penalty=Simplex() leaves no room for an intercept; set "
            "fit_intercept=False."
        )
    return penalty


def rescaled_penalty(penalty: Regularizer, scale: float) -> Regularizer:
    """Return the penalty of weights that were divided by ``scale``.

    The sum of squared residuals was divided by its square, and so is the penalty:
    nothing changes but the unit.
    """
    match penalty:
        case L1() | GroupL1():
            return replace(penalty, weight=penalty.weight / scale)
        case ElasticNet():
            return replace(penalty, l1=penalty.l1 / scale)
        case L2Ball() | L1Ball():
            return replace(penalty, radius=penalty.radius / scale)
        case Box():
            return replace(penalty, low=penalty.low / scale, high=penalty.high / scale)
        case Simplex():
            raise ValueError(
                "penalty=Simplex() has no unit of the targets; use SimplexRegressor."
            )
    return penalty
