"""Linear models as plain data and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tacit.convex import OneVsRest
from tacit.data import RowBounds
from tacit.data.features import FeatureBounds
from tacit.linear_model._saved import NOISE_ARRAYS, PATH_ARRAYS, CoefficientNoise
from tacit.linear_model._sparse import SelectionPath
from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.persistence._arrays import Arrays
from tacit.persistence._errors import ModelFileError
from tacit.persistence._json import checked_keys
from tacit.persistence._values import array_from, array_to, decode, encode
from tacit.solvers._auto import SPARSE_ENTRY

__all__ = ["capture_linear", "labels_from", "restore_linear"]

DISTRIBUTIONS = ("gaussian", "laplace", "gamma")


def capture_linear(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the fitted state."""
    bounds = estimator.bounds_
    ranged = isinstance(bounds, FeatureBounds)
    fitted = {
        # the classes of the bounds are the labels, which are saved once
        "bounds": {
            **(
                {"centered": bounds.centered}
                if ranged
                else {"x_norm": bounds.x_norm, "norm": bounds.norm}
            ),
            "y_range": [float(end) for end in bounds.y_range],
        },
        "loss": encode(estimator.loss_, "loss_"),
    }
    if "classes" in type(estimator).saved.fitted:
        labels = getattr(estimator, "classes_", None)
        fitted["classes"] = None if labels is None else array_to(labels, "classes")
    if hasattr(estimator, "selection_"):
        answer = estimator.selection_
        silent = isinstance(answer, NoAnswer)
        fitted["selection"] = None if silent else [int(j) for j in answer]
    arrays = {
        "coef": np.asarray(estimator.coef_),
        "intercept": np.asarray(estimator.intercept_),
    }
    if ranged:
        arrays["low"], arrays["high"] = bounds.ends
    path = getattr(estimator, "path_", None)
    if path is not None:
        steps = path.features.astype(np.float64), path.gradient, path.std
        arrays |= dict(zip(PATH_ARRAYS, steps, strict=True))
    noise = getattr(estimator, "noise_", None)
    fitted["noise"] = None if noise is None else {"how": noise.how, "law": noise.law}
    if noise is not None:
        arrays["noise_coef"] = np.asarray(noise.coef)
        arrays["noise_intercept"] = np.asarray(noise.intercept)
    return fitted, arrays


