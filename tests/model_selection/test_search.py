"""The private search: what it finds, what it charges, what it keeps to itself."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from tests.model_selection.tables import rows

from tacit import Budget, BudgetExceeded, Ledger
from tacit._random import as_generator
from tacit._release import charged_run
from tacit.audit import assert_replays
from tacit.evaluation import coefficient_intervals, noise_intervals, private_score
from tacit.linear_model import LinearRegression, LogisticRegression, Ridge, _base
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms.repeats import RandomRepeats
from tacit.model_selection import PrivateSearchCV, _runs
from tacit.persistence import load_model, save_model
from tacit.preprocessing import PrivateStandardScaler, PublicOneHot, PublicScaler
from tacit.privacy import Neighbors, PureDP
from tacit.privacy.combined import RepeatAndSelect
from tacit.recommend import MatrixCompletion

ADD = "add_or_remove_one"
GRID = {"x_norm": [0.5, 1.0], "ridge": [0.0, 1000.0]}


def classifier(**given):
    given = {"solver": "output_perturbation", "x_norm": 1.0, **given}
    return LogisticRegression(classes=[0, 1], **given)


def search(estimator=None, grid=None, epsilon=4.0, delta=1e-6, **given):
    given = {"mean_repeats": 4, "random_state": 0, **given}
    if estimator is None:
        estimator = classifier()
    return PrivateSearchCV(
        estimator, GRID if grid is None else grid, epsilon, delta, **given
    )


def test_the_best_candidate_is_found_where_noise_is_small():
    X, _ = rows(1000)
    y = (X[:, 0] > 0.3).astype(int)
    grid = {"fit_intercept": [True, False], "x_norm": [0.5, 1.0]}
    found = search(grid=grid, epsilon=50.0, mean_repeats=15).fit(X, y)
    assert found.best_params_["fit_intercept"] is True
    assert found.score(X, y) > 0.85
    assert found.best_score_ == pytest.approx(found.score(X, y), abs=0.06)
    assert found.best_params_ == found.candidates_[found.best_index_]
    assert found.n_candidates_ == 4
    np.testing.assert_array_equal(found.predict(X), found.best_estimator_.predict(X))
    assert found.decision_function(X).shape == (1000,)
    assert found.predict_proba(X).shape == (1000, 2)
    np.testing.assert_array_equal(found.classes_, [0, 1])


@pytest.mark.parametrize("neighbors", ["replace_one", ADD])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_charge_is_the_total_once_and_before_anything_runs(neighbors, delta):
    X, y = rows(600)
    ledger = Ledger(Budget(4.0, delta, neighbors))
    estimator = classifier(neighbors=neighbors, expected_rows=500)
    found = search(estimator, delta=delta).fit(X, y, ledger=ledger)
    (entry,) = ledger.report().entries
    assert entry.label == "PrivateSearchCV"
    assert entry.epsilon == 4.0
    assert isinstance(entry.event, RepeatAndSelect)
    assert found.privacy_.guarantee == Budget(4.0, delta, Neighbors.of(neighbors))
    assert 3.8 < found.privacy_.spent <= 4.0
    assert found.plan_.per_run.epsilon < 4.0
    assert entry.event.curve(Neighbors.of(neighbors)).fits(ledger.budget)
    with pytest.raises(BudgetExceeded, match="PrivateSearchCV"):
        search(estimator, delta=delta).fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 1


def test_a_refused_search_runs_nothing(monkeypatch):
    X, y = rows(600)
    ran = []
    monkeypatch.setattr(_runs, "fit_on", lambda *_: ran.append(1))
    ledger = Ledger(Budget(1.0, 1e-6))
    estimator = search()
    with pytest.raises(BudgetExceeded):
        estimator.fit(X, y, ledger=ledger)
    assert ledger.spent() == 0
    assert ran == []
    assert not hasattr(estimator, "best_estimator_")
    search().fit(X, y)
    assert ran


def test_the_model_carries_the_promise_of_the_search_and_can_be_saved(tmp_path):
    X, y = rows(600)
    found = search().fit(X, y)
    model = found.best_estimator_
    assert model.privacy_ == found.privacy_
    assert model.privacy_.guarantee.epsilon == model.epsilon == 4.0
    assert model.delta == 1e-6
    assert model.random_state is None
    again = load_model(save_model(model, tmp_path / "model"))
    assert again.privacy_ == found.privacy_
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    # what a fit alone would say of its noise is not true of the best of many
    with pytest.raises(ValueError, match="must know its noise"):
        noise_intervals(model)
    with pytest.raises(ValueError, match="as fit left it"):
        coefficient_intervals(model, X, y, epsilon=1.0)
    assert "the best of a secret number of runs" in str(found.privacy_)


def test_the_number_of_runs_is_kept_nowhere(monkeypatch, capsys):
    X, y = rows(300)
    seen = []
    for runs in (3, 11):
        monkeypatch.setattr(RandomRepeats, "__call__", lambda self, rng, k=runs: k)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = search(classifier(verbose=1)).fit(X, y)
        seen.append((set(vars(found)), set(vars(found.best_estimator_)), len(told)))
        shown = str(vars(found)) + str(found.privacy_)
        assert "n_runs" not in shown
        assert capsys.readouterr() == ("", "")
    assert seen[0] == seen[1]


def test_the_plan_reads_no_rows_and_is_that_of_the_fit():
    X, y = rows(600)
    estimator = search()
    plan = estimator.plan(600, 3)
    assert plan == estimator.fit(X, y).plan_
    assert plan.mean_repeats == pytest.approx(4.0)
    assert 0 < plan.miss_probability < 1
    assert plan.holdout == pytest.approx(min(0.3, plan.noise.multiplier / 6), rel=0.1)


def test_defaults_try_a_candidate_three_times_on_average():
    plan = search(grid={"ridge": list(range(20))}, mean_repeats=None).plan(40_000, 3)
    assert plan.mean_repeats == pytest.approx(60.0)
    assert plan.miss_probability < 0.25
    assert search(mean_repeats=None).plan(40_000, 3).mean_repeats == pytest.approx(20)


def test_twenty_candidates_cost_less_than_two_and_a_half_fits():
    grid = {"ridge": list(range(20))}
    given = {"epsilon": 1.0, "delta": 36_000**-2, "mean_repeats": None}
    plan = search(classifier(solver="auto"), grid, **given).plan(36_000, 104)
    assert plan.mean_repeats >= 20
    one = plan.noise.event.curve(Neighbors.REPLACE_ONE).epsilon(plan.budget.delta)
    assert plan.budget.epsilon / one < 2.0


def table(n=400):
    rng = as_generator(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n).astype(float),
            "job": np.array(["a", "b"])[rng.integers(0, 2, n)],
        }
    )
    return frame, np.where(frame["age"] > 50, "old", "young")


def test_pipelines_share_the_budget_of_a_run_as_their_epsilons_say():
    X, y = rows(600)
    pipeline = make_pipeline(
        PublicScaler((-1, 1)),
        PrivateStandardScaler(0.2, ranges=(-1, 1)),
        classifier(epsilon=0.8, x_norm=3.0),
    )
    grid = {"logisticregression__ridge": [0.0, 1.0]}
    found = search(pipeline, grid, epsilon=8.0).fit(X, y)
    steps = found.best_estimator_
    assert steps["logisticregression"].privacy_ == found.privacy_
    assert steps["privatestandardscaler"].privacy_ == found.privacy_
    assert steps["privatestandardscaler"].epsilon == 8.0
    fit, _ = found.plan_.event.event.events
    assert len(fit.events) == 2  # both steps
    assert found.score(X, y) > 0.8


def test_tables_with_words_are_searched_through_public_steps():
    X, y = table()
    columns = make_column_transformer(
        (PublicScaler({"age": (0, 100)}), ["age"]),
        (PublicOneHot({"job": ["a", "b"]}), ["job"]),
    )
    model = LogisticRegression(classes=["old", "young"], x_norm=1.5)
    pipeline = Pipeline(
        [("columns", columns), ("rows", Normalizer()), ("model", model)]
    )
    found = search(pipeline, {"rows": [Normalizer(), "passthrough"]}, epsilon=20.0)
    assert found.fit(X, y).score(X, y) > 0.8
    assert set(found.predict(X)) <= {"old", "young"}
    assert found.feature_names_in_.tolist() == ["age", "job"]


@pytest.mark.parametrize("kind", ["sparse", "frame", "list"])
def test_rows_come_in_other_forms(kind):
    X, y = rows(200)
    forms = {
        "sparse": sparse.csr_array(X),
        "frame": pd.DataFrame(X),
        "list": X.tolist(),
    }
    found = search(grid={"ridge": [0.0, 1.0]}).fit(forms[kind], y.tolist())
    assert found.predict(X[:3] if kind != "frame" else forms[kind][:3]).shape == (3,)


@pytest.mark.parametrize("form", ["coo", "bsr", "dia", "csc", "lil", "dok"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_rows_come_in_every_sparse_format(form, kind):
    X, y = rows(60)
    table = kind(X).asformat(form)
    found = search(grid={"ridge": [0.0]}, epsilon=20.0).fit(table, y)
    np.testing.assert_array_equal(found.predict(table), found.predict(X))


def test_regressors_are_chosen_by_their_squared_error():
    # the mean of the targets has the smaller squared error, and their median, which is
    # zero, the smaller absolute one
    X = np.zeros((4000, 2))
    y = np.repeat([0.0, 5.0], [3000, 1000])[as_generator(0).permutation(4000)]
    model = LinearRegression(y_range=(0, 20), x_norm=1.0)
    grid = {"x_norm": [1.0], "fit_intercept": [True, False]}
    for seed in range(3):
        given = {"mean_repeats": 20, "holdout": 0.5, "random_state": seed}
        found = search(model, grid, epsilon=50.0, **given).fit(X, y)
        assert found.best_params_["fit_intercept"] is True
        errors = found.predict(X) - y
        root = np.sqrt(np.mean(errors**2))
        assert abs(found.best_score_ - root) < 0.12 < root - np.abs(errors).mean()
    assert not hasattr(found, "classes_")
    score = private_score(found, X, y, epsilon=1e5)
    assert score.value == pytest.approx(np.abs(errors).mean(), abs=0.01)


def test_distributions_are_drawn_from_as_often_as_is_said():
    grid = {"ridge": stats.uniform(0, 10), "x_norm": [0.5, 1.0]}
    with pytest.raises(ValueError, match="n_candidates must be given"):
        search(grid=grid).fit(*rows(600))
    found = search(grid=grid, n_candidates=5).fit(*rows(600))
    assert found.n_candidates_ == 5
    assert len({given["ridge"] for given in found.candidates_}) == 5
    assert search(n_candidates=2).fit(*rows(600)).n_candidates_ == 2


BAD = {
    "grid of epsilons": ({"grid": {"epsilon": [1, 2]}}, "must not list 'epsilon'"),
    "grid of deltas": ({"grid": [{"delta": [0.1]}]}, "must not list 'delta'"),
    "grid of seeds": ({"grid": {"random_state": [1]}}, "must not list 'random_state'"),
    "no grid": ({"grid": []}, "param_grid must be a mapping"),
    "text": ({"grid": "ridge"}, "param_grid must be a mapping"),
    "unknown": ({"grid": {"nothing": [1]}}, "Invalid parameter 'nothing'"),
    "bad candidate": ({"grid": {"ridge": [0.0, -1.0]}}, "ridge must be"),
    "epsilon": ({"epsilon": 0.0}, "epsilon must be"),
    "delta": ({"delta": 1.0}, "delta must be"),
    "mean": ({"mean_repeats": 1}, "mean_repeats must be above 1"),
    "many": ({"mean_repeats": 1e6}, "mean_repeats must be above 1 and at most"),
    "holdout": ({"holdout": 1.0}, "holdout must be"),
    "count": ({"n_candidates": 0}, "n_candidates must be an integer >= 1"),
    "scoring": ({"scoring": "roc"}, "scoring must be None, 'accuracy' or 'rmse'"),
    "other kind": ({"scoring": "rmse"}, "model must be a regressor for the root"),
}


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
def test_bad_parameters_are_rejected_before_the_charge(given, message):
    X, y = rows(600)
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match=message):
        search(**given).fit(X, y, ledger=ledger)
    assert ledger.spent() == 0


class Forgetful(ClassifierMixin, BaseEstimator):
    """A model that learns without paying."""

    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PlainLogisticRegression(), "estimator must be private"),
        (Forgetful(), "estimator must be private"),
        (MatrixCompletion(), "recommenders are not supported, got MatrixCompletion"),
        (make_pipeline(StandardScaler(), classifier()), "step 'standardscaler' of"),
        (make_pipeline(PublicScaler((0, 1)), Forgetful()), "step 'forgetful' of"),
        ("logistic", "estimator must be an estimator or a Pipeline, got str"),
    ],
)
def test_what_is_not_private_is_refused_before_the_charge(estimator, message):
    X, y = rows(600)
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(TypeError, match=message):
        search(estimator, {}).fit(X, y, ledger=ledger)
    assert ledger.spent() == 0


def broken(X, y):
    nan, text, label = X.copy(), X.astype(object), y.copy()
    nan[3, 1], text[3, 1], label[3] = np.nan, "seven", 7
    return [
        (nan, y, ValueError, "NaN"),
        (text, y, TypeError, "numbers only"),
        (X, label, ValueError, "y must hold labels from classes only"),
        (X, y[:-1], ValueError, "as many rows as each other"),
        (X[:2], y[:2], ValueError, "minimum of 3"),
        (X[:, 0], y, ValueError, "2 dimensions"),
        (X, None, ValueError, "y to be passed"),
    ]


@pytest.mark.parametrize("position", range(7))
def test_bad_rows_are_refused_before_the_charge_and_not_quoted(position):
    X, y, error, message = broken(*rows(600))[position]
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(error, match=message) as raised:
        search().fit(X, y, ledger=ledger)
    assert "seven" not in str(raised.value)
    assert ledger.spent() == 0


def test_labels_are_taken_from_all_rows_where_none_are_given():
    X, y = rows(60)
    y[:] = 0
    y[0] = 1  # likely in one part alone
    found = search(LogisticRegression(x_norm=1.0), {"ridge": [0.0, 1.0]}).fit(X, y)
    np.testing.assert_array_equal(found.classes_, [0, 1])
    assert any("taken from y" in words for words in found.privacy_.assumptions)


class Failing(LogisticRegression):
    """Some of its fits raise, whatever the rows."""

    def _solver_targets(self, y, setting):
        if self.ridge > 5:
            raise RuntimeError("no")
        return super()._solver_targets(y, setting)


def test_a_run_that_fails_is_worse_than_every_other():
    X, y = rows(600)
    grid = {"ridge": [0.0, 10.0]}
    ledger = Ledger(Budget(4.0, 1e-6))
    found = search(
        Failing(classes=[0, 1], solver="output_perturbation", x_norm=1.0),
        grid,
        mean_repeats=20,
    )
    assert found.fit(X, y, ledger=ledger).best_params_ == {"ridge": 0.0}
    found = search(
        Failing(classes=[0, 1], solver="output_perturbation", x_norm=1.0),
        {"ridge": [10.0]},
    ).fit(X, y)
    assert found.best_estimator_ == NO_ANSWER
    assert found.best_params_ is None
    assert found.privacy_.guarantee.epsilon == 4.0
    np.testing.assert_array_equal(found.classes_, [0, 1])
    with pytest.raises(ValueError, match="best_estimator_ is NoAnswer"):
        found.predict(X)


@pytest.mark.parametrize("charged", [PureDP(0.01), PureDP(100.0), None])
def test_a_fit_that_does_not_charge_as_planned_is_never_released(charged, monkeypatch):
    def charged_otherwise(release, ledger, run, *, check):
        if charged is None:
            return charged_run(release, None, run, check=check)
        return charged_run(replace(release, event=charged), ledger, run, check=check)

    honest = search(grid={"ridge": [1.0]}).fit(*rows(600))
    assert honest.best_estimator_ != NO_ANSWER
    monkeypatch.setattr(_base, "charged_run", charged_otherwise)
    found = search(grid={"ridge": [1.0]}).fit(*rows(600))
    assert found.best_estimator_ == NO_ANSWER


@pytest.mark.parametrize("neighbors", ["replace_one", ADD])
@pytest.mark.parametrize("model", ["labels", "targets"])
def test_nothing_but_the_mechanisms_tells_neighbors_apart(neighbors, model):
    X, y = rows(80)
    if model == "labels":
        estimator = classifier(neighbors=neighbors, expected_rows=60)
    else:
        estimator = Ridge(
            y_range=(0, 1),
            neighbors=neighbors,
            expected_rows=60,
            solver="ada_ssp",
            x_norm=1.0,
        )
    other, changed = X.copy(), y.copy()
    other[-1], changed[-1] = -X[-1], 1 - y[-1]
    second = (X[:-1], y[:-1]) if neighbors == ADD else (other, changed)

    def train(X, y):
        found = search(estimator, {"x_norm": [0.5, 1.0]}).fit(X, y)
        return found.best_estimator_.coef_, found.best_score_, found.best_params_

    report = assert_replays(train, (X, y), second)
    assert any(entry.label == "Gaussian" for entry in report.entries)


def test_it_is_an_estimator_of_scikit_learn():
    first = search()
    assert is_classifier(first)
    assert not is_classifier(search(Ridge(y_range=(0, 1), x_norm=1.0)))
    assert clone(first).get_params()["epsilon"] == 4.0
    assert first.neighbors == "replace_one"
    with pytest.raises(NotFittedError):
        first.predict(rows(600)[0])
    a, b = (search(random_state=5).fit(*rows(600)) for _ in range(2))
    np.testing.assert_array_equal(a.best_estimator_.coef_, b.best_estimator_.coef_)
    assert a.privacy_.seeded
    assert not search(random_state=None).fit(*rows(600)).privacy_.seeded


@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
@pytest.mark.parametrize("n", [3, 200])
def test_extremes_still_give_a_model(epsilon, n):
    X, y = rows(n, p=1)
    X[:, 0] = np.where(np.arange(n) % 2, 1.0, 0.0)
    found = search(grid={"ridge": [0.0, 1.0]}, epsilon=epsilon).fit(X, y)
    assert np.isfinite(found.best_estimator_.coef_).all()
    assert 0 <= found.best_score_ <= 1
