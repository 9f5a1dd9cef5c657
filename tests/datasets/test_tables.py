from types import SimpleNamespace

import numpy as np
import pytest
from tests.datasets.test_real import needs, raw
from tests.datasets.test_wide import assert_ranged

from tacit.datasets import (
    _tables,
    load_abalone,
    load_diabetes,
    load_jester,
    load_wine_quality,
)
from tacit.datasets._tables import ABALONE_RANGES, DIABETES_RANGES, WINE_RANGES


def assert_targets(found, published):
    np.testing.assert_array_equal(found.y, published)
    assert found.y_range[0] <= found.y.min() <= found.y.max() <= found.y_range[1]


@needs("abalone/abalone.parquet")
def test_abalone_has_one_sex_a_row_and_is_not_cut():
    columns = raw("abalone/abalone.parquet")
    found = assert_ranged(load_abalone, 4_177, 10)
    assert found.feature_names == tuple(ABALONE_RANGES)
    assert (found.X[:, :3].sum(axis=1) == 1).all()
    assert found.X[:, :3].sum(axis=0).tolist() == [1528, 1307, 1342]
    np.testing.assert_array_equal(found.X[:, 3], columns["length"])
    np.testing.assert_array_equal(found.X[:, 5], columns["height"])
    assert_targets(found, columns["target"])


@needs("wine_quality/wine_quality.parquet")
def test_wine_is_red_or_white_and_not_cut():
    columns = raw("wine_quality/wine_quality.parquet")
    found = assert_ranged(load_wine_quality, 6_497, 12)
    assert found.feature_names == tuple(WINE_RANGES)
    assert found.X[:, -1].sum() == 4_898
    for j, name in enumerate(list(WINE_RANGES)[:-1]):
        np.testing.assert_array_equal(found.X[:, j], columns[name])
    assert_targets(found, columns["target"])


def test_diabetes_is_in_the_units_it_was_measured_in():
    found = assert_ranged(load_diabetes, 442, 10)
    assert found.feature_names == tuple(DIABETES_RANGES)
    first = [59.0, 2.0, 32.1, 101.0, 157.0, 93.2, 38.0, 4.0, 4.8598, 87.0]
    np.testing.assert_array_equal(found.X[0], first)
    assert found.y[0] == 151.0
    assert found.y_range[0] <= found.y.min() <= found.y.max() <= found.y_range[1]


@needs("jester_1/jester_1.parquet")
def test_jester_is_one_person_a_row_and_ten_jokes():
    columns = raw("jester_1/jester_1.parquet")
    found = assert_ranged(load_jester, 24_983, 10)
    assert found.feature_names[0] == "joke_5"
    first = columns["user"] == 1
    gauge = np.isin(columns["item"], _tables.JESTER_GAUGE)
    np.testing.assert_array_equal(found.X[0], columns["target"][first & gauge])
    assert found.y[0] == pytest.approx(columns["target"][first & ~gauge].mean())
    assert found.y_range[0] <= found.y.min() <= found.y.max() <= found.y_range[1]


def test_a_joke_that_was_not_rated_counts_as_zero_and_moves_no_mean(
    monkeypatch, tmp_path
):
    table = {"user": [1, 1, 1, 2], "item": [5, 1, 2, 7], "target": [9.0, 2.0, 4.0, -3]}
    columns = {name: np.array(values) for name, values in table.items()}
    monkeypatch.setattr(_tables, "_require", lambda _: tmp_path)
    monkeypatch.setattr(_tables, "_read_columns", lambda _: columns)
    found = load_jester(scaled=False)
    assert found.X[:, :2].tolist() == [[9, 0], [0, -3]]
    assert found.y.tolist() == [3.0, 0.0]
    assert load_jester().X[0, :2].tolist() == [0.95, 0.5]


def test_downloaded_shells_read_like_the_file(monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas", reason="tables are downloaded with pandas")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    sizes = [name for name in ABALONE_RANGES if not name.startswith("sex")]
    frame = pandas.DataFrame({name.capitalize(): [0.5, 0.25] for name in sizes})
    frame["Sex"] = pandas.Series(["I", "M"], dtype="category")
    bunch = SimpleNamespace(data=frame, target=pandas.Series([7, 31]))
    monkeypatch.setattr(_tables, "fetch_openml", lambda *_, **__: bunch)
    found = load_abalone(scaled=False, download=True)
    assert found.X[:, :3].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert (found.X[:, 3:] == [[0.5], [0.25]]).all()
    assert found.y.tolist() == [7.0, 30.0]
