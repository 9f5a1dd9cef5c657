"""A stream that survives its process: each step is on the disk before it is shown."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from contextlib import suppress
from enum import Enum
from hashlib import sha256
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tacit import _json
from tacit._estimators import all_or_nothing
from tacit._random import is_seeded
from tacit._state import StateDamaged, dumped, loaded
from tacit.privacy import Entry, Ledger, PrivacyReport
from tacit.streams._model import Progress, StreamModel

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["DurableStream"]

FORMAT = "tacit stream"
VERSION = 1
STATE, LOCK = "private-state", "lock"
# Where an object lives, which differs from process to process
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class DurableStream:
    """A stream in a folder, to go on with after a restart.

    Parameters
    ----------
    model
        An estimator of `tacit.online` or `tacit.incremental` that was not fitted, with
        the same parameters each time. Its ``random_state`` is asked at the first step
        alone.
    folder
        Where the state is kept. It is secret: whoever reads it knows exact sums of
        rows and the key of the noise. A new folder, and every file, is for its owner
        alone.
    ledger
        Account to charge at the first step; None opens one for this stream alone.
        After a restart, the same or None.

    Notes
    -----
    **Guarantee.** A step is written and flushed before its model can be read, together
    with ``position``. A process that is killed leaves the last step or the one before;
    the step then taken again, with the same rows, releases the same numbers. The
    charge carries an identity that was on the disk before it, so that it is made once.
    One process at a time holds the folder. See the page on durable streams of the
    guarantees.

    A copy of the folder is another stream with the same past. Going on with both
    spends twice: noise is drawn anew where their rows differ, and one charge pays for
    one of them. So does an older copy that is put back and given other rows.

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
        self,
        model: Any,
        folder: str | os.PathLike[str],
        *,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(model, StreamModel):
            raise TypeError(
                "model must be an estimator of tacit.online or tacit.incremental, got "
                f"{type(model).__name__}."
            )
        if hasattr(model, "_n_steps"):
            raise ValueError("model must not be fitted: the folder says where it is.")
        if ledger is not None and not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
        self.model: Any = model
        self.folder = Path(folder)
        self.ledger = ledger
        self.position: Any = None
        self.identity: str | None = None
        self._private_key = b""
        self._private_progress: Progress | None = None
        self._process = os.getpid()
        _make(self.folder)
        self._lock: int | None = _locked(self.folder / LOCK)
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Whether a stream was begun in this folder."""
        return (Path(folder) / STATE).exists()

    @property
    def n_steps(self) -> int:
        """Steps that are on the disk."""
        progress = self._private_progress
        return 0 if progress is None else progress.n_steps

    def partial_fit(self, X: Any, y: Any, *, position: Any = None) -> DurableStream:
        """Take one step, and return when it is on the disk.

        What fails leaves the model and the stream at the step before: the same rows,
        tried again, release the same numbers.

        Parameters
        ----------
        X, y
            Rows of the step, as for the model.
        position
            Plain data that says up to where rows were taken, kept with the step.
        """
        self._refuse_unless_ours()
        position = _json.plain(position, "position")
        if self.identity is None:
            self._begin()
        with all_or_nothing(self.model):
            entry = None if self.n_steps else self._standing_charge()
            self.model._step(X, y, self.ledger, self._label, entry, self._private_key)
            progress: Progress = self.model._private_stream
            if entry is not None and entry.event != progress.planned.event:
                raise ValueError(
                    "X must have as many columns as the rows that this stream was "
                    "charged for, before it was interrupted."
                )
            self._write(position, progress)
        self._private_progress = progress
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

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(
            "A DurableStream cannot be copied or pickled, as both would go on; open "
            "the folder in the process that goes on, or copy its model."
        )

    @property
    def _label(self) -> str:
        return f"{type(self.model).__name__} stream {self.identity}"

    def _refuse_unless_ours(self) -> None:
        if self._lock is None:
            raise ValueError("This stream is closed; open the folder again.")
        if os.getpid() != self._process:
            raise ValueError(
                "This stream belongs to the process that opened it; close it there, "
                "and open the folder here."
            )
        if vars(self.model).get("_private_stream") is not self._private_progress:
            raise ValueError(
                "The model took a step that is not on the disk; give rows to the "
                "stream alone, and open the folder again with a new model."
            )

    def _begin(self) -> None:
        """Put the identity and the key on the disk, before anything is charged."""
        identity, key = secrets.token_hex(16), self.model._drawn_key()
        # [durable:identity] a charge that a killed process made is found by it
        self._put(identity, key, n_steps=0)
        self.identity, self._private_key = identity, key

    def _standing_charge(self) -> Entry | None:
        """Return the charge of this stream that stands in the ledger, if any."""
        if self.ledger is None:
            return None
        entries = self.ledger.report().entries
        # what the charge is for may stand before the label
        own = (entry for entry in entries if entry.label.endswith(self._label))
        return next(own, None)

    def _write(self, position: Any, progress: Progress) -> None:
        model = self.model
        names = getattr(model, "feature_names_in_", None)
        assert self.identity is not None  # begun before the first step
        self._put(
            self.identity,
            progress._private_key,
            n_steps=progress.n_steps,
            plan=_fingerprint(progress.planned),
            n_features=int(model.n_features_in_),
            names=None if names is None else tuple(map(str, names)),
            digest=progress._private_digest,
            privacy=_json.canonical(model.privacy_.to_dict()),
            position=_json.canonical(position),
            state=progress._private_state,
        )

    def _put(self, identity: str, key: bytes, **parts: Any) -> None:
        state = {
            "format": FORMAT,
            "version": VERSION,
            "identity": identity,
            "key": key,
            "parameters": _public_parameters(self.model),
            **parts,
        }
        _placed(self.folder / STATE, dumped(state))

    def _resume(self) -> None:
        path = self.folder / STATE
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        found = _understood(path, content)
        self._refuse_others(found["parameters"])
        identity, key = found["identity"], found["key"]
        self.identity, self._private_key = identity, key
        if found["n_steps"] == 0:
            return
        if self.ledger is not None and self._standing_charge() is None:
            raise ValueError(
                "ledger must be the one that was charged at the first step, where the "
                "charge must stand, or None."
            )
        model, names = self.model, found["names"]
        with all_or_nothing(model):
            model.n_features_in_ = found["n_features"]
            if names is not None:
                model.feature_names_in_ = np.array(names, dtype=object)
            planned = model._planned(model.n_features_in_)
            if _fingerprint(planned) != found["plan"]:
                raise ValueError(
                    f"The stream in {self.folder} was planned otherwise; go on with "
                    "the versions of tacit and its dependencies that began it."
                )
            report = PrivacyReport.from_dict(json.loads(found["privacy"]))
            model.privacy_ = report
            model._show(
                Progress(
                    planned,
                    report.entries[0],
                    self.ledger,
                    found["n_steps"],
                    key,
                    found["digest"],
                    found["state"],
                )
            )
        self._private_progress = model._private_stream
        self.position = json.loads(found["position"])

    def _refuse_others(self, began: dict[str, str]) -> None:
        """Refuse parameters other than those the stream was begun with."""
        given = _public_parameters(self.model)
        differ = [n for n in {**began, **given} if began.get(n) != given.get(n)]
        if differ:
            raise ValueError(
                f"model must have the parameters that the stream in {self.folder} was "
                f"begun with; {', '.join(differ)} must be as then."
            )


def _public_parameters(model: Any) -> dict[str, str]:
    """Return what a stream must be gone on with, in words; no seed."""
    given = model.get_params(deep=False)
    seed = given.pop("random_state", None)
    return {
        "estimator": type(model).__name__,
        **{name: ADDRESS.sub("", repr(_bare(part))) for name, part in given.items()},
        # whether there is a seed is reported, so that it must stay true
        "random_state": "fixed" if is_seeded(seed) else "fresh",
    }


def _bare(value: Any) -> Any:
    """Return a parameter in one of the ways in which it may be given."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.ndarray | np.generic):
        return _bare(value.tolist())
    if isinstance(value, list | tuple | range):
        return list(map(_bare, value))
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    return value


