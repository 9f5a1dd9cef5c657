"""Tables as data frames, with the public facts that every method is given.

Numeric columns are clipped to their public ranges; counts of many orders of magnitude
are on a logarithmic scale for every method. Categories are in public lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.erm.data import KDD_ROWS, KDD_SEED

from tacit._random import as_generator
from tacit.datasets._people import (
    ACS_BIRTHPLACES,
    ACS_CODES,
    ACS_OCCUPATIONS,
    ACS_RANGES,
    CELEBA_ATTRIBUTES,
    CELEBA_TARGET,
    COMPAS_CATEGORIES,
    COMPAS_DAYS,
    COMPAS_RANGES,
    _grouped,
)
from tacit.datasets._ranges import (
    ADULT_CATEGORIES,
    ADULT_RANGES,
    CALIFORNIA_RANGES,
    COVERTYPE_RANGES,
    ELECTRICITY_RANGES,
    KDDCUP99_CATEGORIES,
    KDDCUP99_RANGES,
    Range,
)
from tacit.datasets._real import _read_columns, _require
from tacit.datasets._tables import (
    ABALONE_RANGES,
    ABALONE_RINGS,
    ABALONE_SEXES,
    CALIFORNIA_VALUES,
    WINE_QUALITY,
    WINE_RANGES,
    _households,
)

TRAIN_SHARE = 0.8
# the published lodgepole pine, the largest class
LODGEPOLE = 2
# The codes of the survey as numbers: occupations have four digits, birthplaces end at
# 554, the other islands
ACS_NUMBERS: Mapping[str, Range] = {
    **ACS_RANGES,
    **{
        name: Range(float(codes[0]), float(codes[-1]))
        for name, codes in ACS_CODES.items()
    },
    "OCCP": Range(0, 9_999),
    "POBP": Range(1, 554),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with names, and the ranges and categories that were known before."""

    name: str
    frame: pd.DataFrame
    y: np.ndarray
    ranges: Mapping[str, tuple[float, float]]
    categories: Mapping[str, tuple[str, ...]]
    y_range: tuple[float, float] | None = None

    @property
    def classes(self) -> list[int] | None:
        """Public labels, 0 to k - 1; None for a regression."""
        if self.y_range is not None:
            return None
        return list(range(SETS[self.name].n_classes))

    def take(self, rows: np.ndarray) -> Table:
        """Return some of the rows."""
        return Table(
            self.name,
            self.frame.iloc[rows].reset_index(drop=True),
            self.y[rows],
            self.ranges,
            self.categories,
            self.y_range,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit and rows to score."""

    train: Table
    test: Table
    run: int

    def score(self, predictions: np.ndarray) -> float:
        """Return the accuracy, or R2 of predictions clipped to the target range."""
        return scored(self.test.y, predictions, self.test.y_range)


def scored(y: np.ndarray, found: np.ndarray, y_range: Sequence[float] | None) -> float:
    """Return the accuracy, or R2 of predictions clipped to the target range."""
    if y_range is None:
        return float(np.mean(np.asarray(found) == y))
    off = y - np.clip(np.asarray(found, dtype=np.float64), *y_range)
    return float(1 - np.mean(off**2) / np.var(y))


def table_of(
    name: str,
    columns: Mapping[str, Any],
    ranges: Mapping[str, Range],
    categories: Mapping[str, Sequence[str]],
    y: Any,
    y_range: tuple[float, float] | None = None,
) -> Table:
    """Return a table of raw columns, the numeric ones clipped to their ranges."""
    frame, public = {}, {}
    for column, allowed in ranges.items():
        values = np.clip(
            np.asarray(columns[column], dtype=np.float64), allowed.low, allowed.high
        )
        ends = np.array([allowed.low, allowed.high], dtype=np.float64)
        if allowed.log:
            values, ends = np.log1p(values), np.log1p(ends)
        frame[column] = values
        public[column] = (float(ends[0]), float(ends[1]))
    for column, listed in categories.items():
        values = np.asarray(columns[column]).astype(str)
        unknown = set(np.unique(values)) - set(listed)
        if unknown:
            raise ValueError(f"{column} of {name} has categories that are not listed.")
        frame[column] = values.astype(object)
    target = np.asarray(y)
    if y_range is None:
        target = target.astype(np.int64)
    else:
        target = np.clip(target.astype(np.float64), *y_range)
    listed = {column: tuple(labels) for column, labels in categories.items()}
    return Table(name, pd.DataFrame(frame), target, public, listed, y_range)


def _read(file: str) -> dict[str, Any]:
    return dict(_read_columns(_require(file)))


def adult() -> Table:
    """Census Income, without rows that have an unknown answer."""
    columns = _read("adult/adult.parquet")
    known = np.logical_and.reduce([columns[c] != "?" for c in ADULT_CATEGORIES])
    columns = {name: column[known] for name, column in columns.items()}
    return table_of("adult", columns, ADULT_RANGES, ADULT_CATEGORIES, columns["target"])


def acs_income() -> Table:
    """ACSIncome with every code as a number."""
    columns = _read("acs_income_co_ne/acs_income_co_ne.parquet")
    return table_of("acs_income", columns, ACS_NUMBERS, {}, columns["target"])


def acs_income_codes() -> Table:
    """ACSIncome with codes as categories, the long lists in their published groups."""
    columns = _read("acs_income_co_ne/acs_income_co_ne.parquet")
    categories = {name: tuple(map(str, codes)) for name, codes in ACS_CODES.items()}
    for name in ACS_CODES:
        columns[name] = columns[name].astype(np.int64).astype(str)
    for name, firsts in (("OCCP", ACS_OCCUPATIONS), ("POBP", ACS_BIRTHPLACES)):
        columns[name] = _grouped(columns[name], firsts)
        categories[name] = tuple(firsts)
    target = columns["target"]
    return table_of("acs_income_codes", columns, ACS_RANGES, categories, target)


def electricity() -> Table:
    columns = _read("electricity/electricity.parquet")
    return table_of("electricity", columns, ELECTRICITY_RANGES, {}, columns["target"])


def california() -> Table:
    columns, y = _households(_read("california_housing/california_housing.parquet"))
    return table_of("california", columns, CALIFORNIA_RANGES, {}, y, CALIFORNIA_VALUES)


def abalone() -> Table:
    columns = _read("abalone/abalone.parquet")
    ranges = {n: r for n, r in ABALONE_RANGES.items() if "=" not in n}
    sexes = {"sex": ABALONE_SEXES}
    return table_of("abalone", columns, ranges, sexes, columns["target"], ABALONE_RINGS)


def wine() -> Table:
    columns = _read("wine_quality/wine_quality.parquet")
    ranges = {n: r for n, r in WINE_RANGES.items() if "=" not in n}
    colors = {"color": ("red", "white")}
    return table_of("wine", columns, ranges, colors, columns["target"], WINE_QUALITY)


def kddcup99() -> Table:
    """Return the 70,000 connections that ``benchmarks/erm`` has."""
    columns = _read("kddcup99_10pct/kddcup99_10pct.parquet")
    n_rows = len(columns["target"])
    rows = as_generator(KDD_SEED).choice(n_rows, KDD_ROWS, replace=False)
    columns = {name: column[rows] for name, column in columns.items()}
    attack = columns["target"] != "normal"
    return table_of("kddcup99", columns, KDDCUP99_RANGES, KDDCUP99_CATEGORIES, attack)


def _covertype(name: str) -> tuple[dict[str, Any], dict, dict]:
    """Return measurements, with the area and the soil as one category each."""
    columns = _read("covertype/covertype.parquet")
    categories = {}
    for group in ("Wilderness_Area", "Soil_Type"):
        parts = [n for n in COVERTYPE_RANGES if n.startswith(group)]
        listed = tuple(n.removeprefix(group) for n in parts)
        position = np.argmax(np.stack([columns[n] for n in parts]), axis=0)
        columns[group] = np.array(listed)[position]
        categories[group] = listed
    measured = {
        n: r for n, r in COVERTYPE_RANGES.items() if not n.startswith(tuple(categories))
    }
    return columns, measured, categories


def covertype() -> Table:
    columns, ranges, categories = _covertype("covertype")
    return table_of("covertype", columns, ranges, categories, columns["target"] - 1)


def covertype_binary() -> Table:
    columns, ranges, categories = _covertype("covertype_binary")
    pine = columns["target"] == LODGEPOLE
    return table_of("covertype_binary", columns, ranges, categories, pine)


def celeba() -> Table:
    columns = _read("celeba_attributes/celeba_attributes.parquet")
    ranges = {n: Range(-1, 1) for n in CELEBA_ATTRIBUTES if n != CELEBA_TARGET}
    return table_of("celeba", columns, ranges, {}, columns["target"] > 0)


def compas() -> Table:
    """Return the people of the published analysis, without the scores."""
    columns = _read("compas/compas.parquet")
    kept = (
        (np.abs(columns["days_b_screening_arrest"]) <= COMPAS_DAYS)
        & (columns["is_recid"] != -1)
        & (columns["c_charge_degree"] != "O")
        & (columns["score_text"] != "N/A")
    )
    columns = {name: column[kept] for name, column in columns.items()}
    target = columns["target"]
    return table_of("compas", columns, COMPAS_RANGES, COMPAS_CATEGORIES, target)


@dataclass(frozen=True)
class Source:
    """How a table is read, its title and its number of classes, None for R2."""

    load: Callable[[], Table]
    title: str
    n_classes: int | None = 2
    large: bool = False


SETS: dict[str, Source] = {
    "adult": Source(adult, "Adult"),
    "acs_income": Source(acs_income, "ACS income, codes as numbers"),
    "electricity": Source(electricity, "Electricity"),
    "california": Source(california, "California housing", None),
    "acs_income_codes": Source(acs_income_codes, "ACS income, codes as categories"),
    "abalone": Source(abalone, "Abalone", None),
    "wine": Source(wine, "Wine quality", None),
    "compas": Source(compas, "COMPAS"),
    "kddcup99": Source(kddcup99, "KDD Cup 1999, 70,000 rows"),
    "celeba": Source(celeba, "CelebA attributes", large=True),
    "covertype_binary": Source(covertype_binary, "Covertype, two classes", large=True),
    "covertype": Source(covertype, "Covertype, seven classes", 7, large=True),
}


@lru_cache(maxsize=1)
def table(name: str) -> Table:
    """Return a table by its name."""
    return SETS[name].load()


def order(n_rows: int, run: int) -> np.ndarray:
    """Return the order of the rows in a split; the first ones are fitted."""
    return as_generator(1000 + run).permutation(n_rows)


def n_train(n_rows: int, share: float = TRAIN_SHARE) -> int:
    """Return how many rows are fitted."""
    return int(share * n_rows)


def split(name: str, run: int, share: float = TRAIN_SHARE) -> Split:
    """Return the split of a run, the same for every method."""
    whole = table(name)
    train, test = np.split(order(len(whole.y), run), [n_train(len(whole.y), share)])
    return Split(whole.take(train), whole.take(test), run)


def indicators(rows: Table) -> np.ndarray:
    """Return columns moved to [0, 1] by their ranges, then one indicator a category."""
    parts = [
        (rows.frame[[name]].to_numpy(np.float64) - low) / (high - low)
        for name, (low, high) in rows.ranges.items()
    ]
    for name, listed in rows.categories.items():
        codes = category_codes(rows, name)
        parts.append((codes[:, None] == np.arange(len(listed))).astype(np.float64))
    return np.clip(np.hstack(parts), 0.0, 1.0)


def category_codes(rows: Table, name: str) -> np.ndarray:
    """Return the position of each value in the public list."""
    listed = pd.Categorical(rows.frame[name], categories=list(rows.categories[name]))
    return np.asarray(listed.codes, dtype=np.int64)