def restore_linear(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore weights, bounds, loss and labels of an estimator."""
    coef, intercept = arrays["coef"], arrays["intercept"]
    p = estimator.n_features_in_
    labels = None
    if is_classifier(estimator):
        labels = labels_from(fitted["classes"])
        rows = 1 if len(labels) == 2 else len(labels)
        expected: tuple[tuple[int, ...], tuple[int, ...]] = (rows, p), (rows,)
    else:
        expected = (p,), ()
    if (coef.shape, intercept.shape) != expected:
        raise ModelFileError("weights.npz does not fit the features and the classes.")
    if "low" in arrays:
        estimator.bounds_ = _ranges(estimator, fitted["bounds"], labels, arrays)
    else:
        estimator.bounds_ = _bounds(fitted["bounds"], labels)
        _check_bounds(estimator)
    estimator.loss_ = _loss(estimator, fitted["loss"], labels)
    estimator.coef_ = coef
    estimator.intercept_ = float(intercept) if labels is None else intercept
    estimator.noise_ = _noise(estimator, fitted["noise"], arrays)
    if "low" in arrays:
        estimator.path_ = _path(estimator, arrays)
    if labels is not None:
        estimator.classes_ = labels
    if "selection" in fitted:
        estimator.selection_ = _selection(estimator, fitted["selection"])


def labels_from(data: Any) -> NDArray[Any]:
    """Return the labels of a classifier, which are sorted."""
    labels = array_from(data, "'classes'")
    order = np.unique(labels)
    if len(labels) < 2 or len(order) != len(labels) or (order != labels).any():
        raise ModelFileError("'classes' must be two labels or more, in order.")
    return labels


def _selection(estimator: Any, data: Any) -> tuple[int, ...] | NoAnswer:
    """Return the selected columns; no other column has a weight."""
    positions = [] if data is None else data
    p, most = estimator.n_features_in_, estimator.n_features_to_select
    known = isinstance(positions, list) and all(type(j) is int for j in positions)
    if not known or positions != sorted({j for j in positions if 0 <= j < p}):
        raise ModelFileError("'selection' must list indices of features, in order.")
    others = np.delete(estimator.coef_, positions)
    if len(positions) > most or others.any():
        raise ModelFileError("'selection' does not fit the weights.")
    return NO_ANSWER if data is None else tuple(positions)


def _noise(estimator: Any, data: Any, arrays: Arrays) -> CoefficientNoise | None:
    if (data is None) != (NOISE_ARRAYS[0] not in arrays):
        raise ModelFileError("'noise' does not fit weights.npz.")
    if data is None:
        return None
    parts = checked_keys(data, {"how", "law"}, "'noise'")
    coef, intercept = (arrays[name] for name in NOISE_ARRAYS)
    shapes = estimator.coef_.shape, np.shape(estimator.intercept_)
    if (coef.shape, intercept.shape) != shapes or coef.min() < 0 or intercept.min() < 0:
        raise ModelFileError("'noise' does not fit the weights.")
    if not isinstance(parts["how"], str) or parts["law"] not in DISTRIBUTIONS:
        raise ModelFileError(
            "'noise' must state how it was found and name a distribution."
        )
    plain = float(intercept) if intercept.ndim == 0 else intercept
    return CoefficientNoise(coef, plain, parts["how"], parts["law"])


def _path(estimator: Any, arrays: Arrays) -> SelectionPath | None:
    if PATH_ARRAYS[0] not in arrays:
        return None
    positions, gradient, std = (arrays[name] for name in PATH_ARRAYS)
    sound = positions.ndim == 1 and positions.shape == gradient.shape
    if not sound or std.shape != positions.shape or not len(positions):
        raise ModelFileError("The path in weights.npz has arrays of different lengths.")
    known = (
        (positions >= -1)
        & (positions < estimator.n_features_in_)
        & (positions % 1 == 0)
    )
    if not known.all() or std.min() <= 0:
        raise ModelFileError("The path in weights.npz has invalid features.")
    return SelectionPath(positions.astype(np.int64), gradient, std)


def _bounds(data: Any, labels: Any) -> RowBounds:
    parts = checked_keys(data, {"x_norm", "norm", "y_range"}, "'bounds'")
    ends = parts["y_range"]
    pair = isinstance(ends, list) and len(ends) == 2
    if not pair or any(type(end) is not float for end in [parts["x_norm"], *ends]):
        raise ModelFileError("'bounds' must hold a norm and two ends, as floats.")
    if not isinstance(parts["norm"], str):
        raise ModelFileError("'bounds' must name a norm.")
    classes = None if labels is None else tuple(labels.tolist())
    return RowBounds(parts["x_norm"], parts["norm"], (ends[0], ends[1]), classes)


def _ranges(estimator: Any, data: Any, labels: Any, arrays: Arrays) -> FeatureBounds:
    """Return the ranges of features, which must be those of the parameters."""
    parts = checked_keys(data, {"centered", "y_range"}, "'bounds'")
    if type(parts["centered"]) is not bool or parts["y_range"] != [-1.0, 1.0]:
        raise ModelFileError("'bounds' must say whether features were centered.")
    columns = getattr(estimator, "feature_names_in_", None)
    given = FeatureBounds.of(
        estimator.feature_bounds,
        estimator.n_features_in_ if columns is None else list(columns),
        centered=parts["centered"],
        classes=None if labels is None else tuple(labels.tolist()),
    )
    if any(
        arrays[name].shape != ends.shape or (arrays[name] != ends).any()
        for name, ends in zip(("low", "high"), given.ends, strict=True)
    ):
        raise ModelFileError(
            "feature_bounds are not the ranges of the fit, in weights.npz; set them "
            "back, or fit again."
        )
    return given


def _check_bounds(estimator: Any) -> None:
    """Check that the parameters state the bounds of the fit."""
    bounds = estimator.bounds_
    if hasattr(estimator, "x_max"):
        size, norm = estimator.x_max, "linf"
    else:
        size, norm = estimator.x_norm, estimator.bound_norm
    # without a size of its own, a model took what a transformer declared
    known = size is None or bounds.x_norm in _sizes(float(size), bounds, norm)
    if not known or norm not in ("auto", bounds.norm):
        raise ModelFileError(
            "The bounds of rows in 'parameters' are not those of the fit, in 'bounds'; "
            "set x_norm, x_max or bound_norm back, or fit again."
        )


def _sizes(size: float, bounds: RowBounds, norm: str) -> tuple[float, ...]:
    """Return the bounds that a fit may have had with this parameter."""
    chosen = norm == "auto" and bounds.norm == "linf"
    return (size, SPARSE_ENTRY * size) if chosen else (size,)


def _loss(estimator: Any, data: Any, labels: Any) -> Any:
    loss = decode(data, "loss")
    allowed = type(estimator).saved.losses
    several = labels is not None and len(labels) > 2
    inner = loss.loss if several and isinstance(loss, OneVsRest) else loss
    outputs = 1 if not several else len(labels)
    known = (
        hasattr(inner, "max_derivative")
        if allowed is None
        else isinstance(inner, allowed)
    )
    if not known or loss.n_outputs != outputs:
        raise ModelFileError("'loss' is not one that this estimator minimizes.")
    return loss
