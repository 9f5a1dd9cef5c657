"""Students of ``tacit label``: trained on released labels, written and reported."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from tacit.cli._console import Rejected
from tacit.cli._learners import learner
from tacit.cli._pool import PoolRows
from tacit.cli._reporting import charge_facts, made_now, write_reports
from tacit.ensemble import DurableLabeler, PrivateStudent
from tacit.persistence import ModelFileError, SavedModel, read_student, write_student
from tacit.persistence._students import STUDENTS
from tacit.privacy import Neighbors
from tacit.privacy._store import StoredLedger
from tacit.tables import Schema

__all__ = ["check_same_student", "student_learner", "write"]


def student_learner(
    schema: Schema, name: str | None, settings: dict[str, Any], output: Path | None
) -> Any:
    """Return the learner of the student, None for the default."""
    if name == "none" and output is not None:
        raise Rejected("--student none makes no student; leave --output out.")
    if name in (None, "none"):
        if settings:
            raise Rejected(
                "--set-student needs --student, the learner that it is a parameter of."
            )
        return None
    assert name is not None
    # a fixed seed, as nothing about a student is secret; brute-force neighbors, because
    # their trees cannot be loaded from a folder
    own = {"random_state": 0, "algorithm": "brute"}
    return learner(schema, name, settings, "--student", **own)


def check_same_student(folder: Path | None, force: bool, identity: str | None) -> None:
    """Reject an existing student that was trained on other labels."""
    if folder is None or force or not folder.exists():
        return
    if identity is None or _labeler_of(folder) != identity:
        raise Rejected(
            f"{folder} already exists, and was trained on other labels; give another "
            "--output, or --force."
        )


def _labeler_of(folder: Path) -> Any:
    """Return the identity of the labeler of a saved student, or None."""
    try:
        return STUDENTS.described(STUDENTS.content(folder))["facts"].get("labeler")
    except ModelFileError:
        return None


def write(
    folder: Path,
    student: PrivateStudent,
    schema: Schema,
    label: str,
    rows: PoolRows,
) -> dict[str, str]:
    """Write a student with its report and card; return their paths."""
    durable = student.labeler
    assert isinstance(durable, DurableLabeler)  # from the command
    identity, ledger = durable.identity, durable.ledger
    assert identity is not None
    assert isinstance(ledger, StoredLedger | None)
    labeler, labels = durable.labeler, student.labels_
    privacy = labeler.privacy_
    counted = privacy.guarantee.neighbors is Neighbors.REPLACE_ONE
    facts = {
        "label": label,
        **made_now(),
        "labeler": identity,
        "rows": len(rows.X) if counted else None,
        "features": schema.feature_names,
        "student": {
            "teachers": int(labeler.n_teachers_),
            "asked": int(labels.n_queried),
            "answered": int(np.sum(labels.answered)),
            "labels_only": labeler.private == "labels",
            "by_person": rows.ids is not None,
        },
        "releases": [privacy.to_dict()],
        **charge_facts(ledger, privacy.entries[0].label),
    }
    _remove_left_over(folder, identity)
    saved = SavedModel(student, student.privacy_, schema.to_dict(), facts)
    write_student(folder, saved, overwrite=True)
    return write_reports(folder, read_student(folder), ledger)


def _remove_left_over(folder: Path, identity: str) -> None:
    """Remove partly written students of this labeler, left by killed runs.

    The labeler is locked, so nobody is writing them now.
    """
    for partial in folder.absolute().parent.glob(".tacit-*.partial"):
        if _labeler_of(partial) == identity:
            shutil.rmtree(partial, ignore_errors=True)
