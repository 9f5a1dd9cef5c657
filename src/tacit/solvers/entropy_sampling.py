"""Entropy-regularized risk over the simplex, released by a few samples."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log, log1p, sqrt

from numpy.random import Generator

from tacit._validate import PlainNumbers, if_given, plain, positive
from tacit.convex import Simplex
from tacit.convex.objective import DERIVATIVE_UNITS, MOST_ADDITIONS, UNIT
from tacit.data import Rows
from tacit.exceptions import PlanError
from tacit.mechanisms.noise import check_noise, noise_assumptions
from tacit.mechanisms.samples import SampleIndices
from tacit.privacy import Budget, Event, Neighbors
from tacit.solvers._base import Problem, Result, Solver, loss_assumptions
from tacit.solvers._minimizers.entropy_minimum import entropy_minimum
from tacit.solvers._published import check_accounting, paper_samples, paper_weight

__all__ = ["EntropySampling", "EntropySamplingPlan"]

# More samples than this change weights by less than a thousandth, and cost time
MOST_SAMPLES = 2**20
# Part of a row's gradient that the minimizer may leave; it costs as much of epsilon
TOLERANCE = 1e-3
# Passes over the rows that may be planned for; few of them are taken as a rule
MOST_STEPS = 10**6
# Weights tried by the rule, a factor of 1.1 apart
TRIALS = 400


@dataclass(frozen=True)
class EntropySamplingPlan(PlainNumbers):
    """Weight of the entropy, number of samples and accuracy, fixed without data."""

    problem: Problem
    weight: float
    n_samples: int
    bounded_range: bool
    tolerance: float
    n_steps: int
    noise: str = "grid"

    @property
    def sensitivity(self) -> float:
        """How far neighbors can move what the samples are drawn from."""
        return log_ratio(
            self.problem, self.weight, self.tolerance, bounded_range=self.bounded_range
        )

    @property
    def mechanism(self) -> SampleIndices:
        """What draws the samples."""
        return SampleIndices(
            self.sensitivity, self.n_samples, self.bounded_range, self.noise
        )

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        rows = f"there are at most {self.problem.n_rows} rows"
        stated = loss_assumptions(self.problem)
        return (rows, *stated, *noise_assumptions(self.noise))


@dataclass(frozen=True)
class EntropySampling(Solver[EntropySamplingPlan]):
    """Sampling from the minimizer of the risk plus negative entropy on the simplex.

    The weights are the frequencies of ``n_samples`` draws of a feature, each with the
    probability that the minimizer gives it: a sparse convex combination whose mean is
    the minimizer.

    Parameters
    ----------
    weight
        Factor of ``sum_j w_j log w_j`` in sum units; None for the one whose bound on
        the excess risk is least.
    accounting
        ``"tight"``, or ``"paper"`` for the published weight and number of samples [1]_,
        with the factor it lacks.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Under replacement of one of n rows, with ``a`` twice the largest
    gradient entry of a row and kappa = n curvature x_norm^2 / weight, a sample's
    log-probabilities move by at most ``(a / weight) (1 + sqrt(1 + kappa))`` and its
    log-odds by ``(a / weight) (2 + sqrt(kappa))``: pure, and of bounded range. The
    published bound has kappa where this has its root. The gradient that the minimizer
    leaves is certified, round-off included, and counted in ``a``.

    References
    ----------
    .. [1] P. Jain, A. Thakurta, "(Near) dimension independent risk bounds for
       differentially private learning", ICML 2014, Theorems 3 and 4.
    """

    saved = True
    name = "entropy_sampling"
    row_norm = "linf"
    rows_are_bounded = True

    weight: float | None = None
    accounting: str = "tight"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        check_noise(self.noise)
        if_given(positive, weight=self.weight)
        check_accounting(self.accounting)

    def plan(self, problem: Problem, budget: Budget) -> EntropySamplingPlan:
        """Choose the weight, then the largest number of samples that fits."""
        # long: one field of the plan after another; the samples are found last
        _reject(problem, budget)
        tolerance = stationarity_tolerance(problem)
        paper = self.accounting == "paper"
        weight = self.weight
        if weight is None:
            weight = (
                paper_weight(problem, budget)
                if paper
                else weight_rule(problem, budget, tolerance)
            )
        n_steps = mirror_steps(problem, weight, tolerance)
        if n_steps > MOST_STEPS:
            raise PlanError(
                f"A weight of {weight:.3g} may take {n_steps} passes over the rows; "
                "raise weight, or use FrankWolfe."
            )

        def planned(n_samples: int, bounded_range: bool) -> EntropySamplingPlan:
            return EntropySamplingPlan(
                problem,
                weight,
                n_samples,
                bounded_range,
                tolerance,
                n_steps,
                self.noise,
            )

        def largest(bounded_range: bool) -> int:
            def fits(count: int) -> bool:
                event = planned(count, bounded_range).event
                return event.curve(budget.neighbors).fits(budget)

            low, high = 0, MOST_SAMPLES + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if fits(middle) else (low, middle)
            return low

        # both bounds hold: with few samples the first may allow more
        kinds = (False, True) if budget.delta > 0 else (False,)
        count, bounded_range = max((largest(kind), kind) for kind in kinds)
        if paper:
            entry, kappa = entry_bound(problem), smoothness(problem) / weight
            count = min(count, paper_samples(budget, weight, entry, kappa))
        if count == 0:
            raise PlanError(
                f"EntropySampling cannot draw one sample at a weight of {weight:.3g} "
                f"and epsilon={budget.epsilon:g}; raise either, leave weight=None with "
                "accounting='tight', or use FrankWolfe."
            )
        return planned(count, bounded_range)

    def run(self, plan: EntropySamplingPlan, rows: Rows, rng: Generator) -> Result:
        """Minimize to the tolerance and draw."""
        problem = plan.problem
        if rows.n_rows > problem.n_rows:
            raise ValueError(
                f"EntropySampling was planned for {problem.n_rows} rows, got "
                f"{rows.n_rows}; plan for the true number, which is public here."
            )
        log_weights = entropy_minimum(
            problem.loss,
            rows,
            weight=plan.weight,
            # what is computed must be this near, so that what is exact is in tolerance
            tolerance=plan.tolerance - gradient_entry_roundoff(problem),
            smoothness=smoothness(problem),
            n_steps=plan.n_steps,
        )
        counts = plan.mechanism(log_weights, rng)
        return Result((counts / plan.n_samples).reshape(problem.shape))


def _reject(problem: Problem, budget: Budget) -> None:
    if not isinstance(problem.regularizer, Simplex):
        raise PlanError(
            "EntropySampling needs the weights in Simplex(), got "
            f"{problem.regularizer!r}; use FrankWolfe for other sets."
        )
    if problem.bounds.norm != "linf":
        raise PlanError(
            "EntropySampling needs rows bounded in the largest entry, got "
            f"{problem.bounds.norm!r}; pass bound_norm='linf', or use NoisyGD."
        )
    if problem.loss.n_outputs != 1:
        raise PlanError(
            f"EntropySampling needs a loss of one margin, got {problem.loss!r}; use "
            "Logistic() or Squared()."
        )
    problem.require_smooth("EntropySampling", "Logistic() or Huber()")
    problem.require_bounded_derivative(
        "EntropySampling", derivative(problem), "use Logistic() or Huber()"
    )
    if problem.ridge > 0:
        raise PlanError(
            "EntropySampling takes no ridge beside the entropy; give weight=, or use "
            "FrankWolfe."
        )
    if budget.neighbors is not Neighbors.REPLACE_ONE:
        raise PlanError(
            "EntropySampling has a bound for neighbors='replace_one' only, as it needs "
            "the number of rows; use that, or FrankWolfe."
        )


def derivative(problem: Problem) -> float:
    """Return the largest derivative of a row with weights on the simplex."""
    return problem.loss.max_derivative(problem.bounds.x_norm, problem.bounds.y_range)


def entry_bound(problem: Problem) -> float:
    """Return the largest entry of the gradient of a row's loss."""
    return derivative(problem) * problem.bounds.x_norm


