"""The facts of a report, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Budget, Neighbors, PrivacyReport
from tacit.privacy.attacker import curve_of
from tacit.privacy.budget import exactly
from tacit.reports._audits import AuditTable, audits_of
from tacit.reports._fairness import GroupTable, charged_table
from tacit.reports._shapes import AdditiveShapes

__all__ = ["Facts", "restored_report"]

_WEIGHTS = ("coef", "intercept")
_NEEDED = ("title", "estimator", "privacy", "features", *_WEIGHTS)
_OPTIONAL = (
    *("created", "tacit", "parameters", "rows", "dataset", "classes", "noise"),
    *("score", "ledger", "schema", "releases", "charge", "selected", "selection"),
    *("stream", "student", "side", "shapes", "fairness", "audits", "solver", "budget"),
)
# Types of the parts of some entries, and what is said of them; earlier versions did not
# write those of _LATER
_FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "selection": (
        {"asked": object, "answered": object, "epsilon": int | float | None},
        "the number of columns requested ('asked'), whether a selection was released "
        "('answered'), and its 'epsilon', None where the charge of a search covers it",
    ),
    "stream": (
        {
            "steps": int,
            "horizon": int,
            "rows_per_person": int,
            "last_refit": int | None,
        },
        "the number of 'steps' released, the 'horizon' that was charged, and the "
        "largest number of 'rows_per_person', as integers; 'last_refit' is a step or "
        "None",
    ),
    "student": (
        {"teachers": int, "asked": int, "answered": int}
        | {"labels_only": bool, "by_person": bool},
        "the number of 'teachers', how many labels were queried ('asked') and released "
        "('answered'), whether only labels are private ('labels_only') and whether "
        "rows of a person are protected together ('by_person')",
    ),
    "side": (
        {"items": int, "vectors": int, "max_ratings": int | None}
        | {"low": int | float, "high": int | float, "released": str | None},
        "the number of 'items', the length of their 'vectors', the largest number of "
        "ratings used of one user ('max_ratings', or None), and the range of ratings "
        "('low' and 'high')",
    ),
}
_LATER = ("last_refit", "released")


@dataclass(frozen=True, eq=False)
class Facts:
    """Public facts about a fitted model.

    ``privacy`` is about everything released with it; ``parts`` are the fit and what was
    charged separately.
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
    shapes: AdditiveShapes | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Facts:
        """Return the facts after checking that they fit together."""
        # long: one check of an entry after another
        # these are no tables of coefficients
        others = [facts.get(name) for name in ("student", "side", "shapes")]
        without = () if others == [None] * 3 else _WEIGHTS
        missing = [n for n in _NEEDED if n not in facts and n not in without]
        if missing:
            raise ValueError(f"facts must have the entry {missing[0]!r}.")
        plain = {name: facts.get(name) for name in (*_NEEDED, *_OPTIONAL)}
        features = [str(name) for name in facts["features"]]
        chosen = plain["selected"]
        if chosen is not None and not set(map(str, chosen)) <= set(features):
            raise ValueError("facts['selected'] must be among facts['features'].")
        for name in _FORMS:
            _check_form(name, plain[name])
        coef, intercept = _coefficients({} if without else facts, len(features))
        low, high = _noise_bounds(plain["noise"], coef.shape)
        given = plain["fairness"] or ()
        given = [given] if isinstance(given, Mapping) else given
        fairness = tuple(charged_table(table, "facts['fairness']") for table in given)
        parts = (
            *_releases(plain),
            *(restored_report(table.charge, "fairness") for table in fairness),
        )
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
            tuple(audits_of(plain["audits"] or (), "facts['audits']", plain)),
            None if plain["budget"] is None else Budget.from_dict(plain["budget"]),
            AdditiveShapes.if_given(plain["shapes"], plain["classes"]),
        )

    @property
    def replaces(self) -> bool:
        """Whether neighbors replace one row, so that the number of rows is public."""
        return self.privacy.guarantee.neighbors is Neighbors.REPLACE_ONE

    @property
    def rows(self) -> int | None:
        """Number of rows, where the neighbors make it public."""
        # if neighbors add or remove a row, the number is private wherever it came from
        return self.plain["rows"] if self.replaces else None

    @property
    def expected_rows(self) -> int | None:
        """Public number of rows or users: of the fit, or as planned."""
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
        """Whether the ledger has a void of the charge of this fit."""
        ledger, charge = self.plain["ledger"] or {}, self.plain["charge"]
        return charge is not None and any(
            record.get("kind") == "void" and record.get("refers_to") == charge
            for record in ledger.get("records", ())
        )

    @property
    def uncounted(self) -> bool:
        """Whether something was charged separately and its report was not given."""
        intervals = self.plain["noise"] or {}
        sampled = intervals.get("covers") == "noise and sampling"
        return (
            bool(self.plain["score"] or sampled)
            and len(self.plain["releases"] or ()) < 2
        )


