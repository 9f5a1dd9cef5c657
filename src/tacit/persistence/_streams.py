"""Last release of a model on a stream as plain data and arrays, and back."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np

from tacit.convex import Logistic, OneVsRest, Softmax
from tacit.persistence._arrays import Arrays
from tacit.persistence._errors import ModelFileError
from tacit.persistence._json import checked_keys
from tacit.persistence._linear import capture_linear, restore_linear
from tacit.persistence._values import array_from, array_to, decode, encode

__all__ = [
    "capture_experts",
    "capture_learned",
    "capture_refitted",
    "capture_summed",
    "restore_experts",
    "restore_learned",
    "restore_refitted",
    "restore_summed",
]

# Released estimates of the risk of least squares
RISK = ("expected_excess_risk", "residual_sum")


def capture_learned(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the last release and its step."""
    fitted: dict[str, Any] = {"steps": int(estimator.n_steps_)}
    if hasattr(estimator, "classes_"):
        fitted["classes"] = array_to(estimator.classes_, "classes")
        fitted["loss"] = encode(estimator.loss_, "loss_")
    return fitted, {
        "coef": np.asarray(estimator.coef_),
        "intercept": np.asarray(estimator.intercept_),
    }


def restore_learned(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore the last release; the estimator predicts but cannot be resumed."""
    p, labels = estimator.n_features_in_, None
    expected: tuple[tuple[int, ...], tuple[int, ...]] = (p,), ()
    if "classes" in fitted:
        labels = array_from(fitted["classes"], "'classes'")
        if estimator.classes is None:  # they were given with the first rows
            estimator._given_classes = labels
        known = estimator._public_classes()
        if labels.dtype != known.dtype or labels.tolist() != known.tolist():
            raise ModelFileError("'classes' must be those of the parameters, in order.")
        outputs = 1 if len(labels) == 2 else len(labels)
        expected = (outputs, p), (outputs,)
    coef, intercept = arrays["coef"], arrays["intercept"]
    if (coef.shape, intercept.shape) != expected:
        raise ModelFileError("weights.npz does not fit the features and the classes.")
    estimator._reader()  # rejects parameters without a bound on rows
    if labels is not None:
        estimator.loss_ = _loss(fitted["loss"], expected[0][0])
        estimator.classes_ = labels
    estimator.coef_ = coef
    estimator.intercept_ = float(intercept) if labels is None else intercept
    _restore_steps(estimator, fitted["steps"])


def capture_summed(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the last release and the estimates of its risk."""
    fitted, arrays = capture_learned(estimator)
    expected, residual = estimator.expected_excess_risk_, estimator.residual_sum_
    risk = {
        # JSON has no infinity
        "expected_excess_risk": float(expected) if isfinite(expected) else None,
        "residual_sum": None if residual is None else float(residual),
    }
    return {**fitted, "risk": risk}, arrays


def restore_summed(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore the last release and the estimates of its risk."""
    restore_learned(estimator, fitted, arrays)
    risk = checked_keys(fitted["risk"], set(RISK), "'risk'")
    expected, residual = risk["expected_excess_risk"], risk["residual_sum"]
    if not isinstance(expected, float | None) or (expected or 0.0) < 0:
        raise ModelFileError("'risk' must state the excess as a number >= 0 or none.")
    if not isinstance(residual, float | None):
        raise ModelFileError("'risk' must state residuals as a number or none.")
    estimator.expected_excess_risk_ = inf if expected is None else expected
    estimator.residual_sum_ = residual


def capture_refitted(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the last fitted model and its step."""
    model = estimator.estimator_
    fitted, arrays = capture_linear(model)
    return {
        "steps": int(estimator.n_steps_),
        "last_refit": int(estimator.last_refit_),
        "expected_rows": int(model.expected_rows),
        "model": fitted,
    }, arrays


def restore_refitted(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore the last fitted model of a stream."""
    from tacit.streaming.incremental._refit_learner import (  # noqa: PLC0415 - as below
        fit_parameters,
        prepared_estimator,
    )

    guarantee = estimator.privacy_.guarantee
    names = getattr(estimator, "feature_names_in_", None)
    model = prepared_estimator(estimator.estimator, guarantee.neighbors, names)
    known = capture_keys(model)
    checked_keys(fitted["model"], known, "'model'")
    rows, last = fitted["expected_rows"], fitted["last_refit"]
    if type(rows) is not int or rows < 1:
        raise ModelFileError("'expected_rows' must be a number of rows.")
    model.set_params(**fit_parameters(guarantee, rows))
    model.n_features_in_ = estimator.n_features_in_
    model.privacy_ = estimator.privacy_
    if names is not None:
        model.feature_names_in_ = names
    restore_linear(model, fitted["model"], arrays)
    _restore_steps(estimator, fitted["steps"])
    if type(last) is not int or not 0 <= last <= estimator._n_steps:
        raise ModelFileError("'last_refit' must be a past step, or 0.")
    estimator.last_refit_ = last
    estimator._show_model(model)


def capture_keys(model: Any) -> set[str]:
    """Return the keys of the fitted state of a model."""
    keys = {"bounds", "loss", "noise"}
    if hasattr(model, "classes"):
        keys.add("classes")
    if hasattr(model, "n_features_to_select"):
        keys.add("selection")
    return keys


def capture_experts(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the weights of the experts, or the drawn expert."""
    return {
        "steps": int(estimator.n_steps_),
        "play": estimator.play_,
        "expert": estimator.expert_,
    }, {"weights": np.asarray(estimator.weights_)}


def restore_experts(estimator: Any, fitted: dict[str, Any], arrays: Arrays) -> None:
    """Restore the weights of the experts."""
    weights, expert = arrays["weights"], fitted["expert"]
    if weights.shape != (estimator.n_features_in_,) or weights.min() < 0:
        raise ModelFileError("weights.npz does not fit the experts.")
    if fitted["play"] not in ("sample", "weights"):
        raise ModelFileError("'play' must be 'sample' or 'weights'.")
    if expert is not None:
        drawn = type(expert) is int and 0 <= expert < len(weights)
        if not drawn or weights[expert] != 1.0 or weights.sum() != 1.0:
            raise ModelFileError("'expert' must be the one that has all the weight.")
    estimator.weights_ = weights
    estimator.play_ = fitted["play"]
    estimator.expert_ = expert
    _restore_steps(estimator, fitted["steps"])


def _restore_steps(estimator: Any, steps: Any) -> None:
    """Restore the number of steps, which is within the horizon."""
    # other models need nothing of streams
    from tacit.streaming._model import StreamTerms  # noqa: PLC0415

    terms = StreamTerms(
        estimator.horizon, estimator.rows_per_step, estimator.rows_per_person
    )
    if type(steps) is not int or not 1 <= steps <= terms.horizon:
        raise ModelFileError("'steps' must be a number of steps within the horizon.")
    estimator._n_steps = steps


def _loss(data: Any, outputs: int) -> Any:
    loss = decode(data, "loss")
    inner = loss.loss if isinstance(loss, OneVsRest) else loss
    if not isinstance(inner, Logistic | Softmax) or loss.n_outputs != outputs:
        raise ModelFileError("'loss' is not one that this estimator minimizes.")
    return loss
