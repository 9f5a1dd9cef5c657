"""Audit of what an estimator guarantees."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from tacit._validate import fraction
from tacit.audit._attacked import attacked, solver_name
from tacit.audit._guarantee import GuaranteeAudit, gaussian_note
from tacit.audit._outcomes import Outcome, observed, steady_differences, table
from tacit.audit._seeds import AuditSeed, run_seeds
from tacit.audit._subjects import guarantee_of, pair_of, prepared
from tacit.audit._trainings import Progress, trained
from tacit.audit.bounds import largest_bound
from tacit.audit.pairs import Pair, relation_of
from tacit.audit.run import AuditResult, audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EstimatorAudit", "audit_estimator"]

Method = Literal["auto", "clopper-pearson", "gaussian"]

# Norm of a row that the estimator should clip, in multiples of its bound
FAR = 1000.0
MOST_RUNS = 10**9


@dataclass(frozen=True)
class EstimatorAudit(GuaranteeAudit):
    """Result of `audit_estimator`, with what `GuaranteeAudit` has.

    Parameters
    ----------
    result
        The lower bound and the counts behind it, for the pair that showed most.
    n_rows, n_features
        Shape of the attacked data set.
    leaks
        Attributes with one value in all runs on one side, and another in all runs on
        the other.
    refuses_far_rows
        Whether it rejected a row beyond its bounds, so that such rows were not tried.
    """

    result: AuditResult
    n_rows: int
    n_features: int
    leaks: tuple[str, ...] = ()
    refuses_far_rows: bool = False

    @property
    def verdict(self) -> str:
        """The outcome in words, with what it does not show."""
        guarantee = self._guarantee_in_words()
        found = (
            f"this attack shows that epsilon is at least {self.epsilon_lower:.3g}, "
            f"with confidence {self.result.confidence:g} (so many runs can show at "
            f"most {self.most_shown:.3g})"
        )
        note = ""
        if self.leaks:
            note = f" Without noise: {', '.join(self.leaks)}."
        note += gaussian_note(self.result.method, self.claims_gaussian)
        if self.refuted:
            return f"Refuted: {guarantee}, and {found}.{note}"
        if self.refuses_far_rows:
            note += " It rejects rows outside its bounds, so none was tried."
        return (
            f"Not refuted: {guarantee}, and {found}.{note} This proves nothing: a "
            "better attack, other rows or more runs may show more."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            **self._guarantee_to_dict(),
            "epsilon_lower": self.epsilon_lower,
            "most_shown": self.most_shown,
            "leaks": list(self.leaks),
            "refuses_far_rows": self.refuses_far_rows,
            "confidence": self.result.confidence,
            "method": self.result.method,
            "runs": self.result.n_runs,
            "rows": self.n_rows,
            "features": self.n_features,
            "hits": list(self.result.hits),
            "trials": list(self.result.trials),
            "favors_first": self.result.favors_first,
            "refuted": self.refuted,
            "verdict": self.verdict,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how well the judged runs were distinguished, over what is forbidden."""
        drawn = self.result.plot(self.epsilon, ax)
        drawn.set_title(f"Audit of {self.estimator}")
        return drawn


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
    random_state: AuditSeed = None,
    on_run: Progress | None = None,
) -> EstimatorAudit:
    """Attack an estimator on neighbors that show much, and bound its epsilon.

    Parameters
    ----------
    estimator
        Has ``fit``, ``coef_`` or ``shapes_``, and scikit-learn's parameters, among them
        ``epsilon`` and a bound on a row: ``x_norm``, ``data_norm``, ``x_max``,
        ``feature_bounds`` or ``ranges``. It is copied, and its bounds are used; where
        ``classes``, ``y_range`` or the bound on a row are None, they are -1 and 1, and
        1.
    n_rows
        Rows of the attacked data set, at least 4.
    n_features
        Columns, at least 2.
    runs
        Trainings on each data set of a pair, at least 20. Half choose the attack,
        half judge it. Too few to refute the guarantee even without noise are rejected.
    confidence
        Probability with which the bound holds.
    neighbors
        What the guarantee holds for, where the estimator does not say:
        ``"replace_one"`` or ``"add_or_remove_one"``. None for the former.
    delta
        Delta of the guarantee, where the estimator does not say. None for zero.
    method
        ``"clopper-pearson"`` holds for any mechanism. ``"gaussian"`` needs far fewer
        runs and takes the noise to be Gaussian. ``"auto"`` is the latter where the
        report of the estimator claims Gaussian noise and nothing else.
    jobs
        Processes that train, by joblib.
    random_state
        None trains with the randomness that users of the estimator have. A seed
        fixes it, where the estimator takes one.
    on_run
        Called with the number of trainings done and the number planned.

    Notes
    -----
    **Bound.** The larger of two, each that of `clopper_pearson_bound` or
    `gaussian_bound` with half of the allowed failure probability. One is for the pair
    of `worst_case_pair` at the public bounds, the other for a row a thousand times
    beyond them, which the estimator is to clip. The attack sees every public attribute
    that the fit sets, or the error that it raised. A bound above the guarantee
    refutes it with that confidence. A bound below proves nothing, and can never:
    another pair, another attack or more runs may show more. Under a report of Gaussian
    noise, the Gaussian bound assumes no more than the report claims.

    Examples
    --------
    >>> from tacit.audit import audit_estimator
    >>> from tacit.linear_model import SimplexRegressor
    >>> found = audit_estimator(SimplexRegressor(1.0), runs=60, random_state=0)
    >>> found.refuted
    False
    """
    # long: one step of the audit after another, on what the last one found
    _check(n_rows, n_features, runs, jobs, method)
    fraction(closed=False, confidence=confidence)
    subject = prepared(estimator)
    relation = relation_of(subject.get_params(deep=False).get("neighbors", neighbors))
    shape = n_rows, n_features, relation
    # one fit shows what is guaranteed, and in which norm rows are bounded
    probe = _probe(subject, pair_of(subject, *shape, "l2"))
    observed(probe)  # raises where attributes are missing
    guaranteed, delta, gaussian = guarantee_of(probe, delta)
    norm = getattr(getattr(probe, "bounds_", None), "norm", "l2")
    pairs = [pair_of(subject, *shape, norm, reach) for reach in (1.0, FAR)]
    rejects = not _fits(subject, pairs[1].first)
    if rejects:  # its guarantee is for data within its bounds
        del pairs[1:]
    if method == "auto":
        method = "gaussian" if gaussian and delta > 0 else "clopper-pearson"
    terms: dict[str, Any] = {
        "delta": delta,
        "confidence": 1 - (1 - confidence) / len(pairs),
        "method": method,
    }
    most = largest_bound(runs, **terms)
    if guaranteed >= most:
        raise ValueError(_too_few(runs, guaranteed, most, terms))
    seeds: list[int | None] = [None] * (2 * runs * len(pairs))
    if random_state is not None:
        seeds = [*run_seeds(random_state, len(seeds))]
    tables = [data for pair in pairs for data in pair]
    work = [(data, seeds[i * runs :][:runs]) for i, data in enumerate(tables)]
    worst, leaks = _judged(pairs, trained(subject, work, jobs, on_run), runs, terms)
    guarantee = {"epsilon": guaranteed, "delta": delta, "neighbors": relation}
    return EstimatorAudit(
        type(estimator).__name__,
        guaranteed,
        delta,
        relation,
        replace(worst, confidence=confidence),
        most,
        gaussian,
        attacked(estimator, guarantee, solver_name(subject, n_rows, n_features)),
        n_rows,
        n_features,
        leaks,
        rejects,
    )


