"""Loaders of small regression tables, with ranges fixed in the code."""

from typing import Final

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.datasets import fetch_openml

from tacit.datasets._public import Range
from tacit.datasets._real import Columns, Dataset, _find, _read_columns, _require
from tacit.datasets._wide import _ranged

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

# The slider of the survey; ten jokes that everyone was asked about first
JESTER_RATING: Final = (-10.0, 10.0)
JESTER_JOKES: Final = 100
JESTER_GAUGE: Final = (5, 7, 8, 13, 15, 16, 17, 18, 19, 20)


def load_abalone(scaled: bool = True, download: bool = False) -> Dataset:
    """Load Abalone: how many rings a shell has, from its size and weight.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.
    download
        Whether to fetch the set from OpenML when it is not in the data folder.

    Returns
    -------
    Dataset
        4,177 animals, 7 measurements and an indicator for each sex and for infants;
        rings from 0 to 30.

    Notes
    -----
    Ranges are round figures in the published units. The folder is found as in
    :func:`load_adult`.

    References
    ----------
    .. [1] W. Nash, T. Sellers, S. Talbot, A. Cawthorn and W. Ford. Abalone. UCI
       Machine Learning Repository, 1995.
    """
    path = _find("abalone/abalone.parquet", download)
    columns = dict(_read_columns(path) if path else _fetch_abalone())
    sex = columns.pop("sex")
    columns |= {f"sex={label}": sex == label for label in ABALONE_SEXES}
    y = np.clip(columns["target"].astype(np.float64), *ABALONE_RINGS)
    return _ranged("abalone", columns, ABALONE_RANGES, y, scaled, ABALONE_RINGS)


def load_wine_quality(scaled: bool = True) -> Dataset:
    """Load Wine Quality: the grade of a Vinho Verde, from what a laboratory measures.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.

    Returns
    -------
    Dataset
        6,497 wines, 11 measurements and an indicator of white ones; grades on a scale
        from 0 to 10.

    Notes
    -----
    Ranges are round figures. The folder is found as in :func:`load_adult`.

    References
    ----------
    .. [1] P. Cortez, A. Cerdeira, F. Almeida, T. Matos and J. Reis, "Modeling wine
       preferences by data mining from physicochemical properties", Decision Support
       Systems 47, 2009.
    """
    columns = dict(_read_columns(_require("wine_quality/wine_quality.parquet")))
    columns["color=white"] = columns.pop("color") == "white"
    y = np.clip(columns["target"].astype(np.float64), *WINE_QUALITY)
    return _ranged("wine_quality", columns, WINE_RANGES, y, scaled, WINE_QUALITY)


def load_diabetes(scaled: bool = True) -> Dataset:
    """Load Diabetes: how far the disease went in a year, from ten measurements.

    Parameters
    ----------
    scaled
        Whether columns are moved to [0, 1], or only clipped to their ranges.

    Returns
    -------
    Dataset
        442 patients and 10 columns; a measure of progress from 0 to 350.

    Notes
    -----
    The rows that come with scikit-learn, in the units they were measured in. Ranges
    are round figures.

    References
    ----------
    .. [1] B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, "Least angle
       regression", Annals of Statistics 32, 2004.
    """
    bunch = sklearn_datasets.load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    y = np.clip(bunch.target.astype(np.float64), *DIABETES_PROGRESS)
    return _ranged("diabetes", columns, DIABETES_RANGES, y, scaled, DIABETES_PROGRESS)


def load_jester(scaled: bool = True) -> Dataset:
    """Load Jester: how much a person likes jokes, from ratings of ten of them.

    Parameters
    ----------
    scaled
        Whether ratings in ``X`` are moved to [0, 1], or left in [-10, 10].

    Returns
    -------
    Dataset
        24,983 people in the order they are published in, and the ten jokes that
        everyone is asked about; the mean of their other ratings, from -10 to 10.

    Notes
    -----
    A row is a person. A joke that was not rated counts as rated 0. Each target
    involves the ratings of that person alone. The folder is found as in
    :func:`load_adult`.

    References
    ----------
    .. [1] K. Goldberg, T. Roeder, D. Gupta and C. Perkins, "Eigentaste: a constant
       time collaborative filtering algorithm", Information Retrieval 4, 2001.
    """
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
