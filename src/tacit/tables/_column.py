"""Public facts about one column of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from sys import float_info
from typing import Any

from tacit.data._files import TableError
from tacit.preprocessing._columns import checked_pair
from tacit.tables._text import canonical, labels, runs_as_formula

__all__ = ["OTHER", "Column", "check_known", "column_of", "writable"]

KINDS = ("number", "category", "ignore")
SOURCES = ("data", "public")
OTHER = "other"
# Keys of a column in a schema file, by kind
SHARED = ("source", "confirmed_by", "seal", "note", "remark")
KEYS = {
    "number": ("kind", "range", "zero", "missing", *SHARED),
    "category": ("kind", "categories", "unseen", *SHARED),
    "ignore": ("kind", *SHARED),
}


@dataclass(frozen=True)
class Column:
    """Public facts about one column of a table.

    Parameters
    ----------
    name
        Name in the header of the table.
    kind
        ``"number"``, ``"category"`` or ``"ignore"``.
    range
        Lowest and highest value of a number; None until a person fills it in.
    categories
        Values of a category as strings, in the order of their indicators; empty until a
        person fills them in.
    missing
        Public number that replaces a missing one; None rejects tables with missing
        numbers.
    unseen
        ``"refuse"`` rejects values that are not listed and missing ones; ``"other"``
        encodes them with one more indicator.
    source
        ``"data"`` for facts that were computed from the rows, ``"public"`` once a
        person has confirmed or replaced them. In a file, a number or a category
        without a source counts as ``"data"``.
    confirmed_by
        Person who confirmed the facts. A file stores a hash of them as ``seal``; facts
        that are edited there lose the name.
    note
        A remark for people.
    zero
        Number that is encoded as 0; None for the middle of the range. A flag that is
        mostly 0 is best encoded as 0: what all rows have in common increases their
        norm and carries no information.
    remark
        A remark of a draft about the rows, dropped once the facts are public.
    """

    name: str
    kind: str
    range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    missing: float | None = None
    unseen: str = "refuse"
    source: str = "public"
    confirmed_by: str = ""
    note: str = ""
    zero: float | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        self._check_strings()
        if self.kind not in KINDS:
            self._reject("kind", 'must be "number", "category" or "ignore"')
        if self.source not in SOURCES:
            self._reject("source", 'must be "data" or "public"')
        if self.unseen not in ("refuse", OTHER):
            self._reject("unseen", 'must be "refuse" or "other"')
        if self.range is not None:
            self._check_range(self.range)
        if self.zero is not None:
            self._check_zero(self.zero)
        if self.missing is not None:
            self._check_missing(self.missing)
        self._check_categories()
        if self.source == "public":
            object.__setattr__(self, "remark", "")
        else:
            object.__setattr__(self, "confirmed_by", "")

    def _reject(self, key: str, problem: str) -> None:
        raise TableError(f"{key} of column {self.name!r} {problem}.")

    def _check_strings(self) -> None:
        if not isinstance(self.name, str) or not self.name or not writable(self.name):
            raise TableError("name of a column must be a string that is not empty.")
        if runs_as_formula(self.name):
            raise TableError(
                f"name of column {self.name!r} would run as a formula if a report is "
                "opened in a spreadsheet; rename the column."
            )
        for key in ("kind", "source", "unseen", "confirmed_by", "note", "remark"):
            value = getattr(self, key)
            if not isinstance(value, str) or not writable(value):
                self._reject(key, "must be a string")

    def _check_range(self, ends: Any) -> None:
        try:
            low, high = checked_pair(ends, "range")
        except ValueError:
            low = high = 0.0
        if not low < high:
            self._reject(
                "range",
                "must be two finite numbers that differ, the lower first, such as "
                "[0, 100]",
            )
        object.__setattr__(self, "range", (_unsigned(low), _unsigned(high)))

    def _check_zero(self, zero: Any) -> None:
        low, high = self.range or (zero, zero)
        if not _is_number(zero) or not low <= zero <= high:
            self._reject("zero", "must be a number in its range")
        object.__setattr__(self, "zero", _unsigned(float(zero)))

    def _check_missing(self, missing: Any) -> None:
        if not _is_number(missing):
            self._reject("missing", 'must be "refuse" or a finite number')
        if isinstance(missing, float):
            object.__setattr__(self, "missing", _unsigned(float(missing)))

    def _check_categories(self) -> None:
        if isinstance(self.categories, str) or not isinstance(
            self.categories, list | tuple
        ):
            self._reject(
                "categories", 'must be a list of strings, such as ["no", "yes"]'
            )
        found = tuple(map(_as_string, self.categories))
        if not all(found) or not all(map(writable, found)):
            self._reject("categories", "must be strings that are not empty")
        if len(set(map(canonical, found))) < len(found):
            self._reject("categories", "must differ from each other")
        if any(map(runs_as_formula, found)):
            self._reject(
                "categories",
                "must not begin with =, +, -, @ or a tab unless they are numbers, "
                "because they would run as formulas if a report is opened in a "
                'spreadsheet; rename them, or leave them out and set unseen = "other"',
            )
        object.__setattr__(self, "categories", found)

    @property
    def is_filled(self) -> bool:
        """Whether the facts that its kind needs are filled in."""
        if self.kind == "number":
            return self.range is not None
        return self.kind == "ignore" or bool(self.categories)

    @property
    def is_confirmed(self) -> bool:
        """Whether a person has confirmed the facts as public."""
        return self.is_filled and self.source == "public"

    @property
    def seal(self) -> str:
        """A short hash of the facts, which shows later changes of them."""
        missing = None if self.missing is None else float(self.missing)
        facts = (self.range, self.zero, missing, self.categories, self.unseen)
        return sha256(repr((self.kind, *facts)).encode()).hexdigest()[:12]

    @cached_property
    def indicators(self) -> tuple[str, ...]:
        """Categories in the order of their indicators, including ``other`` if used."""
        joins = self.unseen == "refuse" or OTHER in self.categories
        return self.categories if joins else (*self.categories, OTHER)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that encode this column."""
        if self.kind == "category":
            return tuple(f"{self.name}={category}" for category in self.indicators)
        return (self.name,) if self.kind == "number" else ()

    @property
    def scaled(self) -> tuple[float, float]:
        """Encoded ends of the range, at least one of which is 1 or -1."""
        if self.range is None or self.zero is None:
            return -1.0, 1.0
        low, high = self.range
        unit = max(high - self.zero, self.zero - low)
        return (low - self.zero) / unit, (high - self.zero) / unit

    @property
    def feature_ranges(self) -> tuple[tuple[float, float], ...]:
        """Public lowest and highest value of each feature."""
        pair = self.scaled if self.kind == "number" else (0.0, 1.0)
        return (pair,) * len(self.features)

    @property
    def mean_square(self) -> float:
        """Mean squared norm of the features, for values uniform over the range."""
        if self.kind != "number":
            return float(self.kind == "category")  # one of the indicators is 1
        low, high = self.scaled
        return (low**2 + low * high + high**2) / 3

    @property
    def labels(self) -> list[Any] | None:
        """Labels that the categories stand for; None for a number."""
        return labels(self.categories) if self.kind == "category" else None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data, as in a schema file."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.kind == "number":
            found["range"] = list(self.range or ())
            if self.zero is not None:
                found["zero"] = self.zero
            found["missing"] = "refuse" if self.missing is None else self.missing
        if self.kind == "category":
            found["categories"] = list(self.categories)
            found["unseen"] = self.unseen
        found["source"] = self.source
        for key in ("confirmed_by", "note", "remark"):
            if getattr(self, key):
                found[key] = getattr(self, key)
        if self.confirmed_by:
            found["seal"] = self.seal
        return found


