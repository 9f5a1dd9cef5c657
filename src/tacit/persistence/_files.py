"""Files of a folder: read without trust, and checked by their digests."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tacit import __version__
from tacit._json import canonical
from tacit.persistence import _json
from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.privacy import PrivacyReport
from tacit.privacy.attacker import curve_of

__all__ = [
    "PRIVACY",
    "FolderKind",
    "SavedModel",
    "report_from",
    "schema_from",
]

PRIVACY, SCHEMA = "privacy.json", "schema.json"
MOST_JSON = 2**26
KEYS = {"format", "version", "tacit", "facts", "files", "sha256"}


@dataclass(frozen=True, eq=False)
class SavedModel:
    """Contents of a model folder.

    Parameters
    ----------
    estimator
        A fitted estimator of `tacit.additive`, `tacit.linear_model` or
        `tacit.streaming`, or a step of `tacit.preprocessing`; or a fitted
        `tacit.ensemble.PrivateStudent` to write, of which the student is read; or the
        item side of a recommender, as read.
    privacy
        Its report; None for steps that read no rows.
    schema
        Schema of the table it was fitted on, as plain data, or None.
    facts
        Anything else to save, as plain data.
    """

    estimator: Any
    privacy: PrivacyReport | None
    schema: dict[str, Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"SavedModel({' '.join(repr(self.estimator).split())})"


@dataclass(frozen=True)
class FolderKind:
    """Kind of a folder, with a header that lists its contents and all files.

    Parameters
    ----------
    noun
        What a folder contains.
    version
        Latest version of the format that this version of the library reads.
    keys
        Keys of the header about the contents.
    required
        Returns the files that a header requires, or raises.
    limits
        Maximum bytes of files that are not JSON.
    """

    noun: str
    version: int
    keys: frozenset[str]
    required: Callable[[dict[str, Any]], set[str]]
    limits: dict[str, int]

    @property
    def header(self) -> str:
        """Name of the file that describes the rest."""
        return f"{self.noun}.json"

    def files(
        self, saved: SavedModel, parts: dict[str, Any], contents: dict[str, bytes]
    ) -> dict[str, bytes]:
        """Return all files of a folder by name, the header first.

        ``parts`` belong to the header, ``contents`` are files of this kind only.
        """
        if getattr(saved.estimator, "privacy_", None) != saved.privacy:
            raise ModelFileError("privacy must be the report of the estimator itself.")
        if not isinstance(saved.schema, dict | None):
            raise ModelFileError("schema must be None or a dict of plain data.")
        if not isinstance(saved.facts, dict):
            raise ModelFileError("facts must be a dict of plain data.")
        others = dict(contents)
        if saved.privacy is not None:
            report = _json.plain(saved.privacy.to_dict(), "privacy")
            others[PRIVACY] = _json.dumped(report)
        if saved.schema is not None:
            others[SCHEMA] = _json.dumped(_json.plain(saved.schema, "schema"))
        data = {
            "format": f"tacit {self.noun}",
            "version": self.version,
            "tacit": __version__,
            **parts,
            "facts": _json.plain(saved.facts, "facts"),
            "files": {name: claim_of(content) for name, content in others.items()},
        }
        data["sha256"] = _json.checksum(data)
        return {self.header: _json.dumped(data), **others}

    def found(self, folder: Path) -> dict[str, bytes]:
        """Return the files in a folder by name, as they are."""
        if not folder.is_dir():
            raise ModelFileError(
                f"{folder} is not a {self.noun} folder: there is no such folder."
            )
        files = {self.header: self.content(folder)}
        for name, claim in self.described(files[self.header])["files"].items():
            files[name] = content_of(folder / name, self, claim["bytes"])
        return files

    def content(self, folder: Path) -> bytes:
        """Return the header in a folder, as it is."""
        return content_of(folder / self.header, self)

    def is_in(self, folder: str | os.PathLike[str]) -> bool:
        """Return whether a folder is of this kind, by its header alone."""
        try:
            self.described(self.content(Path(folder)))
        except ModelFileError:
            return False
        return True

    def limit(self, name: str) -> int:
        """Return the maximum bytes of a file."""
        return self.limits.get(name, MOST_JSON)

    def described(self, content: bytes) -> dict[str, Any]:
        """Return the header, with its own digest checked."""
        name = self.header
        data = _json.parsed(content, name)
        if data.get("format") != f"tacit {self.noun}":
            raise ModelFileError(f"{name} does not describe a {self.noun} of tacit.")
        version = data.get("version")
        if type(version) is not int or version < 1:
            raise ModelFileError(f"{name} must state the version of its format.")
        if version > self.version:
            raise ModelFileError(
                f"{name} has format {version}, and this version of tacit reads formats "
                f"up to {self.version}: update tacit."
            )
        _json.checked_keys(data, KEYS | self.keys, name)
        if data["sha256"] != _json.checksum(data):
            raise ModelFileError(f"{name} was changed after it was written.")
        if not isinstance(data["tacit"], str) or not isinstance(data["facts"], dict):
            raise ModelFileError(f"{name} must state a version and facts.")
        files = _json.checked_keys(
            data["files"], self.required(data), "'files'", frozenset({SCHEMA})
        )
        for file, claim in files.items():
            parts = _json.checked_keys(
                claim, {"bytes", "sha256"}, f"'files' of {file!r}"
            )
            size = parts["bytes"]
            if type(size) is not int or not 0 <= size <= self.limit(file):
                raise ModelFileError(f"'files' of {file!r} states an impossible size.")
        return data

    def opened(self, files: dict[str, bytes]) -> dict[str, Any]:
        """Return the header, after a check of all files by their digests."""
        data = self.described(files[self.header])
        for name, claim in data["files"].items():
            if claim_of(files[name]) != claim:
                raise ModelFileError(
                    f"{name} is not the file that {self.header} was written with."
                )
        return data


def claim_of(content: bytes) -> dict[str, Any]:
    """Return size and digest of a file, by which the header identifies it."""
    return {"bytes": len(content), "sha256": sha256(content).hexdigest()}


def schema_from(files: dict[str, bytes]) -> dict[str, Any] | None:
    """Return the schema among files, if there is one."""
    return _json.parsed(files[SCHEMA], SCHEMA) if SCHEMA in files else None


def report_from(content: bytes) -> PrivacyReport:
    """Return the report in a file; its figures must follow from its charges."""
    data = _json.parsed(content, PRIVACY)
    with rejected_as(PRIVACY):
        report = PrivacyReport.from_dict(data)
        # this library writes only what it reads back unchanged
        same = canonical(_json.plain(report.to_dict(), PRIVACY))
        words = [report.released, *report.assumptions, *report.notes]
        words += [entry.label for entry in report.entries]
        flags = [entry.seeded for entry in report.entries]
        numbers = [entry.epsilon for entry in report.entries]
        known = (
            same == canonical(data)
            and all(isinstance(word, str) for word in words)
            and all(isinstance(flag, bool) for flag in flags)
            and all(type(number) in (int, float) for number in numbers)
        )
    if not known:
        raise ModelFileError(f"{PRIVACY} is not a report that this version writes.")
    with rejected_as(PRIVACY):
        _check_figures(report)
    return report


def _check_figures(report: PrivacyReport) -> None:
    """Check that the figures of a report follow from its events."""
    guarantee = report.guarantee
    if not report.entries:
        raise ModelFileError(f"{PRIVACY} names no charge.")
    for entry in report.entries:
        own = replace(guarantee, epsilon=entry.epsilon)
        curve = entry.event.curve(guarantee.neighbors)
        if not (curve.fits(guarantee) and curve.fits(own)):
            raise ModelFileError(f"{PRIVACY} guarantees less than its charges spend.")
    spent = curve_of(report).epsilon(guarantee.delta)
    # another version may have a looser bound or other rounding
    most = max(spent, guarantee.epsilon) * (1 + 1e-6) + 1e-9
    if not spent * (1 - 1e-6) - 1e-9 <= report.spent <= most:
        raise ModelFileError(f"{PRIVACY} states another spend than its charges have.")


def content_of(path: Path, kind: FolderKind, size: int | None = None) -> bytes:
    """Return a plain file of a folder, of ``size`` bytes where that is known."""
    limit = kind.limit(path.name)
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
                    f"{path.name} is not the file that {kind.header} was written with."
                )
            with open(handle, "rb", closefd=False) as file:
                return file.read(found.st_size)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise ModelFileError(
            f"{path.parent} is not a {kind.noun} folder: {path.name} is missing."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelFileError(
            f"{path.name} cannot be read as a plain file: {reason}."
        ) from error
