"""Audits restored from plain data, recomputed from their counts."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose, isfinite
from typing import Any

from tacit.audit._attacked import AuditDisagrees
from tacit.audit._guarantee import GuaranteeAudit
from tacit.audit.bounds import bound_of_counts, largest_bound
from tacit.audit.canaries import OneRunAudit
from tacit.audit.estimators import EstimatorAudit
from tacit.audit.membership import MembershipAttack, RateAt
from tacit.audit.one_run import OneRunBound, bound_of_guesses, most_in_one_run
from tacit.audit.run import AuditResult

__all__ = ["restored", "restored_membership"]

MANY_RUNS, ONE_RUN = ("clopper-pearson", "gaussian"), ("any", "gaussian")
MOST_RUNS = 10**9
# Other versions of SciPy may compute the last digits otherwise
REL_TOL, ABS_TOL = 1e-6, 1e-9


def restored(data: Mapping[str, Any]) -> GuaranteeAudit:
    """Return the audit that ``to_dict`` was called on, judged anew by its counts.

    The bound, the largest possible bound and the outcome are computed from the counts,
    the method and the confidence. Stated values that differ raise `AuditDisagrees`;
    data of another form raise another ValueError, a KeyError or a TypeError.
    """
    audit = _one_run(data) if "canaries" in data else _many_runs(data)
    _require_close(data, "epsilon_lower", audit.epsilon_lower)
    _require_close(data, "most_shown", audit.most_shown)
    if data["refuted"] is not audit.refuted:
        raise AuditDisagrees(
            f"states refuted {data['refuted']!r}, and its counts give {audit.refuted}"
        )
    return audit


def restored_membership(data: Mapping[str, Any]) -> MembershipAttack:
    """Return the attack that ``to_dict`` was called on, without scores of rows.

    Its bound is computed again; its other figures need scores, and are checked to be
    possible.
    """
    bound = None
    if data["bound"] is not None:
        stated = data["bound"]
        bound = _bound(stated, stated["delta"], _integer(stated, "canaries"))
        _require_close(stated, "epsilon_lower", bound.epsilon_lower)
    members, others = _integer(data, "members"), _integer(data, "non_members")
    if min(members, others) < 1:
        raise AuditDisagrees(f"states {members} members and {others} others")
    return MembershipAttack(
        str(data["score"]),
        range(members),  # type: ignore[arg-type]  # only their number is known
        range(others),  # type: ignore[arg-type]
        _rate(data["auc"], "auc"),
        _interval(data["auc_interval"], "auc_interval"),
        tuple(
            RateAt(
                _rate(rate["asked"], "asked"),
                0.0,  # a score of one row, which is not kept
                _rate(rate["false_positive_rate"], "false_positive_rate"),
                _interval(rate["false_positive_interval"], "false_positive_interval"),
                _rate(rate["true_positive_rate"], "true_positive_rate"),
                _interval(rate["true_positive_interval"], "true_positive_interval"),
            )
            for rate in data["rates"]
        ),
        _fraction(data, "confidence"),
        None if data["assigned"] is None else str(data["assigned"]),
        bound,
    )


def _rate(value: Any, name: str) -> float:
    rate = _number({name: value}, name)
    if not 0 <= rate <= 1:
        raise AuditDisagrees(f"states {name} {rate:.3g}")
    return rate


def _interval(given: Any, name: str) -> tuple[float, float]:
    low, high = (_rate(end, name) for end in given)
    if low > high:
        raise AuditDisagrees(f"states {name} from {low:.3g} to {high:.3g}")
    return low, high


def _many_runs(data: Mapping[str, Any]) -> EstimatorAudit:
    runs = _integer(data, "runs")
    counts = _hits_and_trials(data, runs)
    rejects = _flag(data, "refuses_far_rows")
    confidence = _fraction(data, "confidence")
    delta = _fraction(data["promise"], "delta")
    terms: dict[str, Any] = {
        "delta": delta,
        # split over two pairs: with a row at the bounds, and with one beyond
        "confidence": 1 - (1 - confidence) / (1 if rejects else 2),
        "method": _method(data, MANY_RUNS, delta),
    }
    # earlier versions did not record which data set the event speaks for
    sides = [_flag(data, "favors_first")] if "favors_first" in data else [True, False]
    bounds = {side: bound_of_counts(*counts, side, **terms) for side in sides}
    favored = max(bounds, key=lambda side: bounds[side])
    result = AuditResult(
        bounds[favored],
        delta,
        confidence,
        terms["method"],
        runs,
        *counts,
        favors_first=favored,
    )
    return EstimatorAudit(
        *_guaranteed(data),
        result,
        largest_bound(runs, **terms),
        *_attacked(data),
        _integer(data, "rows"),
        _integer(data, "features"),
        tuple(map(str, data["leaks"])),
        rejects,
    )


def _hits_and_trials(
    data: Mapping[str, Any], runs: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    if not 4 <= runs <= MOST_RUNS:
        raise AuditDisagrees(f"states {runs} runs")
    trials, hits = ([*map(_counted, data[name])] for name in ("trials", "hits"))
    judged = runs - runs // 2
    if trials != [judged, judged]:
        raise AuditDisagrees(f"states trials {trials}, and {judged} of its runs judge")
    if len(hits) != 2 or not all(0 <= hit <= judged for hit in hits):
        raise AuditDisagrees(f"states hits {hits} in {judged} trials")
    return (hits[0], hits[1]), (judged, judged)


def _one_run(data: Mapping[str, Any]) -> OneRunAudit:
    canaries, judged = _integer(data, "canaries"), _integer(data, "judged")
    if judged != canaries // 2:
        raise AuditDisagrees(
            f"states that {judged} canaries judge, and of {canaries} half do"
        )
    bound = _bound(data, data["promise"]["delta"], judged)
    terms: dict[str, Any] = {"delta": bound.delta, "confidence": bound.confidence}
    return OneRunAudit(
        *_guaranteed(data),
        bound,
        most_in_one_run(judged, method=bound.method, **terms),  # type: ignore[arg-type]
        *_attacked(data),
        canaries,
        _integer(data, "features"),
        str(data["attribute"]),
        (),
        (),
    )


def _bound(data: Mapping[str, Any], delta: Any, judged: int) -> OneRunBound:
    counts = _integer(data, "correct"), _integer(data, "guesses"), judged
    if not 0 <= counts[0] <= counts[1] <= counts[2] or judged < 1:
        raise AuditDisagrees(
            f"states {counts[0]} right of {counts[1]} guesses on {judged} canaries"
        )
    delta = _fraction({"delta": delta}, "delta")
    method: Any = _method(data, ONE_RUN, delta)
    return bound_of_guesses(
        counts, delta=delta, confidence=_fraction(data, "confidence"), method=method
    )


def _guaranteed(data: Mapping[str, Any]) -> tuple[str, float, float, str]:
    guarantee, parts = data["promise"], data.get("attacked")
    if isinstance(parts, Mapping):
        for name, stated in (("estimator", data["estimator"]), ("promise", guarantee)):
            if parts.get(name) != stated:
                raise AuditDisagrees(f"states another {name} than it attacked")
    epsilon = _number(guarantee, "epsilon")
    if epsilon < 0:
        raise AuditDisagrees(f"states a guarantee of epsilon {epsilon:.3g}")
    return (
        str(data["estimator"]),
        epsilon,
        _fraction(guarantee, "delta"),
        str(guarantee["neighbors"]),
    )


def _attacked(data: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    # earlier versions did not record the claim; without it, it is unproved
    claims = _flag(data, "claims_gaussian") if "claims_gaussian" in data else False
    return claims, dict(data.get("attacked") or {})


def _require_close(data: Mapping[str, Any], name: str, computed: float) -> None:
    stated = _number(data, name)
    if not isclose(stated, computed, rel_tol=REL_TOL, abs_tol=ABS_TOL):
        raise AuditDisagrees(
            f"states {name} {stated:.3g}, and its counts give {computed:.3g}"
        )


def _method(data: Mapping[str, Any], known: tuple[str, ...], delta: float) -> str:
    method = data["method"]
    if method not in known:
        raise AuditDisagrees(f"states a method that is none of {', '.join(known)}")
    if method == "gaussian" and delta == 0:
        raise AuditDisagrees("states the method gaussian, which needs delta > 0")
    return str(method)


def _number(data: Mapping[str, Any], name: str) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not isfinite(value):
        raise AuditDisagrees(f"states {name} {value}")
    return float(value)


def _fraction(data: Mapping[str, Any], name: str) -> float:
    """Return a delta, or a confidence, which is not 0."""
    value = _number(data, name)
    if not 0 <= value < 1 or (name == "confidence" and value == 0):
        raise AuditDisagrees(f"states {name} {value:.3g}")
    return value


def _integer(data: Mapping[str, Any], name: str) -> int:
    return _counted(data[name])


def _counted(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _flag(data: Mapping[str, Any], name: str) -> bool:
    value = data[name]
    if not isinstance(value, bool):
        raise TypeError
    return value
