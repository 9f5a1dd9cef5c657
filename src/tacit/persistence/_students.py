"""A student in a folder: an ordinary model of scikit-learn, without pickle."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit import ensemble
from tacit.persistence._atomic_folder import write_atomically
from tacit.persistence._errors import ModelFileError
from tacit.persistence._files import (
    PRIVACY,
    FolderKind,
    SavedModel,
    report_from,
    schema_from,
)
from tacit.persistence._trees import TREE_TYPES, check_trees

__all__ = ["STUDENTS", "is_student", "read_student", "write_student"]

MODEL = "student.skops"
STUDENTS = FolderKind(
    noun="student",
    version=1,
    keys=frozenset({"student"}),
    required=lambda header: {MODEL, PRIVACY},
    limits={MODEL: 2**31},
)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _trusted() -> list[str]:
    """Return types that are loaded besides those that skops trusts.

    They are parts of this library, trees, which are checked, and plain classes of
    scikit-learn.
    """
    own = (ensemble.NeighborMap, ensemble.SmoothedVotes, ensemble.VoteClassifier)
    return [
        *map(_name, own),
        *TREE_TYPES,
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    ]


def write_student(
    folder: str | os.PathLike[str], saved: SavedModel, *, overwrite: bool = False
) -> Path:
    """Write the student of a fit to a folder and return its path.

    Parameters
    ----------
    folder
        Path of the folder; missing parents are created.
    saved
        Contents of the folder. Its estimator is a fitted
        `tacit.ensemble.PrivateStudent`, of which ``student_`` and ``privacy_`` are
        written: no teacher, no answer, and no parameter of the labeler.
    overwrite
        Whether to replace an existing student's folder, with all its files. Other
        folders are never rewrite_atomically.

    Notes
    -----
    **Guarantee.** What is written can be read again, which is tested first. The files
    are written beside the folder, which is renamed as a whole.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tacit.ensemble import PrivateLabeler, PrivateStudent
    >>> from tacit.persistence import SavedModel, read, write_student
    >>> X, y = make_blobs(600, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> labeler = PrivateLabeler(
    ...     GaussianNB(), 20, 4.0, 1e-5, classes=[0, 1], n_queries=100
    ... )
    >>> student = PrivateStudent(labeler).fit(X[100:], y[100:], X_public=X[:100])
    >>> saved = SavedModel(student, student.privacy_)
    >>> with TemporaryDirectory() as root:
    ...     again = read(write_student(f"{root}/blobs", saved)).estimator
    >>> bool((again.predict(X) == student.predict(X)).all())
    True
    """
    files = _contents(saved)
    _opened(files)  # before anything is written
    return write_atomically(
        Path(folder), files, overwrite=overwrite, replaceable=is_student
    )


def read_student(folder: str | os.PathLike[str]) -> SavedModel:
    """Return the contents of a student's folder, or raise `ModelFileError`.

    Parameters
    ----------
    folder
        As given to `write_student`.

    Notes
    -----
    **Guarantee.** Only types that skops trusts and those of a fixed table are loaded;
    all others are rejected first. Trees are checked, as compiled code follows any
    branch. All files must have the digests in ``student.json``, and the guarantee and
    the spend of the report must follow from its charges. Whoever can write to the
    folder can replace the student.

    No code of the file is run. Arrays that compiled code of other learners uses are not
    all checked, and forged ones may do harm when the student predicts: open only
    students of people whom you trust.
    """
    return _opened(STUDENTS.found(Path(folder)))


def is_student(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is the folder of a student, by its ``student.json``."""
    return STUDENTS.is_in(folder)


def _contents(saved: SavedModel) -> dict[str, bytes]:
    """Return the files of a student by name, ``student.json`` first."""
    student = saved.estimator
    if not isinstance(student, ensemble.PrivateStudent):
        raise ModelFileError(
            f"estimator must be a PrivateStudent, got {type(student).__name__}."
        )
    check_is_fitted(student, "student_")
    model = student.student_
    return STUDENTS.files(
        saved, {"student": _name(type(model))}, {MODEL: _dumped(model)}
    )


def _opened(files: dict[str, bytes]) -> SavedModel:
    header = STUDENTS.opened(files)
    report = report_from(files[PRIVACY])
    schema = schema_from(files)
    model = _loaded(files[MODEL])
    if header["student"] != _name(type(model)):
        raise ModelFileError(
            f"{MODEL} holds another student than {STUDENTS.header} names."
        )
    return SavedModel(model, report, schema, header["facts"])


def _dumped(model: Any) -> bytes:
    import skops.io  # noqa: PLC0415 - loads all of scikit-learn

    try:
        return bytes(skops.io.dumps(model))
    except Exception as error:  # custom parts may fail in any way
        raise ModelFileError(
            f"student cannot be written: skops does not take {type(model).__name__}."
        ) from error


def _loaded(content: bytes) -> Any:
    """Return the student of an untrusted archive."""
    import skops.io  # noqa: PLC0415 - as above

    damaged = f"{MODEL} is damaged."
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # without compression a member cannot expand
            stored = all(
                member.compress_type == zipfile.ZIP_STORED
                for member in archive.infolist()
            )
        unknown = set(skops.io.get_untrusted_types(data=content)) - set(_trusted())
    except Exception as error:  # the archive may be broken in any way
        raise ModelFileError(damaged) from error
    if not stored:
        raise ModelFileError(f"{MODEL} has a compressed member.")
    if unknown:
        raise ModelFileError(
            f"{MODEL} holds types that are not loaded from files: "
            f"{', '.join(sorted(unknown))}; choose a student without them."
        )
    try:
        with warnings.catch_warnings():
            # models of other versions of scikit-learn load with a warning
            warnings.simplefilter("ignore")
            model = skops.io.loads(content, trusted=_trusted())
    except Exception as error:
        raise ModelFileError(damaged) from error
    if not isinstance(model, BaseEstimator) or not hasattr(model, "predict"):
        raise ModelFileError(f"{MODEL} holds no classifier or regressor.")
    check_trees(model)
    return model
