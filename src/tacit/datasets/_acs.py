"""Loader of answers to the American Community Survey, with its public codes."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

from tacit.datasets._public import Range
from tacit.datasets._real import Columns, Dataset, _encode, _find, _read_columns

# The task keeps ages above 16 and hours above 0; the survey codes no higher age or
# number of hours. Levels of school are in their order
ACS_RANGES: Final[Mapping[str, Range]] = {
    "AGEP": Range(17, 99),
    "SCHL": Range(1, 24),
    "WKHP": Range(1, 99),
}

# How many codes a question has, from the first
ACS_CODES: Final[Mapping[str, range]] = {
    "COW": range(1, 10),
    "MAR": range(1, 6),
    "RELP": range(18),
    "SEX": range(1, 3),
    "RAC1P": range(1, 10),
}

# First code of each major group in the list of occupations of 2018
ACS_OCCUPATIONS: Final[Mapping[str, int]] = {
    "management": 10,
    "business": 500,
    "finance": 800,
    "computing": 1000,
    "engineering": 1300,
    "science": 1600,
    "community": 2000,
    "law": 2100,
    "education": 2200,
    "arts": 2600,
    "medicine": 3000,
    "care": 3600,
    "protection": 3700,
    "food": 4000,
    "cleaning": 4200,
    "personal": 4300,
    "sales": 4700,
    "office": 5000,
    "farming": 6000,
    "construction": 6200,
    "extraction": 6800,
    "repair": 7000,
    "production": 7700,
    "transport": 9000,
    "military": 9800,
    "none": 9900,
}

# First code of each part of the world in the list of places of birth
ACS_BIRTHPLACES: Final[Mapping[str, int]] = {
    "states": 1,
    "territories": 60,
    "Europe": 100,
    "Asia": 200,
    "Americas": 300,
    "Africa": 400,
    "Oceania": 500,
}

# Numbers of Colorado and Nebraska in the file of all states
ACS_STATES: Final = (8, 31)
# dollars a year
ACS_INCOME: Final = 50_000

OPENML_ACS_INCOME: Final = 43_141


def load_acs_income(download: bool = False) -> Dataset:
    """Load ACSIncome: does a person earn more than 50,000 dollars a year.

    Parameters
    ----------
    download
        Whether to fetch the set from OpenML when it is not in the data folder: all
        states, of which two are kept.

    Returns
    -------
    Dataset
        42,091 people who work, of Colorado and of Nebraska in 2018: 3 numeric columns
        and 76 indicators.

    Notes
    -----
    The task is meant to take the place of Adult [1]_. Codes are the survey's own.
    Occupations are taken together in the 25 major groups of the list of 2018 and none,
    places of birth by part of the world; the other codes each have an indicator. The
    folder is found as in :func:`load_adult`.

    References
    ----------
    .. [1] F. Ding, M. Hardt, J. Miller and L. Schmidt, "Retiring Adult: new datasets
       for fair machine learning", NeurIPS 2021.
    """
    path = _find("acs_income_co_ne/acs_income_co_ne.parquet", download)
    columns = dict(_read_columns(path) if path else _fetch_acs_income())
    categories = {name: tuple(map(str, codes)) for name, codes in ACS_CODES.items()}
    for name in ACS_CODES:
        columns[name] = columns[name].astype(np.int64).astype(str)
    for name, firsts in (("OCCP", ACS_OCCUPATIONS), ("POBP", ACS_BIRTHPLACES)):
        columns[name] = _grouped(columns[name], firsts)
        categories[name] = tuple(firsts)
    return _encode("acs_income", columns, ACS_RANGES, categories)


def _grouped(codes: NDArray[np.generic], firsts: Mapping[str, int]) -> NDArray[np.str_]:
    """Return the group of each code; those below the first count as the first."""
    starts = list(firsts.values())
    position = np.searchsorted(starts, codes.astype(np.int64), side="right") - 1
    return np.array(list(firsts))[np.maximum(position, 0)]


def _fetch_acs_income() -> Columns:
    bunch = fetch_openml(data_id=OPENML_ACS_INCOME, as_frame=True)
    kept = bunch.data["ST"].astype(int).isin(ACS_STATES).to_numpy()
    columns = {name: bunch.data[name].to_numpy()[kept] for name in bunch.data.columns}
    columns["target"] = bunch.target.to_numpy()[kept] > ACS_INCOME
    return columns
