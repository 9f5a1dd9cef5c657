"""What is saved of linear models, and the noise in their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit._estimators import Saved

__all__ = ["NOISE_ARRAYS", "PATH_ARRAYS", "CoefficientNoise", "saved_linear"]

Array = NDArray[np.float64]

# What is saved of the noise in coefficients, and of what each update released
NOISE_ARRAYS = ("noise_coef", "noise_intercept")
PATH_ARRAYS = ("path_features", "path_gradient", "path_deviation")


@dataclass(frozen=True, eq=False)
class CoefficientNoise:
    """Standard deviations of the noise in the coefficients, given the rows.

    It follows from what the fit released and from its plan, so it costs no budget. It
    measures how much another fit of the same rows would differ, not how much a fit of
    other rows would.

    Parameters
    ----------
    coef
        Standard deviations, of the shape of ``coef_``.
    intercept
        That of each intercept, of the shape of ``intercept_``; zero without one.
    how
        Where the numbers come from, and how good they are.
    law
        Distribution of the noise: ``"gaussian"``, ``"laplace"`` or ``"gamma"``.
    """

    coef: Array
    intercept: Array | float
    how: str
    law: str = "gaussian"

    def stds(self, level: float) -> float:
        """Return how many standard deviations cover ``level`` of the noise, or more."""
        if self.law == "gaussian":
            return float(ndtri((1 + level) / 2))
        if self.law == "laplace":
            return log(1 / (1 - level)) / sqrt(2)
        return 1 / sqrt(1 - level)  # Chebyshev's inequality, for any distribution


def saved_linear(
    *losses: type, classes: bool = False, ranges: bool = False, selected: bool = False
) -> Saved:
    """Return what is kept of a linear model that minimizes one of these losses.

    ``ranges`` are those of models whose features have one each, and ``selected`` says
    that they select their columns first.
    """
    fitted: tuple[str, ...] = ("bounds", "loss", "noise")
    fitted += ("classes",) * classes + ("selection",) * selected
    arrays: tuple[str, ...] = ("coef", "intercept")
    if not (ranges or selected):
        optional: tuple[str, ...] = NOISE_ARRAYS
    else:
        arrays += ("low", "high")
        optional = PATH_ARRAYS if ranges else ()
    return Saved("linear", fitted, arrays, optional, losses or None)
