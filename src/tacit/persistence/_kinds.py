"""Estimators that can be saved, and how each is written and restored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

from tacit._discovery import class_named, declares, declaring
from tacit._estimators import Saved
from tacit.persistence._additive import capture_additive, restore_additive
from tacit.persistence._arrays import Arrays
from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.persistence._json import checked_keys
from tacit.persistence._linear import capture_linear, restore_linear
from tacit.persistence._steps import (
    capture_step,
    columns_from,
    restore_drawn_step,
    restore_private_step,
    restore_public_step,
)
from tacit.persistence._streams import (
    capture_experts,
    capture_learned,
    capture_refitted,
    capture_summed,
    restore_experts,
    restore_learned,
    restore_refitted,
    restore_summed,
)
from tacit.persistence._values import SECRET, decode, encode
from tacit.privacy import Budget, Neighbors, PrivacyReport

__all__ = [
    "Kind",
    "kind_named",
    "kind_of",
    "parameters_of",
    "rebuilt",
    "saved_kinds",
]

# Packages of the estimators that can be saved; names from files are looked up only
# there
SAVED_IN = (
    *("tacit.additive", "tacit.linear_model", "tacit.preprocessing"),
    *("tacit.streaming.online", "tacit.streaming.incremental"),
)

Capture = Callable[[Any], tuple[dict[str, Any], Arrays]]
Restore = Callable[[Any, dict[str, Any], Arrays], None]


# Functions that write and restore the fitted state, by form
FORMS: dict[str, tuple[Capture, Restore]] = {
    "additive": (capture_additive, restore_additive),
    "drawn_step": (capture_step, restore_drawn_step),
    "experts": (capture_experts, restore_experts),
    "learned": (capture_learned, restore_learned),
    "linear": (capture_linear, restore_linear),
    "private_step": (capture_step, restore_private_step),
    "public_step": (capture_step, restore_public_step),
    "refitted": (capture_refitted, restore_refitted),
    "summed": (capture_summed, restore_summed),
}


@dataclass(frozen=True)
class Kind:
    """Estimator that declares its saved state."""

    make: Any

    @property
    def saved(self) -> Saved:
        """Declaration of the saved state."""
        found: Saved = self.make.saved
        return found

    @property
    def private(self) -> bool:
        """Whether it has a privacy report."""
        return self.saved.private

    def capture(self, estimator: Any) -> tuple[dict[str, Any], Arrays]:
        """Return the fitted state, as plain data and as arrays."""
        return FORMS[self.saved.form][0](estimator)

    def restore(self, estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
        """Restore the fitted state of an estimator with parameters and columns."""
        FORMS[self.saved.form][1](estimator, fitted, arrays)

    def array_names(self, claims: Any) -> tuple[str, ...]:
        """Return the names of the arrays in a folder with these claims."""
        arrays, optional = self.saved.arrays, self.saved.optional
        more = isinstance(claims, dict) and any(name in claims for name in optional)
        return (*arrays, *optional) if more else arrays


@cache
def saved_kinds() -> dict[str, Kind]:
    """Return the estimators of the library that can be saved, by name."""
    found = declaring("saved", *SAVED_IN)
    kinds = {kind.__name__: Kind(kind) for kind in found if kind.saved is not True}
    return dict(sorted(kinds.items()))


def kind_named(name: Any) -> Kind | None:
    """Return the estimator of this name, None if there is none.

    A name from a file is looked up among `saved_kinds` and nowhere else.
    """
    found = class_named(name, "saved", *SAVED_IN) if isinstance(name, str) else None
    return None if found is None or found.saved is True else Kind(found)


def kind_of(estimator: Any) -> tuple[str, Kind]:
    """Return the name and the kind of an estimator of this library."""
    make = type(estimator)
    name = make.__name__
    if not declares(make, "saved", *SAVED_IN) or make.saved is True:
        if hasattr(estimator, "factors_"):
            raise ModelFileError(
                f"A {name} is saved by write_side, which writes its item side and no "
                "ratings."
            )
        known = ", ".join(saved_kinds())
        raise ModelFileError(
            f"A {name} cannot be saved; only {known} can, and no class derived from "
            "them."
        )
    return name, Kind(make)


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return the constructor parameters as plain data, without the seed."""
    given = estimator.get_params(deep=False)
    return {
        name: encode(value, name) for name, value in given.items() if name not in SECRET
    }


def rebuilt(
    kind: Kind,
    parameters: Any,
    fitted: Any,
    arrays: Arrays,
    report: PrivacyReport | None,
) -> Any:
    """Return the fitted estimator, which checks its parameters and state."""
    if not isinstance(parameters, dict):
        raise ModelFileError("'parameters' must hold a JSON object.")
    # by the signature, as in scikit-learn; a missing parameter has its default
    known = frozenset(signature(kind.make).parameters) - SECRET
    checked_keys(parameters, set(), "'parameters'", known)
    checked_keys(
        fitted, {"n_features", "feature_names", *kind.saved.fitted}, "'fitted'"
    )
    values = {name: decode(part, name) for name, part in parameters.items()}
    with rejected_as("'parameters'"):
        estimator = kind.make(**values)
    if report is not None:
        _check_same_guarantee(estimator, report.guarantee)
        estimator.privacy_ = report
    columns_from(estimator, fitted)
    with rejected_as("'fitted'"):
        kind.restore(estimator, fitted, arrays)
    return estimator


def _check_same_guarantee(estimator: Any, guarantee: Budget) -> None:
    """Check that the parameters state the guarantee of the report.

    They may have been set after the fit.
    """
    with rejected_as("'parameters'"):
        delta = guarantee.delta if estimator.delta is None else estimator.delta
        relation = Neighbors.of(estimator.neighbors)
        same = Budget(float(estimator.epsilon), float(delta), relation) == guarantee
    if not same:
        raise ModelFileError(
            "epsilon, delta and neighbors are not those of the report; set them back, "
            "or fit again."
        )
