"""What every estimator does around a private computation.

Shapes and parameters first, then a plan, then the refusal of what the ledger cannot
pay, then the values, then the charge. What fails on the way leaves the estimator and
the ledger as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from tacit.privacy import Budget, Event, Ledger, Neighbors

__all__ = [
    "all_or_nothing",
    "checked_shape",
    "checked_values",
    "open_account",
    "promised_budget",
]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was when the block fails.

    By then scikit-learn's validation has left its marks on it.
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def checked_shape(
    estimator: Any,
    X: Any,
    *,
    fitting: bool,
    least_rows: int = 1,
    accept_sparse: bool = False,
) -> tuple[int, int]:
    """Check shape, kind and names of the columns, and read no value.

    What scikit-learn says of such input quotes it, so it is refused here, in words
    that do not.
    """
    if sparse.issparse(X) and not accept_sparse:
        raise TypeError(
            f"{type(estimator).__name__} takes no sparse X; call X.toarray() first."
        )
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) != 2:
        raise ValueError(
            f"X must have 2 dimensions, got {len(shape)}. "
            "Reshape your data to one row a person."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    for count, least, unit in (
        (shape[0], least_rows, "sample"),
        (shape[1], 1, "feature"),
    ):
        if count < least:
            raise ValueError(
                f"X has {count} {unit}(s) (shape={tuple(shape)}) while a minimum of "
                f"{least} is required."
            )
    validate_data(estimator, X, skip_check_array=True, reset=fitting)
    return int(shape[0]), int(shape[1])


def checked_values(
    X: Any, *, accept_sparse: bool = False, allow_missing: bool = False
) -> Any:
    """Return ``X`` as floats, dense or CSR, after refusing what is not finite."""
    try:
        X = check_array(
            X,
            accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=0,
        )
    except ValueError as error:
        # its words quote the input, ours do not
        words = "numbers only; encode text before the fit"
        if "omplex" in str(error):
            words = "real numbers. Complex data not supported"
    else:
        stored = X.data if sparse.issparse(X) else X
        if not np.isfinite(stored).all():
            if np.isinf(stored).any():
                raise ValueError(
                    "X contains infinity; replace it by a public value beforehand."
                )
            if not allow_missing:
                raise ValueError(
                    "X contains NaN; fill missing values with a public value "
                    "beforehand."
                )
        return X
    raise ValueError(f"X must hold {words}.")


def promised_budget(
    epsilon: float, delta: float | None, neighbors: str | Neighbors, n_rows: int
) -> Budget:
    """Return the budget, with delta 1/n^2 by default where the row count is public."""
    relation = Neighbors.of(neighbors)
    if delta is None:
        if relation is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "delta must be given when neighbors='add_or_remove_one', where the "
                "number of rows is private; 1 / (rows you expect)^2 is usual."
            )
        delta = 1 / n_rows**2
    return Budget(epsilon, delta, relation)


def open_account(
    ledger: Ledger | None, budget: Budget, event: Event, label: str
) -> Ledger:
    """Return the ledger to charge, or a new one, after refusing an overspend.

    Nothing is charged here: it lets a refusal come before any value is read.
    """
    if ledger is None:
        return Ledger(budget)
    if not isinstance(ledger, Ledger):
        raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
    if not ledger.admits(event, budget):
        # refused in the ledger's own words; what is spent only grows
        ledger.charge(event, label, promise=budget)
    return ledger
