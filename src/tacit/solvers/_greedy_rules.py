"""Steps, clips and polishing of greedy coordinate descent from public facts alone.

The constants were fitted on synthetic problems only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

from tacit.convex.losses import has_residuals
from tacit.privacy import Budget
from tacit.solvers._base import Problem
from tacit.solvers.frank_wolfe import root_spread

__all__ = ["GreedyRule", "greedy_rule", "settling", "split_noise"]

# Slopes are cut here, in units of the largest target or of the bound on slopes
RESIDUAL_CLIP, DERIVATIVE_CLIP = 0.35, 1.2
# and here for choices, in units of the above
NARROW = 0.1
# Length of steps: mean squares are rather too large, and slopes are cut
STEP = 2.0
# How far from the truth choices may see slopes of sparse rows, in units of the bound on
# slopes or of the clip of choices: at least, at most, and in units of the noise of a
# choice in between
STALE, MOST_STALE, HIDDEN = 0.02, 0.2, 20.0
# Part of all rows that makes a feature worth choosing
WORTH = 0.2
# Updates besides that of a choice, for each choice
POLISH = 2
MOST_STEPS = 12
# Noise of predictions up to which clips stay, in units of the largest target or of a
# margin
LOUDEST_TARGET, LOUDEST_MARGIN = 0.175, 0.3
# Updates of the intercept before the first choice: votes and slopes of an intercept
# that is far off say little about features
SETTLING = 4


@dataclass(frozen=True)
class GreedyRule:
    """Number of choices, and how to move."""

    n_steps: int
    clip: float
    narrow: float
    bound: float
    loudest: float

    @property
    def selection_clip(self) -> float:
        """The clip of choices."""
        return self.narrow * self.clip

    def staleness(self, noise: float, clip: float) -> float:
        """Return how stale slopes may be, for this noise and this clip of choices."""
        unit = self.bound if isfinite(self.bound) else clip
        return unit * min(max(STALE, HIDDEN * noise), MOST_STALE)

    def polish(self, n_steps: int) -> int:
        """Return how many updates to add to those of choices."""
        return POLISH * n_steps


def greedy_rule(
    problem: Problem, budget: Budget, clip: float | None = None
) -> GreedyRule:
    """Return the rule, with another clip where one is given."""
    bound = problem.loss.max_derivative(inf, problem.bounds.y_range)
    largest = problem.largest_target
    usual = DERIVATIVE_CLIP * bound if isfinite(bound) else RESIDUAL_CLIP * largest
    # slopes of a label keep their sign: votes would count labels, whatever is fitted
    narrow, loudest = 1.0, LOUDEST_MARGIN
    if has_residuals(problem.loss):
        narrow, loudest = NARROW, LOUDEST_TARGET * largest
    n_steps = seen_steps(problem, budget)
    return GreedyRule(n_steps, clip or usual, narrow, bound, loudest)


def settling(problem: Problem) -> int:
    """Return how many updates the intercept has before the first choice."""
    return 0 if problem.constant is None else SETTLING


def seen_steps(problem: Problem, budget: Budget) -> int:
    """Return for how many choices a feature worth choosing stands out from the noise.

    Worth choosing is one for which `WORTH` of all rows more vote than against it, which
    must be more than chance gives to the best of all.
    """
    least = 2 * budget.neighbors.rows_changed * log(2 * problem.n_features)
    least /= WORTH * problem.n_rows
    # half of the budget is for choices; epsilons add, or their squares do
    wanted = 0.5 * budget.epsilon / least
    if budget.delta > 0:
        spread = budget.epsilon / root_spread(budget)
        wanted = max(wanted, 0.5 * 8 * (spread / least) ** 2)
    return int(min(max(1.0, wanted), MOST_STEPS, problem.n_features))


def split_noise(
    kind: str, noise: float, share: float, counts: tuple[int, int], rest: float
) -> tuple[float, float]:
    """Return the epsilon of a choice and the multiplier of an update.

    ``noise`` is that of one Gaussian mechanism that all is cut from, or one over the
    epsilon that all is cut from; ``rest`` is the part that choices and updates get,
    ``share`` that of choices in it, and ``counts`` says how many there are of both.
    """
    n_steps, n_updates = counts
    choices, moves = share * rest, (1 - share) * rest
    if kind == "gumbel":
        # [greedy:split] epsilon^2 / 8 of a choice against 1 / (2 multiplier^2)
        return 2 * sqrt(choices / n_steps) / noise, noise * sqrt(n_updates / moves)
    if kind == "pure":
        return choices / n_steps / noise, noise * n_updates / moves
    # [greedy:published] the same scale for both: a choice costs twice an update
    return 2 / noise, noise
