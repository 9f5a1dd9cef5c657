"""Public terms of a stream, its plan, and the protocols of what learns on it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import at_least, plain
from tacit.privacy import Budget, Event

__all__ = [
    "PlannedStream",
    "RowReader",
    "StreamLearner",
    "StreamMethod",
    "StreamTerms",
    "is_method",
]

Array = NDArray[np.float64]

# More steps or rows than any stream of models has; bounds on round-off hold up to here
MOST_STEPS = 2**26
MOST_STREAM_ROWS = 2**40
# Total variation distance of a sampled normal from its distribution, and the part of
# delta that this error may add without being stated
SAMPLING_ERROR, NEGLIGIBLE = 2.0**-120, 1e-3


@dataclass(frozen=True)
class StreamTerms:
    """Length of a stream and the number of its rows.

    Parameters
    ----------
    horizon
        Number of steps that are charged. A step takes any number of rows and releases
        a model.
    rows_per_step
        Typical number of rows in a step: a public guess that only affects accuracy.
    rows_per_person
        Maximum number of rows of one person in the whole stream. All of them are
        protected together: the noise grows in proportion.
    """

    horizon: int
    rows_per_step: int = 1
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        plain(self)
        at_least(
            1,
            horizon=self.horizon,
            rows_per_step=self.rows_per_step,
            rows_per_person=self.rows_per_person,
        )
        if self.horizon > MOST_STEPS:
            raise ValueError(f"horizon must be at most 2**26, got {self.horizon!r}.")
        if self.n_rows > MOST_STREAM_ROWS:
            raise ValueError(
                f"rows_per_step must be at most 2**40 / horizon, got "
                f"{self.rows_per_step!r}."
            )

    @property
    def n_rows(self) -> int:
        """Expected number of rows in the whole stream."""
        return self.horizon * self.rows_per_step


class RowReader(Protocol):
    """Validation and clipping of the rows of a step: frozen, public facts only."""

    def read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, NDArray[Any]]:
        """Return rows and targets within their bounds; unusable rows become zeros.

        Only the ``first`` step, before the charge, may reject a value.
        """
        ...


class StreamLearner(Protocol):
    """Planned algorithm for one stream: frozen plain data, sees rows and no budget.

    A state is a tree that `tacit._state` can serialize. The part that `weights` reads
    has been released; the rest is private.
    """

    @property
    def event(self) -> Event:
        """Event that is charged for the whole stream."""
        ...

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, in words."""
        ...

    def init(self) -> Any:
        """Return the state before the first step."""
        ...

    def step(self, state: Any, X: Array, y: NDArray[Any], rng: Generator) -> Any:
        """Return the state after the rows of one step, which are within bounds."""
        ...

    def weights(self, state: Any) -> Array:
        """Return the model released last, shape (p, k); draws nothing."""
        ...


class StreamMethod(Protocol):
    """Algorithm for streams: `plan` sees public facts and a budget, no rows."""

    def plan(self, problem: Any, budget: Budget, terms: StreamTerms) -> StreamLearner:
        """Return the learner of a problem; ``problem`` is a `tacit.solvers.Problem`."""
        ...


def is_method(method: object) -> TypeGuard[StreamMethod]:
    """Return whether this is a method object, neither a name nor a class."""
    named = isinstance(method, str | type)
    return not named and callable(getattr(method, "plan", None))


@dataclass(frozen=True)
class PlannedStream:
    """Plan of a stream, made before any row is read.

    Parameters
    ----------
    budget
        Guarantee of the whole stream.
    terms
        Its length.
    learner
        Algorithm, with its noise levels.
    reader
        Validation and clipping of the rows of a step.
    assumptions
        Assumptions of the estimator, in words.
    """

    budget: Budget
    terms: StreamTerms
    learner: StreamLearner
    reader: RowReader
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """Event that the ledger is charged, once, at the first step."""
        return self.learner.event

    @property
    def all_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the estimator, the learner, the sampler and the stream."""
        terms = self.terms
        person = (
            "each row belongs to a different person"
            if terms.rows_per_person == 1
            else f"a person has at most {terms.rows_per_person} rows in the stream"
        )
        return (
            *self.assumptions,
            *self.learner.assumptions,
            *self._sampling_assumptions(),
            f"one charge covers {terms.horizon} steps; the times of steps are public",
            person,
        )

    def _sampling_assumptions(self) -> tuple[str, ...]:
        """Return what sampling the noise adds to delta, unless it is negligible."""
        delta, epsilon = self.budget.delta, min(self.budget.epsilon, 600.0)
        # moments have the square of the number of weights, and trees two nodes a step
        n_weights = self.learner.weights(self.learner.init()).size
        n_draws = 2 * self.terms.horizon * (n_weights + 1) ** 2
        # [streams:drawn]
        added = min(1.0, (1 + exp(epsilon)) * n_draws * SAMPLING_ERROR)
        if added <= NEGLIGIBLE * delta or delta == 0:
            return ()
        return (f"sampling error of the noise adds {added:.1g} to delta",)
