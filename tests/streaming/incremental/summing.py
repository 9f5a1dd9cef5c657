"""A solver that releases the sum of the features, for tests of what is around it."""

from dataclasses import dataclass

from tacit.data.rows import arrays_of
from tacit.mechanisms import Gaussian
from tacit.privacy import GaussianNoise, calibrate
from tacit.solvers import Result


@dataclass(frozen=True)
class SumPlan:
    """Noise of one sum."""

    problem: object
    multiplier: float
    rows_changed: int
    assumptions: tuple[str, ...] = ()

    @property
    def event(self):
        return GaussianNoise(self.multiplier)


@dataclass(frozen=True)
class NoisySum:
    """The sum of the features; ``part`` of its noise is left out where below one."""

    part: float = 1.0

    def plan(self, problem, budget):
        multiplier = calibrate(GaussianNoise, budget)
        return SumPlan(problem, multiplier, budget.neighbors.rows_changed)

    def run(self, plan, rows, rng):
        X, _ = arrays_of(rows, "NoisySum")
        moved = plan.rows_changed * plan.problem.bounds.x_norm
        total = X.sum(axis=0).reshape(plan.problem.shape)
        return Result(Gaussian(self.part * plan.multiplier, moved)(total, rng))
