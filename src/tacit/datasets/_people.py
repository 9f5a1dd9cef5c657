"""Loaders of sets about people on which fairness is studied."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

from tacit.datasets._ranges import Range, _words
from tacit.datasets._real import (
    Columns,
    Dataset,
    _encode,
    _find,
    _read_columns,
    _require,
)

# The published attributes of a face, in their published order
CELEBA_ATTRIBUTES: Final = _words(
    """
    5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips
    Big_Nose Black_Hair Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin
    Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones Male Mouth_Slightly_Open
    Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline
    Rosy_Cheeks Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat
    Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young
    """
)
# the attribute that the published file keeps as its target
CELEBA_TARGET: Final = "Smiling"

# Adults; counts are round figures on a logarithmic scale, as most are zero
COMPAS_RANGES: Final[Mapping[str, Range]] = {
    "age": Range(18, 100),
    "juv_fel_count": Range(0, 20, log=True),
    "juv_misd_count": Range(0, 20, log=True),
    "juv_other_count": Range(0, 20, log=True),
    "priors_count": Range(0, 40, log=True),
}
COMPAS_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "sex": ("Female", "Male"),
    "race": (
        "African-American",
        "Asian",
        "Caucasian",
        "Hispanic",
        "Native American",
        "Other",
    ),
    "c_charge_degree": ("F", "M"),
}
# Days between the arrest and the score within which the two belong together
COMPAS_DAYS: Final = 30

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

# First code of each part of the world in the survey's list of birthplaces
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


def load_celeba_attributes(label: str = CELEBA_TARGET) -> Dataset:
    """Attributes of CelebA, without images, published as -1 and 1."""
    if label not in CELEBA_ATTRIBUTES:
        raise ValueError(
            "label must be one of the 40 published attributes, such as 'Smiling', got "
            f"{label!r}."
        )
    columns = dict(
        _read_columns(_require("celeba_attributes/celeba_attributes.parquet"))
    )
    columns[CELEBA_TARGET] = columns["target"]
    columns["target"] = columns[label] > 0
    has = {name: Range(-1, 1) for name in CELEBA_ATTRIBUTES if name != label}
    return _encode("celeba_attributes", columns, has, {})


def load_compas() -> Dataset:
    """COMPAS: is a person charged again within two years."""
    columns = _read_columns(_require("compas/compas.parquet"))
    # the rows of the published analysis: a score within 30 days of the arrest, no mere
    # traffic offense, a known outcome. An unknown number of days is not a number, and
    # compares as false
    kept = (
        (np.abs(columns["days_b_screening_arrest"]) <= COMPAS_DAYS)
        & (columns["is_recid"] != -1)
        & (columns["c_charge_degree"] != "O")
        & (columns["score_text"] != "N/A")
    )
    columns = {name: column[kept] for name, column in columns.items()}
    return _encode("compas", columns, COMPAS_RANGES, COMPAS_CATEGORIES)


def load_acs_income(download: bool = False) -> Dataset:
    """ACSIncome: does a person earn more than 50,000 dollars a year."""
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
