"""Which solver, from public facts only."""

from math import inf

from tacit.privacy import Budget
from tacit.solvers._base import Problem
from tacit.solvers._rules import noise_level
from tacit.solvers.amp import AMP
from tacit.solvers.noisy_gd import NoisyGD

__all__ = ["auto_solver"]

# Noise, as a share of the largest gradient, from which descent is the more accurate
NOISY = 0.01


def auto_solver(problem: Problem, budget: Budget, noise: str = "grid") -> AMP | NoisyGD:
    """Return the solver that is best for problems of this kind.

    One output and little noise: `AMP`, which is as accurate as descent and reads the
    rows a handful of times. More noise: `NoisyGD`, which copes better with features
    that are far from centered. Several outputs: `NoisyGD`, whose noise does not grow
    with the number of directions a row can move.
    """
    if problem.loss.n_outputs > 1 or budget.delta == 0:
        return NoisyGD(noise=noise)
    slope = problem.loss.max_slope(inf, problem.bounds.y_range)
    share = noise_level(problem, budget, slope) / problem.n_rows
    return AMP(noise=noise) if share < NOISY else NoisyGD(noise=noise)
