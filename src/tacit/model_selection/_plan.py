"""Plan of a search: number of runs and budget of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, log, log1p
from numbers import Real
from typing import Any

from scipy.optimize import brentq

from tacit._validate import PlainNumbers, fraction
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.repeats import RandomRepeats
from tacit.privacy import Budget, Event, GaussianNoise, LaplaceNoise, calibrate
from tacit.privacy.combined import OneOf, Parallel

__all__ = ["SearchPlan", "plan_search", "planned_holdout", "planned_runs"]

Fit = tuple[Any, Event, tuple[str, ...]]

# Expected runs by default: so many per candidate, within limits
RUNS_PER_CANDIDATE = 3
LEAST_RUNS, MOST_RUNS = 20, 10_000
# Shapes of the distribution of the number of runs that are compared
SHAPES = (0.0, 0.5, 1.0, 2.0, 4.0)
# Wanted noise of a score over the number of rows; limits of the fraction held out
GOOD_NOISE = 0.01
MIN_FRACTION, MAX_FRACTION = 0.1, 0.3
# Fraction of delta for the deltas of all runs together
FAILURES = 0.5
# Least stopping probability of the distributions that are searched
LEAST_STOP = 1e-10
# Attempts at the budget of a run
MOST_STEPS = 40
ASSUMPTIONS = (
    "the number of runs is secret: nobody sees how long the search took",
    "no fit fails because of its rows",
    "a fit keeps nothing of the one before",
    "public steps map each row by itself",
)


@dataclass(frozen=True)
class SearchPlan(PlainNumbers):
    """Plan of a search and what it spends, made before any row is read.

    Parameters
    ----------
    budget
        Guarantee of the search.
    per_run
        Budget of one run, for the fit and the score on other rows.
    repeats
        Distribution of the secret number of runs.
    miss_probability
        Probability that a given candidate is never tried.
    holdout
        Fraction of the rows that candidates are scored on.
    noise
        Noise of a score.
    event
        What the ledger is charged.
    assumptions
        Assumptions of the guarantee, in words.
    """

    budget: Budget
    per_run: Budget
    repeats: RandomRepeats
    miss_probability: float
    holdout: float
    noise: Gaussian | Laplace
    event: Event
    assumptions: tuple[str, ...]

    @property
    def mean_repeats(self) -> float:
        """Expected number of runs."""
        return self.repeats.mean


def planned_runs(
    budget: Budget, n_candidates: int, mean_repeats: float | None = None
) -> tuple[RandomRepeats, Budget]:
    """Return the distribution of the number of runs, and nearly the budget of one run.

    Among distributions with the same mean it maximizes that epsilon times the
    probability to try the best candidate. The mean is by default three runs a
    candidate, and at least twenty.
    """
    mean = _checked_mean(mean_repeats, n_candidates)
    return max(
        (_for_shape(budget, shape, mean) for shape in SHAPES),
        key=lambda found: (
            found[1].epsilon * (1 - _miss_probability(found[0], n_candidates))
        ),
    )


def planned_holdout(per_run: Budget, n_rows: int, holdout: float | None) -> float:
    """Return the fraction of rows to hold out, as given or from the noise."""
    if holdout is not None:
        fraction(closed=False, holdout=holdout)
        return float(holdout)
    noise = _score_noise(per_run)
    wanted = noise.multiplier / (GOOD_NOISE * n_rows)
    return min(max(wanted, MIN_FRACTION), MAX_FRACTION)


def plan_search(
    budget: Budget,
    runs: tuple[RandomRepeats, Budget],
    holdout: float,
    fits_for: Callable[[Budget], Sequence[Fit]],
) -> tuple[SearchPlan, Sequence[Fit]]:
    """Return the plan whose runs use up the budget, and the fits of candidates.

    ``runs`` is the result of `planned_runs`, and ``fits_for`` returns the fits of all
    candidates for the budget of one run: the candidate, its event, its assumptions.
    """
    repeats, per_run = runs
    for _ in range(MOST_STEPS):
        noise = _score_noise(per_run)
        fits = fits_for(per_run)
        events = tuple(event for _, event, _ in fits)
        same = len(set(events)) == 1
        # [search:run] one candidate, fitted on a part of the rows, scored on the other
        run = Parallel((events[0] if same else OneOf(events), noise.event))
        event = repeats.event(run)
        curve = event.curve(budget.neighbors)
        if curve.fits(budget):
            miss = _miss_probability(repeats, len(fits))
            of_fits = [words for _, _, assumptions in fits for words in assumptions]
            assumptions = tuple(dict.fromkeys([*of_fits, *ASSUMPTIONS]))
            return SearchPlan(
                budget, per_run, repeats, miss, holdout, noise, event, assumptions
            ), fits
        over = budget.epsilon / curve.epsilon(budget.delta)
        per_run = replace(per_run, epsilon=per_run.epsilon * min(over, 0.999))
    raise PlanError(
        f"No budget of one fit makes this search fit epsilon={budget.epsilon:g} at "
        f"delta={budget.delta:g}; raise epsilon or delta, or lower mean_repeats."
    )


def _checked_mean(mean_repeats: float | None, n_candidates: int) -> float:
    if mean_repeats is None:
        return float(min(max(RUNS_PER_CANDIDATE * n_candidates, LEAST_RUNS), MOST_RUNS))
    real = isinstance(mean_repeats, Real) and not isinstance(mean_repeats, bool)
    if not (real and 1 < mean_repeats <= MOST_RUNS):
        raise ValueError(
            f"mean_repeats must be above 1 and at most {MOST_RUNS}, got "
            f"{mean_repeats!r}."
        )
    return float(mean_repeats)


def _for_shape(
    budget: Budget, shape: float, mean: float
) -> tuple[RandomRepeats, Budget]:
    """Return the distribution with this shape and mean, and the budget of one run."""

    def with_stop(log_gamma: float) -> RandomRepeats:
        return RandomRepeats(shape, exp(log_gamma))

    repeats = with_stop(
        brentq(lambda at: log(with_stop(at).mean) - log(mean), log(LEAST_STOP), -1e-9)
    )
    if budget.delta == 0:
        return repeats, replace(budget, epsilon=budget.epsilon / (2 + shape))
    # as if a run were one Gaussian mechanism, which most fits are close to
    multiplier = calibrate(
        lambda noise: repeats.event(GaussianNoise(noise)), budget, rtol=1e-3
    )
    delta = budget.delta * FAILURES / mean
    epsilon = GaussianNoise(multiplier).curve(budget.neighbors).epsilon(delta)
    return repeats, replace(budget, epsilon=epsilon, delta=delta)


def _miss_probability(repeats: RandomRepeats, n_candidates: int) -> float:
    """Return the probability that a given candidate is drawn in no run."""
    if n_candidates == 1:
        return 0.0
    eta, gamma = repeats.eta, repeats.gamma
    # probability generating function of the number of runs, at 1 - 1 / n_candidates
    left = log1p(-(1 - gamma) * (1 - 1 / n_candidates))
    if eta == 0:
        return left / log(gamma)
    return expm1(-eta * left) / expm1(-eta * log(gamma))


def _score_noise(per_run: Budget) -> Gaussian | Laplace:
    """Return the noise of a score that spends as much as a fit.

    Gaussian noise is larger than Laplace noise of the same guarantee, but much cheaper
    in a choice of the best of many.
    """
    # [search:score] a row adds one in all, to one sum or divided between two
    if per_run.delta == 0:
        return Laplace(calibrate(LaplaceNoise, per_run), 1.0)
    return Gaussian(calibrate(GaussianNoise, per_run), 1.0)
