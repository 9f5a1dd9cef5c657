"""Trainings of one estimator on several data sets, by one process or several."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from joblib import Parallel, delayed

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
    # alternating, so that changes over time do not distinguish the sides
    chunks = sorted(
        (
            (start, side, data, seeds[start : start + CHUNK])
            for side, (data, seeds) in enumerate(work)
            for start in range(0, len(seeds), CHUNK)
        ),
        key=lambda chunk: chunk[:2],
    )
    # rows are sent as they are, as in one process a fit may write into them
    runs = Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None)(
        delayed(_train)(subject, data, seeds) for _, _, data, seeds in chunks
    )
    found: list[list[Outcome]] = [[] for _ in work]
    done = 0
    for (_, side, _, _), outcomes in zip(chunks, runs, strict=True):
        found[side] += outcomes
        done += len(outcomes)
        if on_run is not None:
            on_run(done, planned)
    return found
