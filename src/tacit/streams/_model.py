"""An estimator that learns step by step and is charged once, for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    all_or_nothing,
    checked_shape,
    open_account,
    report_of,
)
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
            for name in ("_private_stream", "_n_steps"):
                vars(self).pop(name, None)
            y = self._whole_targets(X, y)
            if len(y) != n_rows:
                raise ValueError("X and y must have as many rows as each other.")
            at_least(1, horizon=self.horizon)
            steps = np.linspace(0, n_rows, min(n_rows, self.horizon) + 1).astype(int)
            if sparse.issparse(X):
                X = X.tocsr()
            rows = X.iloc if hasattr(X, "iloc") else X
            for start, end in pairwise(steps):
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

    def _whole_targets(self, X, y):
        """Return the targets of a table, after refusing what no step should see."""
        return np.asarray(y)

    def _is_first(self):
        """Return whether nothing is charged yet, so that a value may be refused."""
        return "_private_stream" not in vars(self)

    def _step(self, X, y, ledger, label, entry=None, key=None):
        """Take one step; ``entry`` and ``key`` are those made before, if any were."""
        before = vars(self).get("_private_stream")
        with all_or_nothing(self):
            if before is None and hasattr(self, "_n_steps"):
                raise ValueError(
                    "This copy of a stream holds its last model and cannot go on; go "
                    "on with the original, or keep streams with DurableStream."
                )
            # lists as they are: a text in one cell must not turn the others to text
            X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            n_rows, n_features = checked_shape(
                self, X, fitting=before is None, least_rows=0, accept_sparse=True
            )
            y = _one_column(y)
            if len(y) != n_rows:
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
                before = self._started(planned, entry, ledger, key or self._drawn_key())
            else:
                self._refuse_beyond(before, ledger)
                self._refuse_changed()
                leaf = self._leaf(X, y)
            self._advance(before, leaf)
        return self

    def _drawn_key(self):
        """Return the secret that all noise of a stream is keyed by."""
        words = as_generator(self.random_state).integers(0, 2**64, 2, dtype=np.uint64)
        return words.tobytes()

    def _started(self, planned, entry, ledger, key):
        self.privacy_ = report_of(
            entry, planned.budget, ledger, self._assumptions(planned)
        )
        return Progress(planned, entry, ledger, 0, key, b"", planned.learner.init())

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

    def _refuse_changed(self):
        """Refuse other parameters than the plan was made for: bounds rest on them."""
        for name, value in self._begun_with.items():
            now = getattr(self, name)
            if now is not value and repr(now) != repr(value):
                raise ValueError(
                    f"{name} was changed after the first step; start a new stream, "
                    "which is charged anew."
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
        if "_private_stream" not in vars(self):
            names = self._get_param_names()
            self._begun_with = {name: getattr(self, name) for name in names}
        self._private_stream = progress
        self._n_steps = progress.n_steps
        self._publish(progress.planned.learner.weights(progress._private_state))

    def __getstate__(self):
        """Leave the private state of the stream out of copies and pickles."""
        state = super().__getstate__()
        return {key: part for key, part in state.items() if key != "_private_stream"}


def _one_column(y):
    """Return targets as a vector, or refuse their shape or kind."""
    if sparse.issparse(y):
        raise ValueError("y must be dense: sparse labels are not supported.")
    array = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError("y should be a 1d array, with one target for each row.")
    return array
