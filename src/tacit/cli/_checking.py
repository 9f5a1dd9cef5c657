"""Checks of ``tacit ledger``: heads, models and files to export to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import make_url

from tacit.cli._console import Rejected
from tacit.persistence import digest, read
from tacit.privacy._store import Export

__all__ = ["check_model", "head_of", "write_export"]

HEAD = re.compile(r"([0-9]{1,18}):([0-9a-fA-F]{64})")


def head_of(text: str) -> tuple[int, str]:
    """Return the head of ``--head``; a truncated hash would be a false alarm."""
    match = HEAD.fullmatch(text.strip())
    if match is None:
        raise Rejected(
            "--head must have the form SEQ:HASH with all 64 digits of the hash, as "
            "'verify' and 'show' print it."
        )
    return int(match[1]), match[2].lower()


def check_model(folder: Path, export: Export, dataset: str) -> list[str]:
    """Return contradictions between a ledger and a model that was charged to it."""
    account = read(folder).facts.get("ledger")
    if not isinstance(account, dict) or account.get("dataset") != dataset:
        raise Rejected(
            f"The model in {folder} was not charged to {dataset!r}; leave --model "
            "out, or give the --ledger and --dataset that it was charged to."
        )
    match account.get("head"):
        case [int(seq), str(last)]:
            found = list(export.verify(head=(seq, last)).findings)
        case _:
            raise Rejected(f"The model in {folder} has no head of the ledger.")
    model = digest(folder)
    try:
        notes = [r.reason for r in export.records if r.kind == "note"]
    except ValueError:  # which is among the findings already
        return found
    if not any(model in note for note in notes):
        found.append(f"no note contains the model in {folder}, of sha256 {model}")
    return found


def write_export(export: Export, path: Path, url: str, *, force: bool) -> None:
    """Write a file as a whole; replace no ledger, and other files only with force."""
    database = make_url(url)
    if database.drivername == "sqlite":
        for ending in ("", "-journal", "-wal", "-shm"):
            own = Path(f"{database.database}{ending}").resolve()
            same = path.exists() and own.exists() and path.samefile(own)
            if same or path.resolve() == own:
                raise Rejected(f"{path} is the ledger itself; give another --out.")
    if path.exists() and not force:
        raise Rejected(f"{path} already exists; give another --out, or --force.")
    # written beside it first, so that a failure leaves the old file
    with TemporaryDirectory(dir=path.absolute().parent, prefix=".tacit-") as beside:
        whole = export.write(Path(beside, "export"), lines=path.suffix != ".json")
        os.replace(whole, path)
