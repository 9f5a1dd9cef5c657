"""A student in a folder: an ordinary model of scikit-learn, without pickle."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import skops.io
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit import __version__
from tacit.ensemble import NeighborMap, PrivateStudent, SmoothedVotes, VoteClassifier
from tacit.saved import _json
from tacit.saved._errors import ModelFileError
from tacit.saved._files import PRIVACY, SCHEMA, claim_of, content_of, report_from
from tacit.saved._folder import SavedModel
from tacit.saved._place import placed
from tacit.saved._trees import TREE_TYPES, refuse_broken_trees

__all__ = ["is_student", "read_student", "write_student"]

FORMAT = "tacit student"
VERSION = 1
HEADER, MODEL = "student.json", "student.skops"
KEYS = {"format", "version", "tacit", "student", "facts", "files", "sha256"}
MOST_JSON, MOST_BYTES = 2**26, 2**31


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# What a student may be made of besides what skops takes from anyone: parts of this
# library, trees, which are looked through, and plain classes of scikit-learn
TRUSTED = (
    *map(_name, (NeighborMap, SmoothedVotes, VoteClassifier)),
    *TREE_TYPES,
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
)


def write_student(
    folder: str | os.PathLike[str],
    student: PrivateStudent,
    schema: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the student of a fit to a folder and return its path.

    Parameters
    ----------
    folder
        Where to; missing parents are made.
    student
        A fitted `tacit.ensemble.PrivateStudent`, of which ``student_`` and ``privacy_``
        are written: no teacher, no answer, and no parameter of the labeler.
    schema
        The table it was fitted on, as plain data.
    facts
        Anything else worth keeping, as plain data.
    overwrite
        Whether a student's folder that is there may be replaced, with all that is in
        it. Other folders never are.

    Notes
    -----
    **Guarantee.** What is written can be read again, which is tried before anything
    is. The files are written beside the folder and renamed as a whole.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tacit.ensemble import PrivateLabeler, PrivateStudent
    >>> from tacit.saved import read_student, write_student
    >>> X, y = make_blobs(600, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> labeler = PrivateLabeler(
    ...     GaussianNB(), 20, 4.0, 1e-5, classes=[0, 1], n_queries=100
    ... )
    >>> student = PrivateStudent(labeler).fit(X[100:], y[100:], X_public=X[:100])
    >>> with TemporaryDirectory() as place:
    ...     again = read_student(write_student(f"{place}/blobs", student)).estimator
    >>> bool((again.predict(X) == student.predict(X)).all())
    True
    """
    files = _contents(student, schema, facts)
    header = _header(files[HEADER])
    _restored(header, {name: files[name] for name in header["files"]})
    return placed(Path(folder), files, overwrite=overwrite, replaceable=is_student)


def read_student(folder: str | os.PathLike[str]) -> SavedModel:
    """Return what a student's folder holds, or raise `ModelFileError`.

    Parameters
    ----------
    folder
        As given to `write_student`.

    Notes
    -----
    **Guarantee.** Types that are not known to be harmless are refused before anything
    is made of the file: what skops takes from anyone and a fixed table are all that is
    loaded. Trees are looked through, as compiled code would follow a branch anywhere.
    All files must be those whose digests ``student.json`` holds, and the promise and
    the spend of the report must follow from its charges. Who can write to the folder
    can put another student there.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ModelFileError(
            f"{place} is not the folder of a student: there is no such folder."
        )
    header = _header(content_of(place / HEADER, MOST_JSON, HEADER))
    contents = {
        name: content_of(place / name, _limit(name), HEADER, claim["bytes"])
        for name, claim in header["files"].items()
    }
    return _restored(header, contents)


def is_student(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is the folder of a student, by ``student.json`` alone."""
    try:
        _header(content_of(Path(folder) / HEADER, MOST_JSON, HEADER))
    except ModelFileError:
        return False
    return True


