"""Loaders of sets with unequal columns or more columns than rows.

Coordinate descent was published on them. Every column has a range fixed in the code.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import fetch_california_housing, fetch_openml

from tacit.datasets._descriptors import MELTING_POINT_RANGES
from tacit.datasets._public import CALIFORNIA_RANGES, ELECTRICITY_RANGES, Range
from tacit.datasets._real import Columns, Dataset, _find, _read_columns, _require

MADELON_FEATURES = 500
# three digits
MADELON_RANGE = Range(0, 999)
DOROTHEA_FEATURES = 100_000
# 100,000 dollars: values above half a million are coded as one dollar more
CALIFORNIA_VALUES = (0.0, 5.00001)
# degrees Celsius, wider than what was measured
MELTING_RANGE = (-100.0, 500.0)


def load_california_housing(scaled: bool = True, download: bool = False) -> Dataset:
    """Load California Housing: the median value of houses in a block of the census.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.
    download
        Whether to fetch the set through scikit-learn when it is not in the data folder.

    Returns
    -------
    Dataset
        20,640 rows and the 8 columns of scikit-learn, some of them means over the
        households of a block; values in 100,000 dollars.

    Notes
    -----
    Ages, incomes and values are those of the survey's top codes, places those of the
    state [1]_; the other ranges are round figures. The folder is found as in
    :func:`load_adult`.

    References
    ----------
    .. [1] R. Pace and R. Barry, "Sparse spatial autoregressions", Statistics and
       Probability Letters 33, 1997.
    """
    path = _find("california_housing/california_housing.parquet", download)
    if path:
        columns, y = _households(_read_columns(path))
    else:
        bunch = fetch_california_housing()
        columns = dict(zip(CALIFORNIA_RANGES, bunch.data.T, strict=True))
        y = bunch.target
    y = np.clip(y.astype(np.float64), *CALIFORNIA_VALUES)
    name, ranges = "california_housing", CALIFORNIA_RANGES
    return _ranged(name, columns, ranges, y, scaled, CALIFORNIA_VALUES)


def load_electricity(scaled: bool = True, download: bool = False) -> Dataset:
    """Load Electricity: does the price in New South Wales rise above that of a day.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.
    download
        Whether to fetch the set from OpenML when it is not in the data folder.

    Returns
    -------
    Dataset
        45,312 half hours and 8 columns, in the order of time; 1 stands for a price
        that rises.

    Notes
    -----
    The publisher has scaled all columns to [0, 1] but the day of the week. The folder
    is found as in :func:`load_adult`.
    """
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
    """Load Melting Point: at what temperature a compound melts.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.

    Returns
    -------
    Dataset
        4,401 compounds and 202 descriptors of the molecule; degrees Celsius.

    Notes
    -----
    The descriptors come without ranges: those used are round figures. The folder is
    found as in :func:`load_adult`.

    References
    ----------
    .. [1] M. Karthikeyan, R. Glen and A. Bender, "General melting point prediction
       based on a diverse compound data set and artificial neural networks", Journal
       of Chemical Information and Modeling 45, 2005.
    """
    columns = _read_columns(_require("melting_point/melting_point.parquet"))
    y = np.clip(columns["target"].astype(np.float64), *MELTING_RANGE)
    # in the order of the file
    ranges = {c: MELTING_POINT_RANGES[c] for c in columns if c in MELTING_POINT_RANGES}
    return _ranged("melting_point", columns, ranges, y, scaled, MELTING_RANGE)


def load_madelon(scaled: bool = True, download: bool = False) -> Dataset:
    """Load Madelon: corners of a cube, hidden among columns that tell nothing.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.
    download
        Whether to fetch the set from OpenML when it is not in the data folder.

    Returns
    -------
    Dataset
        2,600 rows and 500 columns of integers below 1,000; two classes.

    Notes
    -----
    Made for a competition on the selection of columns [1]_. The folder is found as in
    :func:`load_adult`.

    References
    ----------
    .. [1] I. Guyon, S. Gunn, A. Ben-Hur and G. Dror, "Result analysis of the NIPS 2003
       feature selection challenge", NeurIPS 2004.
    """
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
    """Load Dorothea: does a compound bind to thrombin.

    Returns
    -------
    Dataset
        The 350 compounds that were meant for validation, as CSR rows over 100,000
        structures that a molecule has or has not; 1 stands for one that binds.

    Notes
    -----
    From the same competition as :func:`load_madelon`: half of the columns were added
    and tell nothing. Columns are not named in the published file. The folder is found
    as in :func:`load_adult`.
    """
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
