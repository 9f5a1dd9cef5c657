"""Losses and penalties from outside this library, which keep nothing of a run."""

from collections.abc import Callable
from copy import copy, deepcopy
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._execution import attempt
from tacit._validate import at_least, one_of, plain_number, shown
from tacit.convex._protocols import Array, Regularizer

__all__ = [
    "ForeignLoss",
    "ForeignPenalty",
    "check_base",
    "given_loss",
    "guarded",
    "guarded_penalty",
    "is_foreign",
    "is_outside",
    "unshared",
]

# Bounds on derivatives and curvatures are taken to be within these, so that squares and
# sums of what they bound are normal floats
LEAST, LARGEST = 1e-60, 1e100
TARGETS = ("numbers", "labels", "codes")
METHODS = (
    *("value", "derivative", "curvature"),
    *("max_derivative", "max_curvature", "max_trace", "derivative_rank"),
)
# Margins of the public rows that a loss is tried on
TRIED = (0.0, 1.0, -1.0)


def is_outside(thing: object) -> bool:
    """Return whether this is of a class that is defined outside this library."""
    return type(thing).__module__.partition(".")[0] != "tacit"


def is_foreign(loss: object) -> bool:
    """Return whether a loss, or the one inside it, is of a class outside this library.

    What such a class states about itself is not proved: solvers clip to it, or their
    reports list it as an assumption.
    """
    loss = given_loss(loss)
    return is_outside(loss) or is_outside(getattr(loss, "loss", loss))


def given_loss(loss: Any) -> Any:
    """Return a loss as it was given to a problem."""
    return loss.given if isinstance(loss, ForeignLoss) else loss


def guarded(loss: Any, y_range: tuple[float, float]) -> Any:
    """Return a loss of this library as it is, and any other as a `ForeignLoss`."""
    if isinstance(loss, ForeignLoss) or not is_foreign(loss):
        return loss
    return ForeignLoss(loss, y_range)


def guarded_penalty(regularizer: Any) -> Any:
    """Return a penalty of this library as it is, and any other as a `ForeignPenalty`.

    One that derives from a penalty of this library is rejected.
    """
    check_base(regularizer)
    if not is_outside(regularizer):
        return regularizer
    return ForeignPenalty(regularizer)


def check_base(regularizer: Any, name: str = "penalty") -> None:
    """Reject a penalty or set of others that derives from one of this library.

    Proofs and closed forms for the base are not for what a subclass computes.
    """
    if not is_outside(regularizer):
        return
    for base in type(regularizer).__mro__:
        module = base.__module__
        if module.startswith("tacit.convex.") and module != Regularizer.__module__:
            raise ValueError(
                f"{name} must not derive from {base.__name__}, whose proofs do not "
                f"hold for {type(regularizer).__name__}; write a class without that "
                f"base, or use {base.__name__} itself."
            )


def unshared(loss: Any) -> Any:
    """Return a loss for a run, whose private reaches must not stay with the problem."""
    if not isinstance(loss, ForeignLoss):
        return loss
    # [losses:private]
    apart = copy(loss)
    apart._steepest = dict(loss._steepest)
    return apart


def _check_copied(given: Any, what: str) -> None:
    """Reject what cannot be copied, as each evaluation needs a copy."""
    try:
        deepcopy(given)
    except Exception as error:
        raise ValueError(
            f"{what} must be an object that copy.deepcopy copies, got "
            f"{type(error).__name__} for {type(given).__name__}; leave out what cannot "
            "be copied."
        ) from error


def _check_form(given: Any) -> None:
    """Reject what is no loss, or one for other numbers of margins."""
    if isinstance(given, type):
        raise ValueError(
            f"loss must be an object, got the class {given.__name__}; write "
            f"{given.__name__}() for an object of it."
        )
    name, outputs = type(given).__name__, getattr(given, "n_outputs", None)
    needed = METHODS if outputs == 1 else (*METHODS, "curvature_product")
    missing = [m for m in needed if not callable(getattr(given, m, None))]
    if missing:
        raise ValueError(
            f"loss must have the methods of a loss of tacit.convex, got {name} without "
            f"{', '.join(missing)}; write them."
        )
    targets = getattr(given, "targets", None)
    one_of(TARGETS, **{f"targets of {name}": targets})
    at_least(1, **{f"n_outputs of {name}": outputs})
    if targets != "codes" and outputs != 1:
        raise ValueError(
            f"n_outputs of {name} must be 1 for targets={targets!r}, got {outputs}; "
            "several margins are for 'codes'."
        )


