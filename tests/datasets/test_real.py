from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.datasets import _real, load
from tacit.datasets._ranges import (
    ADULT_CATEGORIES,
    ADULT_RANGES,
    COVERTYPE_RANGES,
    KDDCUP99_CATEGORIES,
    KDDCUP99_RANGES,
    Range,
)


def needs(file):
    present = (_real._data_folder() / file).is_file()
    return pytest.mark.skipif(
        not present, reason=f"{file} is not in the data folder (set TACIT_DATA)"
    )


def raw(file):
    return _real._read_columns(_real._data_folder() / file)


def assert_public(dataset, n_rows, n_features, counts):
    assert dataset.X.shape == (n_rows, n_features)
    assert dataset.X.dtype == np.float64
    assert len(set(dataset.feature_names)) == n_features
    assert dataset.X.min() >= 0
    assert dataset.X.max() <= 1
    squares = np.asarray((dataset.X * dataset.X).sum(axis=1))
    assert squares.max() <= dataset.x_norm**2 * (1 + 1e-12)
    labels, found = np.unique(dataset.y, return_counts=True)
    assert dict(zip(labels.tolist(), found.tolist(), strict=True)) == counts


def assert_within(columns, ranges):
    for name, allowed in ranges.items():
        assert columns[name].min() >= allowed.low, name
        assert columns[name].max() <= allowed.high, name


@needs("adult/adult.parquet")
def test_adult_is_complete_and_in_its_stated_ranges():
    columns = raw("adult/adult.parquet")
    assert_within(columns, ADULT_RANGES)
    for name, labels in ADULT_CATEGORIES.items():
        assert set(columns[name]) <= {*labels, "?"}, name
    adult = load("adult")
    assert_public(adult, 45_222, 104, {0: 34_014, 1: 11_208})
    indicators = adult.X[:, len(ADULT_RANGES) :]
    assert (indicators.sum(axis=1) == len(ADULT_CATEGORIES)).all()


@needs("a9a/X.npz")
def test_a9a_has_at_most_fourteen_ones_a_row():
    a9a = load("a9a")
    assert_public(a9a, 48_842, 123, {0: 37_155, 1: 11_687})
    assert set(np.unique(a9a.X)) == {0, 1}


@pytest.mark.slow
@needs("mnist/mnist.parquet")
def test_mnist_pixels_are_fractions_of_white():
    columns = raw("mnist/mnist.parquet")
    mnist = load("mnist")
    first = np.bincount(columns["target"][:65_000])
    assert_public(mnist, 65_000, 784, dict(enumerate(first.tolist())))
    np.testing.assert_array_equal(mnist.X[:, 300] * 255, columns["px300"][:65_000])


@pytest.mark.slow
@needs("covertype/covertype.parquet")
def test_covertype_is_in_its_stated_ranges():
    assert_within(raw("covertype/covertype.parquet"), COVERTYPE_RANGES)
    counts = {1: 211840, 2: 283301, 3: 35754, 4: 2747, 5: 9493, 6: 17367, 7: 20510}
    assert_public(load("covertype"), 581_012, 54, counts)
    binary = load("covertype", binary=True)
    assert np.bincount(binary.y).tolist() == [297_711, 283_301]


@pytest.mark.slow
@needs("kddcup99_10pct/kddcup99_10pct.parquet")
def test_kddcup99_is_in_its_stated_ranges():
    columns = raw("kddcup99_10pct/kddcup99_10pct.parquet")
    assert_within(columns, KDDCUP99_RANGES)
    for name, labels in KDDCUP99_CATEGORIES.items():
        assert set(columns[name]) <= set(labels), name
    assert_public(load("kddcup99"), 494_021, 122, {0: 97_278, 1: 396_743})


@needs("newsgroups20/X.npz")
def test_newsgroups_are_counts_of_words_over_their_norm():
    counts = sp.csr_array(sp.load_npz(_real._data_folder() / "newsgroups20/X.npz"))
    posts = load("newsgroups20")
    sizes = np.bincount(posts.y)
    assert sizes.argmax() == _real.LARGEST_NEWSGROUP
    assert_public(posts, 18_846, 21_907, dict(enumerate(sizes.tolist())))
    row = counts[[5]].toarray()[0].astype(float)
    np.testing.assert_allclose(
        posts.X[[5]].toarray()[0], row / np.linalg.norm(row), rtol=1e-14
    )
    binary = load("newsgroups20", binary=True)
    assert np.bincount(binary.y).tolist() == [17_847, 999]