def _fingerprint(planned: Any) -> str:
    """Return what tells a plan from another, as plans are plain data."""
    return sha256(ADDRESS.sub("", repr(planned)).encode()).hexdigest()


def _understood(path: Path, content: bytes) -> dict[str, Any]:
    """Return the state that a file holds, or refuse it in one sentence."""
    try:
        found = loaded(content)
    except StateDamaged:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StateDamaged(
            f"{path} is damaged, and nothing goes on without it: put a whole copy of "
            "the folder back, or begin a stream in another, which is charged anew."
        )
    if found["version"] != VERSION:
        raise StateDamaged(
            f"{path} has format {found['version']}, and this version of tacit reads "
            f"{VERSION}: go on with the version that wrote it."
        )
    return found


def _make(folder: Path) -> None:
    """Make a folder for its owner alone, where there is none."""
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, parents=True)
    _settle(folder.parent)


def _locked(path: Path) -> int:
    """Return a handle that keeps other processes out until it is closed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, BlockingIOError | PermissionError):
            raise ValueError(
                f"The stream in {path.parent} is held by another process, or by an "
                "object in this one; close it there first."
            ) from None
        raise
    return handle


def _placed(path: Path, content: bytes) -> None:
    """Put a file in the place of another, whole and flushed, or leave the other."""
    # one name, as the lock keeps others out: what a kill leaves is written over
    partial = path.with_name(f"{path.name}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(partial, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # [durable:write] the file is the old or the new one at every moment
        os.replace(partial, path)
        _settle(path.parent)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _settle(folder: Path) -> None:
    """Have the names in a folder reach the disk, where a folder can be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