def _coefficients(
    facts: Mapping[str, Any], n_features: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients and intercepts of each output; of no facts, empty arrays."""
    given = facts.get("coef", np.zeros((0, n_features)))
    coef = np.atleast_2d(np.asarray(given, dtype=np.float64))
    if coef.ndim != 2 or coef.shape[1] != n_features:
        raise ValueError(
            f"facts['coef'] must have one column for each of the {n_features} "
            f"features, got shape {coef.shape}."
        )
    given = facts.get("intercept", [])
    intercept = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if intercept.size == 1:
        intercept = np.full(len(coef), intercept.ravel()[0])
    if intercept.shape != (len(coef),):
        raise ValueError(
            f"facts['intercept'] must have {len(coef)} entries, got shape "
            f"{intercept.shape}."
        )
    return coef, intercept


def _noise_bounds(
    noise: Mapping[str, Any] | None, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return the lower and upper ends of the intervals of coefficients, if given."""
    if noise is None:
        return None, None
    low, high = (
        np.atleast_2d(np.asarray(noise[end], dtype=np.float64))
        for end in ("low", "high")
    )
    if low.shape != shape or high.shape != shape:
        raise ValueError(
            f"facts['noise'] must have the shape of facts['coef'], {shape}, got "
            f"{low.shape} and {high.shape}."
        )
    return low, high


def _releases(plain: Mapping[str, Any]) -> tuple[PrivacyReport, ...]:
    """Return the reports of the fit and of what was charged separately."""
    fit = restored_report(plain["privacy"], "privacy")
    parts = tuple(restored_report(part, "releases") for part in plain["releases"] or ())
    if parts and parts[0] != fit:
        raise ValueError("facts['releases'] must begin with facts['privacy'].")
    return parts or (fit,)


def _check_form(name: str, facts: Any) -> None:
    """Reject an entry without the parts of its form, or with parts of other types."""
    kinds, words = _FORMS[name]
    if facts is None:
        return

    def fits(part: str, kind: Any) -> bool:
        value, truth = facts.get(part), isinstance(facts.get(part), bool)
        known = part in facts or part in _LATER
        return (
            known and isinstance(value, kind) and (kind in (bool, object) or not truth)
        )

    if not isinstance(facts, Mapping) or not all(fits(*each) for each in kinds.items()):
        raise ValueError(f"facts[{name!r}] must have {words}.")


def restored_report(data: Any, name: str) -> PrivacyReport:
    """Return a report from plain data, after checking its guarantee."""
    try:
        report = PrivacyReport.from_dict(data)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            f"facts[{name!r}] must be what PrivacyReport.to_dict returned."
        ) from None
    guarantee = report.guarantee
    for entry in report.entries:
        if not entry.event.curve(guarantee.neighbors).fits(guarantee):
            raise ValueError(
                f"facts[{name!r}] has charges that spend more than its guarantee."
            )
    return report


def _together(parts: tuple[PrivacyReport, ...]) -> PrivacyReport:
    """Return one report about all releases: guarantees and curves add up."""
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
        _joined([part.assumptions for part in parts]),
        notes=_joined([part.notes for part in parts]),
    )


def _joined(sentences: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the first sentences, then those of the others that are new."""
    first, *others = sentences
    return (
        *first,
        *dict.fromkeys(
            words for part in others for words in part if words not in first
        ),
    )
