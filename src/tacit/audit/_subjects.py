"""What an estimator states: its bounds, its neighbors and its guarantee."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tacit.audit.pairs import Pair, worst_case_pair
from tacit.data.features import FeatureBounds
from tacit.preprocessing._columns import public_ranges

__all__ = [
    "bounds_entries",
    "ends_of",
    "guarantee_of",
    "pair_of",
    "prepared",
    "scale_of",
]

# Names that estimators have for the public bound on a row
NORMS = ("x_norm", "data_norm", "x_max", "feature_bounds", "ranges")
# Those that bound entries one by one
BY_ENTRIES = ("x_max", "feature_bounds", "ranges")
# Fraction of a row that lies in other columns than its first
LITTLE = 0.02


def prepared(estimator: Any) -> Any:
    """Return a copy in which all public bounds are set, after checks."""
    if isinstance(estimator, type) or not all(
        hasattr(estimator, name) for name in ("fit", "get_params", "set_params")
    ):
        raise TypeError(
            "estimator must be an instance with fit, get_params and set_params, got "
            f"{type(estimator).__name__}."
        )
    subject = deepcopy(estimator)
    given = subject.get_params(deep=False)
    epsilon = given.get("epsilon")
    number = isinstance(epsilon, Real) and not isinstance(epsilon, bool)
    if not (number and 0 < float(epsilon) < float("inf")):
        raise ValueError(
            "estimator must have a parameter epsilon, a finite number > 0, got "
            f"{epsilon!r}."
        )
    if not any(name in given for name in NORMS):
        raise ValueError(
            f"estimator must have a bound on a row as one of {', '.join(NORMS)}."
        )
    defaults: dict[str, Any] = dict.fromkeys(NORMS, 1.0)
    defaults |= {"classes": [-1, 1], "y_range": (-1.0, 1.0), "ranges": (-1.0, 1.0)}
    if _some(given.get("categories")):
        raise ValueError(
            "estimator must have no categories: audits attack columns of numbers; give "
            "ranges, and leave categories out."
        )
    missing = {k: v for k, v in defaults.items() if given.get(k, v) is None}
    missing |= _by_position(given)
    if "random_state" in given:
        missing["random_state"] = None
    return subject.set_params(**missing)


def _some(facts: Any) -> bool:
    return facts is not None and len(facts) > 0


def _by_position(given: dict[str, Any]) -> dict[str, Any]:
    """Return parameters that name columns for rows whose columns have no names."""
    ranges, pairs = given.get("ranges"), given.get("interactions")
    if not isinstance(ranges, Mapping):
        return {}
    position = {name: k for k, name in enumerate(ranges)}
    found: dict[str, Any] = {"ranges": list(ranges.values())}
    if "categories" in given:
        found["categories"] = None
    if isinstance(given.get("monotone"), Mapping):
        found["monotone"] = {
            position.get(name, name): way for name, way in given["monotone"].items()
        }
    if isinstance(pairs, list | tuple):
        found["interactions"] = [
            tuple(position.get(name, name) for name in pair) for pair in pairs
        ]
    return found


def pair_of(
    subject: Any,
    n_rows: int,
    n_features: int,
    relation: str,
    norm: str,
    reach: float = 1.0,
) -> Pair:
    """Return the worst-case pair at ``reach`` times the public bounds.

    The labels are those that the parameters name.
    """
    given = subject.get_params(deep=False)
    bound, center, half = scale_of(given, n_features)
    shape = (n_rows, n_features, bound, relation)
    if _classifies(subject):
        labels = _labels(given)
        if len(labels) == 2:
            pair = worst_case_pair("logistic", *shape)
            sides = [(X, labels[(y > 0).astype(int)]) for X, y in pair]
        else:
            pair = worst_case_pair("softmax", *shape, n_classes=len(labels))
            sides = [(X, labels[y]) for X, y in pair]
    else:
        low, middle, high = _targets(given)
        pair = worst_case_pair("squared", *shape)
        sides = [
            (
                X,
                middle
                + reach
                * (np.where(y > 0, high, np.where(y < 0, low, middle)) - middle),
            )
            for X, y in pair
        ]
    # something in every column, so that none can be released as it is
    weights = np.where(np.arange(n_features) % 2 == 0, 1.0, -1.0)
    if not (bounds_entries(given, norm) or reach > 1):
        # little besides the first one, so that the row keeps all norms up to the bound
        weights *= LITTLE / (n_features - 1)
        weights[0] = 1 - LITTLE - 1e-12
    return Pair(*((center + half * reach * X[:, :1] * weights, y) for X, y in sides))


def scale_of(given: dict[str, Any], n_features: int) -> tuple[float, Any, Any]:
    """Return the bound on a row, and the center and half-width of each column."""
    if "feature_bounds" in given:
        ranges = FeatureBounds.of(given["feature_bounds"], n_features)
        return 1.0, ranges.center, ranges.half_width
    if "ranges" in given:
        # whatever the form, columns are known by their positions
        pairs = np.asarray(public_ranges(given["ranges"], range(n_features)))
        return 1.0, pairs.mean(axis=1), np.diff(pairs, axis=1)[:, 0] / 2
    bound = next(float(given[name]) for name in NORMS if name in given)
    if not (isfinite(bound) and bound > 0):
        raise ValueError(f"The bound on a row must be finite and > 0, got {bound!r}.")
    return bound, 0.0, 1.0


def bounds_entries(given: dict[str, Any], norm: str) -> bool:
    """Whether entries of a row are bounded one by one."""
    return norm == "linf" or any(name in given for name in BY_ENTRIES)


def ends_of(subject: Any) -> NDArray[Any]:
    """Return the two labels or targets that are furthest apart."""
    given = subject.get_params(deep=False)
    if _classifies(subject):
        return _labels(given)[:2]
    low, _, high = _targets(given)
    return np.array([low, high])


def _labels(given: dict[str, Any]) -> NDArray[Any]:
    labels = np.unique(np.asarray(list(given.get("classes", (-1, 1)))))
    if len(labels) < 2:
        raise ValueError("classes must name at least 2 labels.")
    return labels


def _targets(given: dict[str, Any]) -> tuple[float, float, float]:
    """Return the range of targets, and the uninformative target of rows of zeros."""
    low, high = map(float, given.get("y_range", (-1.0, 1.0)))
    # the prediction of a model without weights
    free = bool(given.get("fit_intercept", "radius" not in given))
    middle = low + (high - low) / 2 if free else min(max(0.0, low), high)
    return low, middle, high


def _classifies(subject: Any) -> bool:
    try:
        return bool(is_classifier(subject))
    except (AttributeError, TypeError):  # what knows nothing of scikit-learn's tags
        return hasattr(subject, "predict_proba")


def guarantee_of(fitted: Any, delta: float | None) -> tuple[float, float, bool]:
    """Return epsilon, delta, and whether the report claims Gaussian noise only."""
    given = fitted.get_params(deep=False)
    report = getattr(fitted, "privacy_", None)
    if report is None:
        own = given.get("delta")
        delta = float(own if own is not None else delta or 0.0)
        return float(given["epsilon"]), delta, False
    # through JSON, so that nothing is shared with what is judged
    data = json.loads(json.dumps(report.to_dict()))
    guarantee = data["promise"]
    claims = [gaussian_only(entry["event"]) for entry in data["entries"]]
    return float(guarantee["epsilon"]), float(guarantee["delta"]), all(claims)


def gaussian_only(event: Any) -> bool:
    kind = event["type"]
    if kind == "Repeated":
        return gaussian_only(event["event"])
    if kind == "Composed":
        return all(map(gaussian_only, event["events"]))
    return bool(kind == "GaussianNoise")
