"""Private answers: plan, charge and run of a procedure."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.random import Generator

from tacit._estimators import guaranteed_budget, planning_rows
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit.exceptions import PlanError
from tacit.mechanisms import NoAnswer
from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport
from tacit.solvers._base import Plan
from tacit.stability._rows import ListedRows, as_table

__all__ = [
    "Answer",
    "Procedure",
    "check_function",
    "private_answer",
    "require_some_delta",
]


P = TypeVar("P", bound=Plan)


class Procedure(Protocol[P]):
    """A query of rows: ``plan`` never sees a row, ``run`` never sees a budget."""

    def plan(self, budget: Budget, n_rows: int) -> P: ...
    def run(self, plan: P, X: Any, y: Any, rng: Generator) -> Any: ...


@dataclass(frozen=True)
class Answer:
    """A private answer and what it cost.

    Parameters
    ----------
    value
        What was released, or `tacit.mechanisms.NoAnswer`.
    privacy
        Guarantee, charge and assumptions.
    """

    value: Any
    privacy: PrivacyReport

    @property
    def released(self) -> bool:
        """Whether there is an answer."""
        return not isinstance(self.value, NoAnswer)


def private_answer(
    procedure: Procedure[Any],
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    neighbors: str | Neighbors = "replace_one",
    expected_rows: int | None = None,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> Answer:
    """Run a procedure on rows and charge for its answer.

    Parameters
    ----------
    procedure
        The query, such as `BlockVote`.
    X
        Rows: an array, a sparse matrix or a data frame, whose types are public; where
        sets of rows vote, also a list or another sequence, of which each set becomes an
        array whose type depends on that set only. Arrow tables and arrays, and pandas
        arrays, are read as pandas columns of the same types.
    y
        Targets, one for each row, likewise; None where the function needs none.
    epsilon
        Privacy budget of the answer.
    delta
        Probability with which the bound may fail; None for one over the squared number
        of rows, which is public when neighbors replace a row.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows to plan for; None for the number itself
        where it is public, and else for the number that delta suggests.
    ledger
        Ledger to charge; None creates one for this call.
    random_state
        A `tacit.Seed` fixes the noise, for tests only. Otherwise noise comes from the
        operating system.

    Notes
    -----
    **Guarantee.** That of the procedure's event, charged before a value is read.
    `tacit.mechanisms.NoAnswer` costs as much as any other answer.
    """
    # long: checks, charge and answer, in the order of every release
    # a class has both too, and cannot plan
    if isinstance(procedure, type) or not all(
        hasattr(procedure, name) for name in ("plan", "run")
    ):
        raise TypeError(
            "procedure must have methods plan and run, as BlockVote(function) has, "
            f"got {_name_of(procedure)}."
        )
    table = as_table("X", X)
    n_rows = int(table.shape[0])
    targets = None if y is None else as_table("y", y)
    for name, given, read in (("X", X, table), ("y", y, targets)):
        _check_list(procedure, name, given, read)
    if targets is not None and targets.shape[0] != n_rows:
        raise ValueError("X and y must have as many rows as each other.")
    if n_rows == 0 and Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        raise ValueError("X must have at least one row, got none.")
    budget = guaranteed_budget(epsilon, delta, neighbors, n_rows)
    plan = procedure.plan(budget, planning_rows(budget, n_rows, expected_rows))
    rng = noise_generator(random_state)
    release = Release(
        plan.event,
        budget,
        type(procedure).__name__,
        plan.assumptions,
        seeded=is_seeded(random_state),
    )
    value, report = charged_run(
        release,
        ledger,
        lambda rows: procedure.run(plan, rows, targets, rng),
        check=lambda: table,
    )
    return Answer(value, report)


def _check_list(procedure: Any, name: str, values: Any, table: Any) -> None:
    """Reject a list where the function gets all rows at once.

    The type of its array would depend on all cells, so that one row would change how
    the function reads every other.
    """
    takes = getattr(procedure, "takes_lists", False)
    if isinstance(table, ListedRows) and not takes:
        raise TypeError(
            f"{name} must be an array, a sparse matrix or a data frame for "
            f"{type(procedure).__name__}, got a {type(values).__name__}; choose its "
            f"type without the data, as np.asarray({name}, dtype=float) does."
        )


def check_function(name: str, function: Any, *, seeded: bool = False) -> None:
    """Reject a parameter that cannot be called with features and targets.

    If ``seeded``, it is also called with a ``random_state`` where it has one.
    """
    if not callable(function):
        raise TypeError(f"{name} must be a function, got {_name_of(function)}.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not say
        return
    given = (
        {"random_state": 0} if seeded and "random_state" in signature.parameters else {}
    )
    try:
        signature.bind(None, None, **given)
    except TypeError as error:
        raise TypeError(
            f"{name} must take features and targets, X and y, and nothing else that "
            # only names, as defaults may contain rows
            f"it needs, got {_name_of(function)}({', '.join(signature.parameters)})."
        ) from error


def _name_of(thing: Any) -> str:
    """Return what a function is called, and the type of anything else."""
    if callable(thing) and hasattr(thing, "__name__"):
        return str(thing.__name__)
    return type(thing).__name__


def require_some_delta(procedure: str, budget: Budget) -> None:
    """Reject a budget without delta, which no exact release has."""
    if budget.delta == 0:
        raise PlanError(
            f"{procedure} needs delta > 0, as it releases exact values; give a delta."
        )
