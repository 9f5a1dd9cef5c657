"""Loaders of two sets about people on which fairness is studied."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tacit.datasets._public import Range, _words
from tacit.datasets._real import Dataset, _encode, _read_columns, _require

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


def load_celeba_attributes(label: str = CELEBA_TARGET) -> Dataset:
    """Load the attributes of CelebA: does a person smile, from what else a face shows.

    Parameters
    ----------
    label
        Which of the 40 published attributes is the label.

    Returns
    -------
    Dataset
        202,599 faces and the 39 other attributes, 1 where a face has one.

    Notes
    -----
    The attributes alone, without images [1]_; ``Male`` is the usual sensitive one, see
    :meth:`Dataset.without`. Research that is not commercial is all that the publishers
    allow. The folder is found as in :func:`load_adult`.

    References
    ----------
    .. [1] Z. Liu, P. Luo, X. Wang and X. Tang, "Deep learning face attributes in the
       wild", ICCV 2015.
    """
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
    # published as -1 and 1
    has = {name: Range(-1, 1) for name in CELEBA_ATTRIBUTES if name != label}
    return _encode("celeba_attributes", columns, has, {})


def load_compas() -> Dataset:
    """Load COMPAS: is a person charged again within two years.

    Returns
    -------
    Dataset
        6,172 people of Broward County scored in 2013 and 2014: 5 numeric columns and
        10 indicators.

    Notes
    -----
    The rows are those of the published analysis [1]_: a score within 30 days of the
    arrest, an offense that is no mere traffic offense, and a known outcome. The scores
    themselves are left out. ``race`` and ``sex`` are the usual sensitive columns, see
    :meth:`Dataset.without`. Arrests stand in for crimes here, so the label itself is
    in dispute. The folder is found as in :func:`load_adult`.

    References
    ----------
    .. [1] J. Larson, S. Mattu, L. Kirchner and J. Angwin, "How we analyzed the COMPAS
       recidivism algorithm", ProPublica, 2016.
    """
    columns = _read_columns(_require("compas/compas.parquet"))
    # an unknown number of days is not a number, and compares as false
    kept = (
        (np.abs(columns["days_b_screening_arrest"]) <= COMPAS_DAYS)
        & (columns["is_recid"] != -1)
        & (columns["c_charge_degree"] != "O")
        & (columns["score_text"] != "N/A")
    )
    columns = {name: column[kept] for name, column in columns.items()}
    return _encode("compas", columns, COMPAS_RANGES, COMPAS_CATEGORIES)
