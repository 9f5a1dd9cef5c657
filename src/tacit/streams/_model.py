"""An estimator that learns step by step and is charged once, for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import all_or_nothing, checked_shape, open_account, report_of
from tacit._random import as_generator, generator_for, is_seeded
from tacit._validate import at_least
from tacit.privacy import Entry, Ledger, Neighbors
from tacit.streams._terms import PlannedStream

__all__ = ["Progress", "StreamModel"]


@dataclass(frozen=True)
class Progress:
    """Where a stream stands. Private, but for the number of steps."""

    planned: PlannedStream
    entry: Entry
    account: Ledger | None = field(repr=False)
    n_steps: int
    _private_key: bytes = field(repr=False)
    _private_digest: bytes = field(repr=False)
    _private_state: Any = field(repr=False)


class StreamModel(BaseEstimator):
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
    two continuations of one stream would spend twice. `DurableStream` keeps a stream
    that survives its process.
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
        with all_or_nothing(self):
            X = X if hasattr(X, "shape") else np.asarray(X)
            n_rows, _ = checked_shape(self, X, fitting=True, accept_sparse=True)
            y = np.asarray(y)
            if len(y) != n_rows:
                raise ValueError("X and y must have as many rows as each other.")
            vars(self).pop("_private_stream", None)
            at_least(1, horizon=self.horizon)
            steps = np.linspace(0, n_rows, min(n_rows, self.horizon) + 1).astype(int)
            rows = X.iloc if hasattr(X, "iloc") else X
            for start, end in zip(steps, steps[1:], strict=False):
                self.partial_fit(rows[start:end], y[start:end], ledger=ledger)
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

    def _step(self, X, y, ledger, label, entry=None):
        """Take one step; ``entry`` is the charge where it was made before."""
        before = vars(self).get("_private_stream")
        with all_or_nothing(self):
            if before is None and hasattr(self, "_n_steps"):
                raise ValueError(
                    "This copy of a stream holds its last model and cannot go on; go "
                    "on with the original, or keep streams with DurableStream."
                )
            X = X if hasattr(X, "shape") else np.asarray(X)
            n_rows, n_features = checked_shape(
                self, X, fitting=before is None, least_rows=0, accept_sparse=True
            )
            if len(np.shape(y)) == 0 or len(y) != n_rows:
                raise ValueError(
                    "X and y must have as many rows as each other: inconsistent "
                    "numbers of samples."
                )
            if before is None:
                planned = self._planned(n_features)
                account = None
                if entry is None:
                    account = open_account(ledger, planned.budget, planned.event, label)
                leaf = self._leaf(X, y)
                if entry is None:
                    entry = account.charge(
                        planned.event,
                        label,
                        promise=planned.budget,
                        seeded=is_seeded(self.random_state),
                    )
                before = self._started(planned, entry, ledger)
            else:
                self._refuse_beyond(before, ledger)
                leaf = self._leaf(X, y)
            self._advance(before, leaf)
        return self

    def _started(self, planned, entry, ledger):
        words = as_generator(self.random_state).integers(0, 2**64, 2, dtype=np.uint64)
        self.privacy_ = report_of(
            entry, planned.budget, ledger, self._assumptions(planned)
        )
        return Progress(
            planned, entry, ledger, 0, words.tobytes(), b"", planned.learner.init()
        )

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
            f"one charge covers {terms.horizon} steps, and when steps come is public",
            person,
        )

    def _refuse_beyond(self, before, ledger):
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

    def _advance(self, before, leaf):
        X, y = leaf
        digest = sha256(before._private_digest)
        # [streams:key] shapes too, as other rows could have the same bytes
        for array in (X, y):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        seed = int.from_bytes(before._private_key, "little")
        rng = generator_for(seed, before.n_steps, digest.hexdigest())
        learner = before.planned.learner
        state = learner.step(before._private_state, X, y, rng)
        self._show(
            replace(
                before,
                n_steps=before.n_steps + 1,
                _private_digest=digest.digest(),
                _private_state=state,
            )
        )

    def _show(self, progress):
        self._private_stream = progress
        self._n_steps = progress.n_steps
        self._publish(progress.planned.learner.weights(progress._private_state))

    def __getstate__(self):
        """Leave the private state of the stream out of copies and pickles."""
        state = super().__getstate__()
        return {key: part for key, part in state.items() if key != "_private_stream"}
