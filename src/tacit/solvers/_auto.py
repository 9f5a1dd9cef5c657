"""Which solver, from public facts only."""

from tacit.privacy import Budget
from tacit.solvers._base import Problem
from tacit.solvers.amp import AMP
from tacit.solvers.noisy_gd import NoisyGD

__all__ = ["auto_solver"]


def auto_solver(problem: Problem, budget: Budget, noise: str = "grid") -> AMP | NoisyGD:
    """Return the solver that is best for problems of this kind.

    One output: `AMP`, which is as accurate as descent and reads the rows a handful of
    times. Several outputs: `NoisyGD`, whose noise does not grow with the number of
    directions a row can move.
    """
    if problem.loss.n_outputs == 1:
        return AMP(noise=noise)
    return NoisyGD(noise=noise)
