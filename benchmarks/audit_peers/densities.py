"""The exact law of a logistic model whose objective was tilted at random.

Objective perturbation releases the minimizer of ``sum_i loss(y_i x_i w) + w R w / 2 +
b w``. At a minimizer the tilt is known, ``b = -gradient``, so the density of what is
released is that of the tilt times the determinant of the Hessian (Chaudhuri,
Monteleoni and Sarwate 2011, Theorem 9). The ratio of two such densities is the best
attack that there is on a pair of data sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass(frozen=True)
class TiltedLaw:
    """How a library draws its tilt, and what it adds to the Hessian.

    Parameters
    ----------
    ridge
        Ridge on each weight, in sum units; that of the intercept comes last.
    scale
        The density of the tilt is ``exp(-|b| / scale)``, up to a constant.
    order
        Norm of that density, 1 or 2.
    cap
        Largest slope of the loss.
    """

    ridge: tuple[float, ...]
    scale: float
    order: int = 2
    cap: float = 1.0

    def log_density(self, W, X, y):
        """Return the log-density of each row of ``W``, up to a constant.

        ``X`` has a constant column where there is an intercept, and ``y`` is -1 and 1.
        """
        ridge = np.asarray(self.ridge)
        wrong = expit(-y * (W @ X.T))
        derivative = np.minimum(wrong, self.cap)
        bend = np.where(wrong < self.cap, wrong * (1 - wrong), 0.0)
        tilt = (derivative * y) @ X - W * ridge
        hessian = np.einsum("mn,ni,nj->mij", bend, X, X) + np.diag(ridge)
        volume = np.linalg.slogdet(hessian)[1]
        return volume - np.linalg.norm(tilt, ord=self.order, axis=1) / self.scale

    def log_ratio(self, W, first, second):
        """Return how much more likely each row of ``W`` is on the first data set.

        Zero where neither density can be told in floats.
        """
        with np.errstate(all="ignore"):
            ratio = self.log_density(W, *first) - self.log_density(W, *second)
        return np.where(np.isfinite(ratio), ratio, 0.0)


def vector_mechanism_law(epsilon, data_norm, C, n_features, *, fit_intercept):
    """Return the law of diffprivlib 0.6.6, as ``Vector.randomise`` computes it."""
    norm = np.hypot(data_norm, 1.0) if fit_intercept else data_norm
    alpha = 1.0 / C
    left = epsilon - 2 * np.log1p(0.25 * norm / alpha)
    extra = 0.0
    if left <= 0:
        extra = 0.25 * norm / np.expm1(epsilon / 4) - alpha
        left = epsilon / 2
    ridge = [alpha + extra] * n_features
    if fit_intercept:
        ridge.append(extra)  # scikit-learn leaves the intercept without a penalty
    return TiltedLaw(tuple(ridge), 2 * norm / left)
