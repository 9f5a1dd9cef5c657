"""Students of the benchmark of accuracy: votes in, through a mechanism, scores out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from benchmarks.ensemble.data import Problem
from benchmarks.ensemble.learners import sizes_of, votes_of
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeClassifierCV, RidgeCV

from tacit._random import as_generator
from tacit.ensemble import SmoothedVotes
from tacit.exceptions import PlanError
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms.votes import VoteTerms, vote_mechanism
from tacit.privacy import Budget

SEEDS = (0, 1, 2)
ALPHAS = np.logspace(-3, 5, 25)


def head_of(targets: str) -> Any:
    """Return the ridge student on features."""
    return RidgeCV(ALPHAS) if targets == "votes" else RidgeClassifierCV(ALPHAS)


@lru_cache(maxsize=1)
def students_of(problem: Problem) -> Students:
    """Return the rows of students, which are mapped once."""
    return Students(problem)


class Released:
    """What a mechanism told of the votes of all questions."""

    def __init__(self, n_questions: int, n_teachers: int) -> None:
        self.answered = np.zeros(n_questions, dtype=bool)
        self.places = np.zeros(n_questions, dtype=np.intp)
        self.histograms: list[np.ndarray] = []
        self.n_teachers = n_teachers

    @property
    def shares(self) -> np.ndarray:
        return np.array(self.histograms) / self.n_teachers


class Students:
    """Scores of students on the rows of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        plain = problem.X_pool, problem.X_validation, problem.X_test
        seen = problem.student_map.transform
        self.rows = {"ridge": tuple(map(seen, plain)), "smoothed": plain}

    def scores(
        self, released: Released, student: str, targets: str
    ) -> tuple[float, float]:
        """Return the accuracy on validation and on test rows."""
        pool, *others = self.rows[student]
        answered, kept = released.answered, released.places[released.answered]
        if student == "smoothed":
            model = SmoothedVotes().fit(pool, released.shares)
        elif targets == "votes":
            model = head_of(targets).fit(pool, released.shares)
        elif len(np.unique(kept)) < 2:
            # a student that was told one class, or nothing at all
            only = kept[0] if len(kept) else 0
            model = DummyClassifier(strategy="constant", constant=only)
            model.fit(pool, np.full(len(pool), only))
        else:
            model = head_of(targets).fit(pool[answered], kept)
        found = [model.predict(X) for X in others]
        if targets == "votes":
            found = [shares.argmax(axis=1) for shares in found]
        places = [
            np.searchsorted(self.problem.classes, y)
            for y in (self.problem.y_validation, self.problem.y_test)
        ]
        right = [float((f == y).mean()) for f, y in zip(found, places, strict=True)]
        return right[0], right[1]


def released_of(mechanism: Any, votes: np.ndarray, seed: int) -> Released:
    """Ask a mechanism all questions, or as many as it answers."""
    rng = as_generator(seed)
    found, state = Released(*votes.shape), mechanism.init(rng)
    for place, own in enumerate(votes):
        if mechanism.remaining(state).ended:
            break
        state, answer = mechanism.step(state, own, rng)
        if answer.value is not NO_ANSWER:
            found.answered[place], found.places[place] = True, answer.value
            if answer.votes is not None:
                found.histograms.append(answer.votes)
    return found


def line(problem: Problem, learner: str, mechanism: str, **given: Any) -> dict:
    """Return one row of results; what does not apply is empty."""
    fields = {
        "dataset": problem.name,
        "n_rows": problem.n_rows,
        "learner": learner,
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


def replayed(
    problem: Problem,
    learner: str,
    size: int,
    mechanism: str,
    epsilon: float,
    seeds: Sequence[int],
    student: str = "ridge",
) -> list[dict]:
    """Return the lines of one mechanism at one size; none where it is not allowed."""
    n_teachers = problem.n_rows // size
    terms = VoteTerms(
        n_teachers, len(problem.y_pool), len(problem.classes), noise="float"
    )
    budget = Budget(epsilon, problem.delta)
    try:
        asked = vote_mechanism(mechanism, budget, terms)
    except PlanError:
        return []
    votes = votes_of(problem, learner, n_teachers)
    students, rows = students_of(problem), []
    right = np.searchsorted(problem.classes, problem.y_pool)
    for seed in seeds:
        told = released_of(asked, votes, seed)
        good = told.places[told.answered] == right[told.answered]
        for targets in targets_of(mechanism, student):
            validation, accuracy = students.scores(told, student, targets)
            rows.append(
                line(
                    problem,
                    learner,
                    mechanism,
                    n_teachers=n_teachers,
                    epsilon=epsilon,
                    delta=problem.delta,
                    n_queries=len(problem.y_pool),
                    n_answered=int(told.answered.sum()),
                    label_accuracy=float(good.mean()) if len(good) else None,
                    student=student,
                    targets=targets,
                    accuracy=accuracy,
                    seed=seed,
                    rows_per_teacher=size,
                    validation=validation,
                    way="replayed",
                )
            )
    return rows


def targets_of(mechanism: str, student: str) -> tuple[str, ...]:
    """Return what the student may learn from."""
    if student == "smoothed":
        return ("votes",)
    return ("votes", "labels") if mechanism == "gnmax" else ("labels",)


def chosen_first(
    problem: Problem, learner: str, mechanism: str, epsilon: float, quick: bool
) -> list[dict]:
    """Return a line a size, and further seeds of the size that validation chose."""
    rows = []
    for size in sizes_of(learner, quick):
        rows += replayed(problem, learner, size, mechanism, epsilon, SEEDS[:1])
    for targets in sorted({row["targets"] for row in rows}):
        own = [row for row in rows if row["targets"] == targets]
        best = max(own, key=lambda row: row["validation"])
        best["chosen"] = "yes"
        asked = problem, learner, best["rows_per_teacher"], mechanism, epsilon
        again = []
        if targets == "votes":
            again += replayed(*asked, SEEDS[:1], "smoothed")
        if not quick:
            again += replayed(*asked, SEEDS[1:])
        rows += [{**r, "chosen": "yes"} for r in again if r["targets"] == targets]
    return rows
