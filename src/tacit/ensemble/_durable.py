"""Durable labelers: answers are on disk before they are returned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit._estimators import exclusive_step
from tacit._resumable.files import placed
from tacit._resumable.folder import LockedFolder
from tacit._resumable.record import (
    RecordKind,
    damaged,
    estimator_string,
    public_parameters,
)
from tacit._state import StateDamaged, dumped, loaded
from tacit.ensemble._answers import FitStart, LabelerState, Labels
from tacit.ensemble._labeler import PrivateLabeler
from tacit.ensemble._labeler_plan import LabelerPlan, plan_labeler, voting_of
from tacit.ensemble._rows import (
    TrainingRows,
    as_rows,
    checked_rows,
    one_row,
    teacher_seeds,
)
from tacit.ensemble._teachers import LazyTeachers, TeachersLost
from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.mechanisms._votes._base import Remaining, VoteAnswer
from tacit.privacy import Ledger
from tacit.privacy.report import Entry

__all__ = ["DurableLabeler"]

TEACHERS = "teachers"
# Answers per file; those after the last complete file are in the record
ANSWERS_PER_FILE = 1000
# Parameters that may differ after a restart, as they change no answer
MAY_DIFFER = ("n_jobs", "verbose")

# The fit is the first step, and each query is one
LABELER = RecordKind(
    noun="labeler",
    parameter="labeler",
    format="tacit labeler",
    stepped={
        "n_rows": (int,),
        "classes": (tuple, type(None)),
        "class_type": (str,),
        "rows": (bytes,),
        "answers": (dict,),
    },
)


class DurableLabeler(LockedFolder):
    """A `PrivateLabeler` in a folder, which resumes after a restart.

    Parameters
    ----------
    labeler
        An unfitted `PrivateLabeler`, with the same parameters each time, except
        ``n_jobs`` and ``verbose``. Its ``random_state`` is used at the first fit only.
        It answers through this object only; after `close` it contains the released
        answers and cannot answer more.
    folder
        Folder of the teachers and the state. It is secret: whoever reads it has models
        of few rows each, and the key of the noise. Only its owner can read it: an
        existing folder is restricted to its owner, or rejected where this is not
        possible. Teachers are pickles: open only a folder that you wrote.
    ledger
        Ledger to charge at the first fit; None creates one for this labeler. After a
        restart, the same or None.

    Notes
    -----
    **Guarantee.** Answers are written and flushed before they can be read. A process
    that is killed leaves all its answers; queries that were not answered get the same
    noise when they are repeated. A restart resets neither the counts of answers nor the
    noise of a threshold. The charge carries an identity that was on disk before it, so
    that it is made once. One process at a time locks the folder. See the page on
    labelers among the guarantees.

    A copy of the folder is another labeler with the same past. Different queries to
    both spend twice, and the charge covers one of them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tacit.ensemble import DurableLabeler, PrivateLabeler
    >>> X, y = make_blobs(600, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> def labeler():
    ...     return PrivateLabeler(GaussianNB(), 20, 4.0, 1e-5, classes=[0, 1])
    >>> with TemporaryDirectory() as folder:
    ...     with DurableLabeler(labeler(), folder + "/ward") as durable:
    ...         first = durable.fit(X[100:], y[100:]).label(X[:3])
    ...     # another process resumes where this one stopped, without the rows
    ...     with DurableLabeler(labeler(), folder + "/ward") as durable:
    ...         print(durable.n_queried, list(durable.labels) == list(first))
    3 True
    """

    _kind = LABELER
    _model: PrivateLabeler
    _resumed = "_private_labeler_state"

    def __init__(
        self,
        labeler: PrivateLabeler,
        folder: str | os.PathLike[str],
        *,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(labeler, PrivateLabeler):
            raise TypeError(
                f"labeler must be a PrivateLabeler, got {type(labeler).__name__}."
            )
        if hasattr(labeler, "n_queried_"):
            raise ValueError("labeler must not be fitted: its state is in the folder.")
        if labeler.teacher_folder is not None:
            raise ValueError(
                "teacher_folder of the labeler must be None: teachers are stored in "
                "folder."
            )
        self._private_fit: dict[str, Any] = {}
        super().__init__(labeler, folder, ledger)

    @property
    def labeler(self) -> PrivateLabeler:
        """The labeler, with all released answers."""
        return self._model

    @property
    def labels(self) -> Labels:
        """All answers so far, in the order of the queries."""
        return self.labeler.labels_

    @property
    def n_queried(self) -> int:
        """Number of queries whose answers are on disk."""
        shown = self._private_shown
        return 0 if shown is None else shown.n_queried

    @property
    def is_fitted(self) -> bool:
        """Whether the teachers are trained, so that queries can be answered."""
        return self._private_shown is not None

    @property
    def remaining(self) -> Remaining:
        """Remaining queries."""
        return self.labeler.remaining_

    def fit(self, X: Any, y: Any, ids: Any = None) -> DurableLabeler:
        """Charge and train, or resume an interrupted training.

        Where all teachers are trained, it only compares the rows with theirs; queries
        can then be answered without it.

        Parameters
        ----------
        X, y, ids
            As for `PrivateLabeler.fit`, and the same each time.
        """
        with exclusive_step(self):
            self._require_own()
            if self.is_fitted:
                self._check_same_rows(X, y, ids)
                return self
            identity, key = self._drawn()
            entry = self._recorded_charge()
            start = FitStart(
                self._charge_label(identity),
                key,
                self.folder / TEACHERS,
                entry,
                partial(self._begin, identity, key),
                partial(self._check_fit, entry),
                self._keep_fit,
            )
            self._model._fit(X, y, ids, self.ledger, start=start, holder=self)
        return self

    def label(self, X: Any) -> Labels:
        """Label public rows, and return when all answers are on disk.

        Parameters
        ----------
        X
            As for `PrivateLabeler.label`.
        """
        return self._query(as_rows(X))

    def answer(self, x: Any) -> Any:
        """Label one public row, and return when the answer is on disk.

        Parameters
        ----------
        x
            As for `PrivateLabeler.answer`.
        """
        return self._query(one_row(x))[0]

    def _query(self, table: Any) -> Labels:
        with exclusive_step(self):
            self._require_own()
            try:
                return self._model._query(table, holder=self, keep=self._keep)
            except TeachersLost:
                raise StateDamaged(
                    f"Some teachers in {self.folder} are damaged or missing, and "
                    "queries cannot be answered without them: restore a complete copy "
                    "of the folder; all answers so far are in labels."
                ) from None

    def _charge_label(self, identity: str) -> str:
        return f"{self._model._charge} {self._kind.noun} {identity}"

    def _parameters(self) -> dict[str, str]:
        given = public_parameters(self._model)
        given["estimator"] = estimator_string(self._model.estimator)
        return {name: part for name, part in given.items() if name not in MAY_DIFFER}

    def _check_same_rows(self, X: Any, y: Any, ids: Any) -> None:
        # a clone, as the checks set attributes on it
        probe = clone(self._model)
        rows = checked_rows(probe, X, y, ids)
        planned = plan_labeler(probe, len(rows), rows.classes)
        digest = rows.learnable(probe).digest(
            planned, probe.estimator, self._private_key
        )
        if digest != self._private_fit["rows"]:
            raise ValueError(
                "X, y and ids must be those that the teachers in the folder were "
                "trained on; start a labeler in another folder for others, which is "
                "charged again."
            )

    def _check_fit(
        self, entry: Entry | None, planned: LabelerPlan, rows: TrainingRows
    ) -> None:
        """Raise where an earlier charge had another plan; classes must be saved."""
        if entry is not None and entry.event != planned.event:
            raise ValueError(
                "X and y must have as many rows, and labels of the same classes, as "
                "those that this labeler was charged for, before it was interrupted."
            )
        try:
            dumped(_listed(rows.classes))
        except TypeError:
            raise ValueError(
                "classes must be strings, numbers or booleans to be saved in a folder."
            ) from None

    def _keep_fit(self, state: LabelerState, rows: TrainingRows) -> None:
        """Save a labeler before its first query."""
        classes = rows.classes
        self._private_fit = {
            "n_rows": len(rows),
            "classes": _listed(classes),
            "class_type": "" if classes is None else classes.dtype.str,
            "rows": state._private_digest,
        }
        self._write(state, [])

    def _keep(self, state: LabelerState, answers: list[VoteAnswer]) -> None:
        """Save answers before they are returned."""
        if answers:
            self._write(state, [*self._model._answers, *answers])

    def _write(self, state: LabelerState, answers: list[VoteAnswer]) -> None:
        before = self.n_queried // ANSWERS_PER_FILE
        for piece in range(before, len(answers) // ANSWERS_PER_FILE):
            # [ensemble:pieces] before the record that counts on them
            own = answers[piece * ANSWERS_PER_FILE : (piece + 1) * ANSWERS_PER_FILE]
            placed(self._piece(piece), dumped(arrays_of(own)))
        assert self.identity is not None  # begun before the fit
        self._write_record(
            self.identity,
            state._private_key,
            n_steps=1 + state.n_queried,
            **self._facts(state.planned),
            **self._private_fit,
            digest=state._private_digest,
            answers=arrays_of(
                answers[len(answers) // ANSWERS_PER_FILE * ANSWERS_PER_FILE :]
            ),
            state=state._private_state,
        )
        self._private_shown = state

    def _piece(self, piece: int) -> Path:
        return self.folder / f"answers-{piece}"

    def _planned(self, found: dict[str, Any]) -> LabelerPlan:
        return plan_labeler(self._model, found["n_rows"], self._classes(found))

    def _restore(self, planned: LabelerPlan, found: dict[str, Any]) -> None:
        labeler, classes = self._model, self._classes(found)
        teachers = LazyTeachers(
            folder=self.folder / TEACHERS,
            estimator=labeler.estimator,
            voting=voting_of(labeler, classes),
            seeds=teacher_seeds(planned, self._private_key),
            n_jobs=labeler.n_jobs,
            verbose=labeler.verbose,
        )
        n_queried = found["n_steps"] - 1
        answers = self._from_pieces(n_queried // ANSWERS_PER_FILE)
        with self._damage_rejected():
            answers += answers_of(found["answers"])
            if len(answers) != n_queried:
                raise StateDamaged
            state = LabelerState(
                planned,
                n_queried,
                self._private_key,
                found["digest"],
                found["state"],
                teachers,
            )
            labeler._begin(state, classes)
            labeler._show(state, answers)
        fit = ("n_rows", "classes", "class_type", "rows")
        self._private_fit = {name: found[name] for name in fit}
        self._private_shown = state

    def _classes(self, found: dict[str, Any]) -> Any:
        if found["classes"] is None:
            return None
        with self._damage_rejected():
            return np.array(found["classes"], dtype=found["class_type"])

    def _from_pieces(self, n_pieces: int) -> list[VoteAnswer]:
        """Return the answers that are in separate files."""
        answers: list[VoteAnswer] = []
        for piece in range(n_pieces):
            try:
                answers += answers_of(loaded(self._piece(piece).read_bytes()))
            except (OSError, StateDamaged, TypeError, KeyError):
                raise damaged(self._piece(piece), LABELER) from None
        return answers


def _listed(classes: Any) -> tuple[Any, ...] | None:
    return None if classes is None else tuple(classes.tolist())


def arrays_of(answers: Sequence[VoteAnswer]) -> dict[str, Any]:
    """Return answers as arrays, which can be saved."""
    released = [not isinstance(answer.value, NoAnswer) for answer in answers]
    votes = [answer.votes for answer in answers if answer.votes is not None]
    values = [a.value if r else 0 for a, r in zip(answers, released, strict=True)]
    return {
        "released": np.array(released, dtype=bool),
        "values": np.array(values),
        "votes": np.array(votes) if votes else None,
    }


def answers_of(found: dict[str, Any]) -> list[VoteAnswer]:
    """Return the answers that `arrays_of` converted."""
    votes = iter(() if found["votes"] is None else found["votes"])
    answers = []
    for released, value in zip(
        found["released"], found["values"].tolist(), strict=True
    ):
        if released:
            answers.append(VoteAnswer(value, next(votes, None)))
        else:
            answers.append(VoteAnswer(NO_ANSWER))
    return answers
