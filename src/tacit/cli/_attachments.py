"""What was attached to the pages of a model, kept in its folder for every rewrite."""

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
    """Certificates and audits of a model, and the account that its pages show.

    Parameters
    ----------
    fairness, audits
        Outcomes of ``tacit fairness`` and ``tacit audit``.
    account
        ``dataset`` and ``budget`` of the account that the pages showed last, and
        whether they still do (``shown``); None where they never did.
    """

    fairness: tuple[Outcome, ...] = ()
    audits: tuple[Outcome, ...] = ()
    account: dict[str, Any] | None = None

    def added(
        self, fairness: Sequence[Outcome], audits: Sequence[Outcome]
    ) -> Attachments:
        """Return these and new ones, which replace earlier ones of the same identity.

        Certificates have the same identity only if they are one release, charged once:
        no other may replace one, as its charge still counts. Audits have it if they
        attacked the same in the same way; one that refuted is never replaced.
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
    """Return what was attached to the model with this digest; what is invalid raises.

    Whether outcomes are about this model is checked where pages are made of them.
    """
    path = folder / ATTACHMENTS
    if not os.path.lexists(path):
        return Attachments()
    data = parsed(content_of(path, MODELS), ATTACHMENTS)
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ModelFileError(f"{ATTACHMENTS} has a format this version cannot read.")
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
        raise ModelFileError(f"{ATTACHMENTS}: 'account' names no data set and budget.")


def _merged(
    old: Sequence[Outcome], new: Sequence[Outcome], identity: Callable[[Outcome], str]
) -> tuple[Outcome, ...]:
    found = {identity(outcome): outcome for outcome in (*old, *new)}
    return tuple(found.values())


def _release(outcome: Outcome) -> str:
    """Return what identifies a certificate: its noisy figures and its charge."""
    names = ("certificate", "target", "sensitive")
    return canonical({name: outcome.get(name) for name in names})


def _attack(audit: Outcome) -> str:
    """Return what identifies an audit: all but what it found, unless it refuted."""
    if audit.get("refuted") is not False:
        return canonical(audit)
    names = ("attacked", "method", "confidence", "runs", "rows", "features", "canaries")
    return canonical({name: audit.get(name) for name in names})
