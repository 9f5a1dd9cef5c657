from types import SimpleNamespace

import numpy as np
import pytest
from tests.datasets.test_real import needs, raw

from tacit.datasets import _tables, load
from tacit.datasets._ranges import (
    CALIFORNIA_RANGES,
    ELECTRICITY_RANGES,
    MELTING_POINT_RANGES,
)
from tacit.datasets._tables import ABALONE_RANGES, DIABETES_RANGES, WINE_RANGES


def assert_ranged(name, n_rows, n_features):
    """Check that scaled and published units are the same data, none of it clipped."""
    scaled, published = load(name), load(name, scaled=False)
    for found in (scaled, published):
        assert found.X.shape == (n_rows, n_features)
        assert found.X.flags.c_contiguous
        assert len(set(found.feature_names)) == n_features
        low, high = np.array(found.feature_bounds).T
        assert (low <= found.X).all()
        assert (high >= found.X).all()
        assert np.linalg.norm(found.X, axis=1).max() <= found.x_norm * (1 + 1e-12)
        np.testing.assert_array_equal(found.y, scaled.y)
    assert scaled.X.min() >= 0
    assert scaled.X.max() <= 1
    low, high = np.array(published.feature_bounds).T
    back = low + scaled.X * (high - low)
    np.testing.assert_allclose(back, published.X, rtol=1e-9, atol=1e-9 * high.max())
    return published


def assert_targets(found, published):
    np.testing.assert_array_equal(found.y, published)
    assert found.y_range[0] <= found.y.min() <= found.y.max() <= found.y_range[1]


@needs("abalone/abalone.parquet")
def test_abalone_has_one_sex_a_row_and_is_not_clipped():
    columns = raw("abalone/abalone.parquet")
    found = assert_ranged("abalone", 4_177, 10)
    assert found.feature_names == tuple(ABALONE_RANGES)
    assert (found.X[:, :3].sum(axis=1) == 1).all()
    assert found.X[:, :3].sum(axis=0).tolist() == [1528, 1307, 1342]
    np.testing.assert_array_equal(found.X[:, 3], columns["length"])
    np.testing.assert_array_equal(found.X[:, 5], columns["height"])
    assert_targets(found, columns["target"])


@needs("wine_quality/wine_quality.parquet")
def test_wine_is_red_or_white_and_not_cut():
    columns = raw("wine_quality/wine_quality.parquet")
    found = assert_ranged("wine_quality", 6_497, 12)
    assert found.feature_names == tuple(WINE_RANGES)
    assert found.X[:, -1].sum() == 4_898
    for j, name in enumerate(list(WINE_RANGES)[:-1]):
        np.testing.assert_array_equal(found.X[:, j], columns[name])
    assert_targets(found, columns["target"])


def test_diabetes_is_in_the_units_it_was_measured_in():
    found = assert_ranged("diabetes", 442, 10)
    assert found.feature_names == tuple(DIABETES_RANGES)
    first = [59.0, 2.0, 32.1, 101.0, 157.0, 93.2, 38.0, 4.0, 4.8598, 87.0]
    np.testing.assert_array_equal(found.X[0], first)
    assert found.y[0] == 151.0
    assert found.y_range[0] <= found.y.min() <= found.y.max() <= found.y_range[1]


@needs("jester_1/jester_1.parquet")
def test_jester_is_one_person_a_row_and_ten_jokes():
    columns = raw("jester_1/jester_1.parquet")
    found = assert_ranged("jester", 24_983, 10)
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
    found = load("jester", scaled=False)
    assert found.X[:, :2].tolist() == [[9, 0], [0, -3]]
    assert found.y.tolist() == [3.0, 0.0]
    assert load("jester").X[0, :2].tolist() == [0.95, 0.5]


