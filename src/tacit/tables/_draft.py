"""Drafts of schemas, computed from a table for a person to correct."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, log10
from pathlib import Path

from pyarrow import types

from tacit.data._files import TableError
from tacit.data._files.csv_file import NULLS
from tacit.data._files.table_files import BATCH, TableFile, open_table, reading
from tacit.tables._column import OTHER, Column
from tacit.tables._column_summary import MOST_CATEGORIES, ColumnSummary
from tacit.tables._schema import Schema
from tacit.tables._text import INTEGER, runs_as_formula

__all__ = ["draft", "nice_range"]

# Integers with at most so many values count as codes of categories
MOST_CODES = 10
# A column of strings that differ in all of so many rows counts as an identifier
LEAST_NAMES = 5
IDENTIFIER = re.compile(
    r"(^|[_\W])(id|uuid|guid|index|key|mrn|ssn|nhs)([_\W]?(no|nr|num|number))?$"
    r"|^patient([_\W]?(no|nr|num|number))?$|^unnamed: 0$",
    re.IGNORECASE,
)
CAMEL = re.compile(r"[a-z]I[dD]$")
# Remarks on ignored columns
NEITHER = "It contains neither numbers nor strings."
DATES = "Dates: turn them into a number, such as an age, to learn from them."
IS_IDENTIFIER = "By its name it is an identifier."
REPEATS = (
    "Its values repeat: if a person has several rows, the guarantee protects single "
    "rows, not persons."
)
COMMAS = "Numbers with decimal commas: export with points."


def draft(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    names_only: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Schema:
    """Return a draft of a schema, for a person to correct and confirm.

    Numbers get a range that is rounded outwards, strings and codes their values as
    categories. Identifiers, dates, constant columns and strings with too many values
    are ignored, with a remark that gives the reason.

    Parameters
    ----------
    path
        CSV, Parquet or Arrow file, or a folder of Parquet files.
    target
        Name of the column to predict, or None.
    names_only
        Whether to read only names and types, and leave ranges and categories empty.
        The types of a CSV file are inferred from its first rows.
    encoding, delimiter
        Of a CSV file, as in `~tacit.tables.read_rows`.

    Notes
    -----
    **Guarantee.** None: a draft is computed from the rows, and as confidential as they
    are. Each entry has ``source="data"``, and no fit uses the schema until a person has
    confirmed or replaced every entry, which drops its remark. With ``names_only`` only
    names and types are read.
    """
    table = open_table(path, encoding=encoding, delimiter=delimiter)
    names = table.names
    if len(set(names)) < len(names):
        raise TableError(f"{path}: two columns have the same name; rename one.")
    if target is not None and target not in names:
        raise TableError(f"{path}: there is no column {target!r} to be the target.")
    if names_only:
        columns = dict(_columns_by_type(table))
    else:
        summaries = _summaries(path, table)
        columns = {name: _drafted(name, found) for name, found in summaries.items()}
    goal = columns.pop(target) if target is not None else None
    columns = {name: _flag(column) for name, column in columns.items()}
    if goal is not None and (goal.kind == "ignore" or goal.unseen == OTHER):
        raise TableError(
            f"{path}: column {target!r} cannot be the target: "
            f"{goal.remark or 'some of its values are missing or cannot be labels.'}"
        )
    try:
        return Schema(tuple(columns.values()), goal)
    except TableError as error:
        commas = any(column.remark == COMMAS for column in columns.values())
        why = f" {COMMAS}" if commas else ""
        raise TableError(f"{path}: {error}{why}") from None


def _summaries(
    path: str | os.PathLike[str], table: TableFile
) -> dict[str, ColumnSummary]:
    found = {name: ColumnSummary(_is_identifier(name)) for name in table.names}
    kinds = dict.fromkeys(table.names, "raw")
    for batch in table.read(kinds, BATCH):
        with reading(Path(path)):
            for name in table.names:
                found[name].add(batch.column(name))
    if not any(summary.n_rows for summary in found.values()):
        raise TableError(f"{path}: the table has a header and no rows.")
    return found


def _drafted(name: str, seen: ColumnSummary) -> Column:
    """Return the draft of a column, from a summary of its values."""
    why = _reason_to_ignore(name, seen)
    if why:
        return _ignored(name, why)
    texts = seen.texts
    few = MOST_CODES if seen.is_number else MOST_CATEGORIES
    if (
        texts is not None
        and len(texts) <= few
        and (seen.is_integer or not seen.is_number)
    ):
        return _category(name, texts, seen)
    remark = "Some values are missing: set missing to a public number."
    return Column(
        name,
        "number",
        range=nice_range(seen.low, seen.high, integer=seen.is_integer),
        source="data",
        remark=remark if seen.n_missing else "",
    )


def _ignored(name: str, why: str) -> Column:
    return Column(name, "ignore", source="data", remark=why)


def _category(name: str, texts: set[str], seen: ColumnSummary) -> Column:
    if seen.is_number:
        texts = texts - set(NULLS)
    kept = [text for text in texts if not runs_as_formula(text)]
    if not kept:
        return _ignored(name, "Its values would run as formulas.")
    integers = all(INTEGER.fullmatch(text) for text in kept)
    kept.sort(key=(lambda text: (int(text), text)) if integers else None)
    others = bool(seen.n_missing) or len(kept) < len(texts)
    return Column(
        name,
        "category",
        categories=tuple(kept),
        unseen=OTHER if others else "refuse",
        source="data",
        remark="Some values are missing: they count as other."
        if seen.n_missing
        else "",
    )


def _flag(column: Column) -> Column:
    """Return a category of 0 and 1 as a number, which is one feature and not two."""
    if set(column.categories) != {"0", "1"} or column.unseen == OTHER:
        return column
    return Column(column.name, "number", range=(0, 1), zero=0, source=column.source)


def _reason_to_ignore(name: str, seen: ColumnSummary) -> str:
    if seen.is_other:
        return NEITHER
    if seen.n_rows == seen.n_missing:
        return "It has no values."
    if seen.is_date:
        return DATES
    if seen.texts is not None and len(seen.texts) == 1:
        return "It has the same value in all rows."
    if _is_identifier(name) and (seen.is_integer or not seen.is_number):
        return f"{IS_IDENTIFIER} {REPEATS}" if seen.repeats else IS_IDENTIFIER
    if seen.counts_rows and seen.n_rows >= LEAST_NAMES:
        return "It numbers the rows."
    if seen.is_number:
        return ""
    if seen.has_decimal_commas:
        return COMMAS
    if seen.texts is None:
        return f"Strings with more than {MOST_CATEGORIES} values."
    n_texts = seen.n_rows - seen.n_missing
    if LEAST_NAMES <= n_texts == len(seen.texts):
        return "Strings that differ in every row."
    return ""


def _is_identifier(name: str) -> bool:
    return bool(IDENTIFIER.search(name) or CAMEL.search(name))


def _columns_by_type(table: TableFile) -> Iterator[tuple[str, Column]]:
    """Yield drafts of columns from their names and types."""
    for field in table.schema:
        name, kind = field.name, field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        number = types.is_integer(kind) or types.is_floating(kind)
        text = types.is_string(kind) or types.is_large_string(kind)
        if _is_identifier(name) and (text or types.is_integer(kind)):
            yield name, _ignored(name, IS_IDENTIFIER)
        elif types.is_boolean(kind):
            truths = ("false", "true")
            yield name, Column(name, "category", categories=truths, source="data")
        elif number or types.is_decimal(kind):
            yield name, Column(name, "number", source="data")
        elif text or types.is_null(kind):
            yield name, Column(name, "category", source="data")
        elif types.is_temporal(kind):
            yield name, _ignored(name, DATES)
        else:
            yield name, _ignored(name, NEITHER)


def nice_range(
    low: float, high: float, *, integer: bool = False
) -> tuple[float, float]:
    """Return a range with round ends around another, at most half wider on each side.

    Ends are multiples of 1, 2 or 5 times a power of ten, about five in the range, so
    that they reveal little more than the order of magnitude.
    """
    width = max(Fraction(high) - Fraction(low), Fraction(1, 10**120))
    # digits beyond the ninth of the larger end are lost in scaling
    width = max(width, Fraction(max(abs(low), abs(high))) / 10**8)
    least = width / 5
    power = Fraction(10) ** floor(log10(least))
    steps = [
        unit * power * scale for scale in (Fraction(1, 10), 1) for unit in (1, 2, 5)
    ]
    step = next(s for s in (*steps, 10 * power, 20 * power) if s >= least)
    if integer:
        step = max(step, Fraction(1))
    return (
        float(floor(Fraction(low) / step) * step),
        float(ceil(Fraction(high) / step) * step),
    )
