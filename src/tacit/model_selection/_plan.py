"""How many runs a search makes, and what each of them may spend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, log, log1p
from numbers import Real
from typing import Any

from scipy.optimize import brentq

from tacit._validate import PlainNumbers, fraction
from tacit.exceptions import PlanError
from tacit.mechanisms import Gaussian, Laplace, RandomRepeats
from tacit.privacy import (
    Budget,
    Event,
    GaussianNoise,
    LaplaceNoise,
    OneOf,
    Parallel,
    calibrate,
)

__all__ = ["SearchPlan", "plan_search", "planned_holdout", "planned_runs"]

Fit = tuple[Any, Event, tuple[str, ...]]

# Expected runs by default: so many a candidate, and never fewer than the least
RUNS_PER_CANDIDATE = 3
LEAST_RUNS, MOST_RUNS = 20, 10_000
# Shapes of the distribution of the number of runs that are compared
SHAPES = (0.0, 0.5, 1.0, 2.0, 4.0)
# Rows are held out until the noise of a score is this part of them, but within limits
GOOD_NOISE = 0.01
MIN_FRACTION, MAX_FRACTION = 0.1, 0.3
# Part of delta that the failures of all runs together may use up
FAILURES = 0.5
# Chances of stopping among which the one with the wanted mean is sought
LEAST_STOP = 1e-10
# Fits of a budget to what candidates cost; each gets close by a factor
MOST_STEPS = 40
# What reports say
SECRET = "the number of runs is secret: nobody sees how long the search took"
SOUND = "no fit fails because of its rows"
FRESH = "a fit keeps nothing of the one before"
ALONE = "public steps map each row by itself"


@dataclass(frozen=True)
class SearchPlan(PlainNumbers):
    """What a search will do and spend, before any row is read.

    Parameters
    ----------
    budget
        What the search guarantees.
    per_run
        What one run may spend: the fit on its rows, and the score on the others.
    repeats
        Law of the secret number of runs.
    miss_probability
        Chance that a given candidate is never tried.
    holdout
        Part of the rows that scores are counted on.
    noise
        Noise of the score, which counts held-out rows.
    event
        What the ledger is charged.
    assumptions
        What the guarantee rests on, in words.
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
    """Return the distribution of the number of runs, and about the budget of one run.

    Of distributions with the same mean it is the one with the largest product of that
    epsilon and of the chance to meet the best candidate.

    Parameters
    ----------
    budget
        What may be spent in all.
    n_candidates
        How many candidates there are.
    mean_repeats
        Expected number of runs; None for three a candidate, and at least twenty.
    """
    mean = _checked_mean(mean_repeats, n_candidates)
    return max(
        (_for_shape(budget, shape, mean) for shape in SHAPES),
        key=lambda found: (
            found[1].epsilon * (1 - _miss_probability(found[0], n_candidates))
        ),
    )


def planned_holdout(per_run: Budget, n_rows: int, holdout: float | None) -> float:
    """Return the part of the rows to hold out, as given or as the noise asks for."""
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
    """Return the plan whose runs spend what they can, and the fits of candidates.

    Parameters
    ----------
    budget
        What may be spent in all.
    runs
        What `planned_runs` found.
    holdout
        Part of the rows that scores are counted on.
    fits_for
        Fits of all candidates for the budget of one run: the candidate, its event, and
        what it assumes.
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
            told = [word for _, _, words in fits for word in words]
            assumptions = tuple(dict.fromkeys([*told, SECRET, SOUND, FRESH, ALONE]))
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

    def law(log_gamma: float) -> RandomRepeats:
        return RandomRepeats(shape, exp(log_gamma))

    repeats = law(
        brentq(lambda at: log(law(at).mean) - log(mean), log(LEAST_STOP), -1e-9)
    )
    if budget.delta == 0:
        return repeats, replace(budget, epsilon=budget.epsilon / (2 + shape))
    # as if all of a run were Gaussian noise, which most fits are close to
    multiplier = calibrate(
        lambda noise: repeats.event(GaussianNoise(noise)), budget, rtol=1e-3
    )
    delta = budget.delta * FAILURES / mean
    epsilon = GaussianNoise(multiplier).curve(budget.neighbors).epsilon(delta)
    return repeats, replace(budget, epsilon=epsilon, delta=delta)


def _miss_probability(repeats: RandomRepeats, n_candidates: int) -> float:
    """Return the chance that a given candidate is drawn in no run."""
    if n_candidates == 1:
        return 0.0
    eta, gamma = repeats.eta, repeats.gamma
    # the generating function of the number of runs at the chance to miss in one
    left = log1p(-(1 - gamma) * (1 - 1 / n_candidates))
    if eta == 0:
        return left / log(gamma)
    return expm1(-eta * left) / expm1(-eta * log(gamma))


def _score_noise(per_run: Budget) -> Gaussian | Laplace:
    """Return the noise of a score that spends what a fit does.

    Gaussian noise is larger than Laplace noise of the same guarantee, and yet much
    cheaper when the best of many is chosen.
    """
    # [search:score] a row counts one in all, as a sum or as a sum and a rest
    if per_run.delta == 0:
        return Laplace(calibrate(LaplaceNoise, per_run), 1.0)
    return Gaussian(calibrate(GaussianNoise, per_run), 1.0)
