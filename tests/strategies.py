"""Hypothesis strategies, and data sets on which a false bound shows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.convex import Huber, Softmax
from tacit.privacy import Budget, Neighbors

__all__ = [
    "DataPair",
    "adversarial_pairs",
    "budgets",
    "each_relation",
    "neighboring_data",
    "targets",
]

each_relation = pytest.mark.parametrize("neighbors", Neighbors, ids=lambda r: r.name)


@dataclass(frozen=True, eq=False)
class DataPair:
    """Two neighboring data sets, not yet clipped."""

    name: str
    first: tuple[Any, Any]
    second: tuple[Any, Any]


def targets(loss: Any, codes: Any) -> Any:
    """Return whole numbers as targets that ``loss`` takes."""
    codes = np.asarray(codes)
    if isinstance(loss, Softmax):
        return (codes % loss.n_classes).astype(np.int64)
    if isinstance(loss, Huber):
        return np.linspace(-1.0, 1.0, 4)[codes % 4]
    return np.where(codes % 2 == 0, 1.0, -1.0)


def adversarial_pairs(loss: Any, neighbors: Neighbors, x_norm: float = 1.0) -> Any:
    """Return pairs whose changed row is as different as the bounds allow."""
    base = np.array([[0.5, -0.2], [-0.3, 0.4], [0.0, 0.9], [0.1, 0.1]]) * x_norm
    along, huge = np.array([x_norm, 0.0]), np.array([1e6, -1e6]) * x_norm
    rows = {
        "opposite labels": ((along, 0), (along, 3)),
        "opposite features": ((along, 0), (-along, 0)),
        "orthogonal features": ((along, 0), (along[::-1], 1)),
        "zero row": ((along, 1), (np.zeros(2), 1)),
        "huge rows": ((huge, 0), (-huge, 0)),
        "largest floats": ((np.full(2, 1e308), 0), (np.full(2, -1e308), 1)),
    }
    for name, ((x, code), (other, other_code)) in rows.items():
        for others in (base, np.zeros((4, 2)), np.tile(along, (4, 1))):
            codes = np.arange(len(others))
            first = (np.vstack([x, others]), targets(loss, np.r_[code, codes]))
            if neighbors is Neighbors.REPLACE_ONE:
                y = targets(loss, np.r_[other_code, codes])
                yield DataPair(name, first, (np.vstack([other, others]), y))
            else:
                yield DataPair(name, first, (others, targets(loss, codes)))


def budgets(neighbors: Neighbors) -> st.SearchStrategy[Budget]:
    """Return budgets from strict to lax, delta above zero."""
    return st.builds(
        Budget,
        st.floats(0.05, 50.0),
        st.floats(-12.0, -1.0).map(lambda power: 10.0**power),
        st.just(neighbors),
    )


@st.composite
def neighboring_data(draw: Any, loss: Any, neighbors: Neighbors) -> DataPair:
    """Return neighbors of a few rows, with entries of any size."""
    n = draw(st.integers(2, 6))
    entries = st.floats(-1e12, 1e12) | st.floats(-1.0, 1.0)
    X = draw(hnp.arrays(np.float64, (n, 2), elements=entries))
    y = targets(loss, draw(hnp.arrays(np.int64, n, elements=st.integers(0, 11))))
    position = draw(st.integers(0, n - 1))
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        return DataPair(
            "drawn", (X, y), (np.delete(X, position, 0), np.delete(y, position))
        )
    other_X, other_y = X.copy(), y.copy()
    other_X[position] = draw(hnp.arrays(np.float64, 2, elements=entries))
    other_y[position] = targets(loss, draw(st.integers(0, 11)))
    return DataPair("drawn", (X, y), (other_X, other_y))