@needs("reuters_moneyfx/X.npz")
def test_reuters_rows_have_norm_one():
    reuters = load("reuters_moneyfx")
    assert_public(reuters, 11_069, 8_315, {0: 10_352, 1: 717})
    squares = np.asarray((reuters.X * reuters.X).sum(axis=1))
    np.testing.assert_allclose(squares, 1.0, rtol=1e-14)


def test_scaling_a_row_of_word_counts_involves_no_other_row():
    X = sp.csr_array(np.array([[3, 4, 0], [0, 0, 0], [0, 0, 7]], dtype=np.uint16))
    expected = [[0.6, 0.8, 0], [0, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(_real._unit_rows(X).toarray(), expected, rtol=1e-15)
    np.testing.assert_array_equal(X.toarray()[0], [3, 4, 0])


def test_values_outside_a_range_are_clipped():
    values = np.array([-5, 0, 5, 10, 99])
    np.testing.assert_array_equal(Range(0, 10).scale(values), [0, 0, 0.5, 1, 1])
    np.testing.assert_array_equal(
        Range(0, 3, log=True).scale(np.array([0, 1, 3, 8])), [0, 0.5, 1, 1]
    )


def test_a_category_that_is_not_listed_sets_no_indicator():
    columns = {"color": np.array(["red", "mauve"]), "target": np.array([0, 1])}
    encoded = _real._encode("toy", columns, {}, {"color": ("blue", "red")})
    np.testing.assert_array_equal(encoded.X, [[0, 1], [0, 0]])
    assert encoded.feature_names == ("color=blue", "color=red")


def test_mnist_rejects_more_rows_than_there_are():
    with pytest.raises(ValueError, match="n_rows must be between 1 and 70000"):
        load("mnist", n_rows=70_001)


@pytest.fixture
def no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))


@pytest.mark.usefixtures("no_folder")
def test_downloaded_adult_reads_like_the_file(monkeypatch):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    row = {
        name.replace("_", "-"): labels[0] for name, labels in ADULT_CATEGORIES.items()
    }
    row |= {"age": 17, "education-num": 16, "capital-gain": 0, "capital-loss": 0}
    row |= {"hours-per-week": 50, "fnlwgt": 1}
    frame = pandas.DataFrame([row, row | {"workclass": None}, row | {"age": 90}])
    frame["workclass"] = frame["workclass"].astype("category")
    target = pandas.Series([">50K", "<=50K", "<=50K"], dtype="category")
    bunch = SimpleNamespace(data=frame, target=target)
    monkeypatch.setattr(_real, "fetch_openml", lambda *_, **__: bunch)
    adult = load("adult", download=True)
    np.testing.assert_array_equal(
        adult.X[:, :5], [[0, 1, 0, 0, 0.5], [1, 1, 0, 0, 0.5]]
    )
    assert adult.X[:, 5:].sum(axis=1).tolist() == [8, 8]
    assert adult.y.tolist() == [1, 0]


@pytest.mark.usefixtures("no_folder")
def test_downloaded_digits_and_forests_read_like_the_files(monkeypatch):
    digits = SimpleNamespace(data=np.full((3, 784), 255), target=np.array(list("507")))
    monkeypatch.setattr(_real, "fetch_openml", lambda *_, **__: digits)
    mnist = load("mnist", n_rows=2, download=True)
    assert (mnist.X == 1).all()
    assert mnist.y.tolist() == [5, 0]

    lows = np.array([r.low for r in COVERTYPE_RANGES.values()])
    forest = SimpleNamespace(data=lows[None, :], target=np.array([2]))
    monkeypatch.setattr(_real, "fetch_covtype", lambda: forest)
    assert (load("covertype", download=True).X == 0).all()
    assert load("covertype", binary=True, download=True).y.tolist() == [1]


@pytest.mark.usefixtures("no_folder")
def test_downloaded_connections_read_like_the_file(monkeypatch):
    names = [*KDDCUP99_RANGES, *KDDCUP99_CATEGORIES]
    words = [b"tcp", b"http", b"SF"]
    data = np.array([[0] * 38 + words, [1] * 38 + words], dtype=object)
    bunch = SimpleNamespace(
        data=data, feature_names=names, target=np.array([b"normal.", b"smurf."], object)
    )
    monkeypatch.setattr(_real, "fetch_kddcup99", lambda **_: bunch)
    kdd = load("kddcup99", download=True)
    assert kdd.y.tolist() == [0, 1]
    assert kdd.X[0].sum() == 3