class ForeignLoss:
    """A loss from outside this library, as problems hold it.

    It is no instance of the class of the given loss, so that no closed form for a loss
    of the library is taken for that of a subclass. It prints as the given loss does,
    and equals it.

    Parameters
    ----------
    given
        The loss. It is tried on three public rows.
    y_range
        Range of the targets of these rows, if they are numbers.

    Notes
    -----
    **Bound.** Constants are read once, so that a run has those of its plan
    (`[losses:once]`); answers at private margins go with the run (`[losses:private]`).
    Whatever the methods return, a result is a new array of float64 of the shape of the
    margins. Rows whose result is not finite are zero, and so are rows on which the loss
    fails or returns another shape, whatever the others are (`[losses:shape]`,
    `[losses:failure]`); nothing is raised or printed. Curvatures are between zero and
    ``max_curvature``, and values within 1e100, so that sums of them are finite. Solvers
    clip derivatives.
    Rows are seen by a copy of the loss, made for one evaluation and dropped
    (`[losses:copy]`): what it keeps in itself reaches no other evaluation, and no
    model.
    """

    def __init__(self, given: Any, y_range: tuple[float, float]) -> None:
        self.given = given
        _check_form(given)
        _check_copied(given, "loss")
        self.targets: str = given.targets
        self.n_outputs = int(given.n_outputs)
        self._curvature = self._stated("max_curvature", given.max_curvature())
        self._trace = self._stated("max_trace", given.max_trace())
        rank = given.derivative_rank()
        at_least(1, **{f"derivative_rank of {type(given).__name__}": rank})
        self._rank = int(rank)
        self._steepest: dict[tuple[float, tuple[float, float]], float] = {}
        self.max_derivative(inf, y_range)  # rejects one that is no number
        self._try(y_range)

    def _stated(self, method: str, value: Any) -> float:
        """Return a constant of the loss as a float, or reject it."""
        number = plain_number(value, method)
        flat = method == "max_derivative"  # which is taken to be above zero
        real = type(number) in (int, float)
        real = real and (number > 0 or (flat and number == 0))
        if not real or not (number <= LARGEST or number == inf):
            raise ValueError(
                f"{method} of {type(self.given).__name__} must return a number "
                f"{'>=' if flat else '>'} 0 and at most {LARGEST:g}, or inf, got "
                f"{shown(value)}; return a bound."
            )
        return float(number)

    def _try(self, y_range: tuple[float, float]) -> None:
        """Reject a loss whose results on three public rows are of another form."""
        n, k, (low, high) = len(TRIED), self.n_outputs, y_range
        y: NDArray[Any] = {
            "numbers": np.array([(low + high) / 2, low, high]),
            "labels": np.array([1.0, -1.0, 1.0]),
            "codes": np.arange(n) % k,
        }[self.targets]
        Z = np.repeat(np.array(TRIED)[:, None], k, axis=1)
        rows = f"{n} rows of targets {y.tolist()} and margins {list(TRIED)}"
        self._try_one("value", rows, (n,), y, Z)
        self._try_one("derivative", rows, (n, k), y, Z)
        self._try_one("curvature", rows, (n, k), y, Z)
        if k > 1:
            self._try_one("curvature_product", rows, (n, k), y, Z, np.ones((n, k)))

    def _try_one(
        self, method: str, rows: str, shape: tuple[int, ...], *arrays: NDArray[Any]
    ) -> None:
        name = f"{method} of {type(self.given).__name__}"
        try:
            called = getattr(deepcopy(self.given), method)
            found = np.asarray(called(*map(np.copy, arrays)), dtype=np.float64)
        except Exception as error:
            raise ValueError(
                f"{name} must return numbers for {rows}, got {type(error).__name__}; "
                "see the error above."
            ) from error
        if found.shape != shape:
            raise ValueError(
                f"{name} must return an array of shape {shape} for {rows}, got shape "
                f"{found.shape}; return a result for each row and margin."
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"{name} must return finite numbers for {rows}, got {found.tolist()}; "
                "give a loss that is finite at all margins."
            )

    def _by_rows(
        self, method: str, y: NDArray[Any], *margins: Array, wide: bool = True
    ) -> Array:
        """Return what a method finds; rows on which it fails count as zero.

        Where it fails on several rows, these are halved until it fails on single rows,
        so that none of them decides over others.
        """
        shape = margins[0].shape if wide else y.shape
        if len(y) == 0:
            return np.zeros(shape)

        def finite() -> Array:
            # [losses:copy] nothing is kept from one evaluation to another
            called: Callable[..., Any] = getattr(deepcopy(self.given), method)
            # copies, as the arrays may be parts of the rows themselves
            result = called(y.copy(), *(part.copy() for part in margins))
            found = np.array(result, dtype=np.float64, order="C", subok=False)
            # [losses:shape] one broadcast over margins would count several times
            if found.shape != shape:
                raise ValueError
            rows = np.isfinite(found.reshape(len(y), -1)).all(axis=1)
            found[~rows] = 0.0
            return found

        # [losses:failure]
        found: Array | None = attempt(finite)
        if found is not None:
            return found
        half = len(y) // 2
        if half == 0:
            return np.zeros(shape)
        parts = (
            self._by_rows(method, y[some], *(Z[some] for Z in margins), wide=wide)
            for some in (slice(half), slice(half, None))
        )
        return np.concatenate(list(parts))

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        found = self._by_rows("value", y, Z, wide=False)
        # [losses:value] sums of them are finite
        return np.clip(found, -LARGEST, LARGEST, out=found)

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        found = self._by_rows("derivative", y, Z)
        return np.clip(found, -LARGEST, LARGEST, out=found)

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        found = self._by_rows("curvature", y, Z)
        return np.clip(found, 0.0, min(self._curvature, LARGEST), out=found)

    def curvature_product(self, y: NDArray[Any], Z: Array, V: Array) -> Array:
        if self.n_outputs == 1:
            C = self.curvature(y, Z)
            C *= V
            return C
        found = self._by_rows("curvature_product", y, Z, V)
        # no eigenvalue is larger, and so no entry
        most = min(self._curvature, LARGEST) * np.linalg.norm(V, axis=1)
        return np.clip(found, -most[:, None], most[:, None], out=found)

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        at = reach, y_range
        if at not in self._steepest:
            # [losses:once]
            self._steepest[at] = self._derivative_bound(reach, y_range)
        return self._steepest[at]

    def _derivative_bound(self, reach: float, y_range: tuple[float, float]) -> float:
        def stated() -> float:
            bound = deepcopy(self.given).max_derivative(reach, y_range)
            return max(self._stated("max_derivative", bound), LEAST)

        if reach == inf:
            return stated()
        # reaches may be private, and what holds anywhere holds there
        anywhere = self.max_derivative(inf, y_range)
        found: float | None = attempt(stated)
        return anywhere if found is None else min(found, anywhere)

    def max_curvature(self) -> float:
        return self._curvature

    def max_trace(self) -> float:
        return self._trace

    def derivative_rank(self) -> int:
        return self._rank

    def __eq__(self, other: object) -> bool:
        return bool(self.given == given_loss(other))

    def __hash__(self) -> int:
        return hash(self.given)

    def __repr__(self) -> str:
        return repr(self.given)


