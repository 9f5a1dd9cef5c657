"""Online learning by noise on iterates whose sensitivity falls with the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import rows_note
from tacit._state import kept
from tacit._validate import PlainNumbers, one_of, plain
from tacit.convex import Free, L2Ball
from tacit.convex.losses import has_residuals
from tacit.mechanisms import Gaussian
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Event, GaussianNoise, calibrate
from tacit.solvers import Problem
from tacit.solvers._base import MOST_ROWS, require_delta
from tacit.solvers._published import check_saveable
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._iterates import (
    LEARNERS,
    ImplicitGradient,
    IterateFacts,
    Leader,
    LeaderIterates,
    ProjectedGradient,
    RowPassIterates,
    check_set,
)

__all__ = [
    "POWERS",
    "PaperSchedule",
    "PerturbedIterates",
    "PerturbedLearner",
    "PerturbedState",
    "PowerSchedule",
    "published_beta",
]

Array = NDArray[np.float64]

# Powers of the sensitivity that the noise of a release is proportional to
POWERS = {"root": 1 / 2, "two_thirds": 2 / 3, "published": 1.0}
# Releases whose sensitivities are in memory together
CHUNK = 2**20


@dataclass(frozen=True)
class PowerSchedule:
    """Noise schedule proportional to a power of the sensitivity of each release.

    Parameters
    ----------
    multiplier
        Noise multiplier of all releases together, as one Gaussian mechanism.
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
    """Published noise schedule, of scale ``beta / t`` at release t."""

    multiplier: float
    beta: float

    @classmethod
    def over(
        cls, beta: float, sensitivities: Callable[[Array], Array], horizon: int
    ) -> PaperSchedule:
        """Return the schedule, with its exact multiplier."""
        total = _summed(lambda t: (sensitivities(t) * t / beta) ** 2, horizon)
        return cls((1 - 1e-13) / sqrt(total), beta)

    def multiplier_at(self, t: Array, sensitivity: Array) -> Array:
        """Return the ratio of noise to sensitivity at releases t."""
        return self.beta / (t * sensitivity)


