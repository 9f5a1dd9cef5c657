"""Steps of the refits on a stream, and the division of one budget among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import ceil, exp, expm1, fsum, inf, isfinite, log, nextafter, sqrt
from numbers import Integral

from tacit._validate import at_least
from tacit.convex import L1Ball, Simplex
from tacit.exceptions import PlanError
from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Budget,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
    calibrate,
)
from tacit.solvers import Problem
from tacit.streaming._model import StreamTerms

__all__ = [
    "Refit",
    "balanced_interval",
    "doubling_steps",
    "grouped",
    "paper_refits",
    "planned_refits",
    "refit_steps",
    "split_fractions",
    "useful_step",
]

# Maximum number of refits: each is planned several times to divide the budget
MOST_REFITS = 2**10
# Rows of the first useful fit, in units of the norm of noise on a sum of gradients. Of
# 1, 2, 4, 8, 16 and 32 the best or near it on most of ten synthetic settings, and about
# 9% off the best on the worst; chosen on these
WORTH = 8.0
# Fraction of epsilon that the search may leave unspent, and its number of attempts
UNSPENT, MOST_TRIES = 0.01, 40
LEAST_MU = 1e-90  # far below what any fit can use

EventFor = Callable[[int, Budget], Event]


@dataclass(frozen=True)
class Refit:
    """One fit on all rows so far, planned before the first row.

    Parameters
    ----------
    step
        Step after whose rows it is made.
    n_rows
        Expected number of rows.
    budget
        Budget that it was planned for.
    event
        Event of the fit.
    """

    step: int
    n_rows: int
    budget: Budget
    event: Event


def doubling_steps(horizon: int, useful: float = 1.0) -> tuple[int, ...]:
    """Return the horizon and its halves, rounded down, without those below ``useful``.

    The horizon is one of them, so that all rows are used. The last two are always
    there.
    """
    halves = [horizon >> j for j in reversed(range(horizon.bit_length()))]
    return tuple(step for step in halves if step >= useful or step in halves[-2:])


def useful_step(problem: Problem, budget: Budget, terms: StreamTerms) -> float:
    """Return the step from which weights are more than noise, by public facts.

    A useful fit has several times as many rows as the norm of noise on a sum of
    gradients, for the whole budget.
    """
    if budget.delta > 0:
        multiplier = calibrate(GaussianNoise, budget, rtol=1e-3)
    else:
        multiplier = 1 / budget.epsilon
    changed = budget.neighbors.rows_changed * terms.rows_per_person
    return WORTH * changed * sqrt(problem.size) * multiplier / terms.rows_per_step


def refit_steps(every: int, horizon: int) -> tuple[int, ...]:
    """Return the steps of fits at a fixed interval."""
    if not isinstance(every, Integral) or isinstance(every, bool):
        raise ValueError(
            "update_every must be an integer number of steps, 'doubling' or 'auto', "
            f"got {every!r}."
        )
    at_least(1, update_every=every)
    if every > horizon:
        raise ValueError(
            f"update_every must be at most horizon={horizon}, or there is no fit, got "
            f"{every!r}."
        )
    if horizon // every > MOST_REFITS:
        raise ValueError(
            f"update_every must be at least {ceil(horizon / MOST_REFITS)} for "
            f"horizon={horizon}, as no more than {MOST_REFITS} fits are planned, got "
            f"{every!r}; or use 'doubling'."
        )
    return tuple(range(int(every), horizon + 1, int(every)))


def balanced_interval(problem: Problem, n_rows: int, epsilon: float) -> int:
    """Return the rows between fits that balance outdated weights against noise.

    Notes
    -----
    **Bound.** Kasiviswanathan, Nissim and Jin (2017), Theorem 3.1, in its three cases:
    weights in an L1 ball or simplex, strongly convex losses, all others. The roots
    equate both parts of the error. A strongly convex loss without a set has its minimum
    within the ratio of its gradient bound to its strong convexity.
    """
    radius, size = problem.regularizer.radius, problem.size
    reach = problem.bounds.x_norm * radius
    derivative = problem.loss.max_derivative(reach, problem.bounds.y_range)
    steepness = derivative * problem.bounds.x_norm
    if isinstance(problem.regularizer, L1Ball | Simplex):
        width = problem.regularizer.width(*problem.shape) / radius
        curved = problem.loss.max_curvature() * (2 * reach) ** 2
        balance = sqrt(n_rows * width / epsilon)
        balance *= (curved / (steepness * radius)) ** 0.25
    elif problem.ridge > 0:
        flatness = 1.0
        if isfinite(radius):
            flatness = max(1.0, steepness * n_rows / (problem.ridge * radius))
        balance = sqrt(size * flatness) / epsilon
    else:
        balance = (n_rows * size) ** (1 / 3) / epsilon ** (2 / 3)
    return ceil(min(balance, float(n_rows)))


def split_fractions(split: str, steps: tuple[int, ...]) -> tuple[float, ...]:
    """Return the fraction of the squared privacy parameter of each fit."""
    parts = [1.0 if split == "even" else 1 / step for step in steps]
    return tuple(part / sum(parts) for part in parts)


def planned_refits(
    event_for: EventFor,
    steps: tuple[int, ...],
    rows_per_step: int,
    fractions: tuple[float, ...],
    budget: Budget,
    *,
    rows_per_person: int = 1,
) -> tuple[tuple[Refit, ...], Event]:
    """Return the fits whose composition nearly exhausts the budget, and its event.

    Parameters
    ----------
    event_for
        Event of one fit, from its expected rows and its budget.
    steps, rows_per_step
        Steps of the fits, and rows of a step.
    fractions
        Fractions of the squared privacy parameter.
    budget
        Budget of all fits.
    rows_per_person
        Rows of one person, all of which are protected together.

    Notes
    -----
    **Guarantee.** The curve of the returned event was evaluated and fits the budget.
    """

    def at(level: float) -> tuple[tuple[Refit, ...], Event, float]:
        refits = []
        for step, fraction in zip(steps, fractions, strict=True):
            part = _part(budget, level * sqrt(fraction), len(steps))
            n_rows = step * rows_per_step
            refits.append(Refit(step, n_rows, part, event_for(n_rows, part)))
        event, spent = _charge(refits, budget, rows_per_person)
        return tuple(refits), event, spent

    if budget.delta > 0:
        level = 1 / calibrate(GaussianNoise, budget, rtol=1e-3)
    else:
        level = budget.epsilon / sum(map(sqrt, fractions))
    return _largest(at, level / rows_per_person, budget)


def paper_refits(
    event_for: EventFor,
    steps: tuple[int, ...],
    rows_per_step: int,
    budget: Budget,
    *,
    rows_per_person: int = 1,
) -> tuple[tuple[Refit, ...], Event]:
    """Return fits with the published budgets, and the event of all of them.

    Notes
    -----
    **Guarantee.** Kasiviswanathan, Nissim and Jin (2017), Theorem 3.1, where each fit
    has an epsilon of at most one and all together at most ``2 log(2 / delta)``: its
    composition theorem requires both, and they are checked here.
    """
    if budget.delta == 0:
        raise PlanError("accounting='paper' requires delta > 0; pass a delta.")
    row = _for_one_row(budget, rows_per_person)
    logs, k = log(2 / row.delta), len(steps)
    # [incremental-erm:paper]
    epsilon = row.epsilon / (2 * sqrt(2 * k * logs))
    if epsilon > 1 or row.epsilon > 2 * logs:
        raise PlanError(
            f"accounting='paper' is valid up to epsilon={min(1.0, 2 * logs):.3g} of "
            f"each fit and {2 * logs:.3g} of all; lower epsilon, or use "
            "accounting='exact'."
        )
    part = Budget(epsilon, row.delta / (2 * k), budget.neighbors)
    refits = []
    for step in steps:
        n_rows = step * rows_per_step
        refits.append(Refit(step, n_rows, part, event_for(n_rows, part)))
    return tuple(refits), ApproxDP(budget.epsilon, budget.delta)


def _part(budget: Budget, mu: float, n_parts: int) -> Budget:
    """Return the budget of a fit with this Gaussian parameter; pure without delta."""
    if budget.delta == 0:
        return replace(budget, epsilon=mu)
    delta = budget.delta / (2 * n_parts)
    mu = max(mu, LEAST_MU)
    spent = GaussianNoise(1 / mu).curve(budget.neighbors).epsilon(delta)
    # if such a small parameter is within delta, the search starts from here
    return replace(budget, epsilon=max(spent, mu / 100), delta=delta)


def _charge(
    refits: list[Refit], budget: Budget, rows_per_person: int
) -> tuple[Event, float]:
    """Return the event of all fits, and its epsilon at the delta of the budget."""
    events = [refit.event for refit in refits]
    # [incremental-erm:compose] all of them are fixed before the first
    one = _composed(events)
    if rows_per_person == 1:
        return one, _spent(one, budget)
    group = [grouped(event, rows_per_person) for event in events]
    known = [event for event in group if event is not None]
    if len(known) == len(group):
        event = _composed(known)
        return event, _spent(event, budget)
    # [incremental-erm:group] the bound of any (epsilon, delta), as there is no better
    spent = _spent(one, _for_one_row(budget, rows_per_person)) * rows_per_person
    if budget.delta == 0:
        return PureDP(budget.epsilon), spent
    return ApproxDP(budget.epsilon, budget.delta), spent


def _spent(event: Event, budget: Budget) -> float:
    return event.curve(budget.neighbors).epsilon(budget.delta)


def _composed(events: Iterable[Event]) -> Event:
    """Return all events as one, equal ones counted and Gaussian ones added up."""
    counts: Counter[Event] = Counter()
    for event in events:
        _count(event, 1, counts)
    squares = [
        times / event.multiplier**2
        for event, times in counts.items()
        if isinstance(event, GaussianNoise)
    ]
    parts: list[Event] = []
    if squares:
        # rounded to less noise, hence to more budget, never to less
        parts.append(GaussianNoise(nextafter(fsum(squares) ** -0.5, 0.0)))
    parts += [
        event if times == 1 else Repeated(event, times)
        for event, times in counts.items()
        if not isinstance(event, GaussianNoise)
    ]
    return parts[0] if len(parts) == 1 else Composed(tuple(parts))


def _count(event: Event, times: int, counts: Counter[Event]) -> None:
    if isinstance(event, Composed):
        for part in event.events:
            _count(part, times, counts)
    elif isinstance(event, Repeated):
        _count(event.event, times * event.count, counts)
    else:
        counts[event] += times


def _for_one_row(budget: Budget, rows_per_person: int) -> Budget:
    """Return the budget of one row where a person has several.

    Notes
    -----
    **Guarantee.** A chain of neighbors multiplies epsilon, and deltas add up with
    factors ``exp(i epsilon)`` (Vadhan 2017, Lemma 2.2, before its last estimate).
    """
    if rows_per_person == 1:
        return budget
    epsilon = budget.epsilon / rows_per_person
    # (exp(e) - 1) / (exp(k e) - 1), without overflow
    factor = exp(epsilon - budget.epsilon) * expm1(-epsilon) / expm1(-budget.epsilon)
    return replace(budget, epsilon=epsilon, delta=budget.delta * factor)


def grouped(event: Event, rows: int) -> Event | None:
    """Return the event for neighbors that differ in this many rows, or None if unknown.

    Notes
    -----
    **Guarantee.** Gaussian parameters (Dong, Roth and Su 2022, Theorem 2.14), bounds on
    the loss and ranges of log-odds add up along a chain of neighbors, and so for each
    part of a composition.
    """
    match event:
        case GaussianNoise():
            return GaussianNoise(event.multiplier / rows)
        case LaplaceNoise():
            return PureDP(rows / event.multiplier)
        case PureDP() | BoundedRange():
            return type(event)(event.epsilon * rows)
        case Repeated():
            inner = grouped(event.event, rows)
            return None if inner is None else Repeated(inner, event.count)
        case Composed():
            parts = [grouped(part, rows) for part in event.events]
            known = tuple(part for part in parts if part is not None)
            return Composed(known) if len(known) == len(parts) else None
    return None


def _largest(
    at: Callable[[float], tuple[tuple[Refit, ...], Event, float]],
    level: float,
    budget: Budget,
) -> tuple[tuple[Refit, ...], Event]:
    """Return the fits of the largest level that the budget allows, nearly.

    Log epsilon is nearly linear in the log of the level, except for solvers that change
    with the budget; so the line is followed inside a bracket.
    """
    best: tuple[tuple[Refit, ...], Event] | None = None
    low, high, x, derivative = -inf, inf, log(level), 1.2
    known: tuple[float, float] | None = None
    for _ in range(MOST_TRIES):
        refits, event, spent = at(exp(x))
        gap = log(spent / budget.epsilon) if 0 < spent < inf else (1.0 if spent else -1)
        if gap <= 0 and event.curve(budget.neighbors).fits(budget):
            low, best = x, (refits, event)
            if gap >= -UNSPENT:
                break
        else:
            high = min(high, x)
        if high - low < UNSPENT / 10:
            break
        if known is not None and x != known[0]:
            derivative = min(3.0, max(0.4, (gap - known[1]) / (x - known[0])))
        known = x, gap
        x = x - (gap + UNSPENT / 3) / derivative
        if not low < x < high:
            x = (low + high) / 2
    if best is None:
        raise PlanError(
            f"No fraction of epsilon={budget.epsilon:g} at delta={budget.delta:g} is "
            f"enough for each fit; raise either, or update_every."
        )
    return best
