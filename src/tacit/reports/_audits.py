"""Results of audits and membership attacks for a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.audit._attacked import LEFT_OUT, AuditDisagrees, digest_of
from tacit.reports._format import (
    clean,
    count,
    fixed,
    fixed_down,
    fixed_up,
    number_down,
    number_up,
    percent,
    tiny_up,
    truncated,
)

if TYPE_CHECKING:
    from tacit.audit._guarantee import GuaranteeAudit

__all__ = ["AuditTable", "RateRow", "audits_of"]

METHODS = {
    "gaussian": "assumes that the noise is Gaussian",
    "any": "holds for any mechanism",
    "clopper-pearson": "holds for any mechanism",
}
RELATIONS = {"replace_one": "replace a row", "add_or_remove_one": "add or remove a row"}
MOST_AUDITS = 50
MOST_LETTERS = 1000


@dataclass(frozen=True)
class RateRow:
    """Members recognized at a false-positive rate, as strings."""

    false_positive_rate: str
    true_positive_rate: str
    low: str
    high: str


@dataclass(frozen=True)
class AuditTable:
    """One audit: facts by name, and its verdict.

    ``private`` is true of an attack on rows of people: its result is private data, like
    the rows.
    """

    title: str
    facts: list[tuple[str, str]]
    verdict: list[str]
    refuted: bool = False
    summary: str = ""
    private: bool = False
    rates: tuple[RateRow, ...] = ()


def audits_of(
    given: Any, name: str, model: Mapping[str, Any] | None = None
) -> list[AuditTable]:
    """Return tables of audits.

    If the facts of a model are given, all audits must be of that model, and attacks on
    rows are rejected: their results are private data.
    """
    try:
        audits = list(given)
        found = [_table(audit) for audit in audits[:MOST_AUDITS]]
    except AuditDisagrees as error:
        raise ValueError(
            f"{name} has an audit that {error}; run the audit again."
        ) from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(
            f"{name} must be what 'tacit audit --json' printed, or the to_dict of a "
            "result of tacit.audit."
        ) from None
    if len(audits) > MOST_AUDITS:
        raise ValueError(
            f"{name} must have at most {MOST_AUDITS} audits, got {len(audits)}: make "
            "several pages."
        )
    if model is None:
        return found
    if any(audit.private for audit in found):
        raise ValueError(
            f"{name} must have no membership attack: its result is private data, for "
            "a page of its own."
        )
    for audit in audits:
        _require_same(audit, model, name)
    return found


def _require_same(
    audit: Mapping[str, Any], model: Mapping[str, Any], name: str
) -> None:
    """Reject an audit of another class, version, guarantee, solver or parameter."""
    # long: one check of the audit's record after another, each with its message
    parts = audit.get("attacked")
    if not isinstance(parts, Mapping):
        raise ValueError(
            f"{name} has an audit without a record of what it attacked, as earlier "
            "versions wrote it; run the audit again."
        )
    try:
        intact = parts["sha256"] == digest_of(dict(parts))
        parameters = dict(parts["parameters"])
    except (KeyError, TypeError, ValueError):
        intact = False
    if not intact:
        raise ValueError(
            f"{name} has an audit that was changed after it was written; run the "
            "audit again."
        )
    version = model["tacit"]
    own = {
        "estimator": model["estimator"],
        "version": None if version is None else f"tacit {version}",
        "promise": model["privacy"]["promise"],
        "solver": model["solver"],
    }
    pairs = [(part, parts.get(part), value) for part, value in own.items()]
    given = model["parameters"] or {}
    pairs += [
        (f"parameter {key}", parameters.get(key), given.get(key))
        for key in sorted({*parameters, *given} - LEFT_OUT)
    ]
    for part, theirs, ours in pairs:
        if theirs != ours:
            shown = _shown(theirs), _shown(ours)
            if shown[0] == shown[1]:  # they differ beyond three digits
                shown = truncated(theirs), truncated(ours)
            raise ValueError(
                f"{name} has an audit of another {part}: {shown[0]}, and the "
                f"model has {shown[1]}; audit the estimator that the model was fitted "
                "with, as 'tacit audit --model FOLDER' does."
            )


def _shown(value: Any) -> str:
    """Return one part of what was attacked as a short string."""
    if isinstance(value, Mapping):
        return truncated(
            ", ".join(f"{key} {_rounded(part)}" for key, part in value.items())
        )
    return "nothing" if value is None else truncated(_rounded(value))


def _rounded(value: Any) -> Any:
    return f"{value:.3g}" if isinstance(value, float) else value


def _table(audit: Mapping[str, Any]) -> AuditTable:
    # few models have an audit, and all of `tacit.audit` is loaded here
    from tacit.audit._restored import restored  # noqa: PLC0415

    if "auc" in audit:
        return _membership(audit)
    one_run, found = "canaries" in audit, restored(audit)
    if one_run:
        effort = {
            "canaries": f"{count(audit['canaries'])} in one training",
            "right guesses": f"{count(audit['correct'])} of {count(audit['guesses'])}",
        }
    else:
        effort = {"trainings": f"{count(audit['runs'])} on each of two tables"}
    return AuditTable(
        "One training with canaries"
        if one_run
        else "Many trainings on neighboring tables",
        [
            ("estimator", clean(audit["estimator"])),
            ("guarantee", _guaranteed(audit["promise"])),
            ("result", f"epsilon is at least {number_down(found.epsilon_lower)}"),
            ("largest possible result", f"epsilon {number_down(found.most_shown)}"),
            ("confidence", _confidence(audit)),
            *effort.items(),
            ("method of the bound", METHODS[audit["method"]]),
            ("attacked", _attacked(audit.get("attacked"))),
        ],
        [truncated(found.verdict, MOST_LETTERS)],
        refuted=found.refuted,
        summary=_summary(audit, found),
    )


def _summary(audit: Mapping[str, Any], found: GuaranteeAudit) -> str:
    """Return the result in a sentence, for a card."""
    by = (
        f"one training with {count(audit['canaries'])} canaries"
        if "canaries" in audit
        else f"{count(audit['runs'])} trainings on each of two neighboring tables"
    )
    shown = (
        f"epsilon is at least {number_down(found.epsilon_lower)} with confidence "
        f"{_confidence(audit)}; the largest possible result of this audit is "
        f"{number_down(found.most_shown)}"
    )
    guarantee = f"epsilon {number_up(found.epsilon)}"
    if found.refuted:
        return f"An audit by {by} refutes {guarantee}: {shown}."
    return (
        f"An audit by {by} does not refute {guarantee}, which proves nothing: {shown}."
    )


def _attacked(parts: Any) -> str:
    if not isinstance(parts, Mapping):
        return "not recorded: this audit has no parameters or version of the estimator"
    solver = parts["solver"]
    by = "" if solver is None else f" by {clean(solver)}"
    return f"{clean(parts['version'])}{by}, digest {clean(parts['sha256'])[:16]}"


def _guaranteed(guarantee: Mapping[str, Any]) -> str:
    epsilon, delta = number_up(guarantee["epsilon"]), tiny_up(guarantee["delta"])
    neighbors = RELATIONS[guarantee["neighbors"]]
    return f"epsilon {epsilon}, delta {delta}, for neighbors that {neighbors}"


def _membership(audit: Mapping[str, Any]) -> AuditTable:
    from tacit.audit._restored import restored_membership  # noqa: PLC0415 - as above

    low, high = audit["auc_interval"]
    members, others = count(audit["members"]), count(audit["non_members"])
    bound, found = (
        audit["bound"],
        restored_membership({**audit, "score": clean(audit["score"])}),
    )
    shown = (
        "no bound, as rows were not assigned at random"
        if bound is None
        else f"epsilon is at least {number_down(bound['epsilon_lower'])} at delta "
        f"{tiny_up(bound['delta'])}"
    )
    return AuditTable(
        "Membership attack",
        [
            ("attack by", clean(audit["score"])),
            ("rows", f"{members} trained on, {others} not"),
            (
                "area under the curve",
                f"{fixed(audit['auc'])}, between {fixed_down(low)} and "
                f"{fixed_up(high)}; guessing gives 0.5",
            ),
            ("confidence", f"{_confidence(audit)} for each interval"),
            ("result", shown),
        ],
        [truncated(line, MOST_LETTERS) for line in found.verdict.splitlines()],
        private=True,
        rates=tuple(_rate(rate) for rate in audit["rates"]),
    )


def _rate(rate: Mapping[str, Any]) -> RateRow:
    low, high = rate["true_positive_interval"]
    return RateRow(
        percent(rate["asked"]),
        fixed(rate["true_positive_rate"]),
        fixed_down(low),
        fixed_up(high),
    )


def _confidence(audit: Mapping[str, Any]) -> str:
    return percent(audit["confidence"], 4)
