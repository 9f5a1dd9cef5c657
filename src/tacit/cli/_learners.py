"""Learners of ``tacit label`` by short names, for teachers and students."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.cli._console import Rejected, clean

if TYPE_CHECKING:
    from tacit.tables import Schema

__all__ = ["LEARNERS", "dry_run_checked", "learner"]

# Classes of scikit-learn by name and kind of target; imported on use, because help
# needs only the names
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
# Default teachers by kind of target
DEFAULT_TEACHERS = {"category": "logistic", "number": "linear"}
# Largest number of synthetic rows of a dry run
MAX_DRY_RUN_ROWS = 1000
# Limits that are too large for few rows, and the divisor of the rows that replaces them
LIMITS = {"min_samples_leaf": 10, "n_neighbors": 2}
# Ways to give a learner more rows
MORE_ROWS = {"--teacher": "use fewer --teachers", "--student": "use more --queries"}
# Relative difference of predictions that count as equal
ROUND_OFF = 1e-9


def learner(
    schema: Schema, name: str | None, settings: dict[str, Any], option: str, **own: Any
) -> Any:
    """Return the estimator with a name, for the target of a schema.

    ``option`` is ``--teacher`` or ``--student``, and ``own`` are parameters that users
    may not set. None stands for the default teacher.
    """
    target = schema.target
    assert target is not None  # checked by schema_for
    name = name or DEFAULT_TEACHERS[target.kind]
    kinds = LEARNERS[name]
    if target.kind not in kinds:
        fitting = [n for n, found in LEARNERS.items() if target.kind in found]
        raise Rejected(
            f"{option} {name} cannot predict {target.name!r}, a {target.kind}; give "
            f"one of {', '.join(fitting)}."
        )
    module, _, kind = kinds[target.kind].partition(".")
    found = getattr(import_module(f"sklearn.{module}"), kind)()
    known = found.get_params()
    given = option.replace("--", "--set-")
    for setting in settings:
        if setting == "random_state" or setting in own:
            raise Rejected(f"{given} {setting} is not possible; leave it out.")
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
    """Return a learner for so many rows, after a trial fit to synthetic rows.

    A learner that fails, or predicts the same for all rows, is rejected here: with real
    rows it would fail silently, and its budget would be lost.
    """
    estimator = _sized(estimator, settings, n_rows)
    n_rows = max(2, min(n_rows, MAX_DRY_RUN_ROWS))
    X, y = _easy_rows(schema, n_rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = _copy(estimator).fit(X, y).predict(X)
    except Exception as error:
        raise Rejected(
            f"{option} cannot learn from {n_rows} synthetic rows, so it would fail on "
            f"real rows too: {_first_line(error)}"
        ) from None
    if _is_constant(predicted):
        raise Rejected(
            f"{option} predicts the same for {n_rows} synthetic rows that are easy to "
            f"distinguish; {MORE_ROWS[option]}, or another {option}."
        )
    return estimator


def _is_constant(predicted: Any) -> bool:
    """Return whether all predictions are equal, up to round-off."""
    if predicted.dtype.kind != "f":
        return len(set(predicted)) == 1
    return bool(np.ptp(predicted) <= ROUND_OFF * np.abs(predicted).max())


def _sized(estimator: Any, settings: dict[str, Any], n_rows: int) -> Any:
    """Return a learner whose limits, unless given, suit so many rows."""
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
        n_rows -= n_rows % len(target.labels)  # equally many of each
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
