"""Ordinary learners by short names, for teachers and students of ``tacit label``."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.cli._console import Rejected, clean

if TYPE_CHECKING:
    from tacit.tables import Schema

__all__ = ["LEARNERS", "dry_run_checked", "learner"]

# What each name is in scikit-learn, for a target of categories and for one of numbers;
# loaded when it is asked for, as help needs the names alone
LEARNERS: dict[str, dict[str, str]] = {
    "boosting": {
        "category": "ensemble.HistGradientBoostingClassifier",
        "number": "ensemble.HistGradientBoostingRegressor",
    },
    "logistic": {"category": "linear_model.LogisticRegression"},
    "linear": {"number": "linear_model.Ridge"},
    "forest": {
        "category": "ensemble.RandomForestClassifier",
        "number": "ensemble.RandomForestRegressor",
    },
    "knn": {
        "category": "neighbors.KNeighborsClassifier",
        "number": "neighbors.KNeighborsRegressor",
    },
    "tree": {
        "category": "tree.DecisionTreeClassifier",
        "number": "tree.DecisionTreeRegressor",
    },
}
# What a teacher is for a target of each kind unless another is named
DEFAULT_TEACHERS = {"category": "logistic", "number": "linear"}
# Synthetic rows that a teacher is tried on, at most
MAX_DRY_RUN_ROWS = 1000
# Limits that few rows do not meet, which are then one in so many rows
LIMITS = {"min_samples_leaf": 10, "n_neighbors": 2}
# What gives a learner more rows
MORE_ROWS = {"--teacher": "take fewer --teachers", "--student": "ask more --queries"}
# Parts of a number by which predictions that are the same may differ
ROUND_OFF = 1e-9


def learner(
    schema: Schema, name: str | None, settings: dict[str, Any], option: str, **own: Any
) -> Any:
    """Return the estimator of a name for a schema's target, or refuse it.

    ``option`` is ``--teacher`` or ``--student``, and ``own`` what nobody may set. None
    names what a teacher is by default.
    """
    target = schema.target
    assert target is not None  # schema_for has refused others
    name = name or DEFAULT_TEACHERS[target.kind]
    kinds = LEARNERS[name]
    if target.kind not in kinds:
        fitting = [n for n, found in LEARNERS.items() if target.kind in found]
        raise Rejected(
            f"{option} {name} is not for a {target.kind}, which {target.name!r} is; "
            f"give one of {', '.join(fitting)}."
        )
    module, _, kind = kinds[target.kind].partition(".")
    found = getattr(import_module(f"sklearn.{module}"), kind)()
    known = found.get_params()
    given = option.replace("--", "--set-")
    for setting in settings:
        if setting == "random_state" or setting in own:
            raise Rejected(f"{given} {setting} is not for that; leave it out.")
        if setting not in known:
            raise Rejected(f"{type(found).__name__} has no parameter {setting!r}.")
    fixed = {key: value for key, value in own.items() if key in known}
    found.set_params(**fixed, **settings)
    try:
        found._validate_params()
    except ValueError as error:
        raise Rejected(f"{given}: {_first_line(error)}") from None
    return found


def dry_run_checked(
    estimator: Any, settings: dict[str, Any], schema: Schema, n_rows: int, option: str
) -> Any:
    """Return a learner for so many rows, or refuse one that cannot learn from them.

    It is tried on synthetic rows. One that fails on real rows, or says the same of all,
    is passed over in silence, and its budget is lost.
    """
    estimator = _sized(estimator, settings, n_rows)
    n_rows = max(2, min(n_rows, MAX_DRY_RUN_ROWS))
    X, y = _easy_rows(schema, n_rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = _copy(estimator).fit(X, y).predict(X)
    except Exception as error:
        raise Rejected(
            f"{option} cannot learn from {n_rows} synthetic rows, so that it would "
            f"fail on real ones too: {_first_line(error)}"
        ) from None
    if _says_one(said):
        raise Rejected(
            f"{option} says the same of all of {n_rows} synthetic rows that are easy "
            f"to distinguish; {MORE_ROWS[option]}, or another {option}."
        )
    return estimator


def _says_one(said: Any) -> bool:
    """Return whether all predictions are the same, up to round-off of numbers."""
    if said.dtype.kind != "f":
        return len(set(said)) == 1
    return bool(np.ptp(said) <= ROUND_OFF * np.abs(said).max())


def _sized(estimator: Any, settings: dict[str, Any], n_rows: int) -> Any:
    """Return a learner whose limits, unless they are given, so many rows can meet."""
    known = estimator.get_params()
    own = {
        name: max(1, min(known[name], n_rows // parts))
        for name, parts in LIMITS.items()
        if name in known and name not in settings
    }
    return _copy(estimator).set_params(**own)


def _easy_rows(schema: Schema, n_rows: int) -> tuple[Any, Any]:
    """Return synthetic rows whose columns and targets rise together."""
    target = schema.target
    assert target is not None
    if target.labels is not None and n_rows >= 2 * len(target.labels):
        n_rows -= n_rows % len(target.labels)  # as many of each
    position = (np.arange(n_rows) + 0.5) / n_rows
    low, high = np.array(schema.feature_ranges).T
    # multiples of irrational numbers are spread evenly and never in line
    spread = np.outer(np.arange(n_rows), np.sqrt(np.arange(len(low)) + 2.0)) % 1
    X = low + (high - low) * (0.9 * position[:, None] + 0.1 * spread)
    if target.range is not None:
        return X, target.range[0] + position * (target.range[1] - target.range[0])
    labels = np.array(target.labels)
    return X, labels[(position * len(labels)).astype(int)]


def _copy(estimator: Any) -> Any:
    from sklearn.base import clone  # noqa: PLC0415 - keeps the command line light

    return clone(estimator)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return clean(lines[0])
