"""The estimators that can be saved, and what makes each of them whole again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from tacit import linear_model, preprocessing, streaming
from tacit.persistence._arrays import Arrays
from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.persistence._json import checked_keys
from tacit.persistence._linear import (
    CLASSIFIER,
    NOISE_WEIGHTS,
    PATH_WEIGHTS,
    REGRESSOR,
    SELECTED,
    SPARSE_WEIGHTS,
    WEIGHTS,
    capture_linear,
    restore_linear,
)
from tacit.persistence._steps import (
    capture_step,
    columns_from,
    restore_private_step,
    restore_public_step,
)
from tacit.persistence._streams import (
    EXPERTS,
    LEARNED_CLASSIFIER,
    LEARNED_REGRESSOR,
    REFITTED,
    SUMMED,
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

__all__ = ["KINDS", "Kind", "kind_of", "parameters_of", "rebuilt"]

Capture = Callable[[Any], tuple[dict[str, Any], Arrays]]
Restore = Callable[[Any, dict[str, Any], Arrays], None]


@dataclass(frozen=True)
class Kind:
    """One estimator: its class, what is kept of a fit, and how it comes back.

    Parameters
    ----------
    make
        The class.
    fitted, arrays
        Names of what is kept beside the names of the columns, as plain data and as
        arrays.
    capture, restore
        To these from an estimator, and back into one that has its parameters, its
        columns and its report.
    private
        Whether it has a report.
    optional
        Arrays that are there together or not at all.
    """

    make: Any
    fitted: tuple[str, ...]
    arrays: tuple[str, ...]
    capture: Capture
    restore: Restore
    private: bool = True
    optional: tuple[str, ...] = ()

    def array_names(self, claims: Any) -> tuple[str, ...]:
        """Return the arrays that a folder with these claims must hold."""
        more = isinstance(claims, dict) and any(n in claims for n in self.optional)
        return (*self.arrays, *self.optional) if more else self.arrays


def _linear(make: Any, fitted: tuple[str, ...]) -> Kind:
    return Kind(
        make,
        fitted,
        WEIGHTS,
        capture_linear,
        restore_linear,
        optional=NOISE_WEIGHTS,
    )


def _sparse(make: Any, fitted: tuple[str, ...]) -> Kind:
    return Kind(
        make,
        fitted,
        SPARSE_WEIGHTS,
        capture_linear,
        restore_linear,
        optional=PATH_WEIGHTS,
    )


KINDS = {
    kind.make.__name__: kind
    for kind in (
        _linear(linear_model.LogisticRegression, CLASSIFIER),
        _linear(linear_model.LinearSVC, CLASSIFIER),
        _linear(linear_model.HuberRegressor, REGRESSOR),
        _linear(linear_model.LinearRegression, REGRESSOR),
        _linear(linear_model.Ridge, REGRESSOR),
        _linear(linear_model.SimplexRegressor, REGRESSOR),
        _sparse(linear_model.ElasticNet, REGRESSOR),
        _sparse(linear_model.Lasso, REGRESSOR),
        Kind(
            linear_model.SparseLinearRegression,
            SELECTED,
            SPARSE_WEIGHTS,
            capture_linear,
            restore_linear,
        ),
        _sparse(linear_model.SparseLogisticRegression, CLASSIFIER),
        *(
            Kind(make, fitted, WEIGHTS, capture_learned, restore_learned)
            for make, fitted in (
                (streaming.OnlineLinearRegression, LEARNED_REGRESSOR),
                (streaming.OnlineLogisticRegression, LEARNED_CLASSIFIER),
            )
        ),
        Kind(
            streaming.IncrementalLinearRegression,
            SUMMED,
            WEIGHTS,
            capture_summed,
            restore_summed,
        ),
        Kind(
            streaming.IncrementalERM,
            REFITTED,
            WEIGHTS,
            capture_refitted,
            restore_refitted,
            optional=SPARSE_WEIGHTS[len(WEIGHTS) :],
        ),
        Kind(
            streaming.HedgeAggregator,
            EXPERTS,
            ("weights",),
            capture_experts,
            restore_experts,
        ),
        *(
            Kind(make, (), (), capture_step(()), restore_public_step, private=False)
            for make in (preprocessing.PublicScaler, preprocessing.PublicOneHot)
        ),
        *(
            Kind(make, (), names, capture_step(names), restore_private_step)
            for make, names in (
                (preprocessing.PrivateStandardScaler, ("mean", "scale")),
                (preprocessing.PrivateQuantileBounds, ("lower", "upper")),
            )
        ),
    )
}


def kind_of(estimator: Any) -> tuple[str, Kind]:
    """Return the name and the kind of an estimator of this library."""
    name = type(estimator).__name__
    kind = KINDS.get(name)
    if kind is None or type(estimator) is not kind.make:
        if hasattr(estimator, "factors_"):
            raise ModelFileError(
                f"A {name} is saved by write_side, which writes its item side and no "
                "ratings."
            )
        raise ModelFileError(
            f"A {name} cannot be saved; what can be is {', '.join(KINDS)}, and nothing "
            "derived from them."
        )
    return name, kind


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
    """Return the fitted estimator, after its own checks of all of it."""
    if not isinstance(parameters, dict):
        raise ModelFileError("'parameters' must hold a JSON object.")
    # by the signature, as sklearn does it; a parameter that is missing has its default
    known = frozenset(signature(kind.make).parameters) - SECRET
    checked_keys(parameters, set(), "'parameters'", known)
    checked_keys(fitted, {"n_features", "feature_names", *kind.fitted}, "'fitted'")
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
    """Refuse parameters that promise other than the report.

    They may have been set after the fit, and would mislead whoever reads the folder.
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