def _check(n_rows: int, n_features: int, runs: int, jobs: int, method: Method) -> None:
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


def _judged(
    pairs: list[Pair], sides: list[list[Outcome]], runs: int, terms: dict[str, Any]
) -> tuple[AuditResult, tuple[str, ...]]:
    """Return the result for the pair that shows most, and the leaks on all pairs."""
    results: list[AuditResult] = []
    leaks: list[str] = []
    for i, pair in enumerate(pairs):
        both = sides[2 * i], sides[2 * i + 1]
        leaks += steady_differences(*both)
        rows = iter(np.concatenate(table(*both)))
        # trained already, and judged in this order
        train = lambda data, seed, rows=rows: next(rows)  # noqa: E731
        results.append(audit(train, pair, n_runs=runs, **terms))
    worst = max(results, key=lambda result: result.epsilon_lower)
    return worst, tuple(dict.fromkeys(leaks))


def _probe(subject: Any, pair: Pair) -> Any:
    """Return a fit on either side; an error on one side only is for the attack."""
    try:
        return deepcopy(subject).fit(*pair.first)
    except Exception:
        if not _fits(subject, pair.second):
            raise
        return deepcopy(subject).fit(*pair.second)


def _fits(subject: Any, data: Any) -> bool:
    try:
        deepcopy(subject).fit(*data)
    except Exception:
        return False
    return True


def _too_few(runs: int, guaranteed: float, most: float, terms: dict[str, Any]) -> str:
    """Return the error for an audit that could not fail, with the runs it needs."""
    message = (
        f"runs must be more: {runs} show an epsilon of at most {most:.3g}, even "
        f"without noise, and {guaranteed:g} is guaranteed"
    )
    few, enough = runs, runs
    while largest_bound(enough, **terms) <= guaranteed:
        few, enough = enough, 2 * enough
        if enough > MOST_RUNS:
            return f"{message}; audit a smaller epsilon."
    while enough - few > 1:
        middle = (few + enough) // 2
        shown = largest_bound(middle, **terms) > guaranteed
        few, enough = (few, middle) if shown else (middle, enough)
    return f"{message}; give at least {enough}, or audit a smaller epsilon."
