"""Bounds as published, for comparison only: the others are never looser."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from tacit._validate import at_least, fraction, nonnegative

__all__ = ["printed_distance", "truncated_chernoff"]


def printed_distance(scale: float, n_weights: int, *, failure: float = 0.01) -> float:
    """Return the published bound on what Gaussian noise moves weights by.

    Parameters
    ----------
    scale, n_weights, failure
        As in `output_perturbation_distance`, which is three to four and a half times
        smaller for 9 to 1,000 weights and a failure of 0.01.

    Notes
    -----
    **Bound.** ``scale sqrt(4 n_weights log(2 / failure))`` (Mangold 2023, Lemma
    6.5.1). For comparison only.
    """
    nonnegative(scale=scale)
    at_least(1, n_weights=n_weights)
    fraction(closed=False, failure=failure)
    return scale * sqrt(4 * n_weights * log(2 / failure))


def truncated_chernoff(
    margins: ArrayLike, lipschitz: ArrayLike, distance: float, t: float
) -> float:
    """Return the published bound on how many answers differ, for one ``t``.

    Parameters
    ----------
    margins, lipschitz
        As in `Margins`.
    distance
        Distance of the two models.
    t
        Parameter that the publication searches for.

    Notes
    -----
    **Bound.** ``exp(t d) E[exp(-t |margin| / lipschitz); |margin| <= lipschitz d]``
    (Mangold 2023, Remarks C.2.1 and C.2.2). Every row that is left has an exponent of
    at least zero, so it grows with ``t``, and is least at ``t = 0``: the plain share of
    rows with a small margin, which `certify` counts. For comparison only.
    """
    nonnegative(distance=distance, t=t)
    rho, derivative = np.abs(margins), np.asarray(lipschitz, dtype=np.float64)
    near = rho <= derivative * distance
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(near & (derivative > 0), distance - rho / derivative, 0.0)
    return float(np.where(near, np.exp(t * left), 0.0).mean())
