"""Neighboring data sets, and values, that refute a false guarantee best."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Pair",
    "PrecisionAttack",
    "precision_attack",
    "pushed_pair",
    "relation_of",
    "worst_case_pair",
]

LossKind = Literal["logistic", "hinge", "squared", "huber", "softmax"]
Data = tuple[NDArray[np.float64], NDArray[Any]]

REPLACE, ADD_OR_REMOVE = "replace_one", "add_or_remove_one"


class Pair(NamedTuple):
    """Two neighboring data sets, each as ``(X, y)``."""

    first: Data
    second: Data


def worst_case_pair(
    loss_kind: LossKind,
    n_rows: int,
    n_features: int,
    x_norm: float = 1.0,
    neighbors: str | Enum = REPLACE,
    *,
    y_max: float = 1.0,
    n_classes: int = 3,
) -> Pair:
    """Return the neighbors that a linear model distinguishes best at zero weights.

    Parameters
    ----------
    loss_kind
        ``"logistic"``, ``"hinge"`` (labels -1.0 and 1.0), ``"squared"``, ``"huber"``
        (targets up to ``y_max``) or ``"softmax"`` (class codes).
    n_rows
        Rows of the first data set; under add/remove the second has one fewer.
    n_features
        Columns.
    x_norm
        Length of the row that changes.
    neighbors
        A member of `Neighbors`, or its name in lower case.
    y_max
        Size of the changed target, for the regression losses.
    n_classes
        Number of classes, for softmax.

    Notes
    -----
    **Bound.** Row 0 lies at ``x_norm e_1``; all others lie at zero, where a linear
    loss does not depend on the weights, so they carry no information and no
    curvature to hide behind. The labels of those rows run through all classes, so
    that both data sets have the same label set.

    *Replacement.* Row 0 gets the opposite label, or for softmax the opposite features.
    Its gradient at zero weights changes sign, and no two rows within the bounds have
    gradients there that are further apart: for losses of one margin the distance is ``2
    |derivative(0)| x_norm``, for softmax ``2 sqrt(1 - 1/k) x_norm``. For the hinge
    (rounded over less than one) and for Huber with ``y_max`` at least its threshold
    this is the whole declared sensitivity. The logistic derivative at zero is 1/2, so
    there it is half of it, at every weight: `pushed_pair` comes closer. The squared
    loss attains its bound at zero weights only in the target's part.

    *Add or remove.* Row 0 is present in the first data set and absent from the
    second, which moves the gradient by the length of its own.

    The largest curvature (logistic 1/4, squared 1, softmax 1/2 for two classes) is
    attained at zero weights by the same row, in the direction ``e_1``. The flat parts
    of hinge and Huber have none.
    """
    relation = relation_of(neighbors)
    _check_shape(n_rows, n_features, x_norm)
    if loss_kind not in get_args(LossKind):
        raise ValueError(
            f"loss_kind must be one of {get_args(LossKind)}, got {loss_kind!r}."
        )
    X = np.zeros((n_rows, n_features))
    X[0, 0] = x_norm
    y: NDArray[Any]
    if loss_kind == "softmax":
        y = np.arange(n_rows, dtype=np.int64) % n_classes
    elif loss_kind in ("squared", "huber"):
        y = np.zeros(n_rows)
        y[0] = y_max
    else:
        y = _alternating(n_rows)
    if relation == ADD_OR_REMOVE:
        return Pair((X, y), (X[1:].copy(), y[1:].copy()))
    other_X, other_y = X.copy(), y.copy()
    if loss_kind == "softmax":
        # for k > 2 another class moves the gradient by sqrt(2) x_norm only
        other_X[0] = -X[0]
    else:
        other_y[0] = -y[0]
    return Pair((X, y), (other_X, other_y))


def pushed_pair(
    n_rows: int,
    n_features: int,
    x_norm: float = 1.0,
    neighbors: str | Enum = REPLACE,
    *,
    lean: float = 0.3,
) -> Pair:
    """Return neighbors for the logistic loss at weights far from zero.

    Parameters
    ----------
    n_rows, n_features, x_norm, neighbors
        As in `worst_case_pair`; two features at least.
    lean
        Fraction of the changed row that points against the other rows, in (0, 1).

    Notes
    -----
    **Bound.** The other rows are equal and push the weights along ``e_2``; they are
    common to both sides, so they hide nothing. The changed row is misclassified by
    these weights, with derivative ``s = 1 / (1 + exp(-lean x_norm w_2))``, and its
    replacement is its mirror image in ``e_1``: the gradients are ``2 s sqrt(1 -
    lean^2) x_norm`` apart, which tends to the declared ``2 x_norm`` as ``w_2`` grows
    and ``lean`` shrinks. At zero weights no pair does better than ``x_norm``. It
    pays when there are enough rows for large weights, so with little
    regularization or noise.
    """
    relation = relation_of(neighbors)
    _check_shape(n_rows, n_features, x_norm)
    if n_features < 2:
        raise ValueError(f"n_features must be >= 2, got {n_features!r}.")
    if not 0 < lean < 1:
        raise ValueError(f"lean must be > 0 and < 1, got {lean!r}.")
    y = _alternating(n_rows)
    X = np.zeros((n_rows, n_features))
    X[:, 1] = y * x_norm
    # just inside the bound, so that clipping changes neither mirror image
    across = np.sqrt(1 - lean**2) * (1 - 1e-12)
    X[0, :2] = across * x_norm, -lean * x_norm
    if relation == ADD_OR_REMOVE:
        return Pair((X, y), (X[1:].copy(), y[1:].copy()))
    mirrored = X.copy()
    mirrored[0, 0] = -X[0, 0]
    return Pair((X, y), (mirrored, y.copy()))


@dataclass(frozen=True)
class PrecisionAttack:
    """Outcome of `precision_attack`.

    Parameters
    ----------
    low_fraction, high_fraction
        Fraction of all outputs that are small and too finely spaced to have come from
        the higher value by plain floating-point addition, on each side.
    low_small, high_small
        Fraction of all outputs that are small, on each side.
    conclusive
        Whether both sides gave enough small outputs to judge.
    broken
        Whether fine outputs all but never happen on one side and do on the other, so
        that one such output betrays the value.
    """

    low_fraction: float
    high_fraction: float
    low_small: float
    high_small: float
    conclusive: bool
    broken: bool


def precision_attack(
    release: Callable[[NDArray[np.float64]], ArrayLike],
    low: float = 0.0,
    high: float = 1.0,
    n: int = 100_000,
) -> PrecisionAttack:
    """Look for the rounding of floating-point noise in the outputs of a mechanism.

    Parameters
    ----------
    release
        Maps an array of equal values to as many independent noisy outputs, with
        noise of about the size of ``high``.
    low
        One value, at or near zero.
    high
        The other value, not zero.
    n
        Outputs drawn on each side.

    Notes
    -----
    **Bound.** None: passing proves nothing. A sum ``high + noise`` that falls below
    ``|high| / 4`` comes from noise of at least ``3 |high| / 4``, so it is a multiple
    of the spacing of floats just below ``high``; around zero floating-point noise is
    finer. A sampler that rounds value and noise to one public grid gives both sides
    the same spacing [1]_.

    References
    ----------
    .. [1] Mironov. On significance of the least significant bits for differential
       privacy. CCS 2012.
    """
    if not (np.isfinite(high) and high != 0 and np.isfinite(low)):
        raise ValueError("low and high must be finite and high not zero.")
    if n < 1000:
        raise ValueError(f"n must be >= 1000, got {n!r}.")
    fine, small = zip(
        *(_fine_and_small(release, v, high, n) for v in (low, high)), strict=True
    )
    # fractions of small outputs: a value far away may rightly give few of them
    conclusive = min(small) >= 50
    fractions = sorted(f / max(s, 1) for f, s in zip(fine, small, strict=True))
    broken = conclusive and fractions[1] > 0.1 and fractions[0] < 0.01 * fractions[1]
    return PrecisionAttack(
        low_fraction=fine[0] / n,
        high_fraction=fine[1] / n,
        low_small=small[0] / n,
        high_small=small[1] / n,
        conclusive=conclusive,
        broken=broken,
    )


def _fine_and_small(
    release: Callable[[NDArray[np.float64]], ArrayLike],
    value: float,
    high: float,
    n: int,
) -> tuple[int, int]:
    outputs = np.asarray(release(np.full(n, value)))
    if outputs.shape != (n,):
        raise ValueError(
            f"release must return shape {(n,)} for that input, got {outputs.shape}."
        )
    if outputs.dtype.kind != "f":
        outputs = outputs.astype(float)
    _, exponent = np.frexp(abs(high))
    # half the spacing at 2**(exponent - 1) is the spacing just below it
    unit = np.ldexp(np.finfo(outputs.dtype).eps / 2, int(exponent) - 1)
    small = outputs[np.abs(outputs) < abs(high) / 4]
    # dividing by a power of two is exact
    cells = small / unit
    return int(np.sum(cells != np.round(cells))), int(small.size)


def _alternating(n_rows: int) -> NDArray[np.float64]:
    return np.where(np.arange(n_rows) % 2 == 0, 1.0, -1.0)


def relation_of(neighbors: str | Enum | None) -> str:
    """Return the relation of two data sets, to replace a row unless it is given."""
    # by name, so that this package needs nothing of the one it judges
    name = neighbors.name if isinstance(neighbors, Enum) else str(neighbors or REPLACE)
    if name.lower() not in (REPLACE, ADD_OR_REMOVE):
        raise ValueError(
            f"neighbors must be {REPLACE!r} or {ADD_OR_REMOVE!r}, got {neighbors!r}."
        )
    return name.lower()


def _check_shape(n_rows: int, n_features: int, x_norm: float) -> None:
    if n_rows < 2:
        raise ValueError(f"n_rows must be >= 2, got {n_rows!r}.")
    if n_features < 1:
        raise ValueError(f"n_features must be >= 1, got {n_features!r}.")
    if not (np.isfinite(x_norm) and x_norm > 0):
        raise ValueError(f"x_norm must be > 0 and finite, got {x_norm!r}.")
