"""Random features: a public structure, drawn without data, that maps single rows."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from tests.persistence.forging import forge, npz, put, rejected
from tests.refusal import raises_one_line

from tacit import Seed
from tacit._random import as_generator
from tacit.linear_model import LogisticRegression
from tacit.model_selection import PrivateSearchCV
from tacit.persistence import load_model, save_model
from tacit.preprocessing import (
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)
from tacit.privacy import Budget, Ledger

RANGES = {"age": (18, 98), "hours": (0, 80)}
FRAME = pd.DataFrame({"age": [58.0, 0.0, 98.0], "hours": [20.0, 80.0, 1e9]})
KINDS = [
    RandomFourierFeatures((-1, 1), 5),
    RandomPartitionTrees((-1, 1), 5, 3),
    RandomPartitionTrees((-1, 1), 5, 3, sparse_output=True),
]
each_kind = pytest.mark.parametrize("features", KINDS, ids=["fourier", "trees", "csr"])


def rows(n=200, p=3, seed=0):
    return as_generator(seed).normal(size=(n, p)) / 2


def dense(found):
    return found.toarray() if sparse.issparse(found) else found


def structure(features):
    names = type(features).saved.arrays
    return {name: getattr(features, f"{name}_") for name in names}


def assert_same_structure(first, second):
    for one, other in zip(
        structure(first).values(), structure(second).values(), strict=True
    ):
        assert_array_equal(one, other)


@each_kind
def test_fit_reads_names_and_shape_only(features):
    hidden = pd.DataFrame({"age": [np.nan] * 3, "hours": ["text"] * 3})
    features = clone(features).set_params(ranges=RANGES)
    first, second = (clone(features).fit(X) for X in (hidden, FRAME))
    assert vars(first).keys() == vars(second).keys()
    assert first.ranges_ == second.ranges_ == tuple(RANGES.values())
    assert_same_structure(first, second)
    assert not hasattr(first, "privacy_")


@each_kind
def test_the_seed_fixes_the_structure_and_another_gives_another(features):
    X = rows()
    known = clone(features).fit(X)
    for same in (0, Seed(0), np.int64(0)):
        assert_same_structure(
            known, clone(features).set_params(random_state=same).fit(X)
        )
    for other in (1, None, as_generator(3)):
        found = clone(features).set_params(random_state=other).fit(X)
        assert not np.array_equal(
            next(reversed(structure(known).values())),
            next(reversed(structure(found).values())),
        )


@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_row_has_norm_one_and_never_more(features, dtype, data):
    X = data.draw(hnp.arrays(dtype, (4, 3), elements=st.floats(-1e9, 1e9, width=32)))
    found = dense(clone(features).fit(X).transform(X))
    assert found.dtype == dtype
    lengths = np.sqrt((found.astype(np.longdouble) ** 2).sum(axis=1))
    assert lengths.max() <= clone(features).fit(X).x_norm_ == 1.0
    assert lengths.min() > 1 - 1e-6


@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_features_to_the_bit_whatever_is_beside_it(features, dtype):
    X = rows(5000, 3).astype(dtype)
    features = clone(features).fit(X)
    together = dense(features.transform(X))
    others = as_generator(1).permutation(5000)
    assert_array_equal(dense(features.transform(X[others])), together[others])
    for i in (0, 1, 7, 4999):
        assert_array_equal(dense(features.transform(X[i : i + 1]))[0], together[i])
    X[1:] = 1e9
    assert_array_equal(dense(features.transform(X))[0], together[0])


@each_kind
def test_values_outside_are_those_at_the_end_of_the_range(features):
    X = np.array([[-7.0, 0.3, 1e300], [-1.0, 0.3, 1.0]])
    found = dense(clone(features).fit_transform(X))
    assert_array_equal(found[0], found[1])


@each_kind
def test_missing_values_are_filled_with_public_ones_or_rejected(features):
    X, filled = rows(), rows()
    X[::3, 1], filled[::3, 1] = np.nan, 0.25
    with raises_one_line(ValueError, match="X contains NaN"):
        clone(features).fit(X).transform(X)
    known = dense(clone(features).fit_transform(filled))
    for missing in (0.25, [0.0, 0.25, 0.0]):
        found = clone(features).set_params(missing=missing).fit_transform(X)
        assert_array_equal(dense(found), known)
    X[0, 0] = np.inf
    with raises_one_line(ValueError, match="X contains infinity"):
        clone(features).set_params(missing=0.25).fit(X).transform(X)


@each_kind
def test_the_unit_of_a_column_does_not_matter(features):
    X = rows() * 8
    found, known = (
        dense(clone(features).set_params(ranges=ranges).fit_transform(values))
        for ranges, values in (
            ([(-8, 8), (0, 2), (-80, 80)], X * [1, 1 / 8, 10] + [0, 1, 0]),
            ((-8, 8), X),
        )
    )
    assert_allclose(found, known, atol=1e-12)


def test_the_inner_product_is_nearly_that_of_the_kernel():
    X = rows(40, 2)
    features = RandomFourierFeatures((-4, 4), 2**13, length_scale=0.125)
    Z = features.fit_transform(X)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    # one unit is an eighth of the range of width 8
    assert_allclose(Z @ Z.T, np.exp(-squares / 2), atol=0.06)
    assert np.abs(Z @ Z.T - np.exp(-squares / 8)).max() > 0.1


def test_the_default_length_scale_grows_with_the_root_of_the_columns():
    def spread(p):
        return RandomFourierFeatures((-1, 1), 4000).fit(rows(1, p)).frequencies_.std()

    assert_allclose(spread(4) / spread(36), 3, rtol=0.1)


def test_leaves_are_where_the_splits_say():
    X = rows(300, 2)
    trees = RandomPartitionTrees((-1, 1), 6, 3).fit(X)
    found = dense(trees.transform(X)).reshape(300, 6, 8)
    for i, row in enumerate(X):
        for tree in range(6):
            node = 0
            while node < 7:
                column = trees.split_columns_[tree, node]
                node = 2 * node + 1 + (row[column] > trees.split_points_[tree, node])
            assert_array_equal(np.flatnonzero(found[i, tree]), [node - 7])


def test_splits_are_in_the_middle_half_of_their_cell():
    trees = RandomPartitionTrees([(0, 8)], 200, 2).fit(np.zeros((1, 1)))
    root, left, right = trees.split_points_.T
    for parts in ((root / 8), left / root, (right - root) / (8 - root)):
        assert parts.min() >= 0.25
        assert parts.max() <= 0.75
        assert parts.std() > 0.1


def test_sparse_leaves_are_the_dense_ones_with_one_entry_a_tree():
    X = rows()
    found, known = (
        RandomPartitionTrees((-1, 1), 7, 4, sparse_output=kind).fit_transform(X)
        for kind in (True, False)
    )
    assert found.format == "csr"
    assert found.has_canonical_format
    assert_array_equal(found.toarray(), known)
    assert_array_equal(np.diff(found.indptr), 7)


def test_names_and_frames():
    fourier = RandomFourierFeatures(RANGES, 2).fit(FRAME)
    assert list(fourier.get_feature_names_out()) == ["cos0", "cos1", "sin0", "sin1"]
    trees = RandomPartitionTrees(RANGES, 2, 1).set_output(transform="pandas")
    names = ["tree0_leaf0", "tree0_leaf1", "tree1_leaf0", "tree1_leaf1"]
    assert list(trees.fit_transform(FRAME).columns) == names


@pytest.mark.parametrize(
    ("features", "match"),
    [
        (RandomFourierFeatures({"age": (18, 98)}), "no entry for column 'hours'"),
        (RandomFourierFeatures((1, 0)), "the lower first, got (1, 0)"),
        (RandomFourierFeatures((0, 1), 0), "n_components must be an integer"),
        (RandomFourierFeatures((0, 1), 2.0), "n_components must be an integer"),
        (RandomFourierFeatures((0, 1), length_scale=0), "length_scale must be None"),
        (RandomFourierFeatures((0, 1), length_scale="1"), "length_scale must be None"),
        (RandomFourierFeatures((0, 1), length_scale=np.nan), "length_scale must be"),
        (RandomFourierFeatures((0, 1), missing="?"), "missing must be None or finite"),
        (RandomFourierFeatures((0, 1), random_state=-1), "random_state must be None"),
        (RandomFourierFeatures((0, 1), random_state="a"), "random_state must be None"),
        (RandomPartitionTrees(None), "ranges must map columns to pairs"),
        (RandomPartitionTrees((0, 1), 0), "n_trees must be an integer"),
        (RandomPartitionTrees((0, 1), True), "n_trees must be an integer"),
        (RandomPartitionTrees((0, 1), depth=0), "depth must be an integer from 1 to"),
        (RandomPartitionTrees((0, 1), depth=40), "depth must be an integer from 1 to"),
        (RandomPartitionTrees((0, 1), 4096, 12), "would draw 33554432 numbers"),
        (RandomPartitionTrees((0, 1), sparse_output=1), "sparse_output must be True"),
        (RandomPartitionTrees((0, 1), missing=np.nan), "missing must be None or"),
    ],
    ids=str,
)
def test_invalid_parameters_are_rejected_by_name_and_change_nothing(features, match):
    before = vars(features).copy()
    with raises_one_line(ValueError, match=re.escape(match)):
        features.fit(FRAME)
    assert vars(features) == before


@each_kind
@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.array([["0.123", "secret"]]), "X must hold numbers only"),
        (np.zeros(2), "X must have 2 dimensions, got 1"),
        (np.zeros((1, 3)), "X has 3 features, but"),
        (sparse.csr_array((1, 2)), "takes no sparse X; call X.toarray() first"),
    ],
    ids=["text", "flat", "columns", "sparse"],
)
def test_invalid_rows_are_rejected_without_showing_them(features, X, match):
    features = clone(features).fit(np.zeros((1, 2)))
    with pytest.raises((ValueError, TypeError), match=re.escape(match)) as rejection:
        features.transform(X)
    assert "secret" not in str(rejection.value)


@each_kind
def test_parameters_changed_later_do_not_change_what_was_fitted(features):
    fitted = clone(features).set_params(missing=0.5).fit(rows())
    before = dense(fitted.transform(rows()))
    fitted.set_params(**dict.fromkeys(fitted.get_params()))
    assert_array_equal(dense(fitted.transform(rows())), before)
    copied = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(dense(copied.transform(rows())), before)
    with pytest.raises(NotFittedError):
        clone(features).transform(rows())


def crossed(n, seed=0):
    X = as_generator(seed).uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "features", [RandomFourierFeatures((-1, 1)), RandomPartitionTrees((-1, 1))]
)
def test_a_private_model_learns_an_interaction_and_is_charged_alone(features, seed):
    X, y = crossed(4000, seed)
    others, labels = crossed(2000, seed + 1)
    ledger = Ledger(Budget(1.0, 1e-6))
    model = LogisticRegression(1.0, 1e-7, classes=[0, 1], x_norm=1.0)
    pipeline = make_pipeline(clone(features), model)
    pipeline.fit(X, y, logisticregression__ledger=ledger)
    # 0.9 or more in all of 40 runs; without an interaction it is near one half
    assert pipeline.score(others, labels) > 0.8
    plain = make_pipeline(PublicScaler((-1, 1)), clone(model)).fit(X, y)
    assert plain.score(others, labels) < 0.65
    assert [entry.label for entry in ledger.report().entries] == ["LogisticRegression"]


@each_kind
def test_a_private_search_takes_them_as_public_steps(features):
    X, y = crossed(300)
    pipeline = make_pipeline(
        clone(features), LogisticRegression(classes=[0, 1], x_norm=1.0)
    )
    grid = {"logisticregression__ridge": [0.0, 1.0]}
    search = PrivateSearchCV(pipeline, grid, 8.0, 1e-5, random_state=Seed(0))
    assert search.fit(X, y).best_estimator_[0].x_norm_ == 1.0


@each_kind
def test_a_saved_step_keeps_its_structure_and_not_its_seed(features, tmp_path):
    step = clone(features).set_params(random_state=3).fit(rows())
    again = load_model(save_model(step, tmp_path / "step"))
    assert_same_structure(step, again)
    assert again.random_state == 0
    assert_array_equal(dense(again.transform(rows())), dense(step.transform(rows())))


@pytest.mark.parametrize(
    ("features", "forged"),
    [
        (RandomFourierFeatures((-1, 1), 5), {"frequencies": np.ones((3, 4))}),
        (RandomFourierFeatures((-1, 1), 5), {"frequencies": np.full((3, 5), 1e300)}),
        (RandomPartitionTrees((-1, 1), 1, 1), {"split_columns": np.full((1, 1), 3.0)}),
        (RandomPartitionTrees((-1, 1), 1, 1), {"split_columns": np.full((1, 1), 0.5)}),
        (RandomPartitionTrees((-1, 1), 1, 1), {"split_columns": np.full((1, 1), -1.0)}),
        (RandomPartitionTrees((-1, 1), 1, 1), {"split_points": np.full((1, 1), 1.5)}),
        (RandomPartitionTrees((-1, 1), 1, 1), {"split_points": np.zeros((1, 2))}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_forged_structure_is_rejected(features, forged, tmp_path):
    step = clone(features).fit(rows())
    good = {name: array * 1.0 for name, array in structure(step).items()}
    folder = save_model(step, tmp_path / "step")
    forge(folder, weights_npz=npz(**good))
    assert_same_structure(load_model(folder), step)
    shapes = {
        name: {"dtype": "float64", "shape": list(array.shape)}
        for name, array in (good | forged).items()
    }
    forge(folder, put("arrays", value=shapes), weights_npz=npz(**(good | forged)))
    rejected(folder, r"weights\.npz")
