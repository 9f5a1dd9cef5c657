"""Ordinary learners by short names, for teachers and students of ``tacit label``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import ensemble, linear_model, neighbors, tree
from sklearn.base import clone

from tacit.cli._console import Refused, clean
from tacit.tables import Schema

__all__ = ["learner", "rehearse"]

# What each name is for a target of categories, and for one of numbers
LEARNERS: dict[str, dict[str, Any]] = {
    "boosting": {
        "category": ensemble.HistGradientBoostingClassifier,
        "number": ensemble.HistGradientBoostingRegressor,
    },
    "logistic": {"category": linear_model.LogisticRegression},
    "linear": {"number": linear_model.Ridge},
    "forest": {
        "category": ensemble.RandomForestClassifier,
        "number": ensemble.RandomForestRegressor,
    },
    "knn": {
        "category": neighbors.KNeighborsClassifier,
        "number": neighbors.KNeighborsRegressor,
    },
    "tree": {
        "category": tree.DecisionTreeClassifier,
        "number": tree.DecisionTreeRegressor,
    },
}
# Made-up rows that a teacher is tried on, at most
MOST_REHEARSED = 1000


def learner(
    schema: Schema, name: str, settings: dict[str, Any], option: str, **own: Any
) -> Any:
    """Return the estimator of a name for a schema's target, or refuse it.

    ``option`` is ``--teacher`` or ``--student``, and ``own`` what nobody may set.
    """
    target = schema.target
    assert target is not None  # schema_for has refused others
    kinds = LEARNERS[name]
    if target.kind not in kinds:
        fitting = [n for n, found in LEARNERS.items() if target.kind in found]
        raise Refused(
            f"{option} {name} is not for a {target.kind}, which {target.name!r} is; "
            f"give one of {', '.join(fitting)}."
        )
    found = kinds[target.kind]()
    known = found.get_params()
    given = option.replace("--", "--set-")
    for setting in settings:
        if setting == "random_state" or setting in own:
            raise Refused(f"{given} {setting} is not for that; leave it out.")
        if setting not in known:
            raise Refused(f"{type(found).__name__} has no parameter {setting!r}.")
    fixed = {key: value for key, value in own.items() if key in known}
    found.set_params(**fixed, **settings)
    try:
        found._validate_params()
    except ValueError as error:
        raise Refused(f"{given}: {_first_line(error)}") from None
    return found


def rehearse(estimator: Any, schema: Schema, n_rows: int, option: str) -> None:
    """Refuse a learner that cannot learn from made-up rows, as many as it will get.

    One that fails on real rows is passed over in silence, and its budget is lost.
    """
    target = schema.target
    assert target is not None
    n_rows = max(2, min(n_rows, MOST_REHEARSED))
    low, high = np.array(schema.feature_ranges).T
    # multiples of irrational numbers are spread evenly and never in line
    steps = np.sqrt(np.arange(len(low)) + 2.0)
    X = low + (high - low) * (np.outer(np.arange(n_rows), steps) % 1)
    if target.range is not None:
        y: Any = np.linspace(*target.range, n_rows)
    else:
        labels = np.array(target.labels)
        y = labels[np.arange(n_rows) % len(labels)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(estimator).fit(X, y).predict(X)
    except Exception as error:
        raise Refused(
            f"{option} cannot learn from {n_rows} made-up rows, so that it would fail "
            f"on real ones too: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return clean(lines[0])
