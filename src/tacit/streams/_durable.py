"""A stream that survives its process: each step is on the disk before it is shown."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from tacit import _json
from tacit._estimators import all_or_nothing
from tacit._state import StateDamaged, dumped, loaded
from tacit.privacy import Entry, Ledger, PrivacyReport
from tacit.streams._model import Progress

__all__ = ["DurableStream"]

FORMAT = "tacit stream"
VERSION = 1
STATE, LOCK, IDENTITY = "private-state.npz", "lock", "identity"


class DurableStream:
    """A stream in a folder, to go on with after a restart.

    Parameters
    ----------
    model
        An estimator of `tacit.online` or `tacit.incremental` that was not fitted, with
        the same parameters each time.
    folder
        Where the state is kept. It is secret: whoever reads it knows exact sums of
        rows and the key of the noise.
    ledger
        Account to charge at the first step; None opens one for this stream alone.

    Notes
    -----
    **Guarantee.** A step is written and flushed before its model can be read, together
    with ``position``. A process that is killed leaves the last step or the one before;
    the step then taken again, with the same rows, releases the same numbers. The
    charge carries the identity of the folder, so that it is made once. One process at
    a time holds the folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from tacit.online import OnlineLinearRegression
    >>> from tacit.streams import DurableStream
    >>> model = OnlineLinearRegression(1.0, 1e-6, horizon=10, y_range=(0.0, 1.0))
    >>> with TemporaryDirectory() as place:
    ...     with DurableStream(model, place + "/ward") as stream:
    ...         _ = stream.partial_fit(np.ones((5, 2)) / 2, np.ones(5))
    ...     # another process goes on where this one was stopped
    ...     again = OnlineLinearRegression(1.0, 1e-6, horizon=10, y_range=(0.0, 1.0))
    ...     with DurableStream(again, place + "/ward") as stream:
    ...         print(stream.n_steps, bool((again.coef_ == model.coef_).all()))
    1 True
    """

    def __init__(
        self, model: Any, folder: str | os.PathLike[str], *, ledger: Ledger | None = None
    ) -> None:
        if hasattr(model, "_n_steps"):
            raise ValueError("model must not be fitted: the folder says where it is.")
        self.model = model
        self.folder = Path(folder)
        self.ledger = ledger
        self.position: Any = None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(self.folder / LOCK)
        try:
            self._identity = self._known_identity()
            self._resume()
        except BaseException:
            self.close()
            raise

    @property
    def n_steps(self) -> int:
        """Steps that are on the disk."""
        return getattr(self.model, "_n_steps", 0)

    def partial_fit(self, X: Any, y: Any, *, position: Any = None) -> DurableStream:
        """Take one step, and return when it is on the disk.

        Parameters
        ----------
        X, y
            Rows of the step, as for the model.
        position
            Plain data that says up to where rows were taken, kept with the step.
        """
        if self._lock is None:
            raise ValueError("This stream is closed; open the folder again.")
        with all_or_nothing(self.model):
            label = f"{type(self.model).__name__} stream {self._identity}"
            entry = None if self.n_steps else self._standing_charge(label)
            self.model._step(X, y, self.ledger, label, entry)
            self._write(position)
        self.position = position
        return self

    def close(self) -> None:
        """Let another process go on."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> DurableStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _known_identity(self) -> str:
        """Return the name that the charge of this folder carries, made once."""
        place = self.folder / IDENTITY
        with suppress(FileNotFoundError):
            return place.read_text()
        identity = secrets.token_hex(16)
        _placed(place, identity.encode())
        return identity

    def _standing_charge(self, label: str) -> Entry | None:
        """Return the charge that a killed process made for this folder, if any."""
        if self.ledger is None:
            return None
        entries = self.ledger.report().entries
        return next((entry for entry in entries if entry.label == label), None)

    def _fingerprint(self, planned: Any) -> str:
        """Return what tells this stream from one with other parameters."""
        return sha256(repr((type(self.model).__name__, planned)).encode()).hexdigest()

    def _write(self, position: Any) -> None:
        model, progress = self.model, self.model._private_stream
        names = getattr(model, "feature_names_in_", None)
        state = {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self._fingerprint(progress.planned),
            "n_features": model.n_features_in_,
            "names": None if names is None else tuple(map(str, names)),
            "n_steps": progress.n_steps,
            "key": progress._private_key,
            "digest": progress._private_digest,
            "privacy": _json.canonical(model.privacy_.to_dict()),
            "position": _json.canonical(position),
            "state": progress._private_state,
        }
        content = dumped(state)
        _placed(self.folder / STATE, content + sha256(content).digest())

    def _resume(self) -> None:
        try:
            content = (self.folder / STATE).read_bytes()
        except FileNotFoundError:
            return
        raise NotImplementedError(content, StateDamaged, loaded, Progress, PrivacyReport)


def _locked(path: Path) -> int | None:
    raise NotImplementedError(path)


def _placed(path: Path, content: bytes) -> None:
    raise NotImplementedError(path, content)
