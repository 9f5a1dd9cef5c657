"""Learners that cannot be trained, too many of them, and columns of categories."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.ensemble.labeling import Odd, clouds, labeler

from tacit._random import as_generator
from tacit.ensemble import PrivateStudent
from tacit.privacy import Budget, Ledger

ADDED = {"neighbors": "add_or_remove_one"}


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (LogisticRegression(solver="nope"), "'solver' parameter"),
        (HistGradientBoostingClassifier(max_iter=-3), "'max_iter' parameter"),
        (make_pipeline(StandardScaler(), LogisticRegression(C=-1.0)), "'C' parameter"),
    ],
)
def test_parameters_that_scikit_learn_rejects_are_rejected_before_the_charge(
    seed, estimator, words
):
    X, y, Q, _ = clouds(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match=f"estimator has .* {words}"):
        labeler(estimator).fit(X, y, ledger=ledger)
    model = PrivateStudent(labeler(), estimator)
    with pytest.raises(ValueError, match=f"student has .* {words}"):
        model.fit(X, y, X_public=Q, ledger=ledger)
    assert ledger.report().entries == ()


class Late(LogisticRegression):
    """Fails in `fit` alone, with parameters that are fine."""

    def fit(self, X, y):
        raise ValueError(f"first row {X[0]}")


def test_a_learner_whose_parameters_are_fine_may_still_fail(seed):
    X, y, Q, _ = clouds(seed)
    for estimator in (Late(), Odd("raises"), Odd(LogisticRegression)):
        found = labeler(estimator, epsilon=500.0).fit(X, y).label(Q[:3])
        assert found.answered.all()


def test_more_teachers_than_rows_are_rejected_before_the_charge(seed):
    X, y, _, _ = clouds(seed, n_rows=50)
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match=r"at most the 50 rows .* got 51"):
        labeler(n_teachers=51).fit(X, y, ledger=ledger)
    with pytest.raises(ValueError, match="at most the 50 rows"):
        labeler(n_teachers=51).plan(50)
    assert ledger.report().entries == ()
    assert labeler(n_teachers=50).fit(X, y).n_teachers_ == 50


def test_a_private_number_of_rows_is_not_what_teachers_are_compared_with(seed):
    X, y, _, _ = clouds(seed, n_rows=50)
    for n_rows in (3, 50):
        for n_teachers, rejected in ((60, False), (71, True)):
            model = labeler(n_teachers=n_teachers, expected_rows=70, **ADDED)
            if rejected:
                with pytest.raises(ValueError, match="at most the 70 rows"):
                    model.fit(X[:n_rows], y[:n_rows])
            else:
                assert model.fit(X[:n_rows], y[:n_rows]).n_teachers_ == n_teachers


def wards(seed, n_rows, kinds):
    """Return rows of which a category says the label, and labels."""
    rng = as_generator(seed)
    ward = rng.choice(kinds, n_rows)
    rows = pd.DataFrame({"age": rng.normal(size=n_rows), "ward": pd.Categorical(ward)})
    return rows, np.isin(ward, ["north", "south"]).astype(int)


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_boosting_takes_columns_of_categories_also_unknown_ones(seed, relation):
    X, y = wards(seed, 600, ["north", "south", "east", "west"])
    Q, t = wards(seed + 1, 30, ["north", "south", "east", "centre"])
    boosting = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)
    model = labeler(boosting, 6, neighbors=relation).fit(X, y)
    known = (Q["ward"] != "centre").to_numpy()
    assert (model.label(Q).values == t)[known].mean() > 0.95
    # also where there is no other column
    only = labeler(boosting, 6, neighbors=relation).fit(X[["ward"]], y)
    assert (only.label(Q[["ward"]]).values == t)[known].mean() > 0.95


def test_strings_are_rejected_where_a_learner_takes_none_and_encoded_in_a_pipeline(
    seed,
):
    X, y = wards(seed, 600, ["north", "south", "east", "west"])
    Q, t = wards(seed + 1, 30, ["north", "south", "east", "centre"])
    strings, questions = (T.assign(ward=T["ward"].astype(str)) for T in (X, Q))
    boosting = HistGradientBoostingClassifier()
    given = {"categorical_features": None}
    for estimator, rows in (
        (boosting, strings),
        (boosting.set_params(**given), X),
        (LogisticRegression(), X),
    ):
        with pytest.raises((TypeError, ValueError), match="Pipeline") as caught:
            labeler(estimator).fit(rows, y)
        assert str(caught.value).count(". ") == 0
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["ward"]), remainder=StandardScaler()
    )
    teacher = make_pipeline(encoded, LogisticRegression(C=100.0))
    model = labeler(teacher, 6).fit(strings, y)
    known = (Q["ward"] != "centre").to_numpy()
    assert (model.label(questions).values == t)[known].mean() > 0.95


def test_report_and_plan_describe_teachers_mechanism_and_queries(seed):
    X, y, _, _ = clouds(seed)
    model = labeler(n_teachers=15, n_queries=40).fit(X, y)
    told = "15 teachers vote by gnmax on up to 40 questions"
    assert told in model.privacy_.assumptions
    lines = str(model.plan(len(X))).splitlines()
    assert lines[0].startswith("mechanism    gnmax: epsilon 40")
    assert lines[1] == "teachers     15, each with 20 rows"
    assert f"assumes      {told}" in lines
    stable = labeler(mechanism="stable", max_refusals=5).plan(len(X))
    assert "on any number of questions, until refusal 6" in str(stable)
    assert "a release of epsilon 40, delta 1e-05, once" in str(stable)
