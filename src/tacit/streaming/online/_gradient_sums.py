"""DP-FTRL: follow-the-regularized-leader on noisy gradient sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._release import rows_note
from tacit._state import kept
from tacit._validate import PlainNumbers, fraction, one_of, plain, positive
from tacit.convex import L2Ball
from tacit.convex.losses import has_residuals
from tacit.convex.objective import DENSE_ROWS
from tacit.exceptions import PlanError
from tacit.mechanisms.continual._growing import SUMS
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.privacy import Budget, Event, GaussianNoise, calibrate
from tacit.solvers import Problem
from tacit.solvers._base import MOST_ROWS, loss_assumptions, require_delta
from tacit.solvers._gradients.descent import (
    derivative_clipped,
    gradient_sensitivity,
    largest_margin,
)
from tacit.streaming._model import StreamTerms

__all__ = [
    "LEAF_ADDITIONS",
    "RECENT",
    "GradientLearner",
    "GradientState",
    "GradientSums",
    "check_recent",
    "leaf_assumptions",
]

Array = NDArray[np.float64]

# Fraction of the steps so far over which shown weights are averaged. An eighth is best
# on stationary synthetic streams, less on those that change
RECENT = 1 / 16
# Margin that useful weights give to a typical row, where targets are labels
USUAL_LABEL_MARGIN = 3.0
# Fraction of the cost of noise that averaging leaves
AVERAGED_NOISE = 1 / 4
# Additions of a term of a step: in its chunk, and over the chunks of up to 2^24 rows
LEAF_ADDITIONS = DENSE_ROWS + MOST_ROWS // DENSE_ROWS


@kept
@dataclass(frozen=True)
class GradientState:
    """State of the learner: weights, their recent mean, and the exact sums."""

    n_steps: int
    iterate: Array
    shown: Array
    _private_sums: Any = field(repr=False)


@dataclass(frozen=True)
class GradientLearner(PlainNumbers):
    """Learner by noisy gradient sums, which the weights follow at a learning rate.

    Parameters
    ----------
    problem
        Public facts about rows and weights.
    mechanism
        Mechanism that releases the sum of gradients after each step.
    rate
        Factor of the sum of gradients.
    clip
        Bound on the norm of the derivative of a row's loss.
    recent
        Fraction of the steps so far over which shown weights are averaged.
    """

    problem: Problem
    mechanism: Any
    rate: float
    clip: float
    recent: float = RECENT

    @property
    def event(self) -> Event:
        """One Gaussian mechanism, for all steps together."""
        event: Event = self.mechanism.event
        return event

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, in words."""
        return leaf_assumptions(self.problem, self.mechanism.noise)

    def init(self) -> GradientState:
        """Return the state before the first step, at zero."""
        zero = np.zeros(self.problem.shape)
        return GradientState(0, zero, zero, self.mechanism.init(self.problem.shape))

    def step(
        self, state: GradientState, X: Array, y: NDArray[Any], rng: Generator
    ) -> GradientState:
        """Return the state after the rows of one step."""
        problem = self.problem
        (total,) = derivative_clipped(problem, state.iterate, self.clip)(X, y)
        sums, noisy = self.mechanism.step(state._private_sums, total, rng)
        # [ftrl:leader] post-processing of released sums from here on
        pull = 1 / self.rate + problem.ridge
        W = problem.regularizer.prox(-noisy / pull, 1 / pull)
        W = L2Ball(largest_margin(problem) / problem.bounds.x_norm).prox(W, 1.0)
        t = state.n_steps + 1
        shown = state.shown + (W - state.shown) / max(1.0, self.recent * t)
        return GradientState(t, W, shown, sums)

    def weights(self, state: GradientState) -> Array:
        """Return the weights released last, shape (p, k)."""
        return state.shown


