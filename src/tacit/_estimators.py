"""What every estimator does around a private computation.

Shapes and parameters first, then a plan, then the refusal of what the ledger cannot
pay, then the values, then the charge. What fails on the way leaves the estimator and
the ledger as they were.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
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
from tacit._validate import at_least, shown
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
    "columns_with_bounds",
    "guaranteed_budget",
    "guaranteed_neighbors",
    "is_untyped",
    "labels_found",
    "listed",
    "numeric",
    "planning_rows",
    "public_range",
]

# What a cell of a table without a type may be
_NUMBERS = (Real, Decimal, np.bool_, type(None))
# What can be iterated and has no rows
_NO_ROWS = (str, bytes, Mapping, Set)
# Rows that anyone plans for: more do not fit in memory
MOST_EXPECTED = 2**31


@dataclass(frozen=True)
class Saved:
    """What a saved model keeps of a fit; an estimator declares it as ``saved``.

    Parts of models, such as penalties and solvers, declare ``saved = True``: all that
    they are made of is kept. A name from a file is looked up among classes of the
    library that declare either.

    Parameters
    ----------
    form
        How the parts below are written and read: a form of `tacit.persistence`.
    fitted, arrays
        Names of what is kept beside the names of the columns, as plain data and as
        arrays.
    optional
        Arrays that are there together or not at all.
    losses
        Losses that the estimator can have minimized; in one against the rest, the
        inner. None for any loss that can be saved.
    private
        Whether it has a report.
    """

    form: str
    fitted: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    losses: tuple[type, ...] | None = ()
    private: bool = True


class ExplicitSeed:
    """Mixin of estimators whose noise no other code may seed."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a seed must be a `tacit.Seed`, not a plain integer."""
        check_set_seed(type(self).__name__, params.get("random_state"))
        super().set_params(**params)  # type: ignore[misc]
        return self


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


def is_untyped(values: Any) -> bool:
    """Whether a container says nothing of the type of its cells, as a list does.

    Text has no cells; a set has no order of rows, and its own depends on all of them.
    """
    typed = hasattr(values, "shape") or hasattr(values, "__array__")
    cells = isinstance(values, Iterable) and not isinstance(values, _NO_ROWS)
    return cells and not typed


def listed(values: Any) -> Any:
    """Return a list as an array of its very cells, and other containers as they are.

    The type of an array or of a column is the caller's, and public. A list has none,
    and NumPy would choose one for all its cells together: one string among numbers
    makes strings of all rows. So cells of a list are read one by one, by whoever takes
    them.
    """
    values = in_columns(values)
    if hasattr(values, "shape"):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    try:
        return np.asarray(values, dtype=object)
    except Exception:  # arrays of several shapes, or a cell's own code, quoting cells
        return np.empty(0, dtype=object)


def array_of(values: Any) -> NDArray[Any]:
    """Return an array of the cells of one column, or of a table.

    A column of a type that NumPy has not is an array of objects, whatever it holds: by
    NumPy it would be one only where a cell is missing.
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
    """Check shape, kind and names of the columns, and read no value.

    What scikit-learn says of such input quotes it, so it is refused here, in words
    that do not. Where the number of rows is private, as it is with ``least_rows=0``,
    no message has it, and a fit takes any but none, which scikit-learn wants refused.
    """
    relation = getattr(estimator, "neighbors", Neighbors.REPLACE_ONE)
    added = fitting and Neighbors.of(relation) is not Neighbors.REPLACE_ONE
    private = added or least_rows == 0
    if sparse.issparse(X) and not accept_sparse:
        raise TypeError(
            f"{type(estimator).__name__} takes no sparse X; call X.toarray() first."
        )
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
            raise ValueError("X must hold rows to fit on.")
        least_rows = 0
    told = "" if private else shape[0]
    for count, least, unit in (
        (shape[0], least_rows, "sample"),
        (shape[1], 1, "feature"),
    ):
        if count < least:
            raise ValueError(
                f"X has {count} {unit}(s) (shape=({told}, {shape[1]})) while a minimum "
                f"of {least} is required."
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
    """Return ``X`` as floats, dense or CSR, after refusing what is not finite.

    Text, dates and other objects are refused in one sentence that quotes none, even
    where they could be read as numbers; ``encode`` says where to make numbers of them.
    With ``finite=False`` any number is taken.
    """
    rejected = _kind_of_rejection(X)
    if rejected is None:
        try:
            with np.errstate(all="ignore"):  # what does not fit is refused below
                X = check_array(
                    listed(X),
                    accept_sparse="csr" if accept_sparse else False,
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                    ensure_min_samples=0,
                )
        except (TypeError, ValueError, ArithmeticError):
            rejected = TypeError
    if rejected is not None:  # raised out here, so that it carries no other's words
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
    """Return None where all cells are real numbers, truth values or None.

    Otherwise it is a ValueError where the type of a column says so, and a TypeError,
    as scikit-learn has it, where only the cells do.
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
            # a span of time is an integer to numpy
            if issubclass(kind, np.timedelta64) or not issubclass(kind, _NUMBERS):
                return TypeError
    return None


