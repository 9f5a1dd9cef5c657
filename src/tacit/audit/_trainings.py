"""Trainings of one estimator on several data sets, by one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from multiprocessing import get_context
from typing import Any

from tacit.audit._outcomes import Outcome, failed, observed
from tacit.audit.pairs import Data

__all__ = ["Progress", "trained"]

Progress = Callable[[int, int], None]

CHUNK = 20  # trainings that a worker is given at once


def _train(subject: Any, data: Data, seeds: list[int | None]) -> list[Outcome]:
    outcomes = []
    seeded = "random_state" in subject.get_params(deep=False)
    for seed in seeds:
        model = deepcopy(subject)
        if seeded and seed is not None:
            model.set_params(random_state=seed)
        try:
            model.fit(*data)
        except Exception as error:  # whoever waits for the model sees it too
            outcomes.append(failed(error))
        else:
            outcomes.append(observed(model))
    return outcomes


def trained(
    subject: Any,
    work: list[tuple[Data, list[int | None]]],
    jobs: int,
    on_run: Progress | None,
) -> list[list[Outcome]]:
    """Return the outcomes on each of the data sets, in order."""
    planned = sum(len(seeds) for _, seeds in work)
    # by turns, so that what merely changes with time does not tell the sides apart
    chunks = sorted(
        (
            (side, start, data, seeds[start : start + CHUNK])
            for side, (data, seeds) in enumerate(work)
            for start in range(0, len(seeds), CHUNK)
        ),
        key=lambda chunk: chunk[1],
    )
    found, done = {}, 0
    for place, outcomes in _run(subject, chunks, jobs):
        found[place] = outcomes
        done += len(outcomes)
        if on_run is not None:
            on_run(done, planned)
    return [
        [outcome for key in sorted(found) if key[0] == side for outcome in found[key]]
        for side in range(len(work))
    ]


def _run(
    subject: Any, chunks: list[Any], jobs: int
) -> Iterator[tuple[tuple[int, int], list[Outcome]]]:
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