def test_downloaded_shells_read_like_the_file(monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas", reason="tables are downloaded with pandas")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    sizes = [name for name in ABALONE_RANGES if not name.startswith("sex")]
    frame = pandas.DataFrame({name.capitalize(): [0.5, 0.25] for name in sizes})
    frame["Sex"] = pandas.Series(["I", "M"], dtype="category")
    bunch = SimpleNamespace(data=frame, target=pandas.Series([7, 31]))
    monkeypatch.setattr(_tables, "fetch_openml", lambda *_, **__: bunch)
    found = load("abalone", scaled=False, download=True)
    assert found.X[:, :3].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert (found.X[:, 3:] == [[0.5], [0.25]]).all()
    assert found.y.tolist() == [7.0, 30.0]


@needs("california_housing/california_housing.parquet")
def test_california_has_the_columns_of_scikit_learn():
    columns = raw("california_housing/california_housing.parquet")
    found = assert_ranged("california_housing", 20_640, 8)
    assert found.feature_names == tuple(CALIFORNIA_RANGES)
    # the first row as scikit-learn documents it
    first = [8.3252, 41.0, 6.984127, 1.023810, 322.0, 2.555556, 37.88, -122.23]
    np.testing.assert_allclose(found.X[0], first, rtol=1e-6)
    assert found.y[0] == pytest.approx(4.526)
    np.testing.assert_allclose(found.y * 1e5, columns["target"])
    assert found.y_range[0] <= found.y.min() <= found.y.max() <= found.y_range[1]


@needs("electricity/electricity.parquet")
def test_electricity_is_as_published():
    columns = raw("electricity/electricity.parquet")
    found = assert_ranged("electricity", 45_312, 8)
    assert found.feature_names == tuple(ELECTRICITY_RANGES)
    np.testing.assert_array_equal(found.X[:, 1], columns["day"])
    assert np.bincount(found.y).tolist() == [26_075, 19_237]
    # half hours follow each other, so that a stream of them is one of time
    assert (np.diff(found.X[:, 0]) >= 0).mean() > 0.999


@needs("melting_point/melting_point.parquet")
def test_melting_points_are_within_tablesr_ranges():
    columns = raw("melting_point/melting_point.parquet")
    found = assert_ranged("melting_point", 4_401, 202)
    assert set(found.feature_names) == set(MELTING_POINT_RANGES)
    np.testing.assert_array_equal(found.X[:, 0], columns["diameter"])
    np.testing.assert_array_equal(found.y, columns["target"])


@needs("madelon/madelon.parquet")
def test_madelon_is_integers_of_three_digits():
    found = assert_ranged("madelon", 2_600, 500)
    np.testing.assert_array_equal(found.X, np.rint(found.X))
    assert np.bincount(found.y).tolist() == [1_300, 1_300]


@needs("dorothea_valid/X.npz")
def test_dorothea_is_sparse_and_binary():
    found = load("dorothea")
    assert found.X.shape == (350, 100_000)
    assert set(np.unique(found.X.data)) == {1.0}
    assert found.y.sum() == 34
    assert len(found.feature_bounds) == len(found.feature_names) == 100_000


@pytest.fixture
def no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))


@pytest.mark.usefixtures("no_folder")
def test_downloaded_blocks_are_clipped_to_their_ranges(monkeypatch):
    lows = np.array([r.low for r in CALIFORNIA_RANGES.values()])
    bunch = SimpleNamespace(data=np.vstack([lows, lows - 1]), target=np.array([2.0, 9]))
    monkeypatch.setattr(_tables, "fetch_california_housing", lambda: bunch)
    found = load("california_housing", download=True)
    assert (found.X == 0).all()
    assert found.y.tolist() == [2.0, 5.00001]


@pytest.mark.usefixtures("no_folder")
def test_downloaded_half_hours_read_like_the_file(monkeypatch):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    frame = pandas.DataFrame({key: [0.0, 1.0] for key in ELECTRICITY_RANGES})
    frame["day"] = pandas.Series(["1", "7"], dtype="category")
    target = pandas.Series(["UP", "DOWN"], dtype="category")
    bunch = SimpleNamespace(data=frame, target=target)
    monkeypatch.setattr(_tables, "fetch_openml", lambda *_, **__: bunch)
    found = load("electricity", download=True)
    np.testing.assert_array_equal(found.X, np.repeat([[0.0], [1.0]], 8, axis=1))
    assert found.y.tolist() == [1, 0]


@pytest.mark.usefixtures("no_folder")
def test_downloaded_corners_read_like_the_file(monkeypatch):
    bunch = SimpleNamespace(data=np.full((2, 500), 999), target=np.array(["1", "2"]))
    monkeypatch.setattr(_tables, "fetch_openml", lambda *_, **__: bunch)
    found = load("madelon", download=True)
    assert (found.X == 1).all()
    assert found.y.tolist() == [0, 1]
