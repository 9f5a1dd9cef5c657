"""How long plans and calibrations take here and in another checkout, as ratios.

Both are timed in turn on one machine, by processor time, with caches emptied before
every run; the smallest of all runs counts.

    git worktree add /tmp/before 51555a1
    python benchmarks/planning_time.py /tmp/before
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from math import log1p
from pathlib import Path
from time import process_time

from tacit.linear_model import LinearSVC, LogisticRegression, Ridge
from tacit.privacy import (
    Budget,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    PoissonSampled,
    Repeated,
    TiltedMinimum,
    calibrate,
)

HERE = Path(__file__).resolve().parents[1]
ROUNDS, RUNS = 3, 5
ADD = Neighbors.ADD_OR_REMOVE_ONE


def sampled(rate, count, noise):
    return Repeated(PoissonSampled(GaussianNoise(noise), rate), count)


def laplace(count, noise):
    return Repeated(LaplaceNoise(noise), count)


def jobs():
    """Return what is timed, by name."""
    logistic = LogisticRegression(1.0, 1e-6, classes=[0, 1])
    added = LinearSVC(1.0, 1e-6, classes=[0, 1], neighbors="add_or_remove_one")
    ridge = Ridge(1.0, 1e-6, y_range=(-1, 1))
    many, few = partial(sampled, 0.0128, 1562), partial(sampled, 0.01, 100)
    tilted = partial(TiltedMinimum, log1p(0.05))
    return {
        "plan of LogisticRegression": lambda: logistic.plan(30_000, 20),
        "plan of LinearSVC, private count": lambda: added.plan(30_000, 20),
        "plan of Ridge": lambda: ridge.plan(30_000, 20),
        "Gaussian noise": lambda: calibrate(GaussianNoise, Budget(1.0, 1e-9)),
        "tilted minimum": lambda: calibrate(tilted, Budget(1.0, 1e-9)),
        "1562 sampled steps": lambda: calibrate(many, Budget(1.0, 6e-10, ADD)),
        "100 sampled steps": lambda: calibrate(few, Budget(4.0, 1e-6, ADD)),
        "Laplace noise 20 times": lambda: calibrate(
            partial(laplace, 20), Budget(1.0, 1e-6)
        ),
    }


def clear_cache():
    try:
        from tacit.privacy import convolution  # noqa: PLC0415
    except ImportError:  # a version from before it
        return
    convolution.composed.cache_clear()


def seconds(job):
    clear_cache()
    start = process_time()
    job()
    return process_time() - start


def timed_here():
    """Print the seconds of each job as JSON."""
    found = {}
    for name, job in jobs().items():
        job()  # compiles and loads
        found[name] = min(seconds(job) for _ in range(RUNS))
    print(json.dumps(found))


def timed_in(checkout):
    path = os.pathsep.join(map(str, (checkout / "src", HERE)))
    answer = subprocess.run(
        [sys.executable, __file__, "--here"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def main():
    if sys.argv[1:] == ["--here"]:
        timed_here()
        return
    before, now = [], []
    for _ in range(ROUNDS):
        before.append(timed_in(Path(sys.argv[1])))
        now.append(timed_in(HERE))
    print(f"{'':34} before, ms   now, ms   ratio")
    for name in now[0]:
        old, new = (1e3 * min(run[name] for run in runs) for runs in (before, now))
        print(f"{name:34} {old:10.2f} {new:9.2f} {new / old:7.2f}")


if __name__ == "__main__":
    main()
