"""How noise is divided over the releases of a stream, given how far each can move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Budget

__all__ = ["POWERS", "PaperSchedule", "PowerSchedule", "published_beta"]

Array = NDArray[np.float64]

# Powers of the sensitivity that the noise of a release is in proportion to
POWERS = {"root": 1 / 2, "two_thirds": 2 / 3, "published": 1.0}
# Releases whose sensitivities are held together
CHUNK = 2**20


@dataclass(frozen=True)
class PowerSchedule:
    """Noise in proportion to a power of the sensitivity of each release.

    Parameters
    ----------
    multiplier
        That of all releases together, as one Gaussian mechanism.
    power
        The power q.
    spread
        Root of the sum of ``sensitivity^(2 - 2 q)`` over all releases.

    Notes
    -----
    **Guarantee.** Release t has noise of scale
    ``multiplier * spread * sensitivity_t^q``, so that the squares of sensitivity over
    scale add up to ``1 / multiplier^2``: one Gaussian mechanism of this multiplier,
    for rows chosen after seeing releases too [1]_.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. Su, "Gaussian differential privacy", JRSS B 84, 2022,
       Corollary 3.3.
    """

    multiplier: float
    power: float
    spread: float

    @classmethod
    def over(
        cls,
        multiplier: float,
        power: float,
        sensitivities: Callable[[Array], Array],
        horizon: int,
    ) -> PowerSchedule:
        """Return the schedule of releases 1 to ``horizon`` with these sensitivities."""
        total = _summed(lambda t: sensitivities(t) ** (2 - 2 * power), horizon)
        # [iterates:schedule] powers and sums round by less than the last factor
        return cls(multiplier, power, sqrt(total) * (1 + 1e-13))

    def multiplier_at(self, t: Array, sensitivity: Array) -> Array:
        """Return the ratio of noise to sensitivity at releases t."""
        return self.multiplier * self.spread * sensitivity ** (self.power - 1)


@dataclass(frozen=True)
class PaperSchedule:
    """Noise of scale ``beta / t`` at release t, as published."""

    multiplier: float
    beta: float

    @classmethod
    def over(
        cls, beta: float, sensitivities: Callable[[Array], Array], horizon: int
    ) -> PaperSchedule:
        """Return the schedule, with the multiplier that it comes to in fact."""
        total = _summed(lambda t: (sensitivities(t) * t / beta) ** 2, horizon)
        return cls((1 - 1e-13) / sqrt(total), beta)

    def multiplier_at(self, t: Array, sensitivity: Array) -> Array:
        """Return the ratio of noise to sensitivity at releases t."""
        return self.beta / (t * sensitivity)


def published_beta(reach: float, n_rounds: int, budget: Budget) -> float:
    """Return the published noise for a learner whose output t moves by ``reach / t``.

    Thakurta (2013), Theorem 5.5, has ``(3 epsilon, 2 delta)`` for its epsilon and
    delta: they are a third and a half of the budget here. In closed form, as the power
    of the number of rounds there is one over its logarithm times this root.
    """
    epsilon, delta = budget.epsilon / 3, budget.delta / 2
    logs = log(2 / delta)
    step = epsilon * sqrt(2 / (n_rounds * logs))
    # [iterates:paper]
    return reach / epsilon * sqrt(n_rounds * logs * (log(n_rounds / delta) + step))


def _summed(term: Callable[[Array], Array], horizon: int) -> float:
    """Return the sum of a term over 1 to ``horizon``, in pieces to save memory."""
    starts = range(1, horizon + 1, CHUNK)
    return float(
        sum(
            float(term(np.arange(s, min(s + CHUNK, horizon + 1), dtype=float)).sum())
            for s in starts
        )
    )