def checked_targets(y: Any, n_rows: int, *, labels: bool) -> NDArray[Any]:
    """Return targets as a vector of one a row, or refuse them without showing any.

    Labels of several kinds stay as they were given, so that none changes how another
    is read.
    """
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None; give y."
        )
    if sparse.issparse(y):
        raise ValueError("y must be dense: sparse labels are not supported.")
    array: NDArray[Any] = _of_one_kind(y) if labels else array_of(y)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    if array.ndim != 1 and (array.ndim != 2 or array.shape[1] != 1):
        # in other words scikit-learn's own, which tell the number of rows
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


# Kinds of labels, and those of the arrays that hold them
_LABELS: dict[type, str] = {
    bool: "b",
    np.bool_: "b",
    Integral: "iu",
    Real: "f",
    str: "U",
    bytes: "S",
}
# Kinds whose arrays hold each label whatever the others are
_TYPED = {"b", "iu", "f"}


def _of_one_kind(y: Any) -> NDArray[Any]:
    """Return labels as an array that holds each as it was given.

    Its type is that of the labels where all are truth values, all integers or all
    floats, and object otherwise. An array of strings would drop zeros at their ends,
    and be as wide as the longest.
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
    """Return the kinds of labels that there are, or the type where it has none."""
    return {
        next((_LABELS[known] for known in _LABELS if issubclass(kind, known)), kind)
        for kind in set(map(type, labels.flat))
    }


def labels_found(y: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels of ``y``, for a fit that was given no public ones.

    With public labels nothing but equality with one of them decides about a label.
    """
    if y.dtype.kind == "O" and len(_kinds(y)) > 1:
        raise ValueError(
            "y must hold labels of one kind, got labels of different kinds; give the "
            "public labels as classes=, or turn all of them into integers or all into "
            "strings."
        )
    with warnings.catch_warnings():
        # it warns about labels that look like numbers, which depends on them
        warnings.simplefilter("ignore", UserWarning)
        check_classification_targets(y)
    found = np.unique(y)
    if len(found) < 2:
        raise ValueError(
            "y holds one class; give the public labels as classes= to fit with fewer "
            "labels than there are."
        )
    return found


def numeric(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return targets in float64, or refuse them without showing any."""
    numbers: NDArray[np.float64] | None = None
    readable = y.dtype.kind in "fiub" or _kind_of_rejection(y) is None
    if readable:
        try:
            numbers = y.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            numbers = None  # raised out here, so that it carries no other's words
    if numbers is None:
        raise ValueError("y must hold numbers only.")
    if not np.isfinite(numbers).all():
        raise ValueError("y contains infinity or NaN.")
    return numbers


def public_range(y_range: Any) -> tuple[float, float]:
    """Return the two ends, which the user must know without the data."""
    if y_range is None:
        raise ValueError(
            "y_range must be given: the lowest and highest target there can be, set "
            "without the data."
        )
    try:
        ends = tuple(y_range)
    except TypeError:
        ends = ()
    real = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or not real or not np.isfinite(ends).all() or ends[0] >= ends[1]:
        raise ValueError(
            "y_range must be two finite numbers, the lower first, got "
            f"{shown(y_range)}."
        )
    low, high = map(float, ends)
    if not (np.isfinite(high - low) and (high - low) > 1e-9 * max(abs(low), abs(high))):
        raise ValueError(
            "y_range must be finite in width and wider than round-off, "
            f"got {shown(y_range)}."
        )
    return low, high


def columns_with_bounds(estimator: Any, n_features: int) -> int | list[Any]:
    """Return the names of the features that have bounds, or how many there are."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == n_features:
        return list(names)
    bounds = estimator.feature_bounds
    if isinstance(bounds, Mapping) and not hasattr(estimator, "n_features_in_"):
        # a plan before any fit: the columns will be those that have bounds
        if len(bounds) == n_features:
            return list(bounds)
        raise ValueError(
            f"feature_bounds has {len(bounds)} entries, and the plan is for "
            f"{n_features} features; give one for each."
        )
    return n_features


def guaranteed_budget(
    epsilon: float,
    delta: float | None,
    neighbors: str | Neighbors,
    n_rows: int,
    *,
    counted: str = "rows",
) -> Budget:
    """Return the budget, with delta 1/n^2 by default where the row count is public.

    What is ``counted`` is called so in messages.
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
    """Return the relation of what a model promises, or replacement for others."""
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
    # delta is chosen well below one over the rows: the usual choice gives them back
    if budget.delta == 0:
        return MOST_EXPECTED
    return int(min(MOST_EXPECTED, max(2, budget.delta**-0.5)))
