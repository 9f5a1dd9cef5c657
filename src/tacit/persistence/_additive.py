"""Additive models as plain data and arrays, and back."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from tacit._validate import public_range
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
    bins, outputs = estimator._bins, len(estimator.intercept_)
    if _public_columns(estimator, outputs) != estimator._columns:
        raise ModelFileError(
            "ranges, categories and monotone are not those of the fit; set them back, "
            "or fit again."
        )
    names = [each.column.name for each in bins]
    numeric = [each for each in bins if each.column.is_numeric]
    fitted: dict[str, Any] = {
        "starts": [
            each.starts.tolist() if each.column.is_numeric else None for each in bins
        ],
        "pairs": [[int(k) for k in pair] for pair in estimator._pairs],
        "banded": [shape.std is not None for shape in estimator.shapes_],
        "edits": [names.index(edit.column) for edit in estimator.edits_],
    }
    if hasattr(estimator, "classes_"):
        fitted["classes"] = array_to(estimator.classes_, "classes")
    none = np.zeros((0, outputs))
    return fitted, {
        "intercept": estimator.intercept_,
        "values": np.concatenate([shape.values for shape in estimator.shapes_]),
        "position": np.concatenate([np.zeros(0), *(b.position for b in numeric)]),
        "mass": np.concatenate([each.mass for each in bins]),
        "pair_values": np.concatenate(
            [none, *(pair.values.reshape(-1, outputs) for pair in estimator.pairs_)]
        ),
        "std": np.concatenate(
            [none, *(s.std for s in estimator.shapes_ if s.std is not None)]
        ),
        "edit_values": np.concatenate(
            [none, *(part for edit in estimator.edits_ for part in edit[1:])]
        ),
    }


def restore_additive(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore bins, shapes, pairs and labels of an estimator."""
    # long: one part of the state after another, each checked before it is used
    from tacit.additive._bins import Bins  # noqa: PLC0415 - other models need nothing
    from tacit.additive._shapes import (  # noqa: PLC0415
        Edit,
        PairShape,
        shape_of_column,
    )

    starts = fitted["starts"]
    if not isinstance(starts, list) or len(starts) != estimator.n_features_in_:
        raise ModelFileError("'starts' must list the bins of each column.")
    outputs = 1
    if is_classifier(estimator):
        estimator.classes_ = labels_from(fitted["classes"])
        outputs += len(estimator.classes_) - 1 if len(estimator.classes_) > 2 else 0
    else:
        public_range(estimator.y_range)
    columns = _public_columns(estimator, outputs)
    bins_starts = [_starts(given, c) for given, c in zip(starts, columns, strict=True)]
    sizes = [
        len(found) + 1 if column.is_numeric else column.n_codes
        for found, column in zip(bins_starts, columns, strict=True)
    ]
    wide = [s - 1 if c.is_numeric else 0 for s, c in zip(sizes, columns, strict=True)]
    pairs = _pairs(fitted["pairs"], len(columns))
    products = [sizes[j] * sizes[k] for j, k in pairs]
    banded, edits = fitted["banded"], fitted["edits"]
    _check_lists(banded, edits, len(columns))
    banded_sizes = [s for s, known in zip(sizes, banded, strict=True) if known]
    edit_sizes = [sizes[k] for k in edits for _ in ("before", "after")]
    expected: dict[str, tuple[int, ...]] = {
        "intercept": (outputs,),
        "values": (sum(sizes), outputs),
        "position": (sum(wide),),
        "mass": (sum(sizes),),
        "pair_values": (sum(products), outputs),
        "std": (sum(banded_sizes), outputs),
        "edit_values": (sum(edit_sizes), outputs),
    }
    if any(arrays[name].shape != shape for name, shape in expected.items()):
        raise ModelFileError("weights.npz does not fit the bins and the classes.")
    position, mass = arrays["position"], arrays["mass"]
    # sums of fractions round
    unusual = [((part < 0) | (part > 1 + 1e-6)).any() for part in (position, mass)]
    if any(unusual) or (arrays["std"] < 0).any():
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
    bands = iter(_split(arrays["std"], banded_sizes))
    estimator.shapes_ = [
        shape_of_column(each, part, next(bands) if known else None)
        for each, part, known in zip(
            estimator._bins, _split(arrays["values"], sizes), banded, strict=True
        )
    ]
    edited = _split(arrays["edit_values"], edit_sizes)
    estimator.edits_ = [
        Edit(columns[k].name, before, after)
        for k, before, after in zip(edits, edited[::2], edited[1::2], strict=True)
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


def _public_columns(estimator: Any, n_outputs: int) -> tuple[Column, ...]:
    """Return the facts about the columns that the parameters state."""
    from tacit.additive._columns import public_columns  # noqa: PLC0415 - as above
    from tacit.additive._pairs import chosen_pairs  # noqa: PLC0415
    from tacit.additive._shapes import with_monotone  # noqa: PLC0415
    from tacit.preprocessing._columns import columns_of  # noqa: PLC0415

    names = columns_of(estimator)
    columns = public_columns(estimator.ranges, estimator.categories, names)
    pairs = chosen_pairs(estimator.interactions, names, len(names))
    return with_monotone(estimator.monotone, columns, pairs, n_outputs)


def _check_lists(banded: Any, edits: Any, n_columns: int) -> None:
    """Check which shapes have bands, and which were set by hand."""
    known = isinstance(banded, list) and all(type(each) is bool for each in banded)
    if not known or len(banded) != n_columns:
        raise ModelFileError("'banded' must say of each column whether it has a band.")
    known = isinstance(edits, list) and all(type(k) is int for k in edits)
    if not known or not all(0 <= k < n_columns for k in edits):
        raise ModelFileError("'edits' must list positions of columns.")


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
