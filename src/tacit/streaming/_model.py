"""An estimator that learns step by step and is charged once, for all of them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    array_of,
    checked_shape,
    guaranteed_budget,
    listed,
)
from tacit._exclusive import alone
from tacit._random import is_seeded, keyed_generator, secret_key
from tacit._release import Release, charged_run
from tacit._stream_values import column_of, table_of
from tacit._validate import at_least
from tacit.data.bounds import canonical
from tacit.privacy import Ledger, Neighbors
from tacit.streaming._terms import PlannedStream, StreamTerms

__all__ = ["Progress", "StreamModel"]

# Rows below which the default delta is that of so many, as it would be large
FEWEST_ROWS = 1000
# What goes on with a stream, which no copy has
_NOT_COPIED = ("_private_stream", "_holder")


@dataclass(frozen=True)
class Progress:
    """Where a stream stands. Private, but for the number of steps."""

    planned: PlannedStream
    account: Ledger | None = field(repr=False)
    n_steps: int
    _private_key: bytes = field(repr=False)
    _private_digest: bytes = field(repr=False)
    _private_state: Any = field(repr=False)
    process: int = field(default_factory=os.getpid, repr=False)


class StreamModel(ExplicitSeed, BaseEstimator):
    """One charge for a whole stream, one release a step, nothing after the last.

    A subclass plans in ``_planned(n_features)``, brings the rows of a step within
    their bounds in ``_leaf(X, y)`` and shows released weights in
    ``_publish(weights)``. None of them may tell anything else about rows.

    Notes
    -----
    **Guarantee.** The noise of a step comes from a generator keyed by a secret and by
    all rows so far. The same rows meet the same noise again, so that a step repeated
    after an interruption releases the same numbers; other rows meet noise of their
    own, so that no difference of two runs is free of it.

    Copies and pickles hold what was released and can predict; they cannot go on, as
    two continuations of one stream would spend twice. For the same reason one step
    is taken at a time, by the process that took the first. `DurableStream` keeps a
    stream that survives its process.
    """

    def partial_fit(self, X, y, *, ledger: Ledger | None = None):
        """Take the rows of one step and release a model.

        The first step charges the whole horizon. Rows with a missing or infinite
        number, or with a label that is not among the classes, count as if they were
        not there: a refusal would tell about them.

        Parameters
        ----------
        X
            Features, one row for each row of the step.
        y
            Labels or targets.
        ledger
            Account to charge at the first step; None opens one for this stream alone.
            Later steps take the same or None.
        """
        return self._step(X, y, ledger, type(self).__name__)

    def fit(self, X, y, *, ledger: Ledger | None = None):
        """Start a new stream and replay a table through it, in the order of its rows.

        Rows are divided evenly over the steps of the horizon, or one a step where
        there are fewer. Under ``neighbors="add_or_remove_one"`` a row more would move
        all later ones to other steps, so that this is refused; use `partial_fit`.

        Parameters
        ----------
        X, y, ledger
            As in `partial_fit`.
        """
        if Neighbors.of(self.neighbors) is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "fit is for neighbors='replace_one' alone, as a row more or less would "
                "move others to another step; call partial_fit once for each step."
            )
        with self._alone():
            X = listed(X)
            n_rows, _ = checked_shape(self, X, fitting=True, accept_sparse=True)
            X = canonical(X)
            for name in ("_private_stream", "_n_steps"):
                vars(self).pop(name, None)
            y = self._integer_targets(X, y)
            if len(y) != n_rows:
                raise ValueError("X and y must have as many rows as each other.")
            at_least(1, horizon=self.horizon)
            steps = np.linspace(0, n_rows, min(n_rows, self.horizon) + 1).astype(int)
            rows = X.iloc if hasattr(X, "iloc") else X
            for start, end in pairwise(steps):
                taken = rows[start:end], y[start:end]
                self._show(self._next(*taken, ledger, type(self).__name__))
        return self

    def plan(self, n_features) -> PlannedStream:
        """Return what the stream will do and spend on rows of this width.

        Parameters
        ----------
        n_features
            Number of columns.
        """
        at_least(1, n_features=n_features)
        return self._planned(n_features)

    @property
    def n_steps_(self):
        """Number of steps that were released."""
        check_is_fitted(self)
        return self._n_steps

    def _terms(self):
        return StreamTerms(self.horizon, self.rows_per_step, self.rows_per_person)

    def _budget(self, terms):
        """Return what the stream promises, delta by default from the rows expected."""
        usual = max(FEWEST_ROWS, terms.n_rows)
        return guaranteed_budget(self.epsilon, self.delta, self.neighbors, usual)

    def _integer_targets(self, X, y):
        """Return the targets of a table, after refusing what no step should see."""
        return array_of(y)

    def _is_first(self):
        """Return whether nothing is charged yet, so that a value may be refused."""
        return "_private_stream" not in vars(self)

    @contextmanager
    def _alone(self, holder=None):
        """Let one caller at a time go on, and leave all as it was where it fails."""
        # [streams:alone] the first, as putting back what was may undo another's step
        with alone(self), all_or_nothing(self):
            if vars(self).get("_holder") is not holder:
                raise ValueError(
                    "This model is held by a DurableStream; give rows to the stream, "
                    "or close it and start anew with a clone of the model."
                )
            yield

    def _step(self, X, y, ledger, label, *, told=None, holder=None, keep=None, **made):
        """Take one step, which is shown after it was kept.

        ``told`` is what the caller says of the whole stream, ``holder`` the
        `DurableStream` that asks, and ``made`` the charge and key from before, if any,
        and what is to be done right before a charge.
        """
        with self._alone(holder):
            if told is not None:
                self._learn(told)
            progress = self._next(X, y, ledger, label, **made)
            if keep is not None:
                keep(progress)
            self._show(progress)
        return self

    def _next(self, X, y, ledger, label, *, entry=None, key=None, begin=None):
        """Return where the stream stands after one more step; nothing is shown."""
        before = vars(self).get("_private_stream")
        first = before is None
        if first and hasattr(self, "_n_steps"):
            raise ValueError(
                "This copy of a stream holds its last model and cannot go on; go on "
                "with the original, or keep streams with DurableStream."
            )
        X = table_of(X, None if first else self.n_features_in_)
        n_rows, n_features = checked_shape(
            self, X, fitting=first, least_rows=0, accept_sparse=True
        )
        y = column_of(y, first=first)
        if len(y) != n_rows:
            raise ValueError(
                "X and y must have as many rows as each other: inconsistent numbers "
                "of samples."
            )
        if not first:
            self._refuse_to_go_on(before, ledger)
            self._refuse_changed()
            return self._advanced(before, self._leaf(X, y))
        planned = self._planned(n_features)
        key = key or secret_key(self.random_state)

        def check():
            leaf = self._leaf(X, y)
            if begin is not None:
                begin()
            return leaf

        def run(leaf):
            start = Progress(planned, ledger, 0, key, b"", planned.learner.init())
            return self._advanced(start, leaf)

        release = Release(
            planned.event,
            planned.budget,
            label,
            self._assumptions(planned),
            seeded=is_seeded(self.random_state),
        )
        progress, self.privacy_ = charged_run(
            release, ledger, run, check=check, entry=entry
        )
        return progress

    def _assumptions(self, planned):
        terms = planned.terms
        person = (
            "every row is of another person"
            if terms.rows_per_person == 1
            else f"a person has at most {terms.rows_per_person} rows in the stream"
        )
        return (
            *planned.assumptions,
            *planned.learner.assumptions,
            *planned.drawn_assumptions,
            f"one charge covers {terms.horizon} steps, and when steps come is public",
            person,
        )

    def _refuse_to_go_on(self, before, ledger):
        if before.process != os.getpid():
            raise ValueError(
                "This stream belongs to the process that began it, and goes on there "
                "alone; keep streams that change processes with DurableStream."
            )
        horizon = before.planned.terms.horizon
        if before.n_steps >= horizon:
            raise ValueError(
                f"{type(self).__name__} was planned for horizon={horizon} steps; step "
                f"{before.n_steps + 1} was asked. Start a new stream for more, which "
                "is charged anew."
            )
        if ledger is not None and ledger is not before.account:
            raise ValueError(
                "ledger must be the one that was charged at the first step, or None: "
                "the whole horizon is paid for."
            )

    def _refuse_changed(self):
        """Refuse other parameters than the plan was made for: bounds rest on them."""
        for name, value in self._begun_with.items():
            now = getattr(self, name)
            if now is not value and repr(now) != repr(value):
                raise ValueError(
                    f"{name} was changed after the first step; start a new stream, "
                    "which is charged anew."
                )

    def _advanced(self, before, leaf):
        """Return where a stream stands after the bounded rows of one more step."""
        X, y = leaf
        digest = sha256(before._private_digest)
        # [streams:key] shapes too, as other rows could have the same bytes
        for array in (X, y):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        rng = keyed_generator(before._private_key, before.n_steps, digest.hexdigest())
        learner = before.planned.learner
        state = learner.step(before._private_state, X, y, rng)
        return replace(
            before,
            n_steps=before.n_steps + 1,
            _private_digest=digest.digest(),
            _private_state=state,
        )

    def _show(self, progress):
        if "_private_stream" not in vars(self):
            names = self._get_param_names()
            self._begun_with = {name: getattr(self, name) for name in names}
        self._private_stream = progress
        self._n_steps = progress.n_steps
        self._publish(progress.planned.learner.weights(progress._private_state))

    def __getstate__(self):
        """Leave the private state of the stream out of copies and pickles."""
        state = super().__getstate__()
        return {key: part for key, part in state.items() if key not in _NOT_COPIED}
