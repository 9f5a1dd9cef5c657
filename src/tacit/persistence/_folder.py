"""A model in a folder: written as a whole or not at all, read without trust."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tacit.persistence import _arrays, _json
from tacit.persistence._atomic_folder import placed
from tacit.persistence._errors import ModelFileError
from tacit.persistence._files import (
    PRIVACY,
    FolderKind,
    SavedModel,
    report_from,
    schema_from,
)
from tacit.persistence._kinds import kind_of, parameters_of, rebuilt, saved_kinds
from tacit.persistence._sides import SIDES, read_side
from tacit.persistence._steps import columns_to
from tacit.persistence._students import STUDENTS, read_student

__all__ = ["digest", "is_model", "load_model", "read", "save_model", "write"]

MODEL, WEIGHTS = "model.json", _arrays.FILE


def _required(header: dict[str, Any]) -> set[str]:
    name = header["estimator"]
    if not isinstance(name, str) or name not in saved_kinds():
        raise ModelFileError(f"{MODEL} names an estimator that this version lacks.")
    kind = saved_kinds()[name]
    weights = {WEIGHTS} if kind.saved.arrays else set()
    return weights | ({PRIVACY} if kind.private else set())


MODELS = FolderKind(
    noun="model",
    version=1,
    keys=frozenset({"estimator", "parameters", "fitted", "arrays"}),
    required=_required,
    limits={WEIGHTS: _arrays.MOST_BYTES},
)


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
    """Return what a folder holds, or raise `ModelFileError`.

    Parameters
    ----------
    folder
        Of a model, a student or an item side, as given to `write`, `write_student` or
        `write_side`.

    Notes
    -----
    **Guarantee.** Nothing in the folder is executed or imported: estimators and their
    parts come from a fixed table, arrays are plain numbers, and sizes are checked
    before anything is made of them. All files of the model must be those whose
    digests ``model.json`` holds, and the promise and the spend of the report must
    follow from its charges. Who can write to the folder can put another model
    there: keep the `digest` elsewhere where that matters. For students see
    `read_student`, for item sides `read_side`.
    """
    kind = _kind_in(folder)
    if kind is STUDENTS:
        return read_student(folder)
    if kind is SIDES:
        return read_side(folder)
    return _opened(MODELS.found(Path(folder)))


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is a model folder, by its ``model.json`` alone."""
    return MODELS.is_in(folder)


def digest(folder: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the header, which holds the digests of all the rest.

    The header is ``model.json``, ``student.json`` or ``side.json``.
    """
    kind = _kind_in(folder)
    content = kind.content(Path(folder))
    kind.described(content)
    return sha256(content).hexdigest()


def save_model(
    model: Any, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a fitted estimator to a folder and return its path.

    Parameters
    ----------
    model
        A fitted estimator of `tacit.linear_model`, `tacit.streaming` or
        `tacit.streaming`, or a step of `tacit.preprocessing`. Of a stream the last
        release is written, and nothing by which it could go on.
    folder, overwrite
        As in `write`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.persistence import load_model, save_model
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


def _kind_in(folder: str | os.PathLike[str]) -> FolderKind:
    there = (k for k in (MODELS, STUDENTS, SIDES) if (Path(folder) / k.header).exists())
    return next(there, MODELS)


def _contents(saved: SavedModel) -> dict[str, bytes]:
    """Return the files of a model by name, ``model.json`` first."""
    estimator = saved.estimator
    name, kind = kind_of(estimator)
    check_is_fitted(estimator)
    fitted, arrays = kind.capture(estimator)
    parts = {
        "estimator": name,
        "parameters": parameters_of(estimator),
        "fitted": {**columns_to(estimator), **fitted},
        "arrays": _arrays.claims_of(arrays),
    }
    return MODELS.files(
        saved, parts, {WEIGHTS: _arrays.packed(arrays)} if arrays else {}
    )


def _opened(files: dict[str, bytes]) -> SavedModel:
    header = MODELS.opened(files)
    kind = saved_kinds()[header["estimator"]]
    arrays = {}
    if kind.saved.arrays:
        names = kind.array_names(header["arrays"])
        arrays = _arrays.unpacked(files[WEIGHTS], header["arrays"], names)
    else:
        _json.checked_keys(header["arrays"], set(), "'arrays'")
    report = report_from(files[PRIVACY]) if kind.private else None
    return SavedModel(
        rebuilt(kind, header["parameters"], header["fitted"], arrays, report),
        report,
        schema_from(files),
        header["facts"],
    )