@dataclass(frozen=True)
class GradientSums:
    """DP-FTRL: follow-the-regularized-leader on noisy gradient sums.

    After each step the noisy sum of all gradients so far is released, each taken at the
    weights of its time. Weights are minus this sum times the rate, projected to the
    set; their mean over the last steps is shown.

    Parameters
    ----------
    sums
        How sums are released: ``"blt"``, ``"tree"``, ``"honaker"`` or
        ``"square_root"``.
    learning_rate
        Factor of the sum of gradients, or ``"auto"`` for the rule below.
    clip
        Bound on the norm of the gradient of the longest rows; None for that of the
        loss, or if a loss of residuals has no bound, that of the largest target.
    recent
        Fraction of the steps so far that shown weights are averaged over; 0 for the
        last weights. Less follows changes sooner, more has less noise.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Gaussian differential privacy of the multiplier of the whole stream:
    rows only enter through sums of gradients, and a row moves an element of that stream
    by its gradient, whose norm is bounded. Gradients are taken at released weights, and
    the mechanism is private for elements chosen after earlier outputs.

    **Bound.** For convex losses of Lipschitz constant G per step, noise of standard
    deviation at most s on each of d numbers, and ``recent=0``, the mean regret over T
    steps against weights of norm D is at most
    ``D^2 / (2 rate) + rate T G (G / 2 + s sqrt(d))`` (after [1]_; the page on learning
    on streams has the proof). For smooth losses noise costs less than this bound, so
    that ``"auto"`` is the rate that minimizes
    ``D^2 / (2 rate) + rate n g^2 / 2 + rate^2 n c s^2 / 8``: a model of the regret over
    n rows in which noise is weighted by the curvature c of a typical row and by the
    fraction that averaging leaves, and gradients have their typical size g. D gives
    typical rows a margin of 3, and the rate is below that at which steps overshoot.

    References
    ----------
    .. [1] P. Kairouz, B. McMahan, S. Song, O. Thakkar, A. Thakurta, Z. Xu, "Practical
       and private (deep) learning without sampling or shuffling", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.streaming import GradientSums, OnlineLogisticRegression
    >>> model = OnlineLogisticRegression(
    ...     1.0, 1e-6, horizon=100, rows_per_step=50, classes=(0, 1),
    ...     method=GradientSums(sums="tree"),x_norm=1.0
    ... )
    >>> model.partial_fit(np.full((50, 2), 0.5), np.ones(50)).coef_.shape
    (1, 2)
    """

    saved = True
    name = "gradient_sums"

    sums: str = "blt"
    learning_rate: float | str = "auto"
    clip: float | None = None
    recent: float = RECENT
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        one_of(tuple(SUMS), sums=self.sums)
        check_noise(self.noise)
        check_recent(self.recent)
        if self.learning_rate != "auto":
            if isinstance(self.learning_rate, str):
                raise ValueError(
                    "learning_rate must be a positive number or 'auto', got "
                    f"{self.learning_rate!r}."
                )
            positive(learning_rate=self.learning_rate)
        if self.clip is not None:
            positive(clip=self.clip)

    def plan(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> GradientLearner:
        """Return the learner of a problem with the least noise that fits."""
        require_delta(budget, "GradientSums", "epsilon alone with Hedge")
        problem.require_l2_rows("GradientSums")
        problem.require_smooth("GradientSums")
        clip = self._derivative(problem)
        sensitivity = gradient_sensitivity(
            problem, clip, budget.neighbors, MOST_ROWS, LEAF_ADDITIONS
        )
        mechanism = SUMS[self.sums](
            terms.horizon,
            calibrate(GaussianNoise, budget),
            # [ftrl:person] all rows of one person, wherever they are
            terms.rows_per_person * sensitivity,
            self.noise,
        )
        # rejects noise too large for the grid now, not after the charge
        std = mechanism.std_at(terms.horizon, problem.size)
        rate = self.learning_rate
        if isinstance(rate, str):
            rate = usual_rate(problem, terms, clip, std, self.recent)
        return GradientLearner(problem, mechanism, rate, clip, self.recent)

    def _derivative(self, problem: Problem) -> float:
        """Return the bound on derivatives: ``clip``, of the loss, or of targets."""
        if self.clip is not None:
            return self.clip / problem.bounds.x_norm
        if problem.max_derivative < inf:
            return problem.max_derivative
        if has_residuals(problem.loss):
            return problem.largest_target
        raise PlanError(
            f"GradientSums requires a loss with bounded gradients, got "
            f"{problem.loss!r}; pass clip=..."
        )


def usual_rate(
    problem: Problem, terms: StreamTerms, clip: float, std: float, recent: float
) -> float:
    """Return the rate with the least modeled regret, from public facts."""
    x_norm, loss = problem.bounds.x_norm, problem.loss
    # typical rows have half the squared norm of the longest
    row = x_norm**2 / 2
    margin = problem.largest_target if has_residuals(loss) else USUAL_LABEL_MARGIN
    far = min(margin * sqrt(problem.size / row), problem.regularizer.radius)
    noise = std**2 * row * loss.max_trace() / 2
    noise *= AVERAGED_NOISE if recent else 1.0
    derivatives = row * clip**2 / 4
    steep = terms.rows_per_step * problem.smoothness
    n_rows = terms.n_rows
    # rising in the rate: the derivative of the model, times its square
    low, high = 0.0, 2 / steep
    for _ in range(60):
        rate = (low + high) / 2
        rises = n_rows * (2 * noise * rate**3 + derivatives * rate**2 / 2) > far**2 / 2
        low, high = (low, rate) if rises else (rate, high)
    return high


def check_recent(recent: float) -> None:
    """Reject a fraction of steps outside of [0, 1]."""
    fraction(recent=recent)


def leaf_assumptions(problem: Problem, noise: str) -> tuple[str, ...]:
    """Return the assumptions of learners from sums over the rows of a step."""
    return (
        rows_note(problem.n_rows),
        f"a step has at most 2^{MOST_ROWS.bit_length() - 1} rows",
        # derivatives are clipped in sums of gradients and of moments alike
        *loss_assumptions(problem, clipped=True),
        *noise_assumptions(noise),
    )
