"""The tables are in their public ranges, and splits are the same for every method."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.additive import data
from benchmarks.additive.data import SETS, split, table, table_of
from tests.datasets.test_real import needs

from tacit.datasets import load
from tacit.datasets._ranges import Range

FILES = {
    "adult": "adult/adult.parquet",
    "acs_income": "acs_income_co_ne/acs_income_co_ne.parquet",
    "acs_income_codes": "acs_income_co_ne/acs_income_co_ne.parquet",
    "electricity": "electricity/electricity.parquet",
    "california": "california_housing/california_housing.parquet",
    "abalone": "abalone/abalone.parquet",
    "wine": "wine_quality/wine_quality.parquet",
    "compas": "compas/compas.parquet",
    "kddcup99": "kddcup99_10pct/kddcup99_10pct.parquet",
    "celeba": "celeba_attributes/celeba_attributes.parquet",
    "covertype_binary": "covertype/covertype.parquet",
    "covertype": "covertype/covertype.parquet",
}
ALL = [
    pytest.param(
        name,
        marks=[needs(FILES[name]), *([pytest.mark.slow] if source.large else [])],
    )
    for name, source in SETS.items()
]
SIZES = {
    "adult": (45_222, 5, 8),
    "acs_income": (42_091, 10, 0),
    "acs_income_codes": (42_091, 3, 7),
    "electricity": (45_312, 8, 0),
    "california": (20_640, 8, 0),
    "abalone": (4_177, 7, 1),
    "wine": (6_497, 11, 1),
    "compas": (6_172, 5, 3),
    "kddcup99": (70_000, 38, 3),
    "celeba": (202_599, 39, 0),
    "covertype_binary": (581_012, 10, 2),
    "covertype": (581_012, 10, 2),
}


@pytest.mark.parametrize("name", ALL)
def test_every_table_is_within_its_public_facts(name):
    found = SETS[name].load()
    n_rows, n_ranges, n_lists = SIZES[name]
    assert len(found.frame) == len(found.y) == n_rows
    assert (len(found.ranges), len(found.categories)) == (n_ranges, n_lists)
    assert set(found.frame) == {*found.ranges, *found.categories}
    for column, (low, high) in found.ranges.items():
        assert found.frame[column].between(low, high).all(), column
    for column, listed in found.categories.items():
        assert set(found.frame[column]) <= set(listed), column
    if found.y_range is None:
        assert set(found.y) == set(found.classes)
    else:
        assert found.y_range[0] <= found.y.min() < found.y.max() <= found.y_range[1]


@pytest.mark.parametrize(
    ("name", "published"),
    [
        pytest.param(name, published, marks=[needs(FILES[name])])
        for name, published in (
            ("adult", "adult"),
            ("acs_income_codes", "acs_income"),
            ("compas", "compas"),
            ("california", "california_housing"),
            ("electricity", "electricity"),
        )
    ],
)
def test_linear_models_see_the_columns_that_the_library_loads(name, published):
    found, loaded = SETS[name].load(), load(published)
    X, expected = data.indicators(found), loaded.X
    if published == "acs_income":  # in another order of the columns
        X, expected = (np.sort(part, axis=1) for part in (X, expected))
    np.testing.assert_allclose(X, expected, atol=1e-12)
    np.testing.assert_array_equal(found.y, loaded.y)


def test_numbers_are_clipped_and_categories_that_are_not_listed_are_an_error():
    ranges = {"age": Range(18, 90), "bytes": Range(0, 99, log=True)}
    columns = {"age": [5, 30, 200], "bytes": [0, 99, 1000], "sex": ["F", "M", "F"]}
    found = table_of("adult", columns, ranges, {"sex": ("F", "M")}, [0, 1, 1])
    assert found.frame["age"].tolist() == [18, 30, 90]
    assert found.frame["bytes"].max() == found.ranges["bytes"][1] == np.log1p(99)
    with pytest.raises(ValueError, match="sex"):
        table_of("adult", columns, ranges, {"sex": ("F",)}, [0, 1, 1])


@pytest.mark.parametrize("name", ["adult", "abalone"])
def test_a_split_has_every_row_once_and_is_the_same_each_time(name, tables):
    whole, one, again, other = table(name), split(name, 0), split(name, 0), None
    assert (len(one.train.y), len(one.test.y)) == (160, 40)
    both = pd.concat([one.train.frame, one.test.frame])
    assert sorted(both["size"]) == sorted(whole.frame["size"])
    pd.testing.assert_frame_equal(one.train.frame, again.train.frame)
    other = split(name, 1)
    assert not one.train.frame["size"].equals(other.train.frame["size"])
    assert len(split(name, 0, 0.9).test.y) == 20


def test_scores_are_accuracy_and_r2_of_clipped_predictions(tables):
    labels = split("adult", 0)
    assert labels.score(labels.test.y) == 1.0
    assert labels.score(1 - labels.test.y) == 0.0
    numbers = split("abalone", 0)
    assert numbers.score(np.full(40, numbers.test.y.mean())) == pytest.approx(0.0)
    far = data.scored(np.array([0.0, 10.0]), np.array([-99.0, 99.0]), (0.0, 10.0))
    assert far == 1.0