def published_beta(reach: float, n_rounds: int, budget: Budget) -> float:
    """Return the published noise for a learner whose output t moves by ``reach / t``.

    Thakurta (2013), Theorem 5.5, has ``(3 epsilon, 2 delta)`` for its epsilon and
    delta: here they are a third and a half of the budget. This is a closed form, as the
    power of the number of rounds there is one over its logarithm times this root.
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


ACCOUNTINGS = ("exact", "paper")
# Norm of useful weights that determines the strong convexity, in units of the largest
# target over the bound on rows; chosen on synthetic streams
USUAL_WEIGHT_NORM = 1.0
# Variance of an average over t releases, in units of that of the last over t: two at
# the end, and more over a stream, whose first averages are short; chosen on synthetic
# streams
LEFT = 10.0


@kept
@dataclass(frozen=True)
class PerturbedState:
    """Exact iterate, or the rows it is fitted to, and the weights released last."""

    n_steps: int
    _private_iterate: Any = field(repr=False)
    released: Array


@dataclass(frozen=True)
class PerturbedLearner(PlainNumbers):
    """Learner whose iterates are released with noise on a schedule.

    Parameters
    ----------
    problem
        Public facts about rows and weights.
    iterates
        Iterates without noise.
    schedule
        Noise schedule over the steps.
    moved
        Sensitivity of the sum of gradients to the rows of one person.
    horizon
        Number of steps that are charged.
    reach
        Largest norm of useful weights, where there is no set.
    average
        Whether the weights shown are averages of those released.
    noise
        ``"grid"`` or ``"float"``.
    """

    problem: Problem
    iterates: RowPassIterates | LeaderIterates
    schedule: PowerSchedule | PaperSchedule
    moved: float
    horizon: int
    reach: float
    average: bool = False
    noise: str = "grid"

    @property
    def event(self) -> Event:
        """One Gaussian mechanism, for all steps together."""
        return GaussianNoise(self.schedule.multiplier)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, in words."""
        most = max(self.problem.n_rows, MOST_ROWS)
        shown = most if most > MOST_ROWS else f"2^{MOST_ROWS.bit_length() - 1}"
        return (
            rows_note(self.problem.n_rows),
            f"there are at most {shown} rows",
            "exact iterates are in memory and are secret",
            *noise_assumptions(self.noise),
        )

    def sensitivity(self, t: int) -> float:
        """Return the sensitivity of the iterate after step t to one person."""
        return float(self.sensitivities(np.array(float(t))))

    def sensitivities(self, t: Array) -> Array:
        """Return the same for steps t."""
        return self.iterates.sensitivity(t, self.moved)

    def mechanism(self, t: int) -> Gaussian:
        """Return the mechanism that releases the iterate after step t."""
        sensitivity = self.sensitivity(t)
        multiplier = self.schedule.multiplier_at(np.array(t), np.array(sensitivity))
        return Gaussian(float(multiplier), sensitivity, self.noise)

    def std(self) -> Array:
        """Return the standard deviation of the noise on each weight, step by step.

        It is that of the normal distribution, before weights are projected.
        """
        t = np.arange(1, self.horizon + 1, dtype=np.float64)
        sensitivity = self.sensitivities(t)
        return self.schedule.multiplier_at(t, sensitivity) * sensitivity

    def inside(self, W: Array) -> Array:
        """Return noisy weights projected to the set of useful ones."""
        regularizer = self.problem.regularizer
        if isinstance(regularizer, Free):
            return L2Ball(self.reach).prox(W, 1.0)
        return regularizer.prox(W, 1.0)

    def init(self) -> PerturbedState:
        """Return the state before the first step, whose weights are public."""
        return PerturbedState(0, self.iterates.init(), self.iterates.start())

    def step(
        self, state: PerturbedState, X: Array, y: NDArray[Any], rng: Generator
    ) -> PerturbedState:
        """Return the state after the rows of one step."""
        t = state.n_steps + 1
        if t > self.horizon:
            raise ValueError(
                f"PerturbedIterates was planned for {self.horizon} steps and cannot "
                f"take step {t}; plan a longer horizon."
            )
        private, W = self.iterates.advance(state._private_iterate, t, X, y)
        shown = self.inside(self.mechanism(t)(W, rng))
        if self.average:
            # [iterates:average] proportional to t, of what was released
            shown = state.released + 2 / (t + 1) * (shown - state.released)
        return PerturbedState(t, private, shown)

    def weights(self, state: PerturbedState) -> Array:
        """Return the weights released last, shape (p, k)."""
        return state.released


