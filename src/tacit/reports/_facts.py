"""The facts a report is made of, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Budget, Neighbors, PrivacyReport
from tacit.privacy.attacker import curve_of
from tacit.privacy.budget import exactly
from tacit.reports._audits import AuditTable, audits_of
from tacit.reports._fairness import GroupTable, paid_table

__all__ = ["Facts", "restored_report"]

_WEIGHTS = ("coef", "intercept")
_NEEDED = ("title", "estimator", "privacy", "features", *_WEIGHTS)
_OPTIONAL = (
    *("created", "tacit", "parameters", "rows", "dataset", "classes", "noise"),
    *("score", "ledger", "schema", "releases", "charge", "selected", "selection"),
    *("stream", "student", "side", "fairness", "audits", "solver", "budget"),
)


@dataclass(frozen=True, eq=False)
class Facts:
    """What is public of a fitted model.

    ``privacy`` is about everything released with it, of which ``parts`` are the fit and
    what was paid for besides.
    """

    plain: dict[str, Any]
    parts: tuple[PrivacyReport, ...]
    privacy: PrivacyReport
    features: list[str]
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    fairness: tuple[GroupTable, ...] = ()
    audits: tuple[AuditTable, ...] = ()
    budget: Budget | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Facts:
        """Return the facts after checking that they fit together."""
        # neither what a student learnt nor an item side is a table of weights
        others = any(facts.get(name) is not None for name in ("student", "side"))
        without = _WEIGHTS if others else ()
        missing = [n for n in _NEEDED if n not in facts and n not in without]
        if missing:
            raise ValueError(f"facts must have the entry {missing[0]!r}.")
        plain = {name: facts.get(name) for name in (*_NEEDED, *_OPTIONAL)}
        features = [str(name) for name in facts["features"]]
        given = np.zeros((0, len(features))) if without else facts["coef"]
        coef = np.atleast_2d(np.asarray(given, dtype=np.float64))
        if coef.ndim != 2 or coef.shape[1] != len(features):
            raise ValueError(
                f"facts['coef'] must have one column for each of the {len(features)} "
                f"features, got shape {coef.shape}."
            )
        given = [] if without else facts["intercept"]
        intercept = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if intercept.size == 1:
            intercept = np.full(len(coef), intercept.ravel()[0])
        if intercept.shape != (len(coef),):
            raise ValueError(
                f"facts['intercept'] must have {len(coef)} entries, got shape "
                f"{intercept.shape}."
            )
        chosen = plain["selected"]
        if chosen is not None and not set(map(str, chosen)) <= set(features):
            raise ValueError("facts['selected'] must be among facts['features'].")
        _refuse_selection(plain["selection"])
        _refuse_stream(plain["stream"])
        _refuse_student(plain["student"])
        _refuse_side(plain["side"])
        low = high = None
        if plain["noise"] is not None:
            low, high = (
                np.atleast_2d(np.asarray(plain["noise"][end], dtype=np.float64))
                for end in ("low", "high")
            )
            if low.shape != coef.shape or high.shape != coef.shape:
                raise ValueError(
                    "facts['noise'] must have the shape of facts['coef'], "
                    f"{coef.shape}, got {low.shape} and {high.shape}."
                )
        fit = restored_report(facts["privacy"], "privacy")
        parts = tuple(
            restored_report(part, "releases") for part in plain["releases"] or ()
        )
        if parts and parts[0] != fit:
            raise ValueError("facts['releases'] must begin with facts['privacy'].")
        parts = parts or (fit,)
        given = plain["fairness"] or ()
        given = [given] if isinstance(given, Mapping) else given
        fairness = tuple(paid_table(table, "facts['fairness']") for table in given)
        parts += tuple(restored_report(part.charge, "fairness") for part in fairness)
        audits = audits_of(plain["audits"] or (), "facts['audits']", plain)
        return cls(
            plain,
            parts,
            _together(parts),
            features,
            coef,
            intercept,
            low,
            high,
            fairness,
            tuple(audits),
            None if plain["budget"] is None else Budget.from_dict(plain["budget"]),
        )

    @property
    def replaces(self) -> bool:
        """Whether neighbors replace one row, so that the number of rows is public."""
        return self.privacy.guarantee.neighbors is Neighbors.REPLACE_ONE

    @property
    def rows(self) -> int | None:
        """Number of rows, where the promise lets it be said."""
        # with rows added or removed their number is private, whoever put it in
        return self.plain["rows"] if self.replaces else None

    @property
    def expected_rows(self) -> int | None:
        """Public number of rows or users: that of the fit, or the one planned for."""
        if self.rows is not None:
            return self.rows
        given = self.plain["parameters"] or {}
        planned = given.get("expected_rows", given.get("expected_users"))
        return planned if type(planned) is int else None

    @property
    def seeded(self) -> bool:
        """Whether a fixed seed was used, in this fit or elsewhere in its ledger."""
        ledger = self.plain["ledger"] or {}
        return self.privacy.seeded or any(
            record.get("seeded") for record in ledger.get("records", ())
        )

    @property
    def voided(self) -> bool:
        """Whether the ledger says that the charge of this very fit was voided."""
        ledger, charge = self.plain["ledger"] or {}, self.plain["charge"]
        return charge is not None and any(
            record.get("kind") == "void" and record.get("refers_to") == charge
            for record in ledger.get("records", ())
        )

    @property
    def uncounted(self) -> bool:
        """Whether something was paid for of which no report was given."""
        bars = self.plain["noise"] or {}
        paid = self.plain["score"] or bars.get("covers") == "noise and sampling"
        return bool(paid) and len(self.plain["releases"] or ()) < 2


def _refuse_selection(how: Any) -> None:
    """Refuse what does not say how columns were selected before the fit."""
    if how is None:
        return
    told = isinstance(how, Mapping) and {"asked", "answered", "epsilon"} <= set(how)
    if not told or not isinstance(how["epsilon"], int | float | None):
        raise ValueError(
            "facts['selection'] must say how many columns were 'asked' for, whether "
            "that was 'answered' and for what 'epsilon', None where a search paid."
        )


def _refuse_stream(terms: Any) -> None:
    """Refuse what does not say how far a stream was paid for and how far it went."""
    if terms is None:
        return
    names = ("steps", "horizon", "rows_per_person")
    told = isinstance(terms, Mapping) and set(names) <= set(terms)
    known = told and isinstance(terms.get("last_refit"), int | None)
    if not known or any(type(terms[name]) is not int for name in names):
        raise ValueError(
            "facts['stream'] must say how many 'steps' were released, the 'horizon' "
            "that was charged, and the most 'rows_per_person'; 'last_refit' is a step "
            "or None."
        )


def _refuse_student(facts: Any) -> None:
    """Refuse what does not say whose answers a student learnt from."""
    if facts is None:
        return
    counts, flags = ("teachers", "asked", "answered"), ("labels_only", "by_person")
    told = isinstance(facts, Mapping) and {*counts, *flags} <= set(facts)
    known = told and all(type(facts[name]) is int for name in counts)
    if not known or any(type(facts[name]) is not bool for name in flags):
        raise ValueError(
            "facts['student'] must say how many 'teachers' answered, how many "
            "questions were 'asked' and 'answered', whether 'labels_only' are private "
            "and whether rows of a person are protected together ('by_person')."
        )


def _refuse_side(facts: Any) -> None:
    """Refuse what does not say which items a recommender is about."""
    if facts is None:
        return
    counts, ends = ("items", "vectors"), ("low", "high")
    told = isinstance(facts, Mapping) and {*counts, *ends, "max_ratings"} <= set(facts)
    known = told and all(type(facts[name]) is int for name in counts)
    known = known and type(facts["max_ratings"]) in (int, type(None))
    known = known and isinstance(facts.get("released", ""), str)
    if not known or any(type(facts[name]) not in (int, float) for name in ends):
        raise ValueError(
            "facts['side'] must say how many 'items' there are, the length of their "
            "'vectors', the most ratings of a user that were used ('max_ratings', or "
            "None), and between which 'low' and 'high' ratings lie."
        )


def restored_report(data: Any, name: str) -> PrivacyReport:
    """Return a report from plain data, after checking what it promises."""
    try:
        report = PrivacyReport.from_dict(data)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            f"facts[{name!r}] must be what PrivacyReport.to_dict returned."
        ) from None
    guarantee = report.guarantee
    for entry in report.entries:
        if not entry.event.curve(guarantee.neighbors).fits(guarantee):
            raise ValueError(f"facts[{name!r}] promises less than its charges spend.")
    return report


def _together(parts: tuple[PrivacyReport, ...]) -> PrivacyReport:
    """Return one report about all releases: promises and curves add up."""
    first, *others = parts
    if not others:
        return first
    if len({part.guarantee.neighbors for part in parts}) > 1:
        raise ValueError("facts['releases'] must all be for the same neighbors.")
    epsilon, delta = (
        float(sum(exactly(getattr(part.guarantee, name)) for part in parts))
        for name in ("epsilon", "delta")
    )
    curve = sum(map(curve_of, others), curve_of(first))
    return PrivacyReport(
        Budget(epsilon, delta, first.guarantee.neighbors),
        min(curve.epsilon(delta), epsilon),
        tuple(entry for part in parts for entry in part.entries),
        (
            *first.assumptions,
            *dict.fromkeys(
                words
                for part in others
                for words in part.assumptions
                if words not in first.assumptions
            ),
        ),
    )
