"""Intervals of coefficients, and those that cover noise alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit._validate import fraction
from tacit.linear_model._saved import CoefficientNoise
from tacit.privacy import PrivacyReport

__all__ = ["Intervals", "noise_intervals"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """An interval for each coefficient of a model.

    Parameters
    ----------
    level
        Probability with which each interval, taken alone, covers its coefficient.
    low, high
        Ends, of the shape of ``coef_``.
    intercept_low, intercept_high
        Ends for the intercepts, of the shape of ``intercept_``.
    covers
        ``"noise"`` if they are for the coefficients that the same rows would have
        without noise, ``"noise and sampling"`` if for those of the population.
    how
        How they were computed.
    privacy
        The charge for them.
    """

    level: float
    low: Array
    high: Array
    intercept_low: Array | float
    intercept_high: Array | float
    covers: str
    how: str
    privacy: PrivacyReport

    def to_dict(self) -> dict[str, Any]:
        """Return the intervals as plain data, one list an output."""
        return {
            "level": self.level,
            "low": np.atleast_2d(self.low).tolist(),
            "high": np.atleast_2d(self.high).tolist(),
            "covers": self.covers,
            "how": self.how,
            "epsilon": self.privacy.guarantee.epsilon,
        }


def noise_intervals(model: Any, level: float = 0.95) -> Intervals:
    """Return intervals for the coefficients that the same rows have without noise.

    Parameters
    ----------
    model
        A fitted private model whose ``noise_`` is not None.
    level
        Probability with which each interval covers its coefficient.

    Notes
    -----
    **Guarantee.** Nothing is read but the model and nothing is charged: the intervals
    are post-processing of the fit, whose report they carry. They say nothing about
    another sample of rows; `coefficient_intervals` does.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.evaluation import noise_intervals
    >>> from tacit.linear_model import LinearRegression
    >>> from tacit.solvers import AdaSSP
    >>> X = make_census(2000, random_state=0).X
    >>> model = LinearRegression(
    ...     1.0, y_range=(-1, 1), solver=AdaSSP(), x_norm=1.0
    ... ).fit(X, X[:, 0])
    >>> noise_intervals(model).covers
    'noise'
    """
    fraction(closed=False, level=level)
    check_is_fitted(model)
    noise: CoefficientNoise | None = getattr(model, "noise_", None)
    if noise is None:
        raise ValueError(
            "model must know its noise: noise_ is None or missing. OutputPerturbation "
            "and AdaSSP state it, PreconditionedGD for two classes where it can."
        )
    factor = noise.stds(level)
    wide, moved = factor * noise.coef, factor * noise.intercept
    return Intervals(
        level,
        model.coef_ - wide,
        model.coef_ + wide,
        model.intercept_ - moved,
        model.intercept_ + moved,
        "noise",
        noise.how,
        model.privacy_,
    )