def column_of(name: str, table: Any) -> Column:
    """Return the column that a table of a schema file describes."""
    if not isinstance(table, Mapping):
        raise TableError("must be a table with a kind.")
    kind = table.get("kind")
    if kind not in KINDS:
        raise TableError('kind must be "number", "category" or "ignore".')
    check_known(table, KEYS[kind])
    facts = {"source": "public" if kind == "ignore" else "data", **table}
    if "range" in facts:
        ends = facts["range"]
        facts["range"] = None if ends == [] else ends
    if facts.get("missing") == "refuse":
        facts["missing"] = None
    elif isinstance(facts.get("missing"), str):
        raise TableError('missing must be "refuse" or a finite number.')
    seal = facts.pop("seal", None)
    column = Column(name, **facts)
    stale = seal is not None and seal != column.seal
    return replace(column, confirmed_by="") if stale else column


def check_known(table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Reject unknown keys, such as misspelled ones."""
    known = tuple(known)
    for key in table:
        if key not in known:
            raise TableError(
                f"{key!r} is not a known key; the keys are {', '.join(known)}."
            )


def _as_string(value: Any) -> str:
    """Return a category as a string, empty if it is invalid."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float):
        return str(value) if _is_number(value) else ""
    return value if isinstance(value, str) else ""


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= float_info.max
    )


def _unsigned(value: float) -> float:
    """Return 0 for -0, which is written to a file as 0."""
    return value + 0.0


def writable(text: str) -> bool:
    """Whether a string can be written as UTF-8, which lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
