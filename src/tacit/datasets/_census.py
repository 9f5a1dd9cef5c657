"""A synthetic census whose best classifier is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit._random import as_generator
from tacit.datasets._ranges import _words

FloatArray = NDArray[np.float64]

# Public ranges of the questionnaire: every answer lies in them by construction.
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "age": (18, 90),
    "hours_per_week": (0, 80),
    "household_size": (1, 8),
    "job_tenure": (0, 50),
    "commute_minutes": (0, 120),
    "female": (0, 1),
}

CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "education": ("primary", "secondary", "vocational", "bachelor", "higher"),
    "sector": _words(
        "none agriculture manufacturing construction retail hospitality public finance "
        "technology"
    ),
    "region": ("north", "east", "south", "west", "center", "islands"),
    "marital": ("single", "married", "divorced", "widowed"),
    "housing": ("owner", "tenant", "other"),
}

# Effects on the log-odds of a high income, per unit of the scaled column.
NUMERIC_EFFECTS: Final = (1.5, 4.0, -0.8, 2.0, 0.5, -0.6)
CATEGORY_EFFECTS: Final[Mapping[str, tuple[float, ...]]] = {
    "education": (-1.8, -0.9, 0.0, 1.2, 2.0),
    "sector": (-1.2, -1.0, 0.1, 0.0, -0.7, -1.2, 0.2, 1.2, 1.4),
    "region": (0.2, -0.4, -0.5, 0.1, 0.6, -0.6),
    "marital": (-0.5, 0.7, -0.1, 0.0),
    "housing": (0.6, -0.4, -0.2),
}
INTERCEPT: Final = -3.9

# Log-odds of the sectors at the lowest and the highest level of education.
_SECTOR_LOW: Final = np.array([0.6, 0.6, 0.8, 0.7, 0.7, 0.6, -0.4, -2.0, -2.5])
_SECTOR_HIGH: Final = np.array([-0.6, -1.6, -0.2, -1.2, -0.6, -1.4, 1.0, 0.6, 0.9])
_SECTOR_HOURS: Final = np.array([4.0, 44, 40, 42, 34, 33, 37, 42, 41])


@dataclass(frozen=True, eq=False)
class Census:
    """A census drawn from a known logistic model.

    Parameters
    ----------
    X
        One row a person: numeric answers scaled to [0, 1] by their public range,
        then one indicator a category.
    y
        1 for a high income, 0 otherwise.
    feature_names
        Names of the columns; an indicator is called ``question=answer``.
    true_coef
        Coefficients of the model that drew ``y``.
    true_intercept
        Its intercept.
    bayes_accuracy
        Expected accuracy of the model itself on these rows. No classifier has a
        higher one, whatever it learned from.
    x_norm
        Public bound on the Euclidean norm of a row, from the questionnaire alone.
    probability
        Probability of ``y = 1`` for each row, if ``return_truth`` is set.
    """

    X: FloatArray
    y: NDArray[np.int64]
    feature_names: tuple[str, ...]
    true_coef: FloatArray
    true_intercept: float
    bayes_accuracy: float
    x_norm: float
    probability: FloatArray | None = None


def make_census(
    n_rows: int = 50_000, random_state: Any = 0, return_truth: bool = False
) -> Census:
    """Draw a synthetic census with mixed answers and a known best classifier.

    Parameters
    ----------
    n_rows
        Number of persons.
    random_state
        Seed or generator. The same seed gives the same census.
    return_truth
        Whether to fill ``probability``.

    Returns
    -------
    Census
        Columns, labels, and the model that drew the labels.

    Notes
    -----
    The answers depend on each other as in a real census: education on the
    generation, sector on education, hours on the sector, tenure on age, household
    on the marital status. Given the answers, ``y`` follows a logistic model, with
    a little more than a quarter of high incomes. The persons are
    invented, so reading the rows costs no privacy.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> census = make_census(n_rows=1000)
    >>> census.X.shape
    (1000, 33)
    """
    if n_rows < 1:
        raise ValueError(f"n_rows must be >= 1, got {n_rows}.")
    rng = as_generator(random_state)
    numeric, codes = _draw_answers(n_rows, rng)

    lows, highs = np.array(list(RANGES.values()), dtype=np.float64).T
    blocks = [(numeric - lows) / (highs - lows)]
    names = list(RANGES)
    coef = [np.array(NUMERIC_EFFECTS)]
    for question, answers in CATEGORIES.items():
        blocks.append(np.eye(len(answers))[codes[question]])
        names += [f"{question}={answer}" for answer in answers]
        coef.append(np.array(CATEGORY_EFFECTS[question]))
    X = np.hstack(blocks)
    true_coef = np.concatenate(coef)

    probability = 1.0 / (1.0 + np.exp(-(X @ true_coef + INTERCEPT)))
    y = (rng.random(n_rows) < probability).astype(np.int64)
    return Census(
        X=X,
        y=y,
        feature_names=tuple(names),
        true_coef=true_coef,
        true_intercept=INTERCEPT,
        bayes_accuracy=float(np.maximum(probability, 1.0 - probability).mean()),
        # at most 1 a numeric column, and exactly one indicator a question
        x_norm=float(np.sqrt(len(RANGES) + len(CATEGORIES))),
        probability=probability if return_truth else None,
    )


def make_census_table(
    n_rows: int = 50_000, random_state: int = 0
) -> dict[str, NDArray[Any]]:
    """Return the census of `make_census` before encoding: numbers and words.

    Parameters
    ----------
    n_rows
        Number of persons.
    random_state
        Seed. The same seed gives the persons of `make_census`.

    Returns
    -------
    dict of str to ndarray
        One array a column, ``high_income`` last.

    Examples
    --------
    >>> from tacit.datasets import make_census_table
    >>> list(make_census_table(n_rows=3))[:3]
    ['age', 'hours_per_week', 'household_size']
    """
    numeric, codes = _draw_answers(n_rows, as_generator(random_state))
    table: dict[str, NDArray[Any]] = {
        name: numeric[:, position].astype(np.int64)
        for position, name in enumerate(RANGES)
    }
    table["female"] = np.where(table["female"] == 1, "yes", "no")
    for question, answers in CATEGORIES.items():
        table[question] = np.array(answers)[codes[question]]
    y = make_census(n_rows, random_state).y
    table["high_income"] = np.where(y == 1, "yes", "no")
    return table


def _draw_answers(
    n: int, rng: np.random.Generator
) -> tuple[FloatArray, dict[str, NDArray[np.int64]]]:
    """Return the numeric answers, in the order of RANGES, and the category codes."""
    age = np.floor(18 + 72 * rng.beta(1.4, 2.2, n))
    female = (rng.random(n) < 0.51).astype(np.float64)
    generation = (age - 45) / 30  # younger people studied longer
    education = _pick(
        np.array([-1.2, 0.6, 0.3, 0.2, -0.6])
        + np.outer(generation, [1.2, 0.4, 0.0, -0.5, -0.6]),
        rng,
    )
    level = education[:, None] / (len(CATEGORIES["education"]) - 1)
    sector_logits = (1 - level) * _SECTOR_LOW + level * _SECTOR_HIGH
    sector_logits[:, 0] += np.where(age > 65, 3.0, 0.0)  # retired
    sector = _pick(sector_logits, rng)
    region = _pick(np.tile(np.log([0.2, 0.15, 0.2, 0.18, 0.22, 0.05]), (n, 1)), rng)
    marital = _pick(
        np.array([0.0, 0.8, -0.9, -3.0]) + np.outer(generation, [-1.8, 0.3, 0.4, 2.0]),
        rng,
    )
    housing = _pick(
        np.array([0.5, 0.2, -1.8]) + np.outer(generation, [0.9, -0.6, 0.0]), rng
    )
    working = sector > 0
    hours = rng.normal(_SECTOR_HOURS[sector] - 3 * female, 8.0)
    tenure = np.where(working, (age - 17) * rng.beta(1.0, 2.5, n), 0.0)
    commute = np.where(working, rng.gamma(2.0, 15.0, n), 0.0)
    household = 1 + rng.poisson(np.where(marital == 1, 1.8, 0.6))
    answers = np.column_stack([age, hours, household, tenure, commute, female])
    lows, highs = np.array(list(RANGES.values())).T
    drawn = education, sector, region, marital, housing
    codes = dict(zip(CATEGORIES, drawn, strict=True))
    return np.clip(np.round(answers), lows, highs), codes


def _pick(logits: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return one category a row, drawn with chances proportional to exp(logits)."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    cumulative = np.cumsum(weights, axis=1)
    draw = rng.random(len(logits)) * cumulative[:, -1]
    # the last sum is left out, so that rounding cannot pick past the last category
    picked: NDArray[np.int64] = (draw[:, None] >= cumulative[:, :-1]).sum(axis=1)
    return picked
