"""Which rows count: a fixed rule that sees one row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._suppress_output import attempt
from tacit._validate import at_least, plain

__all__ = ["SparseRows", "kept_rows"]


@dataclass(frozen=True)
class SparseRows:
    """Rows with at most ``k`` entries other than zero, for ``keep``.

    Parameters
    ----------
    k
        Most entries other than zero, the constant feature left out.

    Notes
    -----
    **Bound.** The Gaussian width of such rows of norm one is at most
    ``sqrt(2 k log(e p / k)) + sqrt(k)``: the largest norm of k out of p normals, over
    at most ``(e p / k)^k`` choices [1]_, Theorems 2.5 and 5.6.

    References
    ----------
    .. [1] S. Boucheron, G. Lugosi, P. Massart, "Concentration inequalities", 2013.

    Examples
    --------
    >>> from tacit.streaming import SparseRows
    >>> rule = SparseRows(2)
    >>> rule([0.0, 1.0, 0.0, 3.0]), rule([1.0, 1.0, 1.0, 0.0])
    (True, False)
    """

    k: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, k=self.k)

    def __call__(self, row: Any) -> bool:
        return int(np.count_nonzero(row)) <= self.k

    def width(self, n_features: int) -> float:
        """Return a bound on the Gaussian width of such rows of norm one.

        Parameters
        ----------
        n_features
            Number of columns.
        """
        k = min(self.k, n_features)
        width = sqrt(2 * k * log(e * n_features / k)) + sqrt(k)
        return min(width, sqrt(n_features))


def kept_rows(keep: Any, X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each row whether the rule keeps it; not if the rule fails."""

    def answer(row: NDArray[np.float64]) -> bool:
        # a copy, as a rule that writes into one row must not reach another
        kept = attempt(keep, row.copy())
        return isinstance(kept, bool | np.bool_) and bool(kept)

    return np.array([answer(row) for row in X], dtype=bool)
