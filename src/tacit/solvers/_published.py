"""Constants as published, for comparisons; what they cost is computed honestly."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log, sqrt

from tacit._validate import fraction, one_of
from tacit.convex import Logistic
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Event
from tacit.solvers._base import Problem

__all__ = [
    "ACCOUNTINGS",
    "AMPSplit",
    "check_accounting",
    "check_saveable",
    "check_width",
    "coordinate_multiplier",
    "greedy_epsilon",
    "objective_multiplier",
    "objective_ridge",
    "output_scale",
    "paper_noise",
    "paper_samples",
    "paper_weight",
    "published_epsilon",
]

ACCOUNTINGS = ("tight", "paper")
# Fewer rows a feature than this count as high dimensional in the published rule
HIGH_DIMENSION = 4


def check_accounting(accounting: str) -> None:
    """Reject an unknown way to set the noise."""
    one_of(ACCOUNTINGS, accounting=accounting)


def check_width(problem: Problem) -> None:
    """Reject losses whose rows move in several directions."""
    if problem.loss.derivative_rank() > 1:
        raise PlanError(
            f"The published constants are for losses of one margin, not for "
            f"{problem.loss!r}; use accounting='tight'."
        )


def check_saveable(event: Event, budget: Budget) -> None:
    """Reject published noise whose honest event does not fit the budget."""
    if not event.curve(budget.neighbors).fits(budget):
        raise PlanError(
            f"The published constants do not keep epsilon={budget.epsilon:g} at "
            f"delta={budget.delta:g}; use accounting='tight'."
        )


def objective_ridge(problem: Problem, epsilon: float) -> float:
    """Return the least ridge of Kifer, Smith and Thakurta (2012), Algorithm 1."""
    return 2 * problem.smoothness / epsilon


def objective_multiplier(distribution: str, budget: Budget) -> float:
    """Return the noise of Kifer, Smith and Thakurta (2012), Algorithm 1.

    In units of the sensitivity of the gradient under the relation of the budget, where
    the paper has that of adding a row.
    """
    epsilon = budget.epsilon
    if distribution == "gaussian":
        return sqrt(8 * log(2 / budget.delta) + 4 * epsilon) / epsilon
    return 2 / epsilon


def output_scale(
    distribution: str, budget: Budget, lipschitz: float, ridge: float
) -> float:
    """Return the published scale of the noise on a minimizer.

    Gaussian: Jain and Thakurta (2014), Theorem 1. Otherwise Thakurta (2013),
    Section 3.2: a sensitivity of twice the Lipschitz constant over the ridge, and twice
    that over epsilon. Both hold under both relations, with room to spare.
    """
    epsilon = budget.epsilon
    if distribution == "gaussian":
        return 4 * lipschitz * sqrt(log(1 / budget.delta) + epsilon) / (ridge * epsilon)
    return 2 * (2 * lipschitz / ridge) / epsilon


def paper_noise(budget: Budget, sensitivity: float) -> float:
    """Return the published Gaussian noise on last weights, sound for small epsilon.

    Wu et al. (2017), after Dwork and Roth (2014), Theorem A.1.
    """
    if budget.delta == 0:
        raise PlanError(
            "accounting='paper' needs delta > 0; give a delta, or use "
            "accounting='tight'."
        )
    return sensitivity * sqrt(2 * log(2 / budget.delta)) / budget.epsilon


def published_epsilon(budget: Budget, n_steps: int) -> float:
    """Return what noisy max with the published scale costs in each step.

    The scale of Talwar, Thakurta and Zhang (2015) is ``derivative x_norm radius sqrt(32
    n_steps log(1 / delta)) / epsilon`` in sum units, and noisy max costs twice the
    sensitivity over the scale.
    """
    if budget.delta == 0:
        raise PlanError("accounting='paper' needs delta > 0; use accounting='tight'.")
    scale = sqrt(32 * n_steps * log(1 / budget.delta)) / budget.epsilon
    return 2 * budget.neighbors.rows_changed / scale


def coordinate_multiplier(budget: Budget, n_updates: int, portion: float) -> float:
    """Return the published noise of each of this many Gaussian releases.

    The variance of Mangold et al. (2022), Theorem 1, is ``12 derivative^2 n_updates
    log(1 / delta) / (n^2 epsilon^2)`` for the mean gradient of rows of which one is
    replaced, whose sensitivity is twice the derivative over n. ``portion`` is the part
    of epsilon that these releases get.
    """
    # [coordinate:paper]
    return sqrt(3 * n_updates * log(1 / budget.delta)) / (portion * budget.epsilon)


def greedy_epsilon(budget: Budget, n_parts: int) -> float:
    """Return the epsilon of each of ``n_parts`` parts by the published calibration.

    Mangold et al. (2023), Appendix B.1: the root of the advanced composition bound
    ``sqrt(2 n log(1 / delta)) e + n e (exp(e) - 1)`` for n parts, choices and updates.
    Choices there have Laplace noise of this epsilon, and cost twice as much.
    """
    if budget.delta == 0:
        raise PlanError("accounting='paper' needs delta > 0; use accounting='tight'.")
    low, high = 0.0, budget.epsilon / sqrt(2 * n_parts * log(1 / budget.delta))
    for _ in range(200):
        e = (low + high) / 2
        # [greedy:paper]
        spent = sqrt(2 * n_parts * log(1 / budget.delta)) * e + n_parts * e * expm1(e)
        low, high = (e, high) if spent <= budget.epsilon else (low, e)
    return low


def paper_weight(problem: Problem, budget: Budget) -> float:
    """Return the weight of the entropy of Jain and Thakurta (2014), Theorem 3."""
    logs = budget.epsilon * log(max(2, problem.n_features))
    return float(problem.n_rows ** (2 / 3) / logs ** (1 / 3))


def paper_samples(budget: Budget, weight: float, entry: float, kappa: float) -> int:
    """Return the published number of samples, divided by the squared gradient bound.

    ``entry`` bounds the entries of a row's gradient. The published number for delta
    above zero lacks that factor, so that scaling the features would leave it as it is.
    """
    if budget.delta == 0:
        return int(budget.epsilon * weight / entry / (4 + 2 * kappa))
    # [entropy:paper]
    root = budget.epsilon * weight / (entry * log(1 / budget.delta))
    return int((root / (32 + 16 * kappa)) ** 2)


@dataclass(frozen=True)
class AMPSplit:
    """Division of the budget of approximate minima perturbation, and what follows.

    Notes
    -----
    As in Thakkar (2019), Algorithm 1, but for two corrections without which it is not
    private: the curvature of the huberized hinge is its own, not that of the logistic
    loss, and the final noise has a factor two, in the sensitivity it is used with.
    """

    tilt_epsilon: float  # epsilon_1 in the thesis
    tilt_delta: float
    noise_epsilon: float  # epsilon_3
    output_epsilon: float  # epsilon_2
    output_delta: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        budget: Budget,
        output_share: float | None,
        tilt_share: float | None,
    ) -> AMPSplit:
        """Return the given split, or that of the hyperparameter-free variant."""
        output = 0.01 if output_share is None else output_share
        fraction(output_share=output, closed=False)
        tilt = (1 - output) * budget.epsilon
        high = problem.n_rows < HIGH_DIMENSION * problem.n_features
        portion = _tilt_fraction(tilt, high) if tilt_share is None else tilt_share
        fraction(tilt_share=portion, closed=False)
        split = cls(
            tilt,
            (1 - output) * budget.delta,
            portion * tilt,
            output * budget.epsilon,
            output * budget.delta,
        )
        if not 0 < split.determinant < 1:
            raise PlanError(
                f"The published split leaves {split.determinant:.3g} of epsilon for "
                "the determinant, which must be between 0 and 1; change tilt_share, or "
                "use accounting='tight'."
            )
        return split

    @property
    def determinant(self) -> float:
        """What is left of the tilt's epsilon for the change of variables."""
        return self.tilt_epsilon - self.noise_epsilon

    @property
    def multiplier(self) -> float:
        """Noise of the tilt in units of its sensitivity."""
        return (1 + sqrt(2 * log(1 / self.tilt_delta))) / self.noise_epsilon

    @property
    def output_multiplier(self) -> float:
        """Final noise in units of its sensitivity."""
        return (1 + sqrt(2 * log(1 / self.output_delta))) / self.output_epsilon

    def ridge(self, problem: Problem) -> float:
        """Return the least ridge: twice the smoothness over what is left for it."""
        square = problem.bounds.x_norm**2
        logistic = isinstance(problem.loss, Logistic)
        return 2 * (square if logistic else problem.smoothness) / self.determinant


def _tilt_fraction(epsilon: float, high: bool) -> float:
    """Return epsilon_3 over epsilon_1 as fitted in the thesis, Section 4.6."""
    fitted = 0.97 if high else min(0.887 + 0.019 / epsilon**0.373, 0.99)
    return max(fitted, 1 - 0.99 / epsilon)
