"""Training and votes of teachers on one and on two processes, and memory.

    python -m benchmarks.ensemble.speed [--quick]

Teachers have rows of the census table Adult. Times are the best of two; a process
uses one core, whatever threads a learner would start. The first training on two
processes has to start them, which is in the column with the start. Beside them are the
same fits in the same processes without this library, which say what the machine has to
give. Memory is the most that one process held beyond what it had before, for the
largest teachers, on Linux.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from benchmarks.ensemble.common import RESULTS
from benchmarks.tables import arguments, markdown
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from tacit.datasets import load
from tacit.ensemble._chunks import chunk_members
from tacit.ensemble._teachers import Teachers, train_teachers
from tacit.ensemble._worker import ClassVoting

JOBS = 2
REPEATS = 2
QUESTIONS = 1000
ROWS_EACH = 170
# The learner whose teachers are large
LARGE = "forest of 100 trees"
LEARNERS = {
    "boosted trees": HistGradientBoostingClassifier(max_iter=50),
    "logistic regression": make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=200)
    ),
    LARGE: RandomForestClassifier(100),
}


class Problem:
    """Rows of Adult, cut for so many teachers."""

    def __init__(self, n_teachers: int) -> None:
        data = load("adult")
        X, y = data.X, data.y
        self.questions = X[:QUESTIONS]
        rows = slice(QUESTIONS, QUESTIONS + n_teachers * ROWS_EACH)
        self.X, self.y = X[rows], y[rows]
        self.voting = ClassVoting(np.unique(y))
        self.seeds = list(range(n_teachers))
        self.chunks: list[NDArray[np.intp]] = chunk_members(
            self.X, self.y, n_teachers, key=bytes(16), neighbors="replace_one"
        )

    def taught(self, learner: Any, n_jobs: int, folder: Path | None = None) -> Teachers:
        return train_teachers(
            learner,
            self.X,
            self.y,
            self.chunks,
            self.voting,
            seeds=self.seeds,
            n_jobs=n_jobs,
            folder=folder,
        )

    def fitted_plainly(self, learner: Any, n_jobs: int) -> None:
        fits = (delayed(_plain)(learner, self.X[c], self.y[c]) for c in self.chunks)
        Parallel(n_jobs)(fits)


def _plain(learner: Any, X: NDArray[Any], y: NDArray[Any]) -> Any:
    return clone(learner).fit(X, y)


def seconds(work: Callable[[], Any]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def best(work: Callable[[int], Any], repeats: int) -> dict[int, float]:
    """Return seconds of work by number of jobs, which take turns on a noisy machine."""
    turns = range(repeats)
    times = [{jobs: seconds(partial(work, jobs)) for jobs in (1, JOBS)} for _ in turns]
    return {jobs: min(turn[jobs] for turn in times) for jobs in (1, JOBS)}


def speed_rows(n_teachers: int, repeats: int) -> Iterator[dict[str, Any]]:
    problem = Problem(n_teachers)
    for name, learner in LEARNERS.items():
        large = name == LARGE
        teach = partial(problem.taught, learner)
        get_reusable_executor().shutdown(wait=True)
        started = seconds(partial(teach, JOBS))
        trained = best(teach, repeats)
        plain = best(partial(problem.fitted_plainly, learner), repeats)
        teachers = teach(JOBS)

        def voted(n_jobs: int, teachers: Teachers = teachers) -> None:
            teachers.n_jobs = n_jobs
            teachers.votes(problem.questions)

        votes = best(voted, repeats)
        yield {
            "learner": name,
            "teachers": n_teachers,
            "rows_each": ROWS_EACH,
            "seconds_1": trained[1],
            "seconds_2": trained[JOBS],
            "times_faster": trained[1] / trained[JOBS],
            "with_the_start": trained[1] / started,
            "plainly_faster": plain[1] / plain[JOBS],
            "votes_1": votes[1],
            "votes_2": votes[JOBS],
            "votes_faster": votes[1] / votes[JOBS],
            "megabytes_in_memory": peak_of(n_teachers, False) if large else None,
            "megabytes_in_folder": peak_of(n_teachers, True) if large else None,
        }


def megabytes(name: str) -> float:
    """Return what Linux says of the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1e3


def measure_peak(n_teachers: int, in_folder: bool) -> float:
    """Return the most megabytes that trained teachers and their votes add."""
    problem = Problem(n_teachers)
    # the most so far was needed to read the table, and is forgotten
    Path("/proc/self/clear_refs").write_text("5")
    before = megabytes("VmRSS")
    with TemporaryDirectory() as position:
        folder = Path(position) / "teachers" if in_folder else None
        problem.taught(LEARNERS[LARGE], 1, folder).votes(problem.questions)
    return megabytes("VmHWM") - before


def peak_of(n_teachers: int, in_folder: bool) -> float:
    # a process of its own, as the most that one held never falls
    command = [sys.executable, "-m", "benchmarks.ensemble.speed", "--peak"]
    asked = json.dumps([n_teachers, in_folder])
    done = subprocess.run([*command, asked], check=True, stdout=subprocess.PIPE)
    return float(done.stdout)


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else list(argv)
    with threadpool_limits(1):
        if argv[:1] == ["--peak"]:
            print(measure_peak(*json.loads(argv[1])))
            return
        quick = arguments(argv, __doc__).quick
        rows = list(speed_rows(*((40, 1) if quick else (250, REPEATS))))
    print(markdown(rows))
    RESULTS.save("speed", rows, quick=quick)


if __name__ == "__main__":
    main()
