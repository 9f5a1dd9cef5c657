"""Sparse matrices with places outside their shape, which scipy does not look for."""

import numpy as np
import pytest
from scipy import sparse

from tacit.data.bounds import canonical
from tacit.linear_model import Lasso, LogisticRegression
from tacit.linear_model._base import checked_features
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Budget, Ledger

KINDS = (sparse.csr_array, sparse.csc_array)


def stray(kind, position):
    X = kind(np.full((20, 3), 0.5))
    X.indices[4] = position
    return X


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [77777, -2])
def test_entries_outside_of_the_matrix_are_refused(kind, position):
    with pytest.raises(ValueError, match="does not have") as rejected:
        canonical(stray(kind, position))
    assert "777" not in str(rejected.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ends", [[0, 4, 2, 6], [1, 2, 4, 6], [0, 2, 4, 9], [0, 2, 6]])
def test_ends_of_rows_that_fall_or_lie_beyond_are_refused(kind, ends):
    X = kind(np.ones((3, 3)) * [[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    X.indptr = np.array(ends, dtype=X.indptr.dtype)
    with pytest.raises(ValueError, match="build the sparse matrix anew"):
        canonical(X)


def test_pairs_of_places_outside_of_the_matrix_are_refused():
    X = sparse.coo_array(np.eye(3))
    X.coords[0][1] = 10**7
    with pytest.raises(ValueError, match="does not have"):
        canonical(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "model",
    [
        Lasso(1.0, 1e-3, feature_bounds=1.0, y_range=(0, 1), solver="cd"),
        LogisticRegression(1.0, 1e-3, classes=[0, 1], x_norm=1.0),
    ],
)
def test_they_charge_nothing(kind, model):
    ledger = Ledger(Budget(2.0, 1e-2))
    with pytest.raises(ValueError, match="does not have"):
        model.fit(stray(kind, 77777), np.arange(20) % 2, ledger=ledger)
    assert ledger.spent() == 0


def test_targets_in_several_columns_do_not_tell_the_number_of_rows():
    model = Lasso(
        1.0, 1e-3, feature_bounds=1.0, y_range=(0, 1), neighbors="add_or_remove_one"
    )
    with pytest.raises(ValueError, match="1d array") as rejected:
        model.fit(np.full((237, 3), 0.5), np.zeros((237, 2)))
    assert "237" not in str(rejected.value)


def _dok(row, column):
    X = sparse.dok_array((4, 4))
    X._dict[(row, column)] = 2.0
    return X


def _lil(columns, values):
    X = sparse.lil_array((4, 4))
    X.rows[1], X.data[1] = columns, values
    return X


def _bsr(**stored):
    X = sparse.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    for name, array in stored.items():
        setattr(X, name, np.array(array, dtype=X.indices.dtype))
    return X


def _parts(kind, **stored):
    X = kind(np.diag([1.0, 2.0, 3.0, 4.0]))
    for name, values in stored.items():
        setattr(X, name, values)
    return X


def test_lists_that_carry_indices_along_are_refused():
    with pytest.raises(ValueError, match="does not have"):
        canonical(_lil([0, 70000], [1.0, 2.0]))


COO, DIA, CSR = sparse.coo_array, sparse.dia_array, sparse.csr_array
ROWS = np.arange(4)


@pytest.mark.parametrize(
    "X",
    [
        _parts(COO, coords=(ROWS, ROWS + 70000)),
        _parts(COO, coords=(ROWS - 1, ROWS)),
        _parts(COO, coords=(ROWS[:2], ROWS)),
        _parts(COO, coords=(ROWS / 2, ROWS)),
        _parts(COO, data=np.ones(2)),
        _parts(DIA, data=np.ones((2, 4))),
        _parts(DIA, offsets=np.array([0, 70000])),
        _parts(DIA, data=np.ones((2, 4)), offsets=np.array([70000, 70000])),
        _parts(CSR, data=np.ones(2)),
        _parts(CSR, data=np.ones((4, 1))),
        _parts(CSR, indices=ROWS / 2),
        _parts(CSR, indptr=np.array([0, 1, 70000, 2, 4])),
        _parts(sparse.lil_array, rows=np.array([[0], [1]], dtype=object)),
        _parts(sparse.lil_array, rows=np.array([0, 1, 2, 3], dtype=object)),
        _lil([0, 70000], [1.0, 2.0]),
        _lil([0, -1], [1.0, 2.0]),
        _lil([0, 1], [1.0]),
        _lil([0], [1.0, 2.0]),
        _dok(70000, 0),
        _dok(0, 70000),
        _dok(0, -1),
        _bsr(indices=[0, 1, 0, 70000]),
        _bsr(indices=[0, 1, -1, 1]),
        _bsr(indptr=[0, 2, 1]),
    ],
    ids=lambda X: X.format,
)
def test_entries_outside_are_rejected_in_every_format(X):
    ledger, model = Ledger(Budget(2.0, 1e-4)), LogisticRegression(1.0, 1e-5, x_norm=1.0)
    with pytest.raises(ValueError, match="does not have") as rejected:
        model.fit(X, np.array([0, 1, 0, 1]), ledger=ledger)
    assert "70000" not in str(rejected.value)
    assert rejected.value.__cause__ is None
    assert rejected.value.__context__ is None
    assert not ledger.report().entries


def test_moments_of_malformed_rows_are_rejected_in_the_same_words():
    X = _parts(COO, coords=(ROWS, ROWS + 70000))
    with pytest.raises(ValueError, match="does not have") as rejected:
        PrivateStandardScaler(
            1.0, 1e-4, ranges=(-1.0, 1.0), with_mean=False, neighbors="replace_one"
        ).fit(X)
    assert rejected.value.__context__ is None


def test_small_integers_that_are_stored_twice_add_up_as_floats():
    X = COO((np.array([100, 100], dtype=np.int8), ([0, 0], [1, 1])), shape=(1, 2))
    assert checked_features(X).toarray().tolist() == [[0.0, 200.0]]
