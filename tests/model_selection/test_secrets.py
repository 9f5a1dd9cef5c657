"""Nothing but the released outcome of a search leaks its rows or its runs."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
)

from tacit import Budget, Ledger
from tacit._random import as_generator
from tacit.evaluation import private_score
from tacit.feature_selection import BlockVoteSelector, PeelingSelector
from tacit.linear_model import (
    LogisticRegression,
    SparseLinearRegression,
)
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms.repeats import RandomRepeats
from tacit.model_selection import PrivateSearchCV, private_accuracy, private_choice
from tacit.model_selection._candidates import checked_rows, with_budget
from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)

ADD = "add_or_remove_one"


def rows(n=200, p=3):
    X = as_generator(0).uniform(-1, 1, (n, p))
    return X, (X[:, 0] > 0).astype(int)


def classifier(**given):
    return LogisticRegression(
        classes=[0, 1], solver="output_perturbation", **given, x_norm=1.0
    )


def search(estimator, grid=None, **given):
    given = {"epsilon": 4.0, "delta": 1e-6, "mean_repeats": 4, **given}
    return PrivateSearchCV(estimator, {} if grid is None else grid, **given)


def log_of(X):
    return np.log(X + 3)


FAILING = {
    "behind a private step": [
        PrivateStandardScaler(ranges=(-1, 1)),
        FunctionTransformer(log_of),
    ],
    "before it": [FunctionTransformer(log_of)],
    "among columns": [make_column_transformer((FunctionTransformer(log_of), [0]))],
    "columns by what they hold": [
        make_column_transformer((PublicScaler((0, 1)), make_column_selector()))
    ],
    "weights": [
        FeatureUnion([("rows", PublicScaler((0, 1)))], transformer_weights={"rows": 9})
    ],
    "a model as a step": [classifier()],
}


@pytest.mark.parametrize("steps", FAILING.values(), ids=FAILING)
def test_steps_that_may_fail_on_a_row_are_refused_before_the_charge(steps):
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(TypeError, match="before the search"):
        search(make_pipeline(*steps, classifier())).fit(*rows(), ledger=ledger)
    assert ledger.spent() == 0


class Lying(LogisticRegression):
    """A fit that charges nothing."""

    def fit(self, X, y, *, ledger=None):
        return super().fit(X, y)


def test_a_fit_that_ignores_its_ledger_is_refused_before_the_charge():
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(TypeError, match=r"estimator must be private, .* got Lying"):
        search(Lying(classes=[0, 1], x_norm=1.0)).fit(*rows(), ledger=ledger)
    assert ledger.spent() == 0


ANYTHING = {
    "huge": 1e308,
    "tiny": 5e-324,
    "zero": 0.0,
    "usual": 0.5,
}


@pytest.mark.parametrize("value", ANYTHING.values(), ids=ANYTHING)
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_public_steps_answer_for_every_row_of_numbers(value, norm):
    X, y = rows(30)
    X[0] = value
    X[1, 1] = -value
    steps = [Normalizer(norm), Binarizer(), PublicScaler((0, 1)), Normalizer(norm)]
    drawn = [RandomFourierFeatures((0, 1)), RandomPartitionTrees((0, 1))]
    for step in (*steps, *drawn, PublicOneHot([[0.5]] * 3)):
        with np.errstate(all="ignore"):
            assert np.isfinite(clone(step).fit_transform(X)).all()
    pipeline = make_pipeline(
        Normalizer(norm), PrivateStandardScaler(ranges=(-1, 1)), *steps, classifier()
    )
    assert search(pipeline).fit(X, y).best_estimator_ != NO_ANSWER


def mixed(n, full):
    frame = pd.DataFrame({"job": ["a"] * n, "hours": 0.0})
    frame.loc[: full - 1, "hours"] = 1.0
    return frame, np.arange(n) % 2


@pytest.mark.parametrize("full", [0, 1, 40])
def test_the_form_of_rows_does_not_depend_on_how_many_entries_are_zero(full):
    # ten indicators, one of which is set, are sparse until other columns are full
    X, y = mixed(40, full)
    encoder = PublicOneHot({"job": [*"abcdefghi"]}, sparse_output=True)
    columns = make_column_transformer(
        (encoder, ["job"]), ("passthrough", ["hours"]), sparse_threshold=0.2
    )
    assert sparse.issparse(columns.fit_transform(X))
    found = search(make_pipeline(columns, classifier())).fit(X, y)
    fitted = found.best_estimator_[0]
    assert fitted.sparse_output_ is False
    assert not sparse.issparse(fitted.transform(X))


PIPELINES = {
    "public": [PublicScaler((-1, 1))],
    "scikit-learn": [Normalizer(), Binarizer()],
    "columns": [make_column_transformer((PublicScaler((-1, 1)), [0, 1]))],
    "scaler": [PrivateStandardScaler(ranges=(-1, 1), neighbors=ADD), Normalizer()],
    "quantiles": [PrivateQuantileBounds(ranges=(-1, 1), neighbors=ADD)],
    "selector": [
        PeelingSelector(
            n_features_to_select=1, feature_bounds=1.0, neighbors=ADD, classes=[0, 1]
        ),
        Normalizer(),
    ],
}


@pytest.mark.parametrize("steps", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("n", [1, 2])
def test_a_part_without_rows_fails_no_run_where_their_number_is_private(steps, n):
    X, y = rows(n)
    pipeline = make_pipeline(*steps, classifier(neighbors=ADD, expected_rows=100))
    # nearly always no row is left to fit on
    found = search(pipeline, holdout=0.999).fit(X, y)
    assert found.best_estimator_ != NO_ANSWER
    assert found.predict(X).shape == (n,)


@pytest.mark.parametrize("steps", PIPELINES.values(), ids=PIPELINES)
def test_a_private_number_of_rows_changes_no_plan(steps):
    pipeline = make_pipeline(*steps, classifier(neighbors=ADD, expected_rows=100))
    assert search(pipeline).plan(3, 3) == search(pipeline).plan(4000, 3)


def test_private_transformers_plan_for_any_private_number_of_rows():
    scaler = PrivateStandardScaler(ranges=(0, 1), neighbors=ADD, delta=1e-6)
    assert scaler.plan(0, 2).event == scaler.plan(999, 2).event
    with pytest.raises(ValueError, match="n_rows must be an integer >= 2"):
        scaler.set_params(neighbors="replace_one").plan(1, 2)


def union(missing):
    scalers = [PublicScaler((-1, 1), missing=0.0) for _ in range(41)]
    scalers[20].missing = missing
    return FeatureUnion([(f"part{j}", scaler) for j, scaler in enumerate(scalers)])


def test_values_are_checked_for_every_candidate_whatever_it_prints_as():
    assert repr(union(0.0)) == repr(union(None))  # which is truncated
    X = np.zeros((4, 2))
    X[1, 1] = np.nan
    models = [make_pipeline(union(missing), classifier()) for missing in (0.0, None)]
    checked_rows(models[:1], X)
    with pytest.raises(ValueError, match="values that step 'featureunion'"):
        checked_rows(models, X)


@pytest.mark.parametrize("step", [Normalizer(), PublicScaler((0, 1))])
def test_values_that_steps_refuse_are_not_quoted(step):
    X, y = rows(20)
    X = X.astype(object)
    X[7, 1] = "seven"
    with pytest.raises(ValueError, match="X must have the columns and values") as told:
        search(make_pipeline(step, classifier())).fit(X, y)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


@pytest.mark.parametrize(
    ("classes", "labels", "odd"),
    [([0.0, 2.0**53], [0, 2**53], 2**53 + 1), (["0", "1"], [0, 1], 0)],
)
def test_labels_are_compared_as_the_fit_compares_them(classes, labels, odd):
    X, _ = rows(40)
    y = np.array(labels * 20)
    y[3] = odd
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match="y must hold labels from classes only"):
        search(LogisticRegression(classes=classes, x_norm=1.0)).fit(X, y, ledger=ledger)
    assert ledger.spent() == 0


def test_labels_that_scikit_learn_refuses_are_refused_before_the_charge():
    X, y = rows(40)
    y = y.astype(float) / 2
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match="Unknown label type"):
        search(LogisticRegression(x_norm=1.0)).fit(X, y, ledger=ledger)
    assert ledger.spent() == 0
    # which labels there are is public here, and none is rejected for its type
    search(LogisticRegression(classes=[0.0, 0.5], x_norm=1.0)).fit(X, y, ledger=ledger)
    assert ledger.spent() > 0


def talkative(folder):
    inner = Pipeline([("s", PublicScaler((-1, 1)))], verbose=True, memory=folder)
    columns = make_column_transformer((inner, [0, 1, 2]), verbose=True, n_jobs=1)
    union = FeatureUnion([("copy", "passthrough")], verbose=True)
    return Pipeline(
        [
            ("columns", columns),
            ("union", union),
            ("private", PrivateStandardScaler(ranges=(-1, 1))),
            ("rows", Normalizer(copy=False)),
            ("model", classifier(verbose=1)),
        ],
        verbose=True,
        memory=folder,
    )


def test_runs_print_nothing_and_leave_nothing_on_disk(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(RandomRepeats, "__call__", lambda self, rng: 3)
    X, y = rows()
    before = X.copy()
    folder = tmp_path / "runs"
    found = search(talkative(str(folder))).fit(X, y)
    assert found.best_estimator_ != NO_ANSWER
    assert capsys.readouterr() == ("", "")
    assert not folder.exists()
    np.testing.assert_array_equal(X, before)
    # alone it tells all of it
    talkative(str(folder)).fit(X.copy(), y)
    assert "Processing model" in capsys.readouterr().out
    assert folder.exists()


def test_quiet_settings_reach_the_parts_of_a_selector():
    inner = SelectFromModel(PlainLogisticRegression(verbose=1), max_features=1)
    selector = BlockVoteSelector(
        selector=inner, n_features_to_select=1, y_range=(0, 1), feature_bounds=1.0
    )
    model = SparseLinearRegression(
        n_features_to_select=1, selector=selector, feature_bounds=1.0, y_range=(0, 1)
    )
    found = with_budget(model, Budget(1.0, 1e-6), None, None)
    assert found.selector.selector.estimator.verbose is False


def test_warnings_of_models_quote_no_row():
    words = np.array([["a"], ["b"], ["c"]] * 5, dtype=object)
    encoder = OneHotEncoder(handle_unknown="ignore", drop="first")
    model = make_pipeline(encoder, PlainLogisticRegression())
    model.fit(words, [0, 1, 1] * 5)
    odd, y = words.copy(), np.array([0, 1, 1] * 5)
    odd[3] = "secret"
    with pytest.warns(UserWarning, match="unknown categories"):
        model.predict(odd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private_choice([model, model], odd, y, epsilon=1.0)
        private_accuracy(model, odd, y, epsilon=1.0)
        private_score(model, odd, y, epsilon=1.0)


def test_the_plan_says_what_it_rests_on():
    told = search(classifier()).plan(200, 3).assumptions
    assert "no fit fails because of its rows" in told
    assert "a fit keeps nothing of the one before" in told
    assert "public steps map each row by itself" in told


def test_a_model_with_selected_columns_is_paid_for_by_the_search():
    X, _ = rows(400, 4)
    model = SparseLinearRegression(
        n_features_to_select=2, feature_bounds=1.0, y_range=(-1, 1)
    )
    found = search(model, {"fit_intercept": [True, False]}).fit(X, X[:, 0])
    best = found.best_estimator_
    assert best.selection_spent_ is None
    assert best.privacy_.guarantee.epsilon == 4.0
    whole = search(model, {"n_features_to_select": [4]}).fit(X, X[:, 0])
    assert whole.best_estimator_.selection_spent_ == 0.0
