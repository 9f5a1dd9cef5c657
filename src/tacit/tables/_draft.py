"""A first schema, read off a table for a person to correct."""

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
from tacit.tables._column_summary import MOST_CATEGORIES, Seen
from tacit.tables._schema import Schema
from tacit.tables._text import WHOLE, runs_as_formula

__all__ = ["draft", "nice_range"]

# Whole numbers with at most so many values are taken for codes of categories
MOST_CODES = 10
# A column of texts in which so many rows all differ is taken for an identifier
LEAST_NAMES = 5
IDENTIFIER = re.compile(
    r"(^|[_\W])(id|uuid|guid|index|key|mrn|ssn|nhs)([_\W]?(no|nr|num|number))?$"
    r"|^patient([_\W]?(no|nr|num|number))?$|^unnamed: 0$",
    re.IGNORECASE,
)
CAMEL = re.compile(r"[a-z]I[dD]$")
# Why a column is ignored, whether its values were read or its type alone
NEITHER = "It holds neither numbers nor text."
DATES = "Dates: make a number of them, such as an age, to learn from it."
IS_IDENTIFIER = "Its name is that of an identifier."
REPEATS = (
    "Its values repeat: if a person has several rows, the promise is about rows and "
    "not about persons."
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
    """Return a first schema of a table, for a person to correct and confirm.

    Numbers get a range rounded outwards, texts and codes the values there are.
    Identifiers, dates, columns of one value and texts of too many are ignored, with a
    remark that says why.

    Parameters
    ----------
    path
        CSV, Parquet or Arrow file, or a folder of Parquet files.
    target
        Name of the column to predict, or None.
    names_only
        Whether to read names and types only, and leave ranges and categories empty.
        Types of a CSV file are those its first rows look like.
    encoding, delimiter
        Of a CSV file, as in `~tacit.tables.read_rows`.

    Notes
    -----
    **Guarantee.** None: the draft is read off the rows, and is as private as they are.
    All that it took from them has ``source="data"``, columns to ignore included, and
    nothing is fitted by it until a person has confirmed or replaced each entry, which
    drops its remark. With ``names_only`` the names and types are all it took.
    """
    table = open_table(path, encoding=encoding, delimiter=delimiter)
    names = table.names
    if len(set(names)) < len(names):
        raise TableError(f"{path}: two columns have the same name; rename one.")
    if target is not None and target not in names:
        raise TableError(f"{path}: there is no column {target!r} to be the target.")
    if names_only:
        found = dict(_named(table))
    else:
        found = {
            name: _drafted(name, seen) for name, seen in _seen(path, table).items()
        }
    goal = found.pop(target) if target is not None else None
    found = {name: _flag(column) for name, column in found.items()}
    if goal is not None and (goal.kind == "ignore" or goal.unseen == OTHER):
        raise TableError(
            f"{path}: column {target!r} cannot be the target: "
            f"{goal.remark or 'some of its values are missing or no texts of labels.'}"
        )
    try:
        return Schema(tuple(found.values()), goal)
    except TableError as error:
        commas = any(column.remark == COMMAS for column in found.values())
        why = f" {COMMAS}" if commas else ""
        raise TableError(f"{path}: {error}{why}") from None


def _seen(path: str | os.PathLike[str], table: TableFile) -> dict[str, Seen]:
    found = {name: Seen(_is_identifier(name)) for name in table.names}
    kinds = dict.fromkeys(table.names, "raw")
    for batch in table.read(kinds, BATCH):
        with reading(Path(path)):
            for name in table.names:
                found[name].add(batch.column(name))
    if not any(seen.n_rows for seen in found.values()):
        raise TableError(f"{path}: the table has a header and no rows.")
    return found


def _drafted(name: str, seen: Seen) -> Column:
    """Return what the values of a column make of it."""
    why = _reason_to_ignore(name, seen)
    if why:
        return _ignored(name, why)
    texts = seen.texts
    few = MOST_CODES if seen.is_number else MOST_CATEGORIES
    if (
        texts is not None
        and len(texts) <= few
        and (seen.is_whole or not seen.is_number)
    ):
        return _category(name, texts, seen)
    remark = "Some values are missing: set missing to a public number."
    return Column(
        name,
        "number",
        range=nice_range(seen.low, seen.high, whole=seen.is_whole),
        source="data",
        remark=remark if seen.n_missing else "",
    )


def _ignored(name: str, why: str) -> Column:
    return Column(name, "ignore", source="data", remark=why)


def _category(name: str, texts: set[str], seen: Seen) -> Column:
    if seen.is_number:
        texts = texts - set(NULLS)
    kept = [text for text in texts if not runs_as_formula(text)]
    if not kept:
        return _ignored(name, "Its values would run as formulas.")
    whole = all(WHOLE.fullmatch(text) for text in kept)
    kept.sort(key=(lambda text: (int(text), text)) if whole else None)
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
    """Return zeros and ones as one number that stays as it is."""
    if set(column.categories) != {"0", "1"} or column.unseen == OTHER:
        return column
    return Column(column.name, "number", range=(0, 1), zero=0, source=column.source)


def _reason_to_ignore(name: str, seen: Seen) -> str:
    if seen.is_other:
        return NEITHER
    if seen.n_rows == seen.n_missing:
        return "It has no values."
    if seen.is_date:
        return DATES
    if seen.texts is not None and len(seen.texts) == 1:
        return "It has the same value in all rows."
    if _is_identifier(name) and (seen.is_whole or not seen.is_number):
        return f"{IS_IDENTIFIER} {REPEATS}" if seen.repeats else IS_IDENTIFIER
    if seen.counts_rows and seen.n_rows >= LEAST_NAMES:
        return "It numbers the rows."
    if seen.is_number:
        return ""
    if seen.has_decimal_commas:
        return COMMAS
    if seen.texts is None:
        return f"Text with more than {MOST_CATEGORIES} values."
    n_texts = seen.n_rows - seen.n_missing
    if LEAST_NAMES <= n_texts == len(seen.texts):
        return "Text with a value of its own in each row."
    return ""


def _is_identifier(name: str) -> bool:
    return bool(IDENTIFIER.search(name) or CAMEL.search(name))


def _named(table: TableFile) -> Iterator[tuple[str, Column]]:
    """Yield the columns as their names and types make them."""
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


def nice_range(low: float, high: float, *, whole: bool = False) -> tuple[float, float]:
    """Return a range of round numbers around another, at most half of it wider a side.

    Ends are multiples of 1, 2 or 5 times a power of ten, about five in the range, so
    that they tell of the rows no more than their order of size.
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
    if whole:
        step = max(step, Fraction(1))
    return (
        float(floor(Fraction(low) / step) * step),
        float(ceil(Fraction(high) / step) * step),
    )