def smoothness(problem: Problem) -> float:
    """Return how fast the summed gradient can change, from L1 to its largest entry."""
    return problem.n_rows * problem.loss.max_curvature() * problem.bounds.x_norm**2


def log_ratio(
    problem: Problem, weight: float, tolerance: float, *, bounded_range: bool
) -> float:
    """Return the sensitivity of log-odds, or else of log-probabilities."""
    # [entropy:tilt] each side may be the minimizer of an objective so much tilted
    moved = 2 * derivative(problem) * problem.bounds.x_norm + 2 * tolerance
    kappa = smoothness(problem) / weight
    if bounded_range:
        # [entropy:range]
        return moved / weight * (2 + sqrt(kappa))
    # [entropy:pure]
    return moved / weight * (1 + sqrt(1 + kappa))


def gradient_entry_roundoff(problem: Problem) -> float:
    """Return a bound on the error of any entry of the computed residual.

    Margins are averages of at most ``x_norm``; weights come from logarithms with a
    relative error of a few units and their distance from the largest, whose mean is
    below log p + 1, and from a sum of p of them.
    """
    p, n = problem.n_features, problem.n_rows
    x_norm, steep = problem.bounds.x_norm, derivative(problem)
    off_margin = (3 * p + 64) * UNIT * x_norm
    derivative_error_bound = (
        problem.loss.max_curvature() * off_margin + DERIVATIVE_UNITS * UNIT * steep
    )
    # sums of gradients, then the residual, whose terms are below twice their sum
    summed = (MOST_ADDITIONS + 32) * UNIT * steep
    return 1.01 * n * x_norm * (derivative_error_bound + summed)


