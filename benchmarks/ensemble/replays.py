"""Students of the benchmark of accuracy: votes in, through a mechanism, scores out.

Votes were cast before. The mechanism, the labels that are made of its answers and the
student are those of the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.ensemble.data import Problem
from benchmarks.ensemble.learners import labeler_of, sizes_of, votes_of
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline

from tacit._random import as_generator
from tacit.ensemble import Labels, PrivateStudent
from tacit.ensemble._answers import collect_labels
from tacit.exceptions import PlanError
from tacit.mechanisms._votes._plans import VOTES, VoteTerms, vote_mechanism
from tacit.privacy import Budget

SEEDS = (0, 1)
ALPHAS = np.logspace(-3, 5, 25)
STUDENTS = ("default", "ridge")
# Lines that are the same in these differ in the seed, or in what was tried, alone
GROUPS = (
    "dataset",
    "n_rows",
    "epsilon",
    "learner",
    "columns",
    "mechanism",
    "student",
    "targets",
    "way",
)


def line(problem: Problem, learner: str, mechanism: str, **given: Any) -> dict:
    """Return one row of results; what does not apply is empty."""
    fields = {
        "dataset": problem.name,
        "n_rows": problem.n_rows,
        "learner": learner,
        "columns": None,
        "mechanism": mechanism,
        "n_teachers": None,
        "epsilon": None,
        "delta": None,
        "n_queries": None,
        "n_answered": None,
        "label_accuracy": None,
        "student": None,
        "targets": None,
        "accuracy": None,
        "seed": None,
        "rows_per_teacher": None,
        "validation": None,
        "chosen": None,
        "way": None,
    }
    assert set(given) <= set(fields)
    return fields | given


def targets_of(mechanism: str) -> str:
    """Return what students learn from: votes where they are told."""
    return "votes" if VOTES[mechanism].mechanism.releases_votes else "labels"


def students_of(mechanism: str) -> tuple[str, ...]:
    """Return the students of a mechanism: that of the library takes its time."""
    return STUDENTS if mechanism == "gnmax" else STUDENTS[-1:]


def student_of(name: str, problem: Problem, mechanism: str) -> Any:
    """Return a student: None for that of the library, or a ridge on the public map."""
    if name == "default":
        return None
    votes = targets_of(mechanism) == "votes"
    ridge = RidgeCV(ALPHAS) if votes else RidgeClassifierCV(ALPHAS)
    return make_pipeline(FrozenEstimator(problem.public_map), ridge)


def voted_before(
    problem: Problem, learner: str, n_teachers: int, mechanism: str
) -> Any:
    """Return a labeler in the state in which its teachers have answered all.

    They did so on rows as teachers get them. Its questions are in plain columns, as if
    each teacher mapped rows itself.
    """
    labeler = labeler_of(problem, learner, n_teachers, mechanism=mechanism)
    labeler.n_features_in_ = problem.X_pool.shape[1]
    labeler.classes_ = np.array(problem.classes)
    labeler.n_teachers_ = n_teachers
    labeler.n_queried_ = len(problem.y_pool)
    return labeler


def released(
    problem: Problem,
    votes: np.ndarray,
    mechanism: str,
    epsilon: float,
    seed: int,
) -> Labels:
    """Ask a mechanism all questions, or as many as it answers."""
    n_queries, n_teachers = votes.shape
    n_classes = len(problem.classes)
    asked = vote_mechanism(
        mechanism,
        Budget(epsilon, problem.delta),
        VoteTerms(n_teachers, n_queries, n_classes),
    )
    rng, answers = as_generator(seed), []
    state = asked.init(rng)
    for own in votes:
        if asked.remaining(state).ended:
            break
        state, answer = asked.step(state, own, rng)
        answers.append(answer)
    n_votes = n_classes if asked.releases_votes else None
    return collect_labels(answers, np.array(problem.classes), n_queries, n_votes)


def told_of(problem: Problem, labels: Labels) -> dict:
    """Return how much was answered, and how much of it is right."""
    good = labels.values[labels.answered] == problem.y_pool[labels.answered]
    return {
        "n_queries": len(problem.y_pool),
        "n_answered": int(labels.answered.sum()),
        "label_accuracy": float(good.mean()) if len(good) else None,
    }


def replayed(
    problem: Problem,
    learner: str,
    size: int,
    mechanism: str,
    epsilon: float,
    seed: int,
    students: Sequence[str],
) -> list[dict]:
    """Return a line for each student; none where the mechanism is not allowed."""
    n_teachers = problem.n_rows // size
    votes = votes_of(problem, learner, n_teachers)
    try:
        labels = released(problem, votes, mechanism, epsilon, seed)
    except PlanError:
        return []
    labeler, rows = voted_before(problem, learner, n_teachers, mechanism), []
    for name in students:
        model = PrivateStudent(labeler, student_of(name, problem, mechanism))
        model.fit_pool(problem.X_pool, labels)
        rows.append(
            line(
                problem,
                learner,
                mechanism,
                columns=problem.teacher_columns,
                n_teachers=n_teachers,
                epsilon=epsilon,
                delta=problem.delta,
                student=name,
                targets=targets_of(mechanism),
                accuracy=float(model.score(problem.X_test, problem.y_test)),
                seed=seed,
                rows_per_teacher=size,
                validation=float(
                    model.score(problem.X_validation, problem.y_validation)
                ),
                way="replayed",
                **told_of(problem, labels),
            )
        )
    return rows


def chosen_first(
    problem: Problem, learner: str, mechanism: str, epsilon: float, quick: bool
) -> list[dict]:
    """Return lines of each size, and further seeds of those that validation chose."""
    rows, again = [], []
    for size in sizes_of(learner, quick):
        asked = problem, learner, size, mechanism, epsilon
        rows += replayed(*asked, SEEDS[0], students_of(mechanism))
    for name in students_of(mechanism) if rows else ():
        own = [row for row in rows if row["student"] == name]
        best = max(own, key=lambda row: row["validation"])
        best["chosen"] = "yes"
        asked = problem, learner, best["rows_per_teacher"], mechanism, epsilon
        for seed in () if quick else SEEDS[1:]:
            again += replayed(*asked, seed, (name,))
    return rows + [{**row, "chosen": "yes"} for row in again]
