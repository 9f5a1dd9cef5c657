"""Checks of scikit-learn's trees from untrusted files.

Compiled code follows branches without a check, so a forged tree could read any memory
or loop forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.persistence._errors import ModelFileError

__all__ = ["TREE_TYPES", "check_trees"]

TREE_TYPES = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)
# Modules of estimators that pass their own columns to the trees inside
_SAME_COLUMNS = (
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._forest",
    "sklearn.ensemble._gb",
    "sklearn.ensemble._hist_gradient_boosting",
    "sklearn.ensemble._voting",
    "sklearn.ensemble._weight_boosting",
    "sklearn.tree.",
    "tacit.ensemble.",
)
DEEPEST = 60


def check_trees(estimator: Any) -> None:
    """Raise for an estimator with a tree that no fit can give."""
    for tree, n_columns in _trees(estimator, None, set(), 0):
        try:
            valid = _is_valid(tree, n_columns)
        except Exception:  # the state of a forged tree may be anything
            valid = False
        if not valid:
            raise ModelFileError("The student holds a tree that no fit can give.")


def _trees(
    part: Any, columns: int | None, seen: set[int], depth: int
) -> Iterator[tuple[Any, int | None]]:
    """Yield each tree inside, with the fewest columns that it may be given."""
    if depth > DEEPEST:
        raise ModelFileError("The student is nested too deep.")
    if id(part) in seen or isinstance(part, str | bytes | int | float | None):
        return
    kind = type(part)
    if f"{kind.__module__}.{kind.__qualname__}" in TREE_TYPES:
        yield part, columns
        return
    seen.add(id(part))
    inside: Any = ()
    if isinstance(part, dict):
        inside = part.values()
    elif isinstance(part, list | tuple | set | frozenset):
        inside = part
    elif isinstance(part, np.ndarray):
        inside = part.flat if part.dtype.kind == "O" else ()
    elif hasattr(part, "__dict__"):
        inside = vars(part).values()
        if isinstance(part, BaseEstimator):
            columns = _columns(part, columns)
    for piece in inside:
        yield from _trees(piece, columns, seen, depth + 1)


def _columns(estimator: Any, outer: int | None) -> int | None:
    """Return the fewest columns that are passed on; None where they change."""
    if not type(estimator).__module__.startswith(_SAME_COLUMNS):
        return None
    own = getattr(estimator, "n_features_in_", None)
    known = [int(n) for n in (own, outer) if isinstance(n, Integral)]
    return min(known, default=None)


def _is_valid(tree: Any, columns: int | None) -> bool:
    if type(tree).__name__ == "Tree":
        nodes = tree.__getstate__()["nodes"]
        left, right = nodes["left_child"], nodes["right_child"]
        feature, inner = nodes["feature"], left != -1
        inside = columns is not None and columns <= tree.n_features
        sized = tree.node_count == len(nodes) and tree.value.shape[0] == len(nodes)
    else:
        nodes = tree.nodes
        left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        feature, inner = nodes["feature_idx"], nodes["is_leaf"] == 0
        named = nodes[nodes["is_categorical"] != 0]["bitset_idx"]
        sized = all(
            bits.dtype == np.uint32
            and bits.ndim == 2
            and bits.shape[1] == 8
            and (not len(named) or int(named.max()) < len(bits))
            for bits in (tree.raw_left_cat_bitsets, tree.binned_left_cat_bitsets)
        )
        inside = columns is not None
    n = len(nodes)
    position = np.arange(n)[inner]
    # [student:trees] every branch leads to a later node and an existing column
    onward = all(
        bool(((side[inner] > position) & (side[inner] < n)).all())
        for side in (left, right)
    )
    used = feature[inner]
    return bool(
        n > 0
        and sized
        and inside
        and onward
        and ((used >= 0) & (used < (columns or 0))).all()
    )
