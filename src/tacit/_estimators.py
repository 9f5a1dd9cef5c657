"""What all estimators share: whole steps, and validation of inputs before a charge.

An estimator checks shapes, parameters and targets, makes a plan, checks that the ledger
can afford it, then checks the values of the features. A failure leaves the estimator
and the ledger as they were. No error quotes a value of the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from tacit._random import check_set_seed
from tacit._validate import at_least
from tacit.data.bounds import canonical
from tacit.data.rows import column_cells, in_columns
from tacit.privacy import Budget, Neighbors

__all__ = [
    "ExplicitSeed",
    "Saved",
    "all_or_nothing",
    "array_of",
    "checked_shape",
    "checked_targets",
    "checked_values",
    "exclusive_step",
    "guaranteed_budget",
    "guaranteed_neighbors",
    "labels_found",
    "listed",
    "numeric",
    "planning_rows",
]

# Types of cells in a table without a type
_NUMBERS = (Real, Decimal, np.bool_, type(None))
# Maximum of expected rows: more do not fit in memory
MOST_EXPECTED = 2**31
# Objects with a step under way. A lock in an object would be shared by its copies
_under_way: dict[int, object] = {}


@dataclass(frozen=True)
class Saved:
    """Fitted state that is saved; an estimator declares it as ``saved``.

    Parts of models, such as penalties and solvers, declare ``saved = True``, as all
    their parameters are saved. A name from a file is looked up among the classes of the
    library that declare either.

    Parameters
    ----------
    form
        Name of the functions of `tacit.persistence` that write and read the state.
    fitted, arrays
        Names of the state besides the names of the columns, as plain data and as
        arrays.
    optional
        Arrays that are saved together or not at all.
    losses
        Losses that the estimator can have minimized; in one against the rest, the
        inner. None for any loss that can be saved.
    private
        Whether it has a privacy report.
    """

    form: str
    fitted: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    losses: tuple[type, ...] | None = ()
    private: bool = True


# wide: an estimator has a parameter for each setting, as scikit-learn has it
# deep: a mixin of all estimators, each of which has the base of its family
class ExplicitSeed:
    """Mixin of estimators whose noise no other code may seed."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a seed must be a `tacit.Seed`, not a plain integer."""
        check_set_seed(type(self).__name__, params.get("random_state"))
        super().set_params(**params)  # type: ignore[misc]
        return self


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator when the block fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def exclusive_step(owner: object) -> Iterator[None]:
    """Reject a step of an object while another step of it is under way.

    Two steps from one state would be two releases, of which only one is charged.
    """
    mine = object()
    try:
        # one atomic operation
        if _under_way.setdefault(id(owner), mine) is not mine:
            raise ValueError(
                f"{type(owner).__name__} is in the middle of a step; take one step "
                "after the other, from one thread."
            )
        yield
    finally:
        if _under_way.get(id(owner)) is mine:
            del _under_way[id(owner)]


def listed(values: Any) -> Any:
    """Return a list as an array of objects, and other containers as they are.

    The type of an array or a column is public. For a list NumPy would choose one that
    depends on all cells: one string among numbers makes strings of all rows.
    """
    values = in_columns(values)
    if hasattr(values, "shape"):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    try:
        return np.asarray(values, dtype=object)
    except Exception:  # different shapes, or a cell's own code; both quote cells
        return np.empty(0, dtype=object)


def array_of(values: Any) -> NDArray[Any]:
    """Return an array of the cells of a column or a table.

    A column of a type that NumPy lacks is an array of objects; NumPy would make it one
    only where a cell is missing.
    """
    values = listed(values)
    columns = getattr(values, "dtypes", None) if hasattr(values, "iloc") else None
    if columns is None:
        return np.asarray(values)
    if values.ndim == 1:
        return column_cells(values)
    if all(isinstance(kind, np.dtype) for kind in columns):
        return np.asarray(values)
    found = np.empty(values.shape, dtype=object)
    for position in range(values.shape[1]):
        found[:, position] = column_cells(values.iloc[:, position])
    return found


