"""How far private weights are from those without noise, with high probability."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from tacit._validate import at_least, fraction, nonnegative, positive

__all__ = [
    "Distance",
    "expected_flips",
    "minibatch_distance",
    "noisy_gradient_distance",
    "output_perturbation_distance",
]

# A number, or a function of the chance with which it may be passed
Distance = float | Callable[[float], float]


def output_perturbation_distance(
    scale: float, n_weights: int, *, failure: float = 0.01, gap: float = 0.0
) -> float:
    """Return what Gaussian noise on weights moves them by, but for ``failure``.

    ``scale`` is the standard deviation of the noise on each weight, that of the
    intercept included. ``gap`` is how far the point the noise was added to can be from
    the exact minimum: the gradient norm that the solver reached, over the strong
    convexity.

    Notes
    -----
    **Bound.** The exact quantile: the squared norm is ``scale^2`` times a chi-square
    variable with ``n_weights`` degrees of freedom. Moving back into a convex set that
    contains the minimum never increases it.
    """
    nonnegative(scale=scale, gap=gap)
    at_least(1, n_weights=n_weights)
    fraction(closed=False, failure=failure)
    # [fairness:quantile] from the upper tail, which keeps a tiny chance exact
    return scale * sqrt(float(special.chdtri(n_weights, failure))) + gap


def noisy_gradient_distance(
    scale: float,
    n_weights: int,
    *,
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    start: float,
    failure: float = 0.01,
) -> float:
    """Return how far noisy gradient descent ends from the minimum, but for ``failure``.

    Steps are ``w - (gradient + noise) / smoothness`` on the gradient of all rows,
    projected onto a convex set that contains the minimum where there is one.

    Parameters
    ----------
    scale
        Standard deviation of the noise on each coordinate of a gradient, in the units
        of that gradient: of a mean of losses, or of their sum.
    n_weights
        Number of weights.
    n_steps
        Number of steps.
    smoothness, strong_convexity
        Bounds on the curvature of the objective, in the units of the gradient.
    start
        Bound on the distance of the first point from the minimum.
    failure
        Probability with which the distance may be passed.

    Notes
    -----
    **Bound.** With ``c = 1 - strong_convexity / smoothness`` the squared distance is
    stochastically no larger than ``|c^T start e + s z|^2``, ``z`` standard normal and
    ``s^2 = (scale / smoothness)^2 (1 - c^(2T)) / (1 - c^2)``: the quantile of a
    noncentral chi-square variable, attained where all curvatures are equal to
    ``strong_convexity``. Its mean is below the recursion
    ``c^T start^2 + n_weights scale^2 / (smoothness strong_convexity)``. See the page on
    fairness among the guarantees.
    """
    positive(smoothness=smoothness, strong_convexity=strong_convexity)
    nonnegative(scale=scale, start=start)
    at_least(1, n_weights=n_weights, n_steps=n_steps)
    fraction(closed=False, failure=failure)
    _check_curvatures(smoothness, strong_convexity)
    keep = 1 - strong_convexity / smoothness
    left = keep**n_steps * start
    # [fairness:descent] noise of all steps, each kept in part by those after it
    kept = (1 - keep ** (2 * n_steps)) / (1 - keep**2)
    spread = scale / smoothness * sqrt(kept)
    if spread == 0:
        return left
    shift = (left / spread) ** 2
    return spread * sqrt(float(stats.ncx2.isf(failure, n_weights, shift)))


def minibatch_distance(
    scale: float,
    n_weights: int,
    *,
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    start: float,
    gradient_variance: float,
    failure: float = 0.01,
) -> float:
    """Return how far noisy stochastic descent ends from the minimum.

    Steps have length ``1 / (2 smoothness)``, with ``smoothness`` that of every row's
    loss, on gradients of rows drawn at random, whose mean squared norm at the minimum
    is at most ``gradient_variance``. All else is as in `noisy_gradient_distance`.

    Notes
    -----
    **Bound.** Markov's inequality on ``E|w - w*|^2 <= (1 - g m)^T start^2 + 2 g
    (gradient_variance + n_weights scale^2) / m``, with step ``g`` and strong convexity
    ``m``. The published recursion (Mangold 2023, Lemma C.5.1) lacks ``n_weights``.
    The scale must come from an accountant of sampled noise.
    """
    positive(smoothness=smoothness, strong_convexity=strong_convexity)
    nonnegative(scale=scale, start=start, gradient_variance=gradient_variance)
    at_least(1, n_weights=n_weights, n_steps=n_steps)
    fraction(closed=False, failure=failure)
    _check_curvatures(smoothness, strong_convexity)
    step = 1 / (2 * smoothness)
    left = (1 - step * strong_convexity) ** n_steps * start**2
    # [fairness:minibatch] the noise has one part a weight
    noise = gradient_variance + n_weights * scale**2
    return sqrt((left + 2 * step * noise / strong_convexity) / failure)


def _check_curvatures(smoothness: float, strong_convexity: float) -> None:
    if smoothness < strong_convexity:
        raise ValueError(
            "smoothness must be at least strong_convexity, got "
            f"{smoothness!r} and {strong_convexity!r}."
        )


def expected_flips(margins: ArrayLike, lipschitz: ArrayLike, scale: float) -> float:
    """Return the expected fraction of predictions that Gaussian noise changes.

    Margins are those of the model **before** the noise, for two labels and one vector
    of weights, and ``scale`` is the standard deviation of the noise on each weight.

    Notes
    -----
    **Bound.** Exact: noise moves a margin by a normal of standard deviation ``scale``
    times the Lipschitz constant, however many weights there are. It does not hold for
    margins of the private model, as its noise is not independent of it.
    """
    nonnegative(scale=scale)
    rho, reach = np.broadcast_arrays(np.abs(margins), scale * np.asarray(lipschitz))
    with np.errstate(divide="ignore", invalid="ignore"):
        stds = np.where(reach > 0, rho / reach, np.where(rho > 0, inf, 0.0))
    # [fairness:flips] a row with margin zero is turned half of the time
    return float(special.ndtr(-stds).mean())
