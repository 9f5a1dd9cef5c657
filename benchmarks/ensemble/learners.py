"""Learners of the benchmark of accuracy, and the votes of their teachers on the pool.

Votes follow from the rows, the learner, the number of teachers and a seed. They are
kept on the disk, so that each mechanism and each epsilon asks the same teachers, under
a digest of all of these and of the code by which teachers learn.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.ensemble.common import RESULTS
from benchmarks.ensemble.data import Problem
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from tacit._random import secret_key
from tacit.ensemble import PrivateLabeler, _chunks, _worker

VOTES = RESULTS.folder / "votes"
TEACHER_SEED = 0
# Rows of a teacher; trees learn nothing from fewer than sixty
ROWS_PER_TEACHER = (30, 100, 400)
TREE_ROWS = 60
# Code that votes follow from
TEACHING = [Path(module.__file__) for module in (_chunks, _worker)]


def teacher_of(learner: str, problem: Problem) -> Any:
    """Return the learner of a teacher, small as its chunk is."""
    if learner == "trees":
        return HistGradientBoostingClassifier(
            learning_rate=0.3,
            max_iter=10 if len(problem.classes) == 2 else 4,
            max_leaf_nodes=8,
            min_samples_leaf=5,
            early_stopping=False,
        )
    if learner == "linear":
        return LogisticRegression()
    return KNeighborsClassifier(5 if len(problem.classes) == 2 else 1)


def alone_of(learner: str) -> Any:
    """Return the learner of all rows, as it comes."""
    if learner == "trees":
        return HistGradientBoostingClassifier(random_state=0)
    if learner == "linear":
        # enough for the digits that are shown
        return LogisticRegression(max_iter=100)
    return KNeighborsClassifier(10)


def sizes_of(learner: str, quick: bool) -> tuple[int, ...]:
    """Return how many rows a teacher may get."""
    least = TREE_ROWS if learner == "trees" else 0
    sizes = tuple(size for size in ROWS_PER_TEACHER if size >= least)
    return sizes[:2] if quick else sizes


def labeler_of(problem: Problem, learner: str, n_teachers: int, **given: Any) -> Any:
    """Return a labeler whose teachers are those that `votes_of` keeps."""
    return PrivateLabeler(
        teacher_of(learner, problem),
        n_teachers,
        delta=problem.delta,
        classes=problem.classes,
        n_queries=len(problem.y_pool),
        random_state=TEACHER_SEED,
        **given,
    )


def private_votes(labeler: Any, X: np.ndarray) -> np.ndarray:
    """Return the votes themselves, one row a question: they are for us alone."""
    teachers = labeler._private_labeler_state._private_teachers
    return np.ascontiguousarray(teachers.votes(X).T)


def votes_of(problem: Problem, learner: str, n_teachers: int) -> np.ndarray:
    """Return the places that teachers vote for, (questions, teachers)."""
    path = _path(problem, learner, n_teachers)
    if path.is_file():
        return np.load(path)
    X, questions = problem.for_teachers
    labeler = labeler_of(problem, learner, n_teachers).fit(X, problem.y)
    votes = private_votes(labeler, questions).astype(np.int8)
    VOTES.mkdir(parents=True, exist_ok=True)
    # a run that is stopped leaves no half of a file
    written = path.with_suffix(".new.npy")
    np.save(written, votes)
    written.replace(path)
    return votes


def _path(problem: Problem, learner: str, n_teachers: int) -> Path:
    teacher = teacher_of(learner, problem)
    X, questions = problem.for_teachers
    told = sha256(repr((type(teacher), sorted(teacher.get_params().items()))).encode())
    key = secret_key(labeler_of(problem, learner, n_teachers).random_state)
    told.update(f"{n_teachers} {key.hex()} {code_of(TEACHING)}".encode())
    for rows in (X, problem.y, questions):
        told.update(np.ascontiguousarray(rows).tobytes())
    name = f"{problem.name}_{learner}_{n_teachers}_{told.hexdigest()[:16]}.npy"
    return VOTES / name


def code_of(files: Iterable[Path]) -> str:
    """Return a digest of some files of code."""
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
