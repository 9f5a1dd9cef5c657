"""Loaders of tables with unequal columns, each with a range fixed in the code."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.datasets import fetch_california_housing, fetch_openml

from tacit.datasets._ranges import (
    CALIFORNIA_RANGES,
    ELECTRICITY_RANGES,
    MELTING_POINT_RANGES,
    Range,
)
from tacit.datasets._real import Columns, Dataset, _find, _read_columns, _require

# Sizes are published in units of 200 millimeters and grams, which about the largest
# shells have; whole animals weigh up to three of them
ABALONE_SEXES: Final = ("M", "F", "I")
ABALONE_RANGES: Final = {
    **{f"sex={sex}": Range(0, 1) for sex in ABALONE_SEXES},
    "length": Range(0, 1),
    "diameter": Range(0, 1),
    "height": Range(0, 1.2),
    "whole_weight": Range(0, 3),
    "shucked_weight": Range(0, 1.5),
    "viscera_weight": Range(0, 1),
    "shell_weight": Range(0, 1.5),
}
# rings, one a year
ABALONE_RINGS: Final = (0.0, 30.0)

# Grams per liter, but for sulfur dioxide in milligrams; alcohol by volume. Round
# figures around what wine has
WINE_RANGES: Final = {
    "fixed_acidity": Range(3, 16),
    "volatile_acidity": Range(0, 2),
    "citric_acid": Range(0, 2),
    "residual_sugar": Range(0, 70),
    "chlorides": Range(0, 1),
    "free_sulfur_dioxide": Range(0, 300),
    "total_sulfur_dioxide": Range(0, 500),
    "density": Range(0.98, 1.04),
    "pH": Range(2.5, 4.5),
    "sulphates": Range(0, 2),
    "alcohol": Range(7, 16),
    "color=white": Range(0, 1),
}
# tasters grade from very bad to excellent
WINE_QUALITY: Final = (0.0, 10.0)

# Round figures around what clinics measure in adults; the fifth is a logarithm
DIABETES_RANGES: Final = {
    "age": Range(18, 80),
    "sex": Range(1, 2),
    "bmi": Range(15, 45),
    "bp": Range(60, 140),
    "s1": Range(50, 350),
    "s2": Range(0, 250),
    "s3": Range(0, 100),
    "s4": Range(1, 10),
    "s5": Range(3, 7),
    "s6": Range(50, 150),
}
DIABETES_PROGRESS: Final = (0.0, 350.0)

# The slider of the survey; ten jokes that everyone was shown first
JESTER_RATING: Final = (-10.0, 10.0)
JESTER_JOKES: Final = 100
JESTER_GAUGE: Final = (5, 7, 8, 13, 15, 16, 17, 18, 19, 20)

MADELON_FEATURES = 500
# three digits
MADELON_RANGE = Range(0, 999)
DOROTHEA_FEATURES = 100_000
# 100,000 dollars: values above half a million are coded as one dollar more
CALIFORNIA_VALUES = (0.0, 5.00001)
# degrees Celsius, wider than what was measured
MELTING_RANGE = (-100.0, 500.0)


def load_abalone(scaled: bool = True, download: bool = False) -> Dataset:
    """Abalone: how many rings a shell has, from its size and weight."""
    path = _find("abalone/abalone.parquet", download)
    columns = dict(_read_columns(path) if path else _fetch_abalone())
    sex = columns.pop("sex")
    columns |= {f"sex={label}": sex == label for label in ABALONE_SEXES}
    y = columns["target"]
    return _ranged("abalone", columns, ABALONE_RANGES, y, scaled, ABALONE_RINGS)


def load_wine_quality(scaled: bool = True) -> Dataset:
    """Wine Quality: the grade of a Vinho Verde, from measurements."""
    columns = dict(_read_columns(_require("wine_quality/wine_quality.parquet")))
    columns["color=white"] = columns.pop("color") == "white"
    y = columns["target"]
    return _ranged("wine_quality", columns, WINE_RANGES, y, scaled, WINE_QUALITY)


def load_diabetes(scaled: bool = True) -> Dataset:
    """Diabetes: the rows of scikit-learn in the units they were measured in."""
    bunch = sklearn_datasets.load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    name, y = "diabetes", bunch.target
    return _ranged(name, columns, DIABETES_RANGES, y, scaled, DIABETES_PROGRESS)


def load_jester(scaled: bool = True) -> Dataset:
    """Jester: how much a person likes jokes, from ratings of ten of them."""
    columns = _read_columns(_require("jester_1/jester_1.parquet"))
    people, jokes = columns["user"].astype(int) - 1, columns["item"].astype(int) - 1
    ratings = np.zeros((people.max() + 1, JESTER_JOKES))
    ratings[people, jokes] = np.clip(columns["target"], *JESTER_RATING)
    given = np.zeros(ratings.shape, dtype=bool)
    given[people, jokes] = True
    first = np.array(JESTER_GAUGE) - 1
    others = np.delete(given, first, axis=1).sum(axis=1)
    y = np.delete(ratings, first, axis=1).sum(axis=1) / np.maximum(others, 1)
    names = [f"joke_{number}" for number in JESTER_GAUGE]
    table = dict(zip(names, ratings[:, first].T, strict=True))
    ranges = dict.fromkeys(names, Range(*JESTER_RATING))
    return _ranged("jester", table, ranges, y, scaled, JESTER_RATING)


def _fetch_abalone() -> Columns:
    bunch = fetch_openml("abalone", version=1, as_frame=True)
    columns = {
        published.lower().replace(" ", "_"): bunch.data[published].to_numpy()
        for published in bunch.data.columns
    }
    columns["target"] = bunch.target.to_numpy()
    return columns


def load_california_housing(scaled: bool = True, download: bool = False) -> Dataset:
    """California Housing: the median value of houses in a census block."""
    path = _find("california_housing/california_housing.parquet", download)
    if path:
        columns, y = _households(_read_columns(path))
    else:
        bunch = fetch_california_housing()
        columns = dict(zip(CALIFORNIA_RANGES, bunch.data.T, strict=True))
        y = bunch.target
    name, ranges = "california_housing", CALIFORNIA_RANGES
    return _ranged(name, columns, ranges, y, scaled, CALIFORNIA_VALUES)


def load_electricity(scaled: bool = True, download: bool = False) -> Dataset:
    """Electricity: does the price in New South Wales rise."""
    path = _find("electricity/electricity.parquet", download)
    if path:
        columns = dict(_read_columns(path))
        y = columns.pop("target").astype(np.int64)
    else:
        bunch = fetch_openml("electricity", version=1, as_frame=True)
        columns = {c: bunch.data[c].to_numpy(np.float64) for c in ELECTRICITY_RANGES}
        y = (bunch.target == "UP").to_numpy().astype(np.int64)
    return _ranged("electricity", columns, ELECTRICITY_RANGES, y, scaled)


def load_melting_point(scaled: bool = True) -> Dataset:
    """Melting Point: at what temperature a compound melts."""
    columns = _read_columns(_require("melting_point/melting_point.parquet"))
    y = columns["target"]
    # in the order of the file
    ranges = {c: MELTING_POINT_RANGES[c] for c in columns if c in MELTING_POINT_RANGES}
    return _ranged("melting_point", columns, ranges, y, scaled, MELTING_RANGE)


def load_madelon(scaled: bool = True, download: bool = False) -> Dataset:
    """Madelon: corners of a cube, hidden among columns of noise."""
    names = [f"x{j}" for j in range(1, MADELON_FEATURES + 1)]
    path = _find("madelon/madelon.parquet", download)
    if path:
        columns = _read_columns(path)
        y = columns["target"] > 0
    else:
        bunch = fetch_openml("madelon", version=1, as_frame=False)
        columns = dict(zip(names, bunch.data.T, strict=True))
        y = bunch.target.astype(np.int64) > 1
    ranges = dict.fromkeys(names, MADELON_RANGE)
    return _ranged("madelon", columns, ranges, y.astype(np.int64), scaled)


def load_dorothea() -> Dataset:
    """Dorothea: does a compound bind to thrombin; the validation rows."""
    X = sp.csr_array(sp.load_npz(_require("dorothea_valid/X.npz"))).astype(np.float64)
    y = _read_columns(_require("dorothea_valid/y.parquet"))["target"] > 0
    names = tuple(f"structure_{j}" for j in range(1, DOROTHEA_FEATURES + 1))
    return Dataset(
        X,
        y.astype(np.int64),
        names,
        "dorothea",
        x_norm=float(np.sqrt(DOROTHEA_FEATURES)),
        feature_bounds=((0.0, 1.0),) * DOROTHEA_FEATURES,
    )


def _households(raw: Columns) -> tuple[Columns, NDArray[Any]]:
    """Return the columns of scikit-learn from those of the survey."""
    households = raw["households"].astype(np.float64)
    columns = {
        "MedInc": raw["median_income"],
        "HouseAge": raw["housing_median_age"],
        "AveRooms": raw["total_rooms"] / households,
        "AveBedrms": raw["total_bedrooms"] / households,
        "Population": raw["population"],
        "AveOccup": raw["population"] / households,
        "Latitude": raw["latitude"],
        "Longitude": raw["longitude"],
    }
    return columns, raw["target"] / 1e5


def _ranged(
    name: str,
    columns: Columns,
    ranges: Mapping[str, Range],
    y: NDArray[Any],
    scaled: bool,
    y_range: tuple[float, float] | None = None,
) -> Dataset:
    """Return columns in [0, 1], or in their published units within their ranges."""
    if y_range is not None:
        y = np.clip(y.astype(np.float64), *y_range)
    X = np.empty((len(y), len(ranges)))
    for j, (column, allowed) in enumerate(ranges.items()):
        values = columns[column].astype(np.float64)
        if scaled:
            X[:, j] = allowed.scale(values)
        else:
            X[:, j] = np.clip(values, allowed.low, allowed.high)
    bounds = tuple((float(r.low), float(r.high)) for r in ranges.values())
    if scaled:
        bounds = ((0.0, 1.0),) * len(bounds)
    largest = np.max(np.abs(np.array(bounds)), axis=1)
    return Dataset(
        X,
        y,
        tuple(ranges),
        name,
        x_norm=float(np.sqrt(np.sum(largest**2))),
        feature_bounds=bounds,
        y_range=y_range,
    )
