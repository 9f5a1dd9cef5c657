"""What noise and ridge cost least squares, exactly, and the ridge that costs least.

Every figure is in the units of the problem and follows from public facts and stated
guesses alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import nonnegative, plain, positive
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Event
from tacit.privacy.curve import TiltedProfile
from tacit.privacy.events import TiltedMinimum
from tacit.solvers._base import Problem

__all__ = [
    "RowGuess",
    "expected_excess",
    "least_risk_ridge",
    "output_risk",
    "ridge_range",
    "rough_noise",
]

Array = NDArray[np.float64]

# Ridges that are tried first, and then between the neighbors of the best
TRIED = 11
TRIED_AGAIN = 3
LARGEST_NOISE = 1e9
# How much more risk than the least is taken for the sake of a smaller ridge
LEVEL = 0.02
# Part of epsilon that the least ridge leaves for noise
MIN_NOISE_FRACTION = 0.1


@dataclass(frozen=True)
class RowGuess:
    """Guess of rows and targets, before any is read.

    Parameters
    ----------
    spread
        Root of the mean squared norm of a row, in units of the bound on it.
    decay
        The eigenvalues of the second moments fall like ``1 / i^decay``.
    signal
        Root of the mean squared best prediction, in units of the largest target.

    Notes
    -----
    The defaults were chosen on synthetic regressions: normal rows with flat and with
    falling spectra, with and without a constant feature.
    """

    spread: float = 0.5
    decay: float = 1.0
    signal: float = 0.3

    def __post_init__(self) -> None:
        plain(self)
        positive(spread=self.spread, signal=self.signal)
        nonnegative(decay=self.decay)

    def spectrum(self, problem: Problem) -> Array:
        """Return the eigenvalues of the second moments of all rows planned for."""
        falling = np.arange(1.0, problem.n_features + 1.0) ** -self.decay
        total = problem.n_rows * (self.spread * problem.bounds.x_norm) ** 2
        eigenvalues: Array = total * falling / falling.sum()
        return eigenvalues

    def weights(self, problem: Problem) -> Array:
        """Return the best weights along the eigenvectors, all of one size.

        They predict what the signal says, unless the set that the weights must be in
        does not reach so far.
        """
        p, spectrum = problem.n_features, self.spectrum(problem)
        wanted = self.signal * problem.largest_target
        each = wanted / sqrt(float(spectrum.sum()) / problem.n_rows)
        return np.full(p, min(each, problem.regularizer.radius / sqrt(p)))


GUESS = RowGuess()


def expected_excess(
    spectrum: Array, weights: Array, curvature: Array, noise: float | Array
) -> float:
    """Return the expected excess of the summed loss, half the squared residuals.

    ``spectrum`` has the eigenvalues of the second moments of the rows, ``weights`` the
    minimizer without noise along their eigenvectors, ``curvature`` the eigenvalues of
    the Hessian used instead, lifted or with a ridge, and ``noise`` the standard
    deviation of the linear term.

    Notes
    -----
    **Bound.** Exact where no constraint is active: in direction i the minimizer is off
    by ``((h - l) c + b) / h``, with l, c, h and b the four arguments, and the loss
    exceeds its least value by half of l times its square. Where a constraint is active
    it is a guide.
    """
    # [quadratic:excess]
    missed = (curvature - spectrum) ** 2 * weights**2 + np.square(noise)
    return float(np.sum(spectrum * missed / curvature**2) / 2)


def output_risk(spectrum: Array, std: float) -> float:
    """Return what noise of this standard deviation on the weights themselves costs."""
    return float(np.sum(spectrum) * std**2 / 2)


def least_risk_ridge(
    planned: Callable[[float], Any], lowest: float, highest: float
) -> float:
    """Return the least ridge whose plan has nearly the least expected risk.

    The least, as fewer rows than planned for would suffer from more. Ridges are tried
    in geometric progression, then between the neighbors of the best. Those that cannot
    be planned with are skipped; if every one is rejected, the last error is raised.
    """
    risks: dict[float, float] = {}
    rejection: PlanError | None = None

    def best_of(ridges: list[float]) -> float:
        nonlocal rejection
        for ridge in ridges:
            try:
                risks[ridge] = planned(ridge).expected_risk(GUESS)
            except PlanError as rejected:
                rejection = rejected
        if not risks:
            assert rejection is not None
            raise rejection
        enough = (1 + LEVEL) * min(risks.values())
        return min(ridge for ridge, risk in risks.items() if risk <= enough)

    ridges = np.geomspace(lowest, max(highest, 2 * lowest), TRIED).tolist()
    position = ridges.index(best_of(ridges))
    ends = ridges[max(position - 1, 0)], ridges[min(position + 1, TRIED - 1)]
    return best_of(np.geomspace(*ends, TRIED_AGAIN + 2).tolist()[1:-1])


def rough_noise(tilted: Callable[[float], Event], budget: Budget) -> float:
    """Return the least noise of a tilt within a hundredth, to compare ridges by.

    `calibrate` also computes Renyi curves, which take most of its time.
    """

    def spent(multiplier: float) -> float:
        event = tilted(multiplier)
        if not isinstance(event, TiltedMinimum):
            return event.curve(budget.neighbors).epsilon(budget.delta)
        dimension = event.rank * budget.neighbors.rows_changed
        profile = TiltedProfile(event.offset, 1 / event.multiplier, dimension)
        fits = profile.delta(budget.epsilon) <= budget.delta
        return 0.0 if fits else inf

    low = high = 1 / budget.epsilon
    while spent(high) > budget.epsilon and high < LARGEST_NOISE:
        low, high = high, 2 * high
    while spent(low) <= budget.epsilon and low > 1 / LARGEST_NOISE:
        low, high = low / 2, low
    while high > 1.01 * low:
        middle = sqrt(low * high)
        kept = spent(middle) <= budget.epsilon
        low, high = (low, middle) if kept else (middle, high)
    return high


def ridge_range(problem: Problem, budget: Budget) -> tuple[float, float]:
    """Return the ridges to try, from the least that privacy needs upwards.

    At the first the determinant of one row of rank one takes all of epsilon but the
    fraction that noise needs.
    """
    smooth = problem.smoothness
    most = (1 - MIN_NOISE_FRACTION) * budget.epsilon
    floor = 1e-9 * problem.n_rows * smooth
    lowest = max(smooth / expm1(min(most, 500.0)), floor)
    return lowest, max(1e3 * lowest, problem.n_rows * smooth)
