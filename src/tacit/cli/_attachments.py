"""Certificates and audits attached to a model, stored in its folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit._json import canonical
from tacit.persistence import ModelFileError
from tacit.persistence._files import content_of
from tacit.persistence._folder import MODELS
from tacit.persistence._json import checked_keys, checksum, dumped, parsed
from tacit.privacy import Budget

__all__ = ["ATTACHMENTS", "Attachments", "read_attachments"]

ATTACHMENTS = "attachments.json"
FORMAT, VERSION = "tacit attachments", 1
KEYS = {"format", "version", "model", "fairness", "audits", "account", "sha256"}

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Attachments:
    """Certificates and audits of a model, and the ledger that its pages show.

    Parameters
    ----------
    fairness, audits
        Outcomes of ``tacit fairness`` and ``tacit audit``.
    account
        ``dataset`` and ``budget`` of the ledger that the pages showed last, and
        whether they still do (``shown``); None if they never did.
    """

    fairness: tuple[Outcome, ...] = ()
    audits: tuple[Outcome, ...] = ()
    account: dict[str, Any] | None = None

    def added(
        self, fairness: Sequence[Outcome], audits: Sequence[Outcome]
    ) -> Attachments:
        """Return these and new ones; new ones replace others of the same identity.

        A certificate is identified by its release, which is charged once: no other one
        may replace it, as its charge still counts. An audit is identified by its target
        and method; an audit that refutes is never replaced.
        """
        return replace(
            self,
            fairness=_merged(self.fairness, fairness, _release),
            audits=_merged(self.audits, audits, _attack),
        )

    def content(self, model: str) -> str:
        """Return the file about the model with this digest."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "model": model,
            "fairness": list(self.fairness),
            "audits": list(self.audits),
            "account": self.account,
        }
        return dumped({**data, "sha256": checksum(data)}).decode()


def read_attachments(folder: Path, model: str) -> Attachments:
    """Return the attachments of the model with this digest.

    Pages check whether the outcomes are about this model.
    """
    path = folder / ATTACHMENTS
    if not os.path.lexists(path):
        return Attachments()
    data = parsed(content_of(path, MODELS), ATTACHMENTS)
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ModelFileError(
            f"{ATTACHMENTS} has a format that this version cannot read."
        )
    checked_keys(data, KEYS, ATTACHMENTS)
    if data["sha256"] != checksum(data):
        raise ModelFileError(f"{ATTACHMENTS} was changed after it was written.")
    if data["model"] != model:
        raise ModelFileError(f"{ATTACHMENTS} is about another model.")
    for name in ("fairness", "audits"):
        listed = isinstance(data[name], list)
        if not listed or not all(isinstance(part, dict) for part in data[name]):
            raise ModelFileError(f"{ATTACHMENTS} must list objects as {name!r}.")
    if any(outcome.get("model") != model for outcome in data["fairness"]):
        raise ModelFileError(f"{ATTACHMENTS} has a certificate of another model.")
    _check_account(data["account"])
    fairness, audits = tuple(data["fairness"]), tuple(data["audits"])
    return Attachments(fairness, audits, data["account"])


def _check_account(account: Any) -> None:
    if account is None:
        return
    checked_keys(account, {"dataset", "budget", "shown"}, f"{ATTACHMENTS}: 'account'")
    try:
        Budget.from_dict(account["budget"])
        known = isinstance(account["dataset"], str) and type(account["shown"]) is bool
    except (KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise ModelFileError(
            f"{ATTACHMENTS}: 'account' must have a data set and a budget."
        )


def _merged(
    old: Sequence[Outcome], new: Sequence[Outcome], identity: Callable[[Outcome], str]
) -> tuple[Outcome, ...]:
    found = {identity(outcome): outcome for outcome in (*old, *new)}
    return tuple(found.values())


def _release(outcome: Outcome) -> str:
    """Return the identity of a certificate: its noisy figures and its charge."""
    names = ("certificate", "target", "sensitive")
    return canonical({name: outcome.get(name) for name in names})


def _attack(audit: Outcome) -> str:
    """Return the identity of an audit: its target and method, or all if it refutes."""
    if audit.get("refuted") is not False:
        return canonical(audit)
    names = ("attacked", "method", "confidence", "runs", "rows", "features", "canaries")
    return canonical({name: audit.get(name) for name in names})