def checked_shape(
    estimator: Any,
    X: Any,
    *,
    fitting: bool,
    least_rows: int = 1,
    accept_sparse: bool = False,
) -> tuple[int, int]:
    """Check shape, kind and names of the columns; reads no value.

    Errors of scikit-learn would quote the input. Where the number of rows is private,
    as with ``least_rows=0``, no error has it.
    """
    relation = getattr(estimator, "neighbors", Neighbors.REPLACE_ONE)
    added = fitting and Neighbors.of(relation) is not Neighbors.REPLACE_ONE
    private = added or least_rows == 0
    if sparse.issparse(X) and not accept_sparse:
        raise TypeError(
            f"{type(estimator).__name__} takes no sparse X; call X.toarray() first."
        )
    _reject_mask(X, "X")
    shape = listed(X).shape
    if len(shape) != 2:
        raise ValueError(
            f"X must have 2 dimensions, got {len(shape)}. "
            "Reshape your data to one row a person."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    if private and least_rows > 0:
        if shape[0] == 0:
            raise ValueError("X is empty: at least one row is needed.")
        least_rows = 0
    n_rows = "" if private else shape[0]
    for count, least, unit in (
        (shape[0], least_rows, "sample"),
        (shape[1], 1, "feature"),
    ):
        if count < least:
            raise ValueError(
                f"X has {count} {unit}(s) (shape=({n_rows}, {shape[1]})) while a "
                f"minimum of {least} is required."
            )
    validate_data(estimator, X, skip_check_array=True, reset=fitting)
    return int(shape[0]), int(shape[1])


def checked_values(
    X: Any,
    *,
    accept_sparse: bool = False,
    allow_missing: bool = False,
    finite: bool = True,
    encode: str = "before the fit",
) -> Any:
    """Return ``X`` as finite floats, dense or CSR, or raise.

    Strings, dates and other objects are rejected, even if they could be read as
    numbers; ``encode`` ends that error. With ``finite=False`` any number is accepted.
    """
    rejected = _kind_of_rejection(X)
    if rejected is None and accept_sparse:
        X = canonical(X)
    if rejected is None:
        try:
            with np.errstate(all="ignore"):  # overflow is rejected below
                X = check_array(
                    listed(X),
                    accept_sparse="csr" if accept_sparse else False,
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                    ensure_min_samples=0,
                )
        except Exception:  # also a cell's own code
            rejected = TypeError
    if rejected is not None:  # raised here, without a context that quotes cells
        raise rejected(
            "X must hold numbers only; this argument must be free of strings, dates "
            f"and other objects, so encode them as numbers {encode}."
        )
    stored = X.data if sparse.issparse(X) else X
    if finite and not np.isfinite(stored).all():
        if np.isinf(stored).any():
            raise ValueError(
                "X contains infinity; replace it by a public value beforehand."
            )
        if not allow_missing:
            raise ValueError(
                "X contains NaN; fill missing values with a public value beforehand."
            )
    return X


def _kind_of_rejection(X: Any) -> type[Exception] | None:
    """Return None where all cells are real numbers, booleans or None.

    Otherwise ValueError if the type of a column shows it, and TypeError, as in
    scikit-learn, if only the cells do.
    """
    if sparse.issparse(X):
        kinds, columns = [X.dtype.kind], []
    elif hasattr(X, "iloc"):
        kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
        columns = [X.iloc[:, j] for j, kind in enumerate(kinds) if kind == "O"]
    else:
        array = np.asarray(listed(X))
        kinds, columns = [array.dtype.kind], [array] if array.dtype.kind == "O" else []
    if "c" in kinds:
        raise ValueError("Complex data not supported: X must hold real numbers.")
    if not set(kinds) <= set("biufO" if columns else "biuf"):
        return ValueError
    for column in columns:
        cells = column_cells(column) if hasattr(column, "iloc") else column
        for kind in set(map(type, cells.flat)):
            # timedelta64 is an integer to numpy
            if issubclass(kind, np.timedelta64) or not issubclass(kind, _NUMBERS):
                return TypeError
    return None


def _reject_mask(given: Any, name: str) -> None:
    """Reject masked arrays: what a mask hides would be read."""
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must not be a masked array; mark missing cells by NaN, as "
            "numpy.ma.filled does, or leave such rows out."
        )