def _contents(student: Any, schema: Any, facts: Any) -> dict[str, bytes]:
    """Return the files of a student by name, ``student.json`` first."""
    if not isinstance(student, PrivateStudent):
        raise ModelFileError(
            f"student must be a PrivateStudent, got {type(student).__name__}."
        )
    check_is_fitted(student, "student_")
    for name, given in (("schema", schema), ("facts", facts)):
        if given is not None and not isinstance(given, dict):
            raise ModelFileError(f"{name} must be None or a dict of plain data.")
    model = student.student_
    others = {
        MODEL: _dumped(model),
        PRIVACY: _json.dumped(_json.plain(student.privacy_.to_dict(), "privacy")),
    }
    if schema is not None:
        others[SCHEMA] = _json.dumped(_json.plain(schema, "schema"))
    header = {
        "format": FORMAT,
        "version": VERSION,
        "tacit": __version__,
        "student": _name(type(model)),
        "facts": _json.plain(facts or {}, "facts"),
        "files": {name: claim_of(content) for name, content in others.items()},
    }
    header["sha256"] = _json.checksum(header)
    return {HEADER: _json.dumped(header), **others}


def _dumped(model: Any) -> bytes:
    try:
        return bytes(skops.io.dumps(model))
    except Exception as error:  # a part of someone's own may fail in any way
        raise ModelFileError(
            f"student cannot be written: skops does not take {type(model).__name__}."
        ) from error


def _header(content: bytes) -> dict[str, Any]:
    """Return what ``student.json`` says, with its own digest checked."""
    data = _json.parsed(content, HEADER)
    if data.get("format") != FORMAT:
        raise ModelFileError(f"{HEADER} does not describe a student of tacit.")
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{HEADER} must state the version of its format.")
    if version > VERSION:
        raise ModelFileError(
            f"{HEADER} has format {version}, and this version of tacit reads formats "
            f"up to {VERSION}: update tacit."
        )
    _json.checked_keys(data, KEYS, HEADER)
    if data["sha256"] != _json.checksum(data):
        raise ModelFileError(f"{HEADER} was changed after it was written.")
    if not isinstance(data["facts"], dict):
        raise ModelFileError("'facts' must hold a JSON object.")
    files = _json.checked_keys(
        data["files"], {MODEL, PRIVACY}, "'files'", frozenset({SCHEMA})
    )
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
                f"{name} is not the file that {HEADER} was written with."
            )
    report = report_from(contents[PRIVACY])
    schema = _json.parsed(contents[SCHEMA], SCHEMA) if SCHEMA in contents else None
    model = _loaded(contents[MODEL])
    if header["student"] != _name(type(model)):
        raise ModelFileError(f"{MODEL} holds another student than {HEADER} names.")
    return SavedModel(model, report, schema, header["facts"])


def _loaded(content: bytes) -> Any:
    """Return the student of an archive that anyone may have written."""
    damaged = f"{MODEL} is damaged."
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # nothing is packed, so that nothing can grow on the way out
            stored = all(
                member.compress_type == zipfile.ZIP_STORED
                for member in archive.infolist()
            )
        unknown = set(skops.io.get_untrusted_types(data=content)) - set(TRUSTED)
    except Exception as error:  # the archive may be broken in any way
        raise ModelFileError(damaged) from error
    if not stored:
        raise ModelFileError(f"{MODEL} has a member that is packed.")
    if unknown:
        raise ModelFileError(
            f"{MODEL} holds types that are not loaded from files: "
            f"{', '.join(sorted(unknown))}; choose a student without them."
        )
    try:
        with warnings.catch_warnings():
            # another version of scikit-learn warns, and what it made still loads
            warnings.simplefilter("ignore")
            model = skops.io.loads(content, trusted=list(TRUSTED))
    except Exception as error:
        raise ModelFileError(damaged) from error
    if not isinstance(model, BaseEstimator) or not hasattr(model, "predict"):
        raise ModelFileError(f"{MODEL} holds no classifier or regressor.")
    refuse_broken_trees(model)
    return model


def _limit(name: str) -> int:
    return MOST_BYTES if name == MODEL else MOST_JSON
