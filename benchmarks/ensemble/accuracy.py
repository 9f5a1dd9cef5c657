"""Accuracy of students and answered questions against epsilon, on public sets.

``python -m benchmarks.ensemble.accuracy`` takes about 20 minutes on one core. The file
of results is written after each set; ``--sets mnist adult`` measures some sets, and
keeps the lines of others that the same code measured. ``--quick`` takes two minutes, on
fewer rows.

On each set, teachers of two or three kinds learn from private rows and answer for a
public pool; see `benchmarks.ensemble.data` for the rows and
`benchmarks.ensemble.learners` for the teachers. Beside them are the same learners on
all rows of the teachers without privacy, and our private linear model with its
defaults, at the same epsilon and delta, on those rows: in plain columns, and on the
public map, which is fitted to the pool. Delta is one over the squared number of these
rows.

Students are those of `tacit.ensemble.PrivateStudent`: the default one, and a ridge
regression on the public map, whose strength generalized cross-validation chooses from
released answers. They learn noisy shares of votes where these are told, and labels
elsewhere. How many rows a teacher gets is chosen for each line by the accuracy on
private rows that no teacher saw, of one draw of the noise; the choice is not paid for.
Maps, teachers and students were settled before, on another split of the same sets,
whose rows overlap with those here. The test rows are scored once for every size, and
twice, with new noise, for the chosen one.

Votes are kept on the disk, and mechanisms with their exact noise are asked about them.
Some lines are run a second time from end to end, teachers and all.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from time import perf_counter

from benchmarks.ensemble.common import RESULTS
from benchmarks.ensemble.data import MAPPED, PLAIN, PROBLEMS, Problem
from benchmarks.ensemble.learners import (
    alone_of,
    code_of,
    labeler_of,
    private_votes,
    votes_of,
)
from benchmarks.ensemble.replays import (
    GROUPS,
    SEEDS,
    chosen_first,
    line,
    student_of,
    students_of,
    told_of,
)
from benchmarks.tables import markdown
from sklearn.exceptions import ConvergenceWarning

import tacit
from tacit import Seed
from tacit.ensemble import PrivateStudent
from tacit.linear_model import LogisticRegression
from tacit.mechanisms._votes._plans import CLASS_VOTES

EPSILONS, QUICK_EPSILONS = (0.3, 1.0, 3.0, 8.0), (1.0, 8.0)
QUICK_SETS = ("mnist", "acs_income")
# Trees take minutes on all pixels, where they are not private
LEARNERS = {"mnist": ("linear", "neighbors")}
TABLE_LEARNERS = ("linear", "neighbors", "trees")
# Private rows of the run over n, of the sets where one approach overtakes the other
FEWER_ROWS = {"mnist": (3_000, 12_000), "covertype": (5_000, 20_000)}
FEWER_EPSILONS = (1.0, 8.0)
# From end to end: set, learner, mechanism, epsilon. Teachers of these get plain columns
WHOLE = (
    ("adult", "linear", "gnmax", 1.0),
    ("adult", "neighbors", "stable", 8.0),
    ("covertype", "trees", "gnmax", 8.0),
)
# How far the accuracy of a run from end to end may be from that of replayed votes:
# noise alone moves it by about a third of this
AGREE = 0.03
# All code that lines follow from, as it was when it was loaded
CODE = code_of(
    file
    for name in (__file__, tacit.__file__)
    for file in sorted(Path(name).parent.rglob("*.py"))
)


def learners_of(name: str) -> tuple[str, ...]:
    """Return the kinds of teachers of a set."""
    return LEARNERS.get(name, TABLE_LEARNERS)


def without_privacy(problem: Problem) -> Iterator[dict]:
    """Yield learners on all private rows, and the linear one on the public map too."""
    cases = [(learner, PLAIN) for learner in learners_of(problem.name)]
    for learner, columns in [*cases, ("linear", MAPPED)]:
        X, X_test = problem.rows(columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = alone_of(learner).fit(X, problem.y)
        score = float(model.score(X_test, problem.y_test))
        yield line(problem, learner, "none", columns=columns, accuracy=score)


def private_linear(problem: Problem, epsilon: float) -> Iterator[dict]:
    """Yield our linear model, in plain columns and on the public map."""
    for columns in (PLAIN, MAPPED):
        X, X_test = problem.rows(columns)
        for seed in SEEDS:
            model = LogisticRegression(
                epsilon,
                delta=problem.delta,
                classes=problem.classes,
                random_state=Seed(seed),
                x_norm=1.0,
            ).fit(X, problem.y)
            yield line(
                problem,
                "private linear",
                "linear",
                columns=columns,
                epsilon=epsilon,
                delta=problem.delta,
                accuracy=float(model.score(X_test, problem.y_test)),
                seed=seed,
            )


def whole(problem: Problem, beside: dict) -> Iterator[dict]:
    """Yield students of a chosen line, run from end to end with as many teachers."""
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
    labels = labeler.label(problem.X_pool)
    empty = dict.fromkeys(("seed", "validation", "chosen"))
    for name in students_of(beside["mechanism"]):
        student = student_of(name, problem, beside["mechanism"])
        model = PrivateStudent(labeler, student).fit_pool(problem.X_pool, labels)
        found = {
            "student": name,
            "accuracy": float(model.score(problem.X_test, problem.y_test)),
            "way": "end to end",
        }
        yield beside | told_of(problem, labels) | empty | found


def of_set(name: str, quick: bool) -> Iterator[dict]:
    """Yield all lines of a set with all of its rows."""
    problem = PROBLEMS[name](quick)
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    yield from without_privacy(problem)
    for epsilon in epsilons:
        yield from private_linear(problem, epsilon)
    replayed = []
    for learner in learners_of(name):
        for mechanism in CLASS_VOTES:
            for epsilon in epsilons:
                replayed += chosen_first(problem, learner, mechanism, epsilon, quick)
    yield from replayed
    for set_name, *case in () if quick else WHOLE:
        if set_name == name:
            beside = next(row for row in replayed if is_case(row, case))
            yield from whole(problem, beside)


def over_rows(name: str) -> Iterator[dict]:
    """Yield lines of a set with fewer private rows."""
    if name not in FEWER_ROWS:
        return
    problem = PROBLEMS[name](False)
    for n_rows in FEWER_ROWS[name]:
        fewer = problem.with_rows(n_rows)
        for epsilon in FEWER_EPSILONS:
            yield from private_linear(fewer, epsilon)
            for learner in learners_of(name):
                yield from chosen_first(fewer, learner, "gnmax", epsilon, False)


def is_case(row: dict, case: Sequence) -> bool:
    """Return whether a line is the one that was chosen for the first student."""
    found = [row[name] for name in ("learner", "mechanism", "epsilon")]
    first = students_of(row["mechanism"])[0]
    return found == list(case) and (row["student"], row["chosen"]) == (first, "yes")


def refuse_apart(rows: Iterable[dict]) -> None:
    """End where runs from end to end and replayed votes do not agree."""
    scores = groups(rows)
    for key, own in scores.items():
        if key[GROUPS.index("way")] == "end to end":
            beside = scores[tuple("replayed" if k == "end to end" else k for k in key)]
            apart = mean_of(own, "accuracy") - mean_of(beside, "accuracy")
            assert abs(apart) < AGREE, (key, apart)


def groups(rows: Iterable[dict]) -> dict[tuple, list[dict]]:
    """Return the lines that are shown, those together that differ in the seed."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        if row["way"] != "replayed" or row["chosen"] == "yes":
            found.setdefault(tuple(row[name] for name in GROUPS), []).append(row)
    return found


