"""A model in a folder: written as a whole or not at all, read without trust."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tacit import __version__
from tacit.privacy import PrivacyReport
from tacit.saved import _arrays, _json
from tacit.saved._errors import ModelFileError
from tacit.saved._files import PRIVACY, SCHEMA, claim_of, content_of, report_from
from tacit.saved._kinds import KINDS, kind_of, parameters_of, rebuilt
from tacit.saved._place import placed
from tacit.saved._steps import columns_to

__all__ = [
    "SavedModel",
    "digest",
    "is_model",
    "load_model",
    "read",
    "save_model",
    "write",
]

FORMAT = "tacit model"
VERSION = 1

MODEL, WEIGHTS = "model.json", _arrays.FILE
KEYS = {
    "format",
    "version",
    "tacit",
    "estimator",
    "parameters",
    "fitted",
    "arrays",
    "facts",
    "files",
    "sha256",
}
MOST_JSON = 2**26


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a model folder holds.

    Parameters
    ----------
    estimator
        A fitted estimator of `tacit.linear_model`, `tacit.online` or
        `tacit.incremental`, or a step of `tacit.preprocessing`.
    privacy
        Its report; None for steps that read no rows.
    schema
        The table it was fitted on, as plain data, or None.
    facts
        Anything else worth keeping, as plain data.
    """

    estimator: Any
    privacy: PrivacyReport | None
    schema: dict[str, Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def write(
    folder: str | os.PathLike[str], saved: SavedModel, *, overwrite: bool = False
) -> Path:
    """Write a model folder and return its path.

    Parameters
    ----------
    folder
        Where to; missing parents are made.
    saved
        What to write.
    overwrite
        Whether a model folder that is there may be replaced, with all that is in it.
        Other folders never are.

    Notes
    -----
    **Guarantee.** What is written can be read again, which is tried before anything
    is. The files are written beside the folder and renamed as a whole. What fails or
    is interrupted leaves what was there. The seed of a fit is not written, as whoever
    knows it can take the noise away.
    """
    files = _contents(saved)
    _opened(files)  # never leave what could not be read again
    return placed(Path(folder), files, overwrite=overwrite, replaceable=is_model)


def read(folder: str | os.PathLike[str]) -> SavedModel:
    """Return what a model folder holds, or raise `ModelFileError`.

    Parameters
    ----------
    folder
        As given to `write`.

    Notes
    -----
    **Guarantee.** Nothing in the folder is executed or imported: estimators and their
    parts come from a fixed table, arrays are plain numbers, and sizes are checked
    before anything is made of them. All files of the model must be those whose
    digests ``model.json`` holds, and the promise and the spend of the report must
    follow from its charges. Who can write to the folder can put another model
    there: keep the `digest` elsewhere where that matters.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ModelFileError(f"{place} is not a model folder: there is no such folder.")
    header = _header(content_of(place / MODEL, MOST_JSON, MODEL))
    contents = {
        name: content_of(place / name, _limit(name), MODEL, claim["bytes"])
        for name, claim in header["files"].items()
    }
    return _restored(header, contents)


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is a model folder, by its ``model.json`` alone."""
    try:
        return _header(content_of(Path(folder) / MODEL, MOST_JSON, MODEL)) is not None
    except ModelFileError:
        return False


def digest(folder: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of ``model.json``, which holds the digests of all the rest."""
    content = content_of(Path(folder) / MODEL, MOST_JSON, MODEL)
    _header(content)
    return sha256(content).hexdigest()


def save_model(
    model: Any, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a fitted estimator to a folder and return its path.

    Parameters
    ----------
    model
        A fitted estimator of `tacit.linear_model`, `tacit.online` or
        `tacit.incremental`, or a step of `tacit.preprocessing`. Of a stream the last
        release is written, and nothing by which it could go on.
    folder, overwrite
        As in `write`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.saved import load_model, save_model
    >>> census = make_census(2000, random_state=0)
    >>> model = LogisticRegression(1.0, classes=[0, 1]).fit(census.X, census.y)
    >>> with TemporaryDirectory() as place:
    ...     again = load_model(save_model(model, f"{place}/census"))
    >>> bool((again.predict(census.X) == model.predict(census.X)).all())
    True
    """
    report = getattr(model, "privacy_", None)
    return write(folder, SavedModel(model, report), overwrite=overwrite)


def load_model(folder: str | os.PathLike[str]) -> Any:
    """Return the fitted estimator of a folder, as `read` finds it."""
    return read(folder).estimator


def _contents(saved: SavedModel) -> dict[str, bytes]:
    """Return the files of a model by name, ``model.json`` first."""
    estimator = saved.estimator
    name, kind = kind_of(estimator)
    check_is_fitted(estimator)
    if getattr(estimator, "privacy_", None) != saved.privacy:
        raise ModelFileError("privacy must be the report of the estimator itself.")
    fitted, arrays = kind.capture(estimator)
    others = {}
    if arrays:
        others[WEIGHTS] = _arrays.packed(arrays)
    if saved.privacy is not None:
        others[PRIVACY] = _json.dumped(_json.plain(saved.privacy.to_dict(), "privacy"))
    if saved.schema is not None:
        if not isinstance(saved.schema, dict):
            raise ModelFileError("schema must be None or a dict of plain data.")
        others[SCHEMA] = _json.dumped(_json.plain(saved.schema, "schema"))
    if not isinstance(saved.facts, dict):
        raise ModelFileError("facts must be a dict of plain data.")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "tacit": __version__,
        "estimator": name,
        "parameters": parameters_of(estimator),
        "fitted": {**columns_to(estimator), **fitted},
        "arrays": _arrays.claims_of(arrays),
        "facts": _json.plain(saved.facts, "facts"),
        "files": {name: claim_of(content) for name, content in others.items()},
    }
    header["sha256"] = _json.checksum(header)
    return {MODEL: _json.dumped(header), **others}


def _opened(files: dict[str, bytes]) -> SavedModel:
    others = {name: content for name, content in files.items() if name != MODEL}
    return _restored(_header(files[MODEL]), others)


def _header(content: bytes) -> dict[str, Any]:
    """Return what ``model.json`` says, with its own digest checked."""
    data = _json.parsed(content, MODEL)
    if data.get("format") != FORMAT:
        raise ModelFileError(f"{MODEL} does not describe a model of tacit.")
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{MODEL} must state the version of its format.")
    if version > VERSION:
        raise ModelFileError(
            f"{MODEL} has format {version}, and this version of tacit reads formats up "
            f"to {VERSION}: update tacit."
        )
    _json.checked_keys(data, KEYS, MODEL)
    if data["sha256"] != _json.checksum(data):
        raise ModelFileError(f"{MODEL} was changed after it was written.")
    if not isinstance(data["tacit"], str) or not isinstance(data["facts"], dict):
        raise ModelFileError(f"{MODEL} must state a version and facts.")
    name = data["estimator"]
    if not isinstance(name, str) or name not in KINDS:
        raise ModelFileError(f"{MODEL} names an estimator that this version lacks.")
    kind = KINDS[name]
    required = {WEIGHTS} if kind.arrays else set()
    required |= {PRIVACY} if kind.private else set()
    files = _json.checked_keys(data["files"], required, "'files'", frozenset({SCHEMA}))
    for file, claim in files.items():
        parts = _json.checked_keys(claim, {"bytes", "sha256"}, f"'files' of {file!r}")
        size = parts["bytes"]
        if type(size) is not int or not 0 <= size <= _limit(file):
            raise ModelFileError(f"'files' of {file!r} states an impossible size.")
    return data


def _restored(header: dict[str, Any], contents: dict[str, bytes]) -> SavedModel:
    for name, content in contents.items():
        if claim_of(content) != header["files"][name]:
            raise ModelFileError(
                f"{name} is not the file that {MODEL} was written with."
            )
    kind = KINDS[header["estimator"]]
    arrays = {}
    if kind.arrays:
        names = kind.array_names(header["arrays"])
        arrays = _arrays.unpacked(contents[WEIGHTS], header["arrays"], names)
    else:
        _json.checked_keys(header["arrays"], set(), "'arrays'")
    report = report_from(contents[PRIVACY]) if kind.private else None
    return SavedModel(
        rebuilt(kind, header["parameters"], header["fitted"], arrays, report),
        report,
        _json.parsed(contents[SCHEMA], SCHEMA) if SCHEMA in contents else None,
        header["facts"],
    )


def _limit(name: str) -> int:
    return _arrays.MOST_BYTES if name == WEIGHTS else MOST_JSON
