"""What a probe found, and the data that probes share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone


@dataclass(frozen=True)
class Evidence:
    """One situation, what a library did in it, and what shows so.

    Parameters
    ----------
    situation
        What was done, in words.
    outcome
        What happened, in words.
    shown_by
        What was measured.
    kept
        Whether the promise of privacy was kept.
    """

    situation: str
    outcome: str
    shown_by: str
    kept: bool


def two_classes():
    """Return forty rows of two classes within norm one."""
    position = np.linspace(-0.7, 0.7, 40)
    return np.c_[position, position[::-1] ** 2], (position > 0).astype(int)


def classes_of_zeros():
    """Return rows of zeros with three classes: all that a model shows is its noise."""
    return np.zeros((30, 2)), np.arange(30) % 3


def _coefficients(model, X, y):
    return clone(model).fit(X, y).coef_.tobytes()


def noise_of_workers(make):
    """Fit in three tasks of two processes what ``make`` returns for a generator."""
    X, y = two_classes()
    states = {"with": np.random.RandomState(0), "without": None}  # noqa: TID251
    different = {}
    for kind, state in states.items():
        model = make(state)
        found = Parallel(n_jobs=2)(
            delayed(_coefficients)(model, X, y) for _ in range(3)
        )
        different[kind] = len(set(found))
    return Evidence(
        "Three tasks of joblib fit a model that holds a seeded generator.",
        "the same noise" if different["with"] == 1 else "noise of their own",
        f"models that differ: {different['with']} of 3; without a generator "
        f"{different['without']}",
        different["with"] == 3,
    )