def shown(rows: Iterable[dict]) -> list[dict]:
    """Return a line for each group, with means over seeds."""
    measured = ("n_answered", "label_accuracy", "accuracy")
    return [
        {
            **dict(zip(GROUPS, key, strict=True)),
            **{n: own[0][n] for n in ("rows_per_teacher", "n_teachers", "n_queries")},
            **{name: mean_of(own, name) for name in measured},
        }
        for key, own in groups(rows).items()
    ]


def mean_of(rows: Sequence[dict], name: str) -> float | None:
    """Return the mean of what was measured."""
    values = [row[name] for row in rows if row[name] is not None]
    return mean(values) if values else None


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print a table and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and sets")
    parser.add_argument("--sets", nargs="+", choices=PROBLEMS, help="these alone")
    given = parser.parse_args(argv)
    quick, start = given.quick, perf_counter()
    sets = given.sets or (QUICK_SETS if quick else tuple(PROBLEMS))
    others = [
        row
        for row in ([] if quick else RESULTS.read("accuracy"))
        if row["dataset"] not in sets and (row.get("code"), row["quick"]) == (CODE, "")
    ]
    rows: list[dict] = []

    def keep(name: str, found: Iterable[dict]) -> None:
        rows.extend({**row, "code": CODE} for row in found)
        RESULTS.save("accuracy", [*others, *rows], quick=quick)
        print(f"{name} after {perf_counter() - start:.0f} s", flush=True)

    for name in sets:
        keep(name, of_set(name, quick))
    for name in () if quick else sets:
        keep(f"{name}, fewer rows,", over_rows(name))
    print(markdown(shown(rows)))
    refuse_apart(rows)


if __name__ == "__main__":
    main()
