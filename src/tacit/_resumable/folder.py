"""Folder that one object of one process locks, with the record of its charge."""

from __future__ import annotations

import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tacit import _json
from tacit._estimators import all_or_nothing, exclusive_step
from tacit._random import secret_key
from tacit._resumable.files import folder_path, locked, made, placed
from tacit._resumable.record import (
    VERSION,
    OtherParameters,
    RecordKind,
    damaged,
    fingerprint,
    understood,
)
from tacit._state import dumped
from tacit.privacy import Ledger, PrivacyReport
from tacit.privacy.report import Entry

__all__ = ["LOCK", "STATE", "LockedFolder"]

STATE, LOCK = "private-state", "lock"


class LockedFolder(ABC):
    """Model with a single charge that is resumed from a folder.

    A subclass names the private attribute of the model that is resumed, and restores a
    record.

    Parameters
    ----------
    model
        Model to resume. It only continues through this object until `close`.
    folder
        Folder of the record.
    ledger
        Ledger to charge; None creates one for this model.
    """

    _kind: RecordKind
    _resumed: str
    _model: Any

    def __init__(
        self, model: Any, folder: str | os.PathLike[str], ledger: Ledger | None
    ) -> None:
        if ledger is not None and not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
        self._model = model
        # [durable:folder] records are in one folder, also after a change of directory
        self.folder = folder_path(folder)
        self.ledger = ledger
        self.identity: str | None = None
        self._private_key = b""
        self._private_shown: Any = None
        self._process = os.getpid()
        made(self.folder)
        self._lock: int | None = locked(
            self.folder / LOCK,
            f"The {self._kind.noun} in {self.folder} is open in another process, or in "
            "another object of this one; close it there first.",
        )
        try:
            # one operation, which no other thread can come between
            if model.__dict__.setdefault("_holder", self) is not self:
                raise ValueError(
                    f"{self._kind.parameter} must not belong to another "
                    f"{type(self).__name__}."
                )
            self._resume()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _parameters(self) -> dict[str, str]:
        """Return the parameters that the model must be resumed with, as strings."""

    @abstractmethod
    def _planned(self, found: dict[str, Any]) -> Any:
        """Return a new plan for a record."""

    @abstractmethod
    def _restore(self, planned: Any, found: dict[str, Any]) -> None:
        """Show the step that is on disk."""

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Whether something was begun in this folder."""
        return (folder_path(folder) / STATE).exists()

    def close(self) -> None:
        """Let another process resume; the model keeps its last release only."""
        with exclusive_step(self):
            if self._lock is None:
                return
            # [durable:closed] the model has no state to continue from
            if vars(self._model).get("_holder") is self:
                for name in ("_holder", self._resumed):
                    vars(self._model).pop(name, None)
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} cannot be copied or pickled, as both would "
            "continue; open the folder in the process that continues, or copy its "
            f"{self._kind.parameter}."
        )

    def _charge_label(self, identity: str) -> str:
        """Return the label of the charge."""
        return f"{type(self._model).__name__} {self._kind.noun} {identity}"

    def _require_own(self) -> None:
        noun = self._kind.noun
        if self._lock is None:
            raise ValueError(f"This {noun} is closed; open the folder again.")
        if os.getpid() != self._process:
            raise ValueError(
                f"This {noun} belongs to the process that opened it; close it there, "
                "and open the folder here."
            )
        if vars(self._model).get(self._resumed) is not self._private_shown:
            raise ValueError(
                f"The {self._kind.parameter} is not at the step that is on disk; "
                f"close this {noun}, and open the folder again with a new "
                f"{self._kind.parameter}."
            )

    def _drawn(self) -> tuple[str, bytes]:
        """Return the identity and the key on disk, or new ones."""
        if self.identity is None:
            return secrets.token_hex(16), secret_key(self._model.random_state)
        return self.identity, self._private_key

    def _begin(self, identity: str, key: bytes) -> None:
        """Write the identity and the key to disk, right before the charge.

        An error before it leaves a folder that is bound to no parameters.
        """
        if self.identity is None:
            # [durable:identity] a charge that a killed process made is found by it
            self._write_record(identity, key, n_steps=0)
            self.identity, self._private_key = identity, key

    def _recorded_charge(self) -> Entry | None:
        """Return the charge of this model in the ledger, if any."""
        if self.ledger is None or self.identity is None:
            return None
        label = self._charge_label(self.identity)
        entries = self.ledger.report().entries
        # the purpose of the charge may precede the label
        own = (entry for entry in entries if entry.label.endswith(label))
        return next(own, None)

    def _write_record(self, identity: str, key: bytes, **parts: Any) -> None:
        """Replace the record on disk."""
        record = {
            "format": self._kind.format,
            "version": VERSION,
            "identity": identity,
            "key": key,
            "parameters": self._parameters(),
            **parts,
        }
        placed(self.folder / STATE, dumped(record))

    def _facts(self, planned: Any) -> dict[str, Any]:
        """Return the parts of a record on the plan, the columns and the report."""
        names = getattr(self._model, "feature_names_in_", None)
        return {
            "plan": fingerprint(planned),
            "n_features": int(self._model.n_features_in_),
            "names": None if names is None else tuple(map(str, names)),
            "privacy": _json.canonical(self._model.privacy_.to_dict()),
        }

    def _resume(self) -> None:
        """Show the step on disk, if any."""
        found = self._found()
        if found is None or found["n_steps"] == 0:
            return
        model, names = self._model, found["names"]
        with all_or_nothing(model):
            model.n_features_in_ = found["n_features"]
            if names is not None:
                model.feature_names_in_ = np.array(names, dtype=object)
            planned = self._planned(found)
            if fingerprint(planned) != found["plan"]:
                raise ValueError(
                    f"The {self._kind.noun} in {self.folder} has another plan; resume "
                    "it with the versions of tacit and its dependencies that began it."
                )
            with self._damage_rejected():
                report = json.loads(found["privacy"])
                model.privacy_ = PrivacyReport.from_dict(report)
            self._restore(planned, found)

    @contextmanager
    def _damage_rejected(self) -> Iterator[None]:
        """Report a record that cannot be restored as damaged."""
        try:
            yield
        except Exception:  # a state of other parts can fail in any way
            raise damaged(self.folder / STATE, self._kind) from None

    def _found(self) -> dict[str, Any] | None:
        """Return the record on disk, if there is one, or reject it."""
        path = self.folder / STATE
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        found = understood(path, content, self._kind)
        began, given = found["parameters"], self._parameters()
        differ = [n for n in {**began, **given} if began.get(n) != given.get(n)]
        if differ:
            raise OtherParameters(self.folder, differ, self._kind)
        self.identity, self._private_key = found["identity"], found["key"]
        unchecked = found["n_steps"] == 0 or self.ledger is None
        if not unchecked and self._recorded_charge() is None:
            raise ValueError(
                "ledger must be the one that was charged at the first step and still "
                "has the charge, or None."
            )
        return found