def checked_targets(y: Any, n_rows: int, *, labels: bool) -> NDArray[Any]:
    """Return targets as a vector with one for each row, or raise.

    Labels of several kinds are not converted, so that none changes another.
    """
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None; give y."
        )
    if sparse.issparse(y):
        raise ValueError("y must be dense: sparse labels are not supported.")
    _reject_mask(y, "y")
    array: NDArray[Any] = _of_one_kind(y) if labels else array_of(y)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    if array.ndim != 1 and (array.ndim != 2 or array.shape[1] != 1):
        # scikit-learn's own error reveals the number of rows
        raise ValueError("y should be a 1d array, with one target for each row.")
    array = column_or_1d(array, warn=True)
    if len(array) != n_rows:
        raise ValueError(
            "X and y must have as many rows as each other: inconsistent numbers of "
            "samples."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("Input y contains NaN or infinity; leave such rows out.")
    return array


# Types of labels, and the kinds of their arrays
_LABELS: dict[type, str] = {
    bool: "b",
    np.bool_: "b",
    Integral: "iu",
    Real: "f",
    str: "U",
    bytes: "S",
}
# Kinds of arrays that convert no label because of another
_TYPED = {"b", "iu", "f"}


def _of_one_kind(y: Any) -> NDArray[Any]:
    """Return labels as an array that converts none of them.

    Its type is that of the labels if all are booleans, all integers or all floats, and
    object otherwise: an array of strings would drop trailing null characters.
    """
    array = array_of(y)
    if array.dtype.kind != "O":
        return array
    kinds = _kinds(array)
    if len(kinds) != 1 or not kinds <= _TYPED:
        return array
    plain: NDArray[Any] = np.asarray(array.tolist())
    # integers too far apart for one type would come back as floats
    return plain if plain.dtype.kind in kinds.pop() and _same(array, plain) else array


def _same(cells: NDArray[Any], plain: NDArray[Any]) -> bool:
    """Return whether all cells are equal, or both of them missing."""
    return cells.shape == plain.shape and all(
        cell == other or (cell != cell and other != other)
        for cell, other in zip(cells.flat, plain.flat, strict=True)
    )


def _kinds(labels: NDArray[Any]) -> set[Any]:
    """Return the kinds of the labels, or their types if those have no kind."""
    return {
        next((_LABELS[known] for known in _LABELS if issubclass(kind, known)), kind)
        for kind in set(map(type, labels.flat))
    }


def labels_found(y: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels of ``y``, for a fit without public labels."""
    if y.dtype.kind == "O" and len(_kinds(y)) > 1:
        raise ValueError(
            "y must hold labels of one kind, got labels of different kinds; give the "
            "public labels as classes=, or turn all of them into integers or all into "
            "strings."
        )
    with warnings.catch_warnings():
        # whether it warns depends on the labels
        warnings.simplefilter("ignore", UserWarning)
        check_classification_targets(y)
    found = np.unique(y)
    if len(found) < 2:
        raise ValueError("y has one class; pass all public labels as classes=.")
    return found


def numeric(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return targets in float64, or raise an error that quotes none."""
    numbers: NDArray[np.float64] | None = None
    readable = y.dtype.kind in "fiub" or _kind_of_rejection(y) is None
    if readable:
        try:
            numbers = y.astype(np.float64)
        except Exception:  # also a target's own code
            numbers = None  # raised below, without a context that quotes targets
    if numbers is None:
        raise ValueError(
            "y must hold numbers only; encode labels, or use a classifier."
        )
    if not np.isfinite(numbers).all():
        raise ValueError("y contains infinity or NaN; leave such rows out.")
    return numbers


def guaranteed_budget(
    epsilon: float,
    delta: float | None,
    neighbors: str | Neighbors,
    n_rows: int,
    *,
    counted: str = "rows",
) -> Budget:
    """Return the budget, with delta 1/n^2 by default where the row count is public.

    ``counted`` is the name of rows in errors.
    """
    relation = Neighbors.of(neighbors)
    if delta is None:
        if relation is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "delta must be given when neighbors='add_or_remove_one', where the "
                f"number of {counted} is private; 1 / ({counted} you expect)^2 is "
                "usual."
            )
        delta = 1 / int(n_rows) ** 2  # the square of a narrow integer would wrap
    return Budget(epsilon, delta, relation)


def guaranteed_neighbors(model: Any) -> Neighbors:
    """Return the neighbors of a model's guarantee, by default replacement."""
    report = getattr(model, "privacy_", None)
    return Neighbors.REPLACE_ONE if report is None else report.guarantee.neighbors


def planning_rows(
    budget: Budget, n_rows: int, expected_rows: int | None, *, counted: str = "rows"
) -> int:
    """Return the public number of rows that step sizes and penalties are set for."""
    if expected_rows is not None:
        name = f"expected_{counted}"
        at_least(1, **{name: expected_rows})
        if expected_rows > MOST_EXPECTED:
            raise ValueError(f"{name} must be at most 2**31, got {expected_rows!r}.")
        return int(expected_rows)
    if budget.neighbors is Neighbors.REPLACE_ONE:
        return int(n_rows)
    # the usual delta is one over the squared number of rows
    if budget.delta == 0:
        return MOST_EXPECTED
    return int(min(MOST_EXPECTED, max(2, budget.delta**-0.5)))
