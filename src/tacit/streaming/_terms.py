"""What is public about a stream before its first row, and what learns on it."""

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
    "StreamLearner",
    "StreamMethod",
    "StreamTerms",
    "is_method",
]

Array = NDArray[np.float64]

# More steps or rows than any stream of models has; round-off is bounded up to here
MOST_STEPS = 2**26
MOST_STREAM_ROWS = 2**40
# How far a drawn normal is from its law, in total variation, and the part of delta
# that this may take without a word
NOT_THE_DISTRIBUTION, TRIFLE = 2.0**-120, 1e-3


@dataclass(frozen=True)
class StreamTerms:
    """How long a stream is and how rows come in it.

    Parameters
    ----------
    horizon
        Steps that are paid for. A step takes any number of rows and releases a model.
    rows_per_step
        Rows that a step usually takes: a public guess that accuracy alone depends on.
    rows_per_person
        Most rows that one person has in the whole stream. All of them are protected
        together: the noise grows in proportion.
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
        """Rows to expect in all."""
        return self.horizon * self.rows_per_step


class StreamLearner(Protocol):
    """A plan for one stream: frozen plain data that sees rows and no budget.

    A state is a tree that `tacit._state` can write. What `weights` reads of it has
    been released; the rest is private.
    """

    @property
    def event(self) -> Event:
        """What the whole stream is charged."""
        ...

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, in words."""
        ...

    def init(self) -> Any:
        """Return the state before the first step."""
        ...

    def step(self, state: Any, X: Array, y: NDArray[Any], rng: Generator) -> Any:
        """Return the state after the rows of one step, which obey their bounds."""
        ...

    def weights(self, state: Any) -> Array:
        """Return the model released last, shape (p, k); draws nothing."""
        ...


class StreamMethod(Protocol):
    """A way to learn on streams: `plan` sees public facts and a budget, no rows."""

    def plan(self, problem: Any, budget: Budget, terms: StreamTerms) -> StreamLearner:
        """Return the learner of a problem; ``problem`` is a `tacit.solvers.Problem`."""
        ...


def is_method(method: object) -> TypeGuard[StreamMethod]:
    """Return whether this is a method, and neither a name nor a class of methods."""
    named = isinstance(method, str | type)
    return not named and callable(getattr(method, "plan", None))


@dataclass(frozen=True)
class PlannedStream:
    """What a stream will do and spend, before any row is read.

    Parameters
    ----------
    budget
        What the whole stream promises.
    terms
        Its length.
    learner
        What learns, with its noise levels.
    assumptions
        What the promise rests on, in words.
    """

    budget: Budget
    terms: StreamTerms
    learner: StreamLearner
    assumptions: tuple[str, ...]

    @property
    def event(self) -> Event:
        """What the ledger is charged, once, at the first step."""
        return self.learner.event

    @property
    def drawn_assumptions(self) -> tuple[str, ...]:
        """What drawing the noise adds to delta, in words, where that is no trifle."""
        delta, epsilon = self.budget.delta, min(self.budget.epsilon, 600.0)
        # moments have the square of the number of weights, and trees two nodes a step
        n_weights = self.learner.weights(self.learner.init()).size
        n_draws = 2 * self.terms.horizon * (n_weights + 1) ** 2
        # [streams:drawn]
        added = min(1.0, (1 + exp(epsilon)) * n_draws * NOT_THE_DISTRIBUTION)
        if added <= TRIFLE * delta or delta == 0:
            return ()
        return (f"noise is drawn so near its law that delta grows by {added:.1g}",)
