"""A model in a folder: written atomically, read without trust."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tacit import persistence
from tacit.persistence import _arrays, _json
from tacit.persistence._atomic_folder import write_atomically
from tacit.persistence._errors import ModelFileError
from tacit.persistence._files import (
    PRIVACY,
    FolderKind,
    SavedModel,
    report_from,
    schema_from,
)
from tacit.persistence._kinds import Kind, kind_named, kind_of, parameters_of, rebuilt
from tacit.persistence._steps import columns_to

__all__ = ["digest", "is_model", "load_model", "read", "save_model", "write"]

MODEL, WEIGHTS = "model.json", _arrays.FILE


def _required(header: dict[str, Any]) -> set[str]:
    kind = _kind_named(header["estimator"])
    weights = {WEIGHTS} if kind.saved.arrays else set()
    return weights | ({PRIVACY} if kind.private else set())


def _kind_named(name: Any) -> Kind:
    kind = kind_named(name)
    if kind is None:
        raise ModelFileError(f"{MODEL} names an estimator that this version lacks.")
    return kind


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
        Path of the folder; missing parents are created.
    saved
        Contents of the folder.
    overwrite
        Whether to replace an existing model folder, with all its files. Other folders
        are never rewrite_atomically.

    Notes
    -----
    **Guarantee.** What is written can be read again, which is tested first. The files
    are written beside the folder, which is renamed as a whole: a failure or an
    interrupt leaves the old folder. The seed of a fit is not written, as whoever knows
    it can remove the noise.
    """
    files = _contents(saved)
    _opened(files)  # before anything is written
    return write_atomically(
        Path(folder), files, overwrite=overwrite, replaceable=is_model
    )


def read(folder: str | os.PathLike[str]) -> SavedModel:
    """Return the contents of a folder, or raise `ModelFileError`.

    Parameters
    ----------
    folder
        Folder of a model, a student or an item side, as given to `write`,
        `write_student` or `write_side`.

    Notes
    -----
    **Guarantee.** Nothing in the folder is executed or imported: estimators and their
    parts come from a fixed table, arrays are plain numbers, and sizes are checked
    before anything is allocated. All files must have the digests in ``model.json``,
    and the guarantee and the spend of the report must follow from its charges. Whoever
    can write to the folder can replace the model: keep the `digest` elsewhere where
    that matters. For students see `read_student`, for item sides `read_side`.
    """
    kind = _kind_in(folder)
    if kind is MODELS:
        return _opened(MODELS.found(Path(folder)))
    if kind is persistence._students.STUDENTS:
        return persistence.read_student(folder)
    return persistence.read_side(folder)


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is a model folder, by its ``model.json``."""
    return MODELS.is_in(folder)


def digest(folder: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the header, which has the digests of all other files.

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
        A fitted estimator of `tacit.additive`, `tacit.linear_model` or
        `tacit.streaming`, or a step of `tacit.preprocessing`. Of a stream only the
        last release is written; it cannot be resumed.
    folder, overwrite
        As in `write`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.persistence import load_model, save_model
    >>> census = make_census(2000, random_state=0)
    >>> model = LogisticRegression(
    ...     1.0, classes=[0, 1], x_norm=1.0
    ... ).fit(census.X, census.y)
    >>> with TemporaryDirectory() as root:
    ...     again = load_model(save_model(model, f"{root}/census"))
    >>> bool((again.predict(census.X) == model.predict(census.X)).all())
    True
    """
    report = getattr(model, "privacy_", None)
    return write(folder, SavedModel(model, report), overwrite=overwrite)


def load_model(folder: str | os.PathLike[str]) -> Any:
    """Return the fitted estimator of a folder, read as by `read`."""
    return read(folder).estimator


def _kind_in(folder: str | os.PathLike[str]) -> FolderKind:
    if (Path(folder) / MODELS.header).exists():
        return MODELS
    others = (persistence._students.STUDENTS, persistence._sides.SIDES)
    return next((k for k in others if (Path(folder) / k.header).exists()), MODELS)


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
    kind = _kind_named(header["estimator"])
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
