"""Additive models as plain data and arrays, and back."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from tacit._estimators import public_range
from tacit.persistence._arrays import Arrays
from tacit.persistence._errors import ModelFileError
from tacit.persistence._linear import labels_from
from tacit.persistence._values import array_to

if TYPE_CHECKING:
    from tacit.additive._columns import Column

__all__ = ["capture_additive", "restore_additive"]


def capture_additive(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the bins and what each of them adds.

    Ranges and categories are saved once, as parameters.
    """
    if tuple(_public_columns(estimator)) != estimator._columns:
        raise ModelFileError(
            "ranges and categories are not those of the fit; set them back, or fit "
            "again."
        )
    bins = estimator._bins
    numeric = [each for each in bins if each.column.is_numeric]
    fitted: dict[str, Any] = {
        "starts": [
            each.starts.tolist() if each.column.is_numeric else None for each in bins
        ],
        "pairs": [[int(k) for k in pair] for pair in estimator._pairs],
    }
    if hasattr(estimator, "classes_"):
        fitted["classes"] = array_to(estimator.classes_, "classes")
    outputs = len(estimator.intercept_)
    return fitted, {
        "intercept": estimator.intercept_,
        "values": np.concatenate([shape.values for shape in estimator.shapes_]),
        "position": np.concatenate([np.zeros(0), *(b.position for b in numeric)]),
        "mass": np.concatenate([each.mass for each in bins]),
        "pair_values": np.concatenate(
            [
                np.zeros((0, outputs)),
                *(pair.values.reshape(-1, outputs) for pair in estimator.pairs_),
            ]
        ),
    }


def restore_additive(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore bins, shapes, pairs and labels of an estimator."""
    # long: one part of the state after another, each checked before it is used
    from tacit.additive._bins import Bins  # noqa: PLC0415 - other models need nothing
    from tacit.additive._model import (  # noqa: PLC0415
        PairShape,
        shape_of_column,
    )

    starts = fitted["starts"]
    if not isinstance(starts, list) or len(starts) != estimator.n_features_in_:
        raise ModelFileError("'starts' must list the bins of each column.")
    columns = tuple(_public_columns(estimator))
    bins_starts = [_starts(given, c) for given, c in zip(starts, columns, strict=True)]
    outputs = 1
    if is_classifier(estimator):
        estimator.classes_ = labels_from(fitted["classes"])
        outputs += len(estimator.classes_) - 1 if len(estimator.classes_) > 2 else 0
    else:
        public_range(estimator.y_range)
    sizes = [
        len(found) + 1 if column.is_numeric else column.n_codes
        for found, column in zip(bins_starts, columns, strict=True)
    ]
    wide = [s - 1 if c.is_numeric else 0 for s, c in zip(sizes, columns, strict=True)]
    pairs = _pairs(fitted["pairs"], len(columns))
    products = [sizes[j] * sizes[k] for j, k in pairs]
    expected: dict[str, tuple[int, ...]] = {
        "intercept": (outputs,),
        "values": (sum(sizes), outputs),
        "position": (sum(wide),),
        "mass": (sum(sizes),),
        "pair_values": (sum(products), outputs),
    }
    if any(arrays[name].shape != shape for name, shape in expected.items()):
        raise ModelFileError("weights.npz does not fit the bins and the classes.")
    position, mass = arrays["position"], arrays["mass"]
    # sums of fractions round
    if any(((part < 0) | (part > 1 + 1e-6)).any() for part in (position, mass)):
        raise ModelFileError("weights.npz holds bins that no fit can give.")
    estimator._columns = columns
    estimator._bins = [
        Bins(column, found, scale if column.is_numeric else np.zeros(len(part)), part)
        for column, found, scale, part in zip(
            columns,
            bins_starts,
            _split(position, wide),
            _split(mass, sizes),
            strict=True,
        )
    ]
    estimator.shapes_ = [
        shape_of_column(each, part)
        for each, part in zip(
            estimator._bins, _split(arrays["values"], sizes), strict=True
        )
    ]
    estimator.intercept_ = arrays["intercept"]
    estimator._pairs = pairs
    estimator.pairs_ = [
        PairShape(
            (columns[j].name, columns[k].name), part.reshape(sizes[j], sizes[k], -1)
        )
        for (j, k), part in zip(
            pairs, _split(arrays["pair_values"], products), strict=True
        )
    ]


def _public_columns(estimator: Any) -> list[Column]:
    """Return the facts about the columns that the parameters state."""
    from tacit.additive._columns import public_columns  # noqa: PLC0415 - as above
    from tacit.preprocessing._columns import columns_of  # noqa: PLC0415

    return public_columns(estimator.ranges, estimator.categories, columns_of(estimator))


def _starts(given: Any, column: Column) -> np.ndarray:
    """Return the first cell of each bin, which follow from the list of categories."""
    from tacit.additive._columns import CELLS  # noqa: PLC0415 - as above

    if not column.is_numeric:
        if given is not None:
            raise ModelFileError("'starts' must be null for columns of categories.")
        return np.arange(column.n_codes, dtype=np.int32)
    known = isinstance(given, list) and all(type(cell) is int for cell in given)
    if not known or given[:1] != [0] or given[-1] >= CELLS:
        raise ModelFileError("'starts' must list cells of each column, from 0.")
    if any(first >= second for first, second in pairwise(given)):
        raise ModelFileError("'starts' must list cells in order.")
    return np.array(given, dtype=np.int32)


def _pairs(given: Any, n_columns: int) -> list[tuple[int, int]]:
    """Return the positions of the columns of each pair."""
    known = isinstance(given, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(type(k) is int for k in pair)
        and 0 <= pair[0] < pair[1] < n_columns
        for pair in given
    )
    if not known or len({tuple(pair) for pair in given}) != len(given):
        raise ModelFileError("'pairs' must list pairs of different columns, each once.")
    return [(pair[0], pair[1]) for pair in given]


def _split(array: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    return np.split(array, list(accumulate(sizes))[:-1]) if sizes else []
