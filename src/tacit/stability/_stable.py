"""A value, told where the data are far from any that have another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

from numpy.random import Generator

from tacit._validate import at_least, one_of
from tacit.mechanisms import NoAnswer, StableRelease
from tacit.mechanisms.threshold import RULES
from tacit.privacy import Budget, Event
from tacit.stability._base import check_function, require_some_delta
from tacit.stability._isolated_call import asked
from tacit.stability._taken_rows import every_row

__all__ = ["StableValue", "StableValuePlan", "as_distance"]


@dataclass(frozen=True)
class StableValuePlan:
    """The release, fixed without data."""

    stable: StableRelease

    @property
    def event(self) -> Event:
        return self.stable.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the distance moves by at most one between neighbors, and is zero where "
            "one of them has another value",
        )


@dataclass(frozen=True)
class StableValue:
    """Tell the value of a function where a bound on its stability allows it.

    Parameters
    ----------
    function
        Maps features and targets to a value of any kind; where it fails, the value is
        None.
    distance
        Maps features and targets to a lower bound on the number of rows to change
        before some neighbor of the data has another value. Where it fails, or gives no
        finite number from zero on, it counts as zero.
    rule
        ``"optimal"`` or ``"laplace"``, as for `tacit.mechanisms.StableRelease`.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private, for the relation under which ``distance``
    moves by at most one between neighbors and is zero wherever a neighbor has another
    value (Smith and Thakurta 2013 [1]_, Proposition 2 and Definition 3). Whoever gives
    the distance has to prove both.

    References
    ----------
    .. [1] A. Smith, A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013.
    """

    function: Callable[..., Any]
    distance: Callable[..., Any]
    rule: str = "optimal"

    def __post_init__(self) -> None:
        check_function("function", self.function)
        check_function("distance", self.distance)
        one_of(RULES, rule=self.rule)

    def plan(self, budget: Budget, n_rows: int) -> StableValuePlan:
        """Set the release; the number of rows plays no part."""
        require_some_delta("StableValue", budget)
        at_least(1, n_rows=n_rows)
        return StableValuePlan(StableRelease(budget.epsilon, budget.delta, self.rule))

    def run(
        self, plan: StableValuePlan, X: Any, y: Any, rng: Generator
    ) -> Any | NoAnswer:
        """Return the value, or `NoAnswer`."""
        rows = every_row(X)
        value = asked(self.function, X, y, rows)
        distance = as_distance(asked(self.distance, X, y, rows))
        return plan.stable(value, distance, rng)


def as_distance(found: Any) -> float:
    """Return a distance that was found, and zero for whatever is none."""
    if not isinstance(found, Real):
        return 0.0
    try:
        distance = float(found)
    except Exception:  # a number of its own kind may fail in any way
        return 0.0
    return distance if isfinite(distance) and distance > 0 else 0.0