def _stated_radius(given: Any) -> float:
    """Return the radius of a penalty as a float, or reject it."""
    value = getattr(given, "radius", None)
    number = plain_number(value, "radius")
    real = type(number) in (int, float) and number > 0
    if not real or not (number <= LARGEST or number == inf):
        raise ValueError(
            f"radius of {type(given).__name__} must be a number > 0 and at most "
            f"{LARGEST:g}, or inf for a penalty that is no set, got {shown(value)}."
        )
    return float(number)


class ForeignPenalty:
    """A penalty or set from outside this library, as problems hold it.

    It prints as the given one does, and equals it.

    Parameters
    ----------
    given
        The penalty or set.

    Notes
    -----
    **Bound.** The radius is read once, so that a run has that of its plan. Any other
    attribute is that of a copy, made for it and dropped (`[penalties:copy]`): what a
    method keeps of the points it sees reaches no other call, and no model.
    """

    def __init__(self, given: Any) -> None:
        self.given = given
        _check_copied(given, "penalty")
        self.radius = _stated_radius(given)

    def __getattr__(self, name: str) -> Any:
        if name == "given" or name.startswith("_"):
            raise AttributeError(name)
        # [penalties:copy]
        return getattr(deepcopy(self.given), name)

    def __eq__(self, other: object) -> bool:
        return bool(self.given == getattr(other, "given", other))

    def __hash__(self) -> int:
        return hash(self.given)

    def __repr__(self) -> str:
        return repr(self.given)