def stationarity_tolerance(problem: Problem) -> float:
    """Return the residual to certify: small beside a row, above round-off."""
    wanted = TOLERANCE * derivative(problem) * problem.bounds.x_norm
    return max(wanted, 4 * gradient_entry_roundoff(problem))


def mirror_steps(problem: Problem, weight: float, tolerance: float) -> int:
    """Return a number of mirror steps after which the residual is within tolerance."""
    kappa = smoothness(problem) / weight
    shrink = kappa / (1 + kappa)
    pinsker = sqrt(2 * log(max(2, problem.n_features)))
    first = problem.n_rows * derivative(problem) * problem.bounds.x_norm / weight
    # one over 1 - sqrt(shrink), without cancellation
    settled = pinsker * (1 + kappa) * (1 + sqrt(shrink))
    start = first + settled + kappa * pinsker
    # the last iterates need half the tolerance, round-off has the other
    needed = log(max(2.0, 2 * weight * start / tolerance))
    # [entropy:steps] log((1 + kappa) / kappa) without cancellation
    return ceil(2 * needed / log1p(1 / max(kappa, 1e-9))) + 1


def weight_rule(problem: Problem, budget: Budget, tolerance: float) -> float:
    """Return the weight with the least bound on the expected excess risk."""
    p, n = problem.n_features, problem.n_rows
    entry = entry_bound(problem)
    curved = problem.loss.max_curvature() * problem.bounds.x_norm**2

    def samples(weight: float) -> float:
        pure = log_ratio(problem, weight, tolerance, bounded_range=False)
        count = budget.epsilon / pure
        if budget.delta > 0:
            ranged = log_ratio(problem, weight, tolerance, bounded_range=True)
            bits = log(1 / budget.delta)
            rho = (sqrt(bits + budget.epsilon) - sqrt(bits)) ** 2
            count = max(count, 8 * rho / ranged**2)
        return min(count, float(MOST_SAMPLES))

    def excess(weight: float) -> float:
        count = samples(weight)
        # a little room, as the planned number is an integer
        if count < 1.01 or mirror_steps(problem, weight, tolerance) > MOST_STEPS:
            return inf
        drawn = curved / (2 * int(count))
        return weight * log(max(2, p)) / n + 2 * entry**2 / weight + drawn

    start = entry * sqrt(n) * 1e-3
    trials = [start * 1.1**i for i in range(TRIALS)]
    return min(trials, key=excess)
