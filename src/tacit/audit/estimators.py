"""Audit an estimator by what its parameters promise."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tacit.audit._trainings import Progress, release, trained
from tacit.audit.pairs import ADD_OR_REMOVE, REPLACE, Pair, worst_case_pair
from tacit.audit.run import AuditResult, _seeds, audit

__all__ = ["EstimatorAudit", "audit_estimator"]

Method = Literal["auto", "clopper-pearson", "gaussian"]
Floats = NDArray[np.float64]

# How estimators call the public bound on a row
NORMS = ("x_norm", "data_norm", "x_max")


@dataclass(frozen=True)
class EstimatorAudit:
    """What an audit of an estimator found.

    Parameters
    ----------
    estimator
        Name of the class.
    epsilon, delta, neighbors
        What it promises, by its report or else by its parameters.
    n_rows, n_features
        Shape of the attacked data set.
    result
        The lower bound and the counts behind it.
    claims_gaussian
        Whether the report of the estimator claims Gaussian noise and nothing else.
    """

    estimator: str
    epsilon: float
    delta: float
    neighbors: str
    n_rows: int
    n_features: int
    result: AuditResult
    claims_gaussian: bool = False

    @property
    def epsilon_lower(self) -> float:
        """With the confidence asked for, epsilon at ``delta`` is no smaller."""
        return self.result.epsilon_lower

    @property
    def refuted(self) -> bool:
        """Whether the bound is above what is promised."""
        return self.result.refutes(self.epsilon)

    @property
    def verdict(self) -> str:
        """The outcome in words, with what it does not show."""
        promise = (
            f"{self.estimator} promises epsilon {self.epsilon:g} at delta "
            f"{self.delta:.3g} for neighbors {self.neighbors}"
        )
        found = (
            f"this attack shows that epsilon is at least {self.epsilon_lower:.3g}, "
            f"with confidence {self.result.confidence:g}"
        )
        note = ""
        if self.result.method == "gaussian":
            why = "as its report claims" if self.claims_gaussian else "unproved"
            note = f" The bound takes the noise to be Gaussian, {why}."
        if self.refuted:
            return f"Refuted: {promise}, and {found}.{note}"
        return (
            f"Not refuted: {promise}, and {found}.{note} This proves nothing: a better "
            "attack, other rows or more runs may show more."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            "estimator": self.estimator,
            "promise": {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "neighbors": self.neighbors,
            },
            "epsilon_lower": self.epsilon_lower,
            "confidence": self.result.confidence,
            "method": self.result.method,
            "runs": self.result.n_runs,
            "rows": self.n_rows,
            "features": self.n_features,
            "hits": list(self.result.hits),
            "trials": list(self.result.trials),
            "refuted": self.refuted,
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        return self.verdict


def audit_estimator(
    estimator: Any,
    *,
    n_rows: int = 10,
    n_features: int = 2,
    runs: int = 1000,
    confidence: float = 0.95,
    neighbors: str | None = None,
    delta: float | None = None,
    method: Method = "auto",
    jobs: int = 1,
    random_state: int | np.random.SeedSequence | None = None,
    on_run: Progress | None = None,
) -> EstimatorAudit:
    """Attack an estimator on the neighbors that show most, and bound its epsilon.

    Parameters
    ----------
    estimator
        Has ``fit``, ``coef_`` and scikit-learn's parameters, among them ``epsilon``
        and a bound on a row: ``x_norm``, ``data_norm`` or ``x_max``. It is copied, and
        its bounds are used; where ``classes``, ``y_range`` or the bound on a row are
        None, they are -1 and 1, and 1.
    n_rows
        Rows of the attacked data set, at least 4.
    n_features
        Columns, at least 2.
    runs
        Trainings on each of the two data sets, at least 20. Half choose the attack,
        half judge it.
    confidence
        Probability with which the bound holds.
    neighbors
        What the promise holds for, where the estimator does not say:
        ``"replace_one"`` or ``"add_or_remove_one"``. None for the former.
    delta
        Delta of the promise, where the estimator does not say. None for zero.
    method
        ``"clopper-pearson"`` holds for any mechanism. ``"gaussian"`` needs far fewer
        runs and takes the noise to be Gaussian. ``"auto"`` is the latter where the
        report of the estimator claims Gaussian noise and nothing else.
    jobs
        Processes that train. A script that gives more than one needs the usual
        ``if __name__ == "__main__":`` around its work.
    random_state
        None trains with the randomness that users of the estimator have. A seed
        fixes it, where the estimator takes one.
    on_run
        Called with the number of trainings done and the number planned.

    Notes
    -----
    **Bound.** That of `clopper_pearson_bound` or `gaussian_bound`, for one pair: that
    of `worst_case_pair` at the public bounds. A bound above the promise refutes it
    with that confidence. A bound below proves nothing, and can never: another pair,
    another attack or more runs may show more. Under a report of Gaussian noise, the
    Gaussian bound assumes no more than the report claims.

    Examples
    --------
    >>> from tacit.audit import audit_estimator
    >>> from tacit.linear_model import SimplexRegressor
    >>> found = audit_estimator(SimplexRegressor(1.0), runs=20, random_state=0)
    >>> found.refuted
    False
    """
    for name, value, least in (
        ("n_rows", n_rows, 4),
        ("n_features", n_features, 2),
        ("runs", runs, 20),
        ("jobs", jobs, 1),
    ):
        if type(value) is not int or value < least:
            raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, got {method!r}.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be > 0 and < 1, got {confidence!r}.")
    subject = _prepared(estimator)
    given = subject.get_params(deep=False)
    relation = _relation(given.get("neighbors", neighbors))
    pair = _pair(subject, n_rows, n_features, relation, "l2")
    # one fit that tells what is promised, and in which norm rows are bounded
    probe = deepcopy(subject).fit(*pair.first)
    release(probe)  # or say what is missing, before all else
    promised, delta, gaussian = _promise(probe, delta)
    norm = getattr(getattr(probe, "bounds_", None), "norm", "l2")
    pair = _pair(subject, n_rows, n_features, relation, norm)
    if method == "auto":
        method = "gaussian" if gaussian and delta > 0 else "clopper-pearson"
    seeds: list[int | None] = [None] * (2 * runs)
    if random_state is not None:
        seeds = [*_seeds(random_state, 2 * runs)]
    work = [(pair[side], seeds[side * runs :][:runs]) for side in (0, 1)]
    # trained beforehand, by several processes where asked, and judged in this order
    releases = iter([r for side in trained(subject, work, jobs, on_run) for r in side])
    result = audit(
        lambda data, seed: next(releases),
        pair,
        n_runs=runs,
        delta=delta,
        confidence=confidence,
        method=method,
    )
    return EstimatorAudit(
        type(estimator).__name__,
        promised,
        delta,
        relation,
        n_rows,
        n_features,
        result,
        gaussian,
    )


def _prepared(estimator: Any) -> Any:
    """Return a copy in which all public bounds are set, or say what is missing."""
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
    defaults |= {"classes": [-1, 1], "y_range": (-1.0, 1.0)}
    missing = {k: v for k, v in defaults.items() if given.get(k, v) is None}
    if "random_state" in given:
        missing["random_state"] = None
    return subject.set_params(**missing)


def _relation(neighbors: Any) -> str:
    name = getattr(neighbors, "value", neighbors)
    if name is None:
        return REPLACE
    if name not in (REPLACE, ADD_OR_REMOVE):
        raise ValueError(
            f"neighbors must be {REPLACE!r} or {ADD_OR_REMOVE!r}, got {neighbors!r}."
        )
    return str(name)


def _pair(subject: Any, n_rows: int, n_features: int, relation: str, norm: str) -> Pair:
    """Return the worst-case pair at the public bounds, with the labels they name."""
    given = subject.get_params(deep=False)
    bound = next(float(given[name]) for name in NORMS if name in given)
    if not (isfinite(bound) and bound > 0):
        raise ValueError(f"The bound on a row must be finite and > 0, got {bound!r}.")
    shape = (n_rows, n_features, bound, relation)
    if _classifies(subject):
        labels = np.unique(np.asarray(list(given.get("classes", (-1, 1)))))
        if len(labels) < 2:
            raise ValueError("classes must name at least 2 labels.")
        if len(labels) == 2:
            pair = worst_case_pair("logistic", *shape)
            sides = [(X, labels[(y > 0).astype(int)]) for X, y in pair]
        else:
            pair = worst_case_pair("softmax", *shape, n_classes=len(labels))
            sides = [(X, labels[y]) for X, y in pair]
    else:
        low, high = map(float, given.get("y_range", (-1.0, 1.0)))
        # rows of zeros tell nothing at the target that a model without weights gives
        free = bool(given.get("fit_intercept", "radius" not in given))
        middle = low + (high - low) / 2 if free else min(max(0.0, low), high)
        pair = worst_case_pair("squared", *shape)
        sides = [
            (X, np.where(y > 0, high, np.where(y < 0, low, middle))) for X, y in pair
        ]
    if "x_max" in given or norm == "linf":
        sides = [(_spread(X), y) for X, y in sides]
    return Pair(*sides)


def _spread(X: Floats) -> Floats:
    """Return rows whose every entry is as large as the first, with both signs."""
    signs = np.where(np.arange(X.shape[1]) % 2 == 0, 1.0, -1.0)
    return X[:, :1] * signs


def _classifies(subject: Any) -> bool:
    try:
        return bool(is_classifier(subject))
    except (AttributeError, TypeError):  # what knows nothing of scikit-learn's tags
        return hasattr(subject, "predict_proba")


def _promise(fitted: Any, delta: float | None) -> tuple[float, float, bool]:
    """Return epsilon, delta, and whether the report claims Gaussian noise only."""
    given = fitted.get_params(deep=False)
    report = getattr(fitted, "privacy_", None)
    if report is None:
        told = given.get("delta")
        found = float(told if told is not None else delta or 0.0)
        return float(given["epsilon"]), found, False
    # through JSON, so that nothing is shared with what is judged
    data = json.loads(json.dumps(report.to_dict()))
    promise = data["promise"]
    claims = [_gaussian_only(entry["event"]) for entry in data["entries"]]
    return float(promise["epsilon"]), float(promise["delta"]), all(claims)


def _gaussian_only(event: Any) -> bool:
    kind = event["type"]
    if kind == "Repeated":
        return _gaussian_only(event["event"])
    if kind == "Composed":
        return all(map(_gaussian_only, event["events"]))
    return bool(kind == "GaussianNoise")
