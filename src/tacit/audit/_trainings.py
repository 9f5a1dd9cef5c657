"""Trainings of one estimator on two data sets, by one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit.pairs import Data

__all__ = ["Progress", "release", "trained"]

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

CHUNK = 20  # trainings that a worker is given at once


def release(fitted: Any) -> Floats:
    """Return all that a fit publishes, as one vector."""
    if not hasattr(fitted, "coef_"):
        raise ValueError("estimator must have coef_ after fit.")
    parts = [np.ravel(fitted.coef_), np.ravel(getattr(fitted, "intercept_", ()))]
    return np.concatenate(parts).astype(float)


def _train(subject: Any, data: Data, seeds: list[int | None]) -> Floats:
    releases = []
    seeded = "random_state" in subject.get_params(deep=False)
    for seed in seeds:
        model = deepcopy(subject)
        if seeded and seed is not None:
            model.set_params(random_state=seed)
        releases.append(release(model.fit(*data)))
    return np.stack(releases)


def trained(
    subject: Any,
    work: list[tuple[Data, list[int | None]]],
    jobs: int,
    on_run: Progress | None,
) -> list[Floats]:
    """Return the releases of both sides, in order."""
    planned = sum(len(seeds) for _, seeds in work)
    chunks = [
        (side, start, data, seeds[start : start + CHUNK])
        for side, (data, seeds) in enumerate(work)
        for start in range(0, len(seeds), CHUNK)
    ]
    found, done = {}, 0
    for place, releases in _run(subject, chunks, jobs):
        found[place] = releases
        done += len(releases)
        if on_run is not None:
            on_run(done, planned)
    return [
        np.concatenate([found[key] for key in sorted(found) if key[0] == side])
        for side in (0, 1)
    ]


def _run(
    subject: Any, chunks: list[Any], jobs: int
) -> Iterator[tuple[tuple[int, int], Floats]]:
    if jobs == 1:
        for side, start, data, seeds in chunks:
            yield (side, start), _train(subject, data, seeds)
        return
    # fresh processes: a forked one would share the threads of numerical libraries
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        waiting = {
            pool.submit(_train, subject, data, seeds): (side, start)
            for side, start, data, seeds in chunks
        }
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