@dataclass(frozen=True)
class PerturbedIterates:
    """Online learning with noise on each released iterate only.

    Parameters
    ----------
    learner
        `ImplicitGradient`, `ProjectedGradient` or `Leader`.
    schedule
        Power of the sensitivity of an iterate, which falls with the step, that the
        noise is proportional to: ``"root"``, with the least sum of squares;
        ``"two_thirds"``, with the least sum; or ``"published"``, its first power.
    accounting
        ``"exact"``, or ``"paper"`` for the published amount of noise, which has the
        published schedule.
    average
        Whether to show an average of the iterates released so far, each weighted by
        its number. It has far less noise on a stationary stream; the bound on regret is
        for False.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** All releases together are one Gaussian mechanism of the multiplier
    that fits the budget: squared ratios of sensitivity to noise add up to it, also for
    rows chosen after earlier releases. The published bound [1]_, Theorem 5.5, has 12 to
    15 times the noise. Rows of a step are taken one after another, each weighted by one
    over ``rows_per_step``, so that the number of rows in a step is protected as well.

    **Bound.** For smooth losses and ``schedule="root"`` the regret that noise adds is
    at most ``smoothness / 2 * p * (sensitivity_1 * H_T / mu)^2``, polylogarithmic in
    the number of steps, where the published one grows as its root. See the page on
    perturbed iterates.

    References
    ----------
    .. [1] A. Thakurta, PhD thesis, Pennsylvania State University, 2013, Algorithms 5.1
       to 5.3; P. Jain, P. Kothari, A. Thakurta, "Differentially private online
       learning", COLT 2012.
    """

    saved = True

    learner: ImplicitGradient | ProjectedGradient | Leader = field(
        default_factory=ImplicitGradient
    )
    schedule: str = "root"
    accounting: str = "exact"
    average: bool = False
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        if not isinstance(self.learner, LEARNERS):
            raise ValueError(
                "learner must be ImplicitGradient(), ProjectedGradient() or Leader(), "
                f"got {self.learner!r}."
            )
        one_of(POWERS, schedule=self.schedule)
        one_of(ACCOUNTINGS, accounting=self.accounting)
        one_of((False, True), average=self.average)
        check_noise(self.noise)

    def plan(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> PerturbedLearner:
        """Return the learner of a problem with the least noise that fits."""
        # long: one field of the learner after another
        require_delta(
            budget, "PerturbedIterates", "Hedge over experts, which needs none"
        )
        check_set(problem)
        problem = replace(problem, n_rows=terms.n_rows)
        # [iterates:person] all rows of one person, wherever they are
        moved = terms.rows_per_person * problem.sensitivity(budget.neighbors)
        strength = self.learner.strong_convexity
        if strength is None:
            strength = usual_strength(problem, budget, terms, self.average)
        strength = max(strength, problem.ridge / problem.n_rows)
        paper = self.accounting == "paper"
        facts = IterateFacts(problem, terms, budget.neighbors, strength, paper)
        iterates = self.learner.iterates(facts)

        def sensitivities(t: Array) -> Array:
            return iterates.sensitivity(t, moved)

        schedule: PowerSchedule | PaperSchedule
        if paper:
            reach = moved * iterates.published_influence
            beta = published_beta(reach, terms.horizon + 1, budget)
            schedule = PaperSchedule.over(beta, sensitivities, terms.horizon)
            check_saveable(GaussianNoise(schedule.multiplier), budget)
        else:
            multiplier = calibrate(GaussianNoise, budget)
            schedule = PowerSchedule.over(
                multiplier, POWERS[self.schedule], sensitivities, terms.horizon
            )
        learner = PerturbedLearner(
            problem,
            iterates,
            schedule,
            moved,
            terms.horizon,
            facts.reach,
            self.average,
            self.noise,
        )
        # rejects noise too large for the grid now, not after the charge
        for t in (1, terms.horizon):
            learner.mechanism(t).scale(problem.size)
        return learner


def usual_strength(
    problem: Problem, budget: Budget, terms: StreamTerms, average: bool = False
) -> float:
    """Return the strong convexity that balances its bias with noise and learning.

    Over the stream, a strength costs half of it times the squared norm of useful
    weights; noise of the root schedule costs half the curvature times its mean square,
    which falls with the squared strength; and steps cost the squared gradient over the
    strength and the number of rows. An average leaves little of the noise.
    """
    unit = problem.largest_target if has_residuals(problem.loss) else 1.0
    norm = USUAL_WEIGHT_NORM * unit / problem.bounds.x_norm
    norm = min(norm, problem.regularizer.radius)
    steps = np.log(terms.horizon + 1.0)
    moved = terms.rows_per_person * problem.sensitivity(budget.neighbors)
    noise = moved * steps * calibrate(GaussianNoise, budget, rtol=1e-3)
    noise /= terms.rows_per_step * sqrt(terms.horizon)
    if average:
        noise *= sqrt(LEFT / terms.horizon)
    for_noise = (2 * problem.smoothness) ** (1 / 3) * (noise / norm) ** (2 / 3)
    learned = problem.lipschitz / norm * sqrt(steps / terms.n_rows)
    return float(max(for_noise, learned))
