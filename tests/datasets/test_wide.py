from types import SimpleNamespace

import numpy as np
import pytest
from tests.datasets.test_real import needs, raw

from tacit.datasets import (
    _wide,
    load_california_housing,
    load_dorothea,
    load_electricity,
    load_madelon,
    load_melting_point,
)
from tacit.datasets._descriptors import MELTING_POINT_RANGES
from tacit.datasets._public import CALIFORNIA_RANGES, ELECTRICITY_RANGES


def assert_ranged(load, n_rows, n_features):
    """Check that scaled and published units are the same data, none of it cut."""
    scaled, published = load(), load(scaled=False)
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


@needs("california_housing/california_housing.parquet")
def test_california_has_the_columns_of_scikit_learn():
    columns = raw("california_housing/california_housing.parquet")
    found = assert_ranged(load_california_housing, 20_640, 8)
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
    found = assert_ranged(load_electricity, 45_312, 8)
    assert found.feature_names == tuple(ELECTRICITY_RANGES)
    np.testing.assert_array_equal(found.X[:, 1], columns["day"])
    assert np.bincount(found.y).tolist() == [26_075, 19_237]
    # half hours follow each other, so that a stream of them is one of time
    assert (np.diff(found.X[:, 0]) >= 0).mean() > 0.999


@needs("melting_point/melting_point.parquet")
def test_melting_points_are_within_wider_ranges():
    columns = raw("melting_point/melting_point.parquet")
    found = assert_ranged(load_melting_point, 4_401, 202)
    assert set(found.feature_names) == set(MELTING_POINT_RANGES)
    np.testing.assert_array_equal(found.X[:, 0], columns["diameter"])
    np.testing.assert_array_equal(found.y, columns["target"])


@needs("madelon/madelon.parquet")
def test_madelon_is_whole_numbers_of_three_digits():
    found = assert_ranged(load_madelon, 2_600, 500)
    np.testing.assert_array_equal(found.X, np.rint(found.X))
    assert np.bincount(found.y).tolist() == [1_300, 1_300]


@needs("dorothea_valid/X.npz")
def test_dorothea_is_sparse_and_binary():
    found = load_dorothea()
    assert found.X.shape == (350, 100_000)
    assert set(np.unique(found.X.data)) == {1.0}
    assert found.y.sum() == 34
    assert len(found.feature_bounds) == len(found.feature_names) == 100_000


@pytest.fixture
def no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))


@pytest.mark.usefixtures("no_folder")
def test_downloaded_blocks_are_cut_to_their_ranges(monkeypatch):
    lows = np.array([r.low for r in CALIFORNIA_RANGES.values()])
    bunch = SimpleNamespace(data=np.vstack([lows, lows - 1]), target=np.array([2.0, 9]))
    monkeypatch.setattr(_wide, "fetch_california_housing", lambda: bunch)
    found = load_california_housing(download=True)
    assert (found.X == 0).all()
    assert found.y.tolist() == [2.0, 5.00001]


@pytest.mark.usefixtures("no_folder")
def test_downloaded_half_hours_read_like_the_file(monkeypatch):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    frame = pandas.DataFrame({key: [0.0, 1.0] for key in ELECTRICITY_RANGES})
    frame["day"] = pandas.Series(["1", "7"], dtype="category")
    target = pandas.Series(["UP", "DOWN"], dtype="category")
    bunch = SimpleNamespace(data=frame, target=target)
    monkeypatch.setattr(_wide, "fetch_openml", lambda *_, **__: bunch)
    found = load_electricity(download=True)
    np.testing.assert_array_equal(found.X, np.repeat([[0.0], [1.0]], 8, axis=1))
    assert found.y.tolist() == [1, 0]


@pytest.mark.usefixtures("no_folder")
def test_downloaded_corners_read_like_the_file(monkeypatch):
    bunch = SimpleNamespace(data=np.full((2, 500), 999), target=np.array(["1", "2"]))
    monkeypatch.setattr(_wide, "fetch_openml", lambda *_, **__: bunch)
    found = load_madelon(download=True)
    assert (found.X == 1).all()
    assert found.y.tolist() == [0, 1]
