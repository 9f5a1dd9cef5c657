"""Files of a folder: read without trust, and known by their digests."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from hashlib import sha256
from math import isclose
from pathlib import Path
from typing import Any

from tacit._json import canonical
from tacit.privacy import PrivacyReport
from tacit.privacy.attacker import curve_of
from tacit.saved import _json
from tacit.saved._errors import ModelFileError, refused_as

__all__ = ["PRIVACY", "SCHEMA", "claim_of", "content_of", "report_from"]

PRIVACY, SCHEMA = "privacy.json", "schema.json"


def claim_of(content: bytes) -> dict[str, Any]:
    """Return what is written of a file elsewhere, to know it again."""
    return {"bytes": len(content), "sha256": sha256(content).hexdigest()}


def report_from(content: bytes) -> PrivacyReport:
    """Return the report of a file, whose figures must follow from its charges."""
    data = _json.parsed(content, PRIVACY)
    with refused_as(PRIVACY):
        report = PrivacyReport.from_dict(data)
        # what comes back otherwise was not written by this library
        same = canonical(_json.plain(report.to_dict(), PRIVACY))
        words = [*report.assumptions, *(entry.label for entry in report.entries)]
        flags = [entry.seeded for entry in report.entries]
        numbers = [entry.epsilon for entry in report.entries]
        known = (
            same == canonical(data)
            and all(isinstance(word, str) for word in words)
            and all(isinstance(flag, bool) for flag in flags)
            and all(type(number) in (int, float) for number in numbers)
        )
    if not known:
        raise ModelFileError(f"{PRIVACY} is no report that this version writes.")
    with refused_as(PRIVACY):
        _refuse_untrue(report)
    return report


def _refuse_untrue(report: PrivacyReport) -> None:
    """Refuse a report whose figures its own events do not bear out."""
    promise = report.promise
    if not report.entries:
        raise ModelFileError(f"{PRIVACY} names no charge.")
    for entry in report.entries:
        alone = replace(promise, epsilon=entry.epsilon)
        curve = entry.event.curve(promise.neighbors)
        if not (curve.fits(promise) and curve.fits(alone)):
            raise ModelFileError(f"{PRIVACY} promises less than its charges spend.")
    spent = curve_of(report).epsilon(promise.delta)
    # another version may compute the last digits otherwise
    if not isclose(report.spent, spent, rel_tol=1e-6, abs_tol=1e-9):
        raise ModelFileError(f"{PRIVACY} states another spend than its charges have.")


def content_of(path: Path, limit: int, header: str, size: int | None = None) -> bytes:
    """Return a plain file of at most ``limit`` bytes, and of ``size`` where given.

    ``header`` is the file that states the size.
    """
    # neither follow a link out of the folder nor wait for a pipe
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise ModelFileError(f"{path.name} is not a plain file.")
            if found.st_size > limit:
                raise ModelFileError(f"{path.name} is larger than {limit} bytes.")
            if size is not None and found.st_size != size:
                raise ModelFileError(
                    f"{path.name} is not the file that {header} was written with."
                )
            with open(handle, "rb", closefd=False) as file:
                return file.read(found.st_size)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise ModelFileError(
            f"{path.parent} is not a model folder: {path.name} is missing."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelFileError(
            f"{path.name} cannot be read as a plain file: {reason}."
        ) from error
