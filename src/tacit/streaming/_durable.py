"""Durable streams: each step is on disk before it is shown."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

from tacit import _json
from tacit._estimators import exclusive_step
from tacit._resumable.folder import LockedFolder
from tacit._resumable.record import RecordKind, public_parameters
from tacit.privacy import Ledger
from tacit.privacy.report import Entry
from tacit.streaming._model import PlannedStream, Progress, StreamModel

__all__ = ["DurableStream"]

STREAM = RecordKind(
    noun="stream",
    parameter="model",
    format="tacit stream",
    stepped={"position": (str,)},
)


class DurableStream(LockedFolder):
    """Stream in a folder, which can be resumed after a restart.

    Parameters
    ----------
    model
        An estimator of `tacit.streaming` that was not fitted, with the same parameters
        each time. Its ``random_state`` is only used at the first step. It only takes
        rows through the stream; after `close` it predicts and cannot continue.
    folder
        Folder of the state. It is secret: whoever reads it knows exact sums of rows and
        the key of the noise. Only its owner can read it: an existing folder is
        restricted to its owner, or rejected if this is not possible.
    ledger
        Ledger to charge at the first step; None creates one for this stream. After a
        restart, the same or None.

    Notes
    -----
    **Guarantee.** A step is written and flushed before its model can be read, together
    with ``position``. A process that is killed leaves the last step or the one before;
    the step then taken again, with the same rows, releases the same numbers. The
    charge has an identity that was on disk before it, so that it is made once. One
    process at a time locks the folder, and takes one step at a time. See the page on
    durable streams of the guarantees.

    A copy of the folder is another stream with the same past. Continuing both spends
    twice: their noise is independent where their rows differ, and one charge covers one
    of them. The same holds for an older copy that is restored and given other rows.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tacit.streaming import OnlineLinearRegression
    >>> from tacit.streaming import DurableStream
    >>> model = OnlineLinearRegression(
    ...     1.0, 1e-6, horizon=10, y_range=(0.0, 1.0), x_norm=1.0
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     with DurableStream(model, folder + "/ward") as stream:
    ...         _ = stream.partial_fit(np.ones((5, 2)) / 2, np.ones(5))
    ...     # another process resumes where this one stopped
    ...     again = OnlineLinearRegression(
    ...         1.0, 1e-6, horizon=10, y_range=(0.0, 1.0), x_norm=1.0
    ...     )
    ...     with DurableStream(again, folder + "/ward") as stream:
    ...         print(stream.n_steps, bool((again.coef_ == model.coef_).all()))
    1 True
    """

    _kind = STREAM
    _resumed = "_private_stream"

    def __init__(
        self,
        model: Any,
        folder: str | os.PathLike[str],
        *,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(model, StreamModel):
            raise TypeError(
                "model must be an estimator of tacit.streaming, got "
                f"{type(model).__name__}."
            )
        if hasattr(model, "_n_steps"):
            raise ValueError("model must not be fitted: its state is in the folder.")
        self.position: Any = None
        super().__init__(model, folder, ledger)

    @property
    def model(self) -> Any:
        """The model, with its last release."""
        return self._model

    @property
    def n_steps(self) -> int:
        """Number of steps on disk."""
        progress = self._private_shown
        return 0 if progress is None else progress.n_steps

    def partial_fit(self, X: Any, y: Any, *, position: Any = None) -> DurableStream:
        """Take one step, and return when it is on disk.

        A step that fails leaves the model and the stream at the step before: the same
        rows, tried again, release the same numbers.

        Parameters
        ----------
        X, y
            Rows of the step, as for the model.
        position
            Plain data for the caller, kept with the step: up to where rows were taken.
        """
        with exclusive_step(self):
            self._require_own()
            position = _json.plain(position, "position")
            identity, key = self._drawn()
            entry = None if self.n_steps else self._recorded_charge()
            with self._model._exclusive_step(holder=self):
                progress = self._model._next(
                    X,
                    y,
                    self.ledger,
                    self._charge_label(identity),
                    entry=entry,
                    key=key,
                    begin=partial(self._begin, identity, key),
                )
                self._keep(position, entry, progress)
                self._model._show(progress)
        return self

    def _keep(self, position: Any, entry: Entry | None, progress: Progress) -> None:
        """Write a step to disk, before it is shown."""
        if entry is not None and entry.event != progress.planned.event:
            raise ValueError(
                "X must have as many columns as the rows that this stream was charged "
                "for before it was interrupted."
            )
        assert self.identity is not None  # begun before the first step
        self._write_record(
            self.identity,
            progress._private_key,
            n_steps=progress.n_steps,
            **self._facts(progress.planned),
            digest=progress._private_digest,
            position=_json.canonical(position),
            state=progress._private_state,
        )
        self._private_shown, self.position = progress, position

    def _parameters(self) -> dict[str, str]:
        return public_parameters(self._model)

    def _planned(self, found: dict[str, Any]) -> PlannedStream:
        planned: PlannedStream = self._model._planned(found["n_features"])
        return planned

    def _restore(self, planned: PlannedStream, found: dict[str, Any]) -> None:
        with self._damage_rejected():
            position = json.loads(found["position"])
            progress = Progress(
                planned,
                self.ledger,
                found["n_steps"],
                found["key"],
                found["digest"],
                found["state"],
            )
            self._model._show(progress)
        self._private_shown, self.position = progress, position
