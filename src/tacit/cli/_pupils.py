"""The student of ``tacit label``: learnt from answers, written and reported."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import __version__
from tacit.cli._console import Refused
from tacit.cli._learners import learner
from tacit.cli._pool import Rows
from tacit.cli._reporting import paid_from, write_reports
from tacit.ensemble import DurableLabeler, Labels, PrivateStudent
from tacit.privacy import Neighbors
from tacit.saved import read_student, write_student
from tacit.tables import Schema

__all__ = ["refuse_other", "student_for", "taught", "write_taught"]


def student_for(
    schema: Schema, name: str | None, settings: dict[str, Any], output: Path | None
) -> Any:
    """Return what learns from the answers, None for the library's own choice."""
    if name == "none" and output is not None:
        raise Refused("--student none makes no student; leave --output out.")
    if name in (None, "none"):
        if settings:
            raise Refused("--set-student needs --student, which says what it is for.")
        return None
    assert name is not None
    # a fixed seed, as nothing about a student is secret, and neighbors without a tree
    # of theirs, which would not be read from a folder
    own = {"random_state": 0, "algorithm": "brute"}
    return learner(schema, name, settings, "--student", **own)


def refuse_other(folder: Path | None, force: bool, identity: str | None) -> None:
    """Refuse a student that is there and learnt from other answers."""
    if folder is None or force or not folder.exists():
        return
    if identity is None or read_student(folder).facts.get("labeler") != identity:
        raise Refused(
            f"{folder} is there already, and learnt from other answers; give another "
            "--out, or --force."
        )


def taught(
    durable: DurableLabeler, student: Any, X: NDArray[np.float64], labels: Labels
) -> PrivateStudent:
    """Return the student of answers that were given; nothing is asked."""
    make: Any = PrivateStudent
    learnt: PrivateStudent = make(durable, student).fit_pool(X, labels)
    return learnt


def write_taught(
    folder: Path,
    student: PrivateStudent,
    schema: Schema,
    label: str,
    rows: Rows,
) -> dict[str, str]:
    """Write a student with its report and card; return where they are."""
    durable = student.labeler
    labeler, labels = durable.labeler, student.labels_
    privacy = labeler.privacy_
    counted = privacy.promise.neighbors is Neighbors.REPLACE_ONE
    facts = {
        "label": label,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "tacit": __version__,
        "labeler": durable.identity,
        "rows": len(rows.X) if counted else None,
        "features": schema.feature_names,
        "student": {
            "teachers": int(labeler.n_teachers_),
            "asked": int(labels.n_asked),
            "answered": int(np.sum(labels.answered)),
            "labels_only": labeler.private == "labels",
            "by_person": rows.ids is not None,
        },
        "releases": [privacy.to_dict()],
        **paid_from(durable.ledger, privacy.entries[0].label),
    }
    write_student(folder, student, schema.to_dict(), facts, overwrite=True)
    return write_reports(folder, read_student(folder), durable.ledger)
