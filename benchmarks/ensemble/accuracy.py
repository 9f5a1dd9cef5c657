"""Accuracy of students and answered questions against epsilon, on public sets.

``python -m benchmarks.ensemble.accuracy`` takes about 25 minutes on one core; stopped,
it goes on where it was, by what it left under ``results``, which is to be removed where
the code has changed. ``--quick`` takes a minute, on fewer rows.

On each set, teachers of three kinds learn from private rows and answer for a public
pool; see `benchmarks.ensemble.data` for the rows and `benchmarks.ensemble.learners` for
the teachers. Beside them are the same learners on all rows of the teachers without
privacy, and our private linear model with its defaults, at the same epsilon and delta,
on those rows: as they are loaded, and where teachers get them mapped, mapped as well.
Delta is one over the squared number of these rows.

The student is a ridge regression whose strength generalized cross-validation chooses
from released answers: on released labels, or on the noisy shares of votes of all
questions, where these are released; for these, `SmoothedVotes` is beside it. How many
rows a teacher gets is chosen for each line by the accuracy on private rows that no
teacher saw, of one draw of the noise; the choice is not paid for. Maps of features and
the student were settled before, on another split of the same sets. The test rows are
scored once for every size, and three times, with new noise, for the chosen one.

Votes are kept on the disk, and mechanisms draw ordinary floating point noise of the law
of the exact one, which takes a third of the time. Some lines are run a second time from
end to end, teachers and exact noise and all, by `tacit.ensemble.PrivateStudent`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from hashlib import sha256
from statistics import mean
from time import perf_counter
from typing import Any

from benchmarks.ensemble.common import RESULTS, arguments, markdown, save
from benchmarks.ensemble.data import PROBLEMS, Problem
from benchmarks.ensemble.learners import (
    alone_of,
    labeler_of,
    private_votes,
    votes_of,
)
from benchmarks.ensemble.replays import SEEDS, chosen_first, head_of, line
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from tacit.ensemble import PrivateStudent
from tacit.linear_model import LogisticRegression
from tacit.mechanisms.votes import CLASS_VOTES

EPSILONS, QUICK_EPSILONS = (0.3, 1.0, 3.0, 8.0), (1.0, 8.0)
LEARNERS = ("linear", "neighbors", "trees")
PARTS = RESULTS / "accuracy_parts"
# Private rows of the run over n, of the sets where one approach overtakes the other
FEWER_ROWS = {"mnist": (3_000, 12_000), "covertype": (5_000, 20_000)}
FEWER_EPSILONS = (1.0, 8.0)
# From end to end: set, learner, mechanism, epsilon
WHOLE = (
    ("mnist", "linear", "gnmax", 1.0),
    ("mnist", "neighbors", "stable", 8.0),
    ("covertype", "trees", "gnmax", 8.0),
)
# Lines that differ in the seed alone
GROUPS = (
    "dataset",
    "n_rows",
    "epsilon",
    "learner",
    "mechanism",
    "student",
    "targets",
    "way",
)
# How far the accuracy of a run from end to end may be from that of replayed votes:
# noise alone moves it by about a third of this
AGREE = 0.03


def without_privacy(problem: Problem, learner: str) -> list[dict]:
    """Return the learner on all private rows, as teachers get them and as they are."""
    kinds = {learner: (problem.X, problem.X_test)}
    if problem.mapped and learner != "trees":
        kinds[f"{learner}, unmapped"] = (problem.plain, problem.plain_test)
    rows = []
    for kind, (X, X_test) in kinds.items():
        with warnings.catch_warnings():
            # two hundred steps are enough for the digits we show
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = alone_of(learner).fit(X, problem.y)
        score = float(model.score(X_test, problem.y_test))
        rows.append(line(problem, kind, "none", accuracy=score))
    return rows


def private_linear(problem: Problem, epsilon: float, quick: bool) -> list[dict]:
    """Return our linear model, on rows as they are and on those of the teachers."""
    rows = []
    kinds = {"private linear": (problem.plain, problem.plain_test)}
    if problem.mapped:
        kinds["private linear, mapped"] = (problem.X, problem.X_test)
    for kind, (X, X_test) in kinds.items():
        few = quick or kind.endswith("mapped")
        for seed in SEEDS[:1] if few else SEEDS:
            model = LogisticRegression(
                epsilon,
                delta=problem.delta,
                classes=problem.classes,
                random_state=seed,
            ).fit(X, problem.y)
            rows.append(
                line(
                    problem,
                    kind,
                    "linear",
                    epsilon=epsilon,
                    delta=problem.delta,
                    accuracy=float(model.score(X_test, problem.y_test)),
                    seed=seed,
                )
            )
    return rows


def whole(problem: Problem, beside: dict) -> list[dict]:
    """Return a chosen line run from end to end, which must agree with it.

    Where votes are told, the student that the library takes by default is beside it.
    """
    learner, n_teachers = beside["learner"], beside["n_teachers"]
    labeler = labeler_of(
        problem,
        learner,
        n_teachers,
        epsilon=beside["epsilon"],
        mechanism=beside["mechanism"],
    ).fit(problem.X, problem.y)
    kept = votes_of(problem, learner, n_teachers)
    assert (private_votes(labeler, problem.X_pool) == kept).all()
    seen = FrozenEstimator(problem.student_map)
    ridge = make_pipeline(seen, head_of(beside["targets"]))
    told, rows = labeler.label(problem.X_pool), []
    good = told.values[told.answered] == problem.y_pool[told.answered]
    students = {"ridge": ridge}
    if beside["targets"] == "votes":
        students["smoothed"] = None
    for name, student in students.items():
        model = PrivateStudent(labeler, student, targets=beside["targets"])
        model.fit_pool(problem.X_pool, told)
        found = {
            "n_answered": int(told.answered.sum()),
            "label_accuracy": float(good.mean()) if len(good) else None,
            "student": name,
            "accuracy": float(model.score(problem.X_test, problem.y_test)),
            "seed": None,
            "validation": None,
            "chosen": None,
            "way": "end to end",
        }
        rows.append(beside | found)
    assert abs(rows[0]["accuracy"] - beside["accuracy"]) < AGREE, (rows[0], beside)
    return rows


def parts(name: str, quick: bool) -> Iterator[dict]:
    """Yield all lines of a set, from the disk those that are there."""
    problem = PROBLEMS[name](quick)
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    learners = LEARNERS[:2] if quick and problem.mapped else LEARNERS
    for learner in learners:
        yield from part(problem, without_privacy, learner)
    for epsilon in epsilons:
        yield from part(problem, private_linear, epsilon, quick)
    replays = []
    for learner in learners:
        for mechanism in CLASS_VOTES:
            for epsilon in epsilons:
                given = learner, mechanism, epsilon, quick
                replays += part(problem, chosen_first, *given)
    yield from replays
    for learner, mechanism, epsilon in () if quick else named(WHOLE, name):
        beside = next(r for r in replays if is_best(r, learner, mechanism, epsilon))
        yield from part(problem, whole, beside)
    for n_rows in () if quick else FEWER_ROWS.get(name, ()):
        fewer = problem.with_rows(n_rows)
        for epsilon in FEWER_EPSILONS:
            yield from part(fewer, private_linear, epsilon, quick)
            for learner in LEARNERS:
                given = learner, "gnmax", epsilon, quick
                yield from part(fewer, chosen_first, *given)


def named(cases: Sequence[tuple], name: str) -> list[tuple]:
    """Return what follows the name of a set in its cases."""
    return [case[1:] for case in cases if case[0] == name]


def is_best(row: dict, learner: str, mechanism: str, epsilon: float) -> bool:
    """Return whether a line is the chosen one of a case, with votes where they are."""
    return (
        (row["learner"], row["mechanism"], row["epsilon"])
        == (learner, mechanism, epsilon)
        and row["targets"] == ("votes" if mechanism == "gnmax" else "labels")
        and (row["student"], row["chosen"]) == ("ridge", "yes")
    )


def part(problem: Problem, measure: Any, *given: Any) -> list[dict]:
    """Return the lines of one measurement, from the disk where it was made before."""
    called = measure.__name__
    told = repr((problem.name, problem.n_rows, len(problem.y_pool), called, given))
    path = PARTS / f"{called}_{sha256(told.encode()).hexdigest()[:24]}.json"
    if path.is_file():
        return json.loads(path.read_text())
    start = perf_counter()
    rows = measure(problem, *given)
    PARTS.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_text(json.dumps(rows))
    written.replace(path)
    print(
        f"  {problem.name} {called} {given} {perf_counter() - start:.0f} s", flush=True
    )
    return rows


def shown(rows: Sequence[dict]) -> list[dict]:
    """Return a line for each learner, mechanism and kind of targets, means of seeds."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        if row["way"] == "replayed" and row["chosen"] != "yes":
            continue
        key = tuple(row[name] for name in GROUPS)
        groups.setdefault(key, []).append(row)
    return [
        {
            "data set": own[0]["dataset"],
            "rows": own[0]["n_rows"],
            "epsilon": own[0]["epsilon"],
            "learner": own[0]["learner"],
            "mechanism": own[0]["mechanism"],
            "student": own[0]["student"],
            "targets": own[0]["targets"],
            "way": own[0]["way"],
            "rows per teacher": own[0]["rows_per_teacher"],
            "teachers": own[0]["n_teachers"],
            "asked": own[0]["n_queries"],
            "answered": mean_of(own, "n_answered"),
            "labels right": mean_of(own, "label_accuracy"),
            "accuracy": mean_of(own, "accuracy"),
        }
        for own in groups.values()
    ]


def mean_of(rows: Sequence[dict], name: str) -> float | None:
    """Return the mean of what was measured."""
    values = [row[name] for row in rows if row[name] is not None]
    return mean(values) if values else None


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print a table and write the rows."""
    quick = arguments(argv, __doc__).quick
    rows = []
    for name in ("mnist", "acs_income") if quick else PROBLEMS:
        rows += parts(name, quick)
        save("accuracy", rows, quick=quick)
    print(markdown(shown(rows)))


if __name__ == "__main__":
    main()
