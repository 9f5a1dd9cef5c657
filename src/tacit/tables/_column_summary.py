"""Summaries of columns, computed in one pass for a draft."""

from __future__ import annotations

from math import inf
from typing import Any

import pyarrow as pa
from pyarrow import compute, types

from tacit.data._files.csv_file import NULLS
from tacit.tables._encode import text_of
from tacit.tables._text import canonical

__all__ = ["MOST_CATEGORIES", "ColumnSummary"]

# Largest number of strings that count as categories
MOST_CATEGORIES = 50
# A number with leading zeros is a code, such as a postal code
CODE = "^[+-]?0[0-9]"
COMMA = r"^\s*[+-]?[0-9]+(,[0-9]+)?\s*$"


class ColumnSummary:
    """Kind, range and distinct strings of a column, batch by batch.

    Repeated values are looked for if it is a key, which needs all of them in memory.
    """

    def __init__(self, is_key: bool = False) -> None:
        self._keys: list[Any] | None = [] if is_key else None
        self._commas, self._only_commas = False, True
        self.n_rows = self.n_missing = 0
        self.low, self.high = inf, -inf
        self.texts: set[str] | None = set()
        self.is_number = self.is_integer = self.is_date = self.counts_rows = True
        self.is_other = False
        self._last: float | None = None

    def add(self, values: Any) -> None:
        """Add the values of a batch."""
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        self.n_rows += len(values)
        kind = values.type
        if self._keys is not None and _is_string_or_integer(kind):
            self._keys.append(values.drop_null().cast(pa.large_string()))
        if types.is_string(kind) or types.is_large_string(kind):
            self._add_texts(values)
        elif types.is_boolean(kind):
            self._set_not_number()
            self.is_date = False
            self._keep_strings(compute.unique(values.drop_null()))
            self.n_missing += values.null_count
        elif (
            types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        ):
            self.is_date = False
            self._keep_strings(compute.unique(values.drop_null()))
            self._add_numbers(compute.cast(values, pa.float64(), safe=False))
        elif types.is_null(kind):
            self.n_missing += len(values)
        else:
            self._set_not_number()
            self.is_date = self.is_date and types.is_temporal(kind)
            self.is_other = self.is_other or not types.is_temporal(kind)

    @property
    def repeats(self) -> bool:
        """Whether a value of a key occurs twice."""
        keys = pa.chunked_array(self._keys or [], pa.large_string())
        return len(keys.unique()) < len(keys)

    @property
    def has_decimal_commas(self) -> bool:
        """Whether all values are numbers with decimal commas."""
        return self._commas and self._only_commas and not self.is_number

    def _add_texts(self, values: Any) -> None:
        present = compute.not_equal(compute.utf8_trim_whitespace(values), "")
        texts = values.filter(compute.fill_null(present, False))
        self.n_missing += len(values) - len(texts)
        different = compute.unique(texts)
        if len(different) < len(texts):
            self.counts_rows = False
        self._keep_strings(different)
        self._find_commas(different)
        if self.is_number:
            self._add_parsed_numbers(texts, different)
        if self.is_date and len(different):
            dates = not self.is_number and _cast(different, pa.timestamp("us"))
            self.is_date = bool(dates)

    def _find_commas(self, texts: Any) -> None:
        if self._only_commas and len(texts):
            looks = compute.match_substring_regex(texts, COMMA)
            self._only_commas = compute.all(looks).as_py()
            commas = compute.any(compute.match_substring(texts, ",")).as_py()
            self._commas = self._commas or commas

    def _add_parsed_numbers(self, texts: Any, different: Any) -> None:
        nulls = pa.array(NULLS, texts.type)
        listed = compute.is_in(different, value_set=nulls)
        plain = compute.utf8_trim_whitespace(different.filter(compute.invert(listed)))
        coded = compute.any(compute.match_substring_regex(plain, CODE)).as_py()
        numbers = None if coded else _cast(plain, pa.float64())
        if numbers is None:
            self._set_not_number()
            return
        if len(plain) < len(different):
            missing = compute.sum(compute.is_in(texts, value_set=nulls)).as_py()
            self.n_missing += missing
            self.counts_rows = False
        self._add_numbers(numbers)

    def _add_numbers(self, numbers: Any) -> None:
        found = numbers.to_numpy(zero_copy_only=False)
        finite = found[(found == found) & (abs(found) < inf)]
        self.n_missing += len(found) - len(finite)
        if not len(finite):
            return
        self.low = min(self.low, float(finite.min()))
        self.high = max(self.high, float(finite.max()))
        self.is_integer = self.is_integer and bool((finite == finite.round()).all())
        if not self.is_integer or len(finite) < len(found):
            self.counts_rows = False
        if self.counts_rows:
            first = finite[0] if self._last is None else self._last + 1
            rises = (finite[1:] - finite[:-1] == 1).all()
            self.counts_rows = bool(finite[0] == first and rises)
            self._last = float(finite[-1])

    def _keep_strings(self, values: Any) -> None:
        if self.texts is None:
            return
        for value in values[: MOST_CATEGORIES + 1].to_pylist():
            text = text_of(value)
            if text:
                self.texts.add(canonical(text))
        if len(self.texts) > MOST_CATEGORIES:
            self.texts = None

    def _set_not_number(self) -> None:
        self.is_number = self.is_integer = self.counts_rows = False


def _is_string_or_integer(kind: Any) -> bool:
    texts = types.is_string(kind) or types.is_large_string(kind)
    return bool(texts or types.is_integer(kind))


def _cast(texts: Any, kind: Any) -> Any:
    """Return strings cast to a type, or None if one of them cannot be cast."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None
