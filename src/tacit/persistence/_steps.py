"""Columns and preprocessing steps as plain data and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit import preprocessing
from tacit.persistence._arrays import Arrays
from tacit.persistence._errors import ModelFileError
from tacit.preprocessing._columns import columns_of, public_ranges

__all__ = [
    "capture_step",
    "columns_from",
    "columns_to",
    "restore_drawn_step",
    "restore_private_step",
    "restore_public_step",
]

MOST_COLUMNS = 2**28
MOST_STEP_COLUMNS = 2**20


def columns_to(estimator: Any) -> dict[str, Any]:
    """Return the number of columns, and their names if any."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
    }


def columns_from(estimator: Any, fitted: dict[str, Any]) -> None:
    """Restore the columns that `columns_to` returned."""
    count, names = fitted["n_features"], fitted["feature_names"]
    if type(count) is not int or not 1 <= count <= MOST_COLUMNS:
        raise ModelFileError("'n_features' must be an integer from 1.")
    estimator.n_features_in_ = count
    if names is None:
        return
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not listed or len(names) != count or len(set(names)) != count:
        raise ModelFileError("'feature_names' must list one name for each column.")
    estimator.feature_names_in_ = np.array(names, dtype=object)


def capture_step(step: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the released or drawn numbers of a step, if any."""
    names = type(step).saved.arrays
    return {}, {
        name: np.asarray(getattr(step, f"{name}_"), dtype=np.float64) for name in names
    }


def restore_public_step(step: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Fit the step again, which reads only the columns."""
    _check_column_count(step)
    names = fitted["feature_names"]
    if names is None:
        step.fit(np.zeros((1, step.n_features_in_)))
        return
    import pyarrow  # noqa: PLC0415 - only steps need a table with names

    step.fit(pyarrow.table({name: [0.0] for name in names}))


def restore_drawn_step(step: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Fit the step again, and restore what was drawn, as the seed is not saved."""
    restore_public_step(step, fitted, arrays)
    for name, array in arrays.items():
        if array.shape != getattr(step, f"{name}_").shape:
            raise ModelFileError("weights.npz does not fit the parameters.")
    _require_possible(step._restored(arrays))


def restore_private_step(step: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore the released numbers; all else follows from the parameters."""
    _check_column_count(step)
    p = step.n_features_in_
    ranges = public_ranges(step.ranges, columns_of(step))
    # checks the parameters and sets them as plain numbers; any number of rows will do
    step._plan(ranges, step.privacy_.guarantee, 2)
    step.ranges_ = ranges
    if any(array.shape != (p,) for array in arrays.values()):
        raise ModelFileError("weights.npz does not fit the features.")
    if isinstance(step, preprocessing.PrivateStandardScaler):
        mean, scale = arrays["mean"], arrays["scale"]
        lows, highs = np.array(ranges).T if step._with_mean else (0.0, 0.0)
        _require_possible(((lows <= mean) & (mean <= highs) & (scale > 0)).all())
        with np.errstate(over="ignore"):  # the limit is then the bound
            step._keep(mean, scale, ranges)
    else:
        step.lower_, step.upper_ = arrays["lower"], arrays["upper"]
        _require_possible((step.lower_ < step.upper_).all())
        step._bound_entries(p, step._largest_entry())


def _require_possible(usable: Any) -> None:
    if not usable:
        raise ModelFileError("weights.npz holds numbers that no fit can give.")


def _check_column_count(step: Any) -> None:
    if step.n_features_in_ > MOST_STEP_COLUMNS:
        raise ModelFileError(f"'n_features' must be at most {MOST_STEP_COLUMNS}.")
