"""Estimators that learn step by step under a single charge: terms, plan and steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from math import exp
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    array_of,
    checked_shape,
    exclusive_step,
    guaranteed_budget,
    listed,
)
from tacit._random import RandomSource, is_seeded, keyed_generator, secret_key
from tacit._release import Release, charged_run
from tacit._validate import at_least, plain
from tacit.data.bounds import canonical
from tacit.data.rows import row_indexer
from tacit.privacy import Budget, Event, Ledger, Neighbors, PrivacyReport
from tacit.privacy.report import Entry
from tacit.streaming._reader import RowReader, column_of, table_of

__all__ = [
    "PlannedStream",
    "Progress",
    "StreamLearner",
    "StreamModel",
    "StreamTerms",
]

Array = NDArray[np.float64]

# More steps or rows than any stream of models has; bounds on round-off hold up to here
MOST_STEPS = 2**26
MOST_STREAM_ROWS = 2**40
# Total variation distance of a sampled normal from its distribution, and the part of
# delta that this error may add without being stated
SAMPLING_ERROR, NEGLIGIBLE = 2.0**-120, 1e-3
# The default delta of shorter streams is that of this many rows
MIN_ROWS = 1000
# Attributes that continue a stream; copies have none of them
_NOT_COPIED = ("_private_stream", "_holder")

Step = tuple[Array, NDArray[Any]]


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


@dataclass(frozen=True)
class Progress:
    """State of a stream after a step. Private, except for the number of steps."""

    planned: PlannedStream
    account: Ledger | None = field(repr=False)
    n_steps: int
    _private_key: bytes = field(repr=False)
    _private_digest: bytes = field(repr=False)
    _private_state: Any = field(repr=False)
    process: int = field(default_factory=os.getpid, repr=False)

    def advanced(self, X: Array, y: NDArray[Any]) -> Progress:
        """Return the state after the clipped rows of one more step."""
        digest = sha256(self._private_digest)
        # [streams:key] shapes too, as other rows could have the same bytes
        for array in (X, y):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        rng = keyed_generator(self._private_key, self.n_steps, digest.hexdigest())
        state = self.planned.learner.step(self._private_state, X, y, rng)
        return replace(
            self,
            n_steps=self.n_steps + 1,
            _private_digest=digest.digest(),
            _private_state=state,
        )


class StreamModel(ExplicitSeed, BaseEstimator):
    """Estimator with one charge for a whole stream and one release per step.

    A subclass plans in ``_planned(n_features)`` and sets its fitted attributes from
    released weights in ``_publish(planned, weights)``. Its plan reads and clips rows.

    Notes
    -----
    **Guarantee.** The noise of a step comes from a generator keyed by a secret and by
    all rows so far. The same rows meet the same noise again, so that a step repeated
    after an interruption releases the same numbers; other rows meet independent noise,
    so that no difference of two runs is free of it.

    Copies and pickles contain what was released and can predict; they cannot continue
    the stream, as two continuations would spend twice. For the same reason one step is
    taken at a time, by the process that took the first. `DurableStream` keeps a stream
    that survives its process.
    """

    epsilon: float
    delta: float | None
    horizon: int
    rows_per_step: int
    rows_per_person: int
    neighbors: str | Neighbors
    random_state: RandomSource
    privacy_: PrivacyReport
    n_features_in_: int

    def _planned(self, n_features: int) -> PlannedStream:
        raise NotImplementedError

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any, *, ledger: Ledger | None = None) -> Self:
        """Take the rows of one step and release a model.

        The first step charges the whole horizon. Rows with a missing or infinite
        value, or with a label that is not among the classes, count as absent: an error
        would leak information about them.

        Parameters
        ----------
        X
            Features, one row for each row of the step.
        y
            Labels or targets.
        ledger
            Ledger to charge at the first step; None creates one for this stream. Later
            steps take the same or None.
        """
        with self._exclusive_step():
            self._show(self._next(X, y, ledger, type(self).__name__))
        return self

    def fit(self, X: Any, y: Any, *, ledger: Ledger | None = None) -> Self:
        """Start a new stream and replay a table through it, in the order of its rows.

        Rows are divided evenly over the steps of the horizon, or one per step where
        there are fewer. Under ``neighbors="add_or_remove_one"`` an additional row would
        move all later ones to other steps, so this is rejected; use `partial_fit`.

        Parameters
        ----------
        X, y, ledger
            As in `partial_fit`.
        """
        if Neighbors.of(self.neighbors) is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "fit requires neighbors='replace_one', as an added or removed row "
                "would move others to another step; call partial_fit once for each "
                "step."
            )
        with self._exclusive_step():
            X = listed(X)
            n_rows, _ = checked_shape(self, X, fitting=True, accept_sparse=True)
            X = canonical(X)
            for name in ("_private_stream", "_n_steps"):
                self.__dict__.pop(name, None)
            y = self._table_targets(X, y)
            if len(y) != n_rows:
                raise ValueError("X and y must have the same number of rows.")
            at_least(1, horizon=self.horizon)
            steps = np.linspace(0, n_rows, min(n_rows, self.horizon) + 1).astype(int)
            rows = row_indexer(X)
            for start, end in pairwise(steps):
                taken = rows[start:end], y[start:end]
                self._show(self._next(*taken, ledger, type(self).__name__))
        return self

    def plan(self, n_features: int) -> PlannedStream:
        """Return the plan of the stream for rows with this number of columns.

        Parameters
        ----------
        n_features
            Number of columns.
        """
        at_least(1, n_features=n_features)
        return self._planned(n_features)

    @property
    def n_steps_(self) -> int:
        """Number of steps that were released."""
        check_is_fitted(self)
        return self._n_steps

    def _terms(self) -> StreamTerms:
        return StreamTerms(self.horizon, self.rows_per_step, self.rows_per_person)

    def _budget(self, terms: StreamTerms) -> Budget:
        """Return the guarantee; the default delta is from the expected rows."""
        expected = max(MIN_ROWS, terms.n_rows)
        return guaranteed_budget(self.epsilon, self.delta, self.neighbors, expected)

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        """Return the targets of a whole table, after checks that no step can make."""
        return array_of(y)

    def _step_targets(self, X: Any, y: Any) -> Any:
        """Return the targets of a step as they were given."""
        return y

    @contextmanager
    def _exclusive_step(self, holder: object = None) -> Iterator[None]:
        """Admit one caller at a time, and restore all attributes if it fails.

        ``holder`` is the `DurableStream` that the caller is, if any.
        """
        # [streams:alone] first, as restoring attributes may undo another's step
        # later steps read rows without a new charge
        quiet = np.errstate(all="ignore")
        with exclusive_step(self), all_or_nothing(self), quiet:
            if vars(self).get("_holder") is not holder:
                raise ValueError(
                    "This model belongs to a DurableStream; give rows to the stream, "
                    "or close it and start again with a clone of the model."
                )
            yield

    def _next(
        self,
        X: Any,
        y: Any,
        ledger: Ledger | None,
        label: str,
        *,
        entry: Entry | None = None,
        key: bytes | None = None,
        begin: Callable[[], None] | None = None,
    ) -> Progress:
        """Return the state of the stream after one more step; nothing is shown.

        ``entry`` and ``key`` are the charge and the key of an interrupted first step,
        if any, and ``begin`` is called right before a charge.
        """
        # long: check and run, before and after the charge, share what was found
        before: Progress | None = vars(self).get("_private_stream")
        if before is None and hasattr(self, "_n_steps"):
            raise ValueError(
                "This copy of a stream has its last model and cannot continue; "
                "continue with the original, or keep streams with DurableStream."
            )
        X, y = self._checked_step(X, self._step_targets(X, y), first=before is None)
        if before is not None:
            self._check_resumable(before, ledger)
            self._check_unchanged()
            return before.advanced(*before.planned.reader.read(X, y, first=False))
        planned = self._planned(int(X.shape[1]))
        key = key or secret_key(self.random_state)

        def check() -> Step:
            rows = planned.reader.read(X, y, first=True)
            if begin is not None:
                begin()
            return rows

        def run(rows: Step) -> Progress:
            start = Progress(planned, ledger, 0, key, b"", planned.learner.init())
            return start.advanced(*rows)

        release = Release(
            planned.event,
            planned.budget,
            label,
            planned.all_assumptions,
            seeded=is_seeded(self.random_state),
        )
        progress, self.privacy_ = charged_run(
            release, ledger, run, check=check, entry=entry
        )
        return progress

    def _checked_step(self, X: Any, y: Any, *, first: bool) -> tuple[Any, NDArray[Any]]:
        """Return rows and targets of a step, after checking their shapes."""
        X = table_of(X, None if first else self.n_features_in_)
        n_rows, _ = checked_shape(
            self, X, fitting=first, least_rows=0, accept_sparse=True
        )
        y = column_of(y, first=first)
        if len(y) != n_rows:
            raise ValueError(
                "X and y must have the same number of rows: inconsistent numbers of "
                "samples."
            )
        return X, y

    def _check_resumable(self, before: Progress, ledger: Ledger | None) -> None:
        if before.process != os.getpid():
            raise ValueError(
                "This stream belongs to the process that began it and continues only "
                "there; keep streams that change processes with DurableStream."
            )
        horizon = before.planned.terms.horizon
        if before.n_steps >= horizon:
            raise ValueError(
                f"{type(self).__name__} was planned for horizon={horizon} steps, got "
                f"step {before.n_steps + 1}. Start a new stream, which is charged "
                "again, to continue."
            )
        if ledger is not None and ledger is not before.account:
            raise ValueError(
                "ledger must be the one that was charged at the first step, or None: "
                "the whole horizon is charged already."
            )

    def _check_unchanged(self) -> None:
        """Reject parameters other than those of the plan: bounds depend on them."""
        for name, value in self._first_parameters.items():
            now = getattr(self, name)
            if now is not value and repr(now) != repr(value):
                raise ValueError(
                    f"{name} was changed after the first step; start a new stream, "
                    "which is charged again."
                )

    def _show(self, progress: Progress) -> None:
        if "_private_stream" not in vars(self):
            names = self._get_param_names()
            self._first_parameters = {name: getattr(self, name) for name in names}
        self._private_stream = progress
        self._n_steps = progress.n_steps
        learner = progress.planned.learner
        with np.errstate(all="ignore"):  # also where a folder is opened
            W = learner.weights(progress._private_state)
        self._publish(progress.planned, W)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the private state of the stream out of copies and pickles."""
        state = super().__getstate__()
        return {key: part for key, part in state.items() if key not in _NOT_COPIED}
