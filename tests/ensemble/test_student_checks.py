"""Public rows that cannot be queried or learnt from are rejected before the charge."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from tests.ensemble.labeling import clouds, labeler, shown

from tacit.ensemble import DurableLabeler, PrivateLabeler, PrivateStudent
from tacit.privacy import Budget, Ledger

X, Y, POOL, _ = clouds(1, n_rows=200)
MISSING = np.where(np.arange(len(POOL))[:, None] == 30, np.nan, POOL)
# beyond the rows that a rehearsal learns from
FAR = np.vstack([POOL] * 4 + [MISSING])
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
ANY = HistGradientBoostingClassifier(max_iter=2)
CASES = {
    "missing, of the labeler": ({}, ANY, MISSING, "labeler's estimator takes: .*NaN"),
    "text": ({}, ANY, POOL.astype(str).astype(object), "estimator takes: .*numbers"),
    "dates": ({}, ANY, np.zeros((9, 2), dtype="M8[s]"), "estimator takes: .*numbers"),
    "sparse": ({}, LogisticRegression(), sparse.csr_array(POOL), "takes: .*sparse"),
    "names": ({}, ANY, pd.DataFrame(POOL[:, :1]), "2 columns of X"),
    "missing, of the student": (
        {"estimator": ANY},
        LogisticRegression(),
        MISSING,
        "student takes: .*NaN",
    ),
    "missing, within a student": (
        {"estimator": ANY},
        SCALED,
        MISSING,
        "fails on it with synthetic answers: ValueError",
    ),
    "missing, far on": (
        {"estimator": ANY, "n_queries": len(FAR)},
        SCALED,
        FAR,
        "fails on it with synthetic answers: ValueError: .*NaN",
    ),
    "one target": ({}, SVR(), POOL, "fails on it with synthetic answers"),
    "large": ({}, None, POOL * 1e200, "at most 1e\\+100"),
}


@pytest.mark.parametrize("case", CASES)
def test_public_rows_that_cannot_be_used_are_rejected_before_the_charge(case):
    terms, student, pool, words = CASES[case]
    ledger = Ledger(Budget(100.0, 1e-3))
    # as scikit-learn has it for cells and tables of a wrong type
    kind = TypeError if case in ("text", "sparse") else ValueError
    with pytest.raises(kind, match=words):
        PrivateStudent(labeler(**terms), student).fit(
            X, Y, X_public=pool, ledger=ledger
        )
    assert ledger.report().entries == ()


def test_a_missing_value_that_only_self_training_meets_is_rejected():
    terms = {"estimator": ANY, "private": "labels", "n_queries": 10}
    asked = PrivateStudent(labeler(**terms), SCALED).fit(X, Y).questions_
    rows = np.full_like(X, np.nan)
    rows[asked] = X[asked]
    PrivateStudent(labeler(**terms), SCALED).fit(rows, Y)
    ledger = Ledger(Budget(100.0, 1e-3))
    student = PrivateStudent(labeler(**terms), SCALED, unanswered="self_train")
    with pytest.raises(ValueError, match=r"synthetic answers: .*NaN"):
        student.fit(rows, Y, ledger=ledger)
    assert ledger.report().entries == ()


def test_public_rows_that_cannot_be_used_query_nothing():
    model = labeler().fit(X, Y)
    with pytest.raises(ValueError, match="synthetic answers"):
        PrivateStudent(model, SVR()).fit_pool(POOL)
    assert model.n_queried_ == 0


@pytest.mark.parametrize("n_queries", [None, "10", 10.0, float("nan"), [3], 0])
def test_an_invalid_number_of_queries_is_rejected_before_it_is_used(n_queries):
    model = labeler(private="labels", n_queries=n_queries)
    with pytest.raises(ValueError, match="n_queries must be an integer >= 1"):
        PrivateStudent(model).fit(X, Y)


def test_an_unknown_mechanism_is_rejected():
    model = labeler(mechanism=["gnmax"])
    with pytest.raises(ValueError, match="mechanism must be"):
        PrivateStudent(model).fit(X, Y, X_public=POOL)


@pytest.mark.parametrize(
    "student", [KNeighborsClassifier(120), KNeighborsRegressor(120)]
)
def test_a_student_that_wants_many_rows_is_tried_on_all(student):
    pool = np.vstack([POOL] * 4)
    model = labeler(n_queries=len(pool))
    found = PrivateStudent(model, student).fit(X, Y, X_public=pool)
    assert set(found.predict(POOL)) <= {0, 1}


def test_a_student_that_must_see_all_rows_to_predict_them_is_tried_on_all():
    pool = pd.DataFrame({"far": np.arange(len(FAR)) >= 150, "x": np.resize(POOL, 200)})
    student = make_pipeline(OneHotEncoder(), LogisticRegression())
    rows = pd.DataFrame({"far": Y == 1, "x": X[:, 0]})
    model = labeler(ANY, n_queries=len(pool))
    found = PrivateStudent(model, student).fit(rows, Y, X_public=pool)
    assert set(found.predict(pool)) <= {0, 1}


def test_a_rehearsal_leaves_no_trace():
    student = PrivateStudent(labeler(), Ridge(solver="sag"))
    model = labeler().fit(X, Y)
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    student._dry_run(model, POOL)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    assert not hasattr(student, "labels_")


def test_a_durable_labeler_teaches_after_its_restart(tmp_path):
    terms = {"estimator": GaussianNB(), "n_teachers": 4}
    with DurableLabeler(labeler(**terms), tmp_path / "s") as durable:
        durable.fit(X, Y).label(POOL)
    with DurableLabeler(labeler(**terms), tmp_path / "s") as durable:
        student = PrivateStudent(durable, Ridge()).fit_pool(POOL, durable.labels)
        assert len(student.predict(POOL)) == len(POOL)


@pytest.mark.parametrize(
    "made", [iter, lambda ids: (i for i in ids), lambda ids: map(int, ids)]
)
def test_ids_that_can_be_read_once_are_as_good_as_a_list(made):
    ids = [2**63 + position // 2 for position in range(len(X))]
    told = []
    for given in (ids, made(ids)):
        model = labeler(neighbors="add_or_remove_one", expected_rows=200)
        told.append(shown(model.fit(X, Y, ids=given).label(POOL)))
    assert told[0] == told[1]


@pytest.mark.parametrize("n_teachers", [10**30, 201])
def test_more_teachers_than_rows_are_rejected_before_the_charge(n_teachers):
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match="n_teachers must be at most"):
        labeler(n_teachers=n_teachers).fit(X, Y, ledger=ledger)
    assert ledger.report().entries == ()


def test_cells_that_are_no_numbers_are_a_type_error_as_in_scikit_learn():
    labeler = PrivateLabeler(GaussianNB(), 2, private="labels", n_queries=5)
    X = np.ones((20, 2), dtype=object)
    X[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        PrivateStudent(labeler, GaussianNB()).fit(X, np.arange(20) % 2)
