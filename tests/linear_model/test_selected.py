"""Least squares on privately selected columns: one charge, two stages, few weights."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import linear_model as plain
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.data.rows import ArrayRows
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.feature_selection import (
    BlockVoteSelector,
    ExponentialSelector,
    PeelingSelector,
)
from tacit.feature_selection._base import PrivateSelector
from tacit.forecast import expected_score
from tacit.inference import coefficient_intervals, private_score
from tacit.linear_model import SparseLinearRegression
from tacit.linear_model import _selected as selected
from tacit.linear_model._sparse import SparseLinearModel
from tacit.linear_model._two_stage import NAMES, TwoStage
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import ApproxDP, Budget, Composed, Ledger, PureDP
from tacit.solvers import AMP, AdaSSP, NoisyGD

N, P = 2000, 12
WEIGHTS = np.zeros(P)
WEIGHTS[[2, 7]] = 1.5, -1.0
Y_RANGE = (-3.0, 5.0)
COMMON = {"n_features_to_select": 2, "feature_bounds": 1.0, "y_range": Y_RANGE}


def data(n=N, p=P, seed=0):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    weights = np.zeros(p)
    weights[[2, 7]] = 1.5, -1.0
    return X, X @ weights + 1.0 + 0.2 * rng.normal(size=n)


def model(epsilon=1.0, delta=1e-6, **parameters):
    return SparseLinearRegression(epsilon, delta, **{**COMMON, **parameters})


@dataclass(frozen=True)
class FixedPlan:
    """What a selection of columns that were fixed beforehand would spend."""

    event: ApproxDP
    assumptions: tuple = ()


class Fixed(PrivateSelector):
    """A selector whose answer is a parameter."""

    def __init__(
        self,
        answer=NO_ANSWER,
        epsilon=1.0,
        delta=None,
        *,
        n_features_to_select=None,
        feature_bounds=None,
        y_range=None,
        neighbors="replace_one",
        expected_rows=None,
        fallback=None,
        noise="grid",
        random_state=None,
    ):
        self.answer = answer
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.fallback = fallback
        self.noise = noise
        self.random_state = random_state

    def _plan(self, budget, n_rows, n_features):
        return FixedPlan(ApproxDP(budget.epsilon, budget.delta))

    def _select(self, plan, X, y, rng):
        assert np.abs(X).max() <= 1
        assert np.abs(y).max() <= 1
        X[:] = 7.0  # the rows are the selector's to write over
        return self.answer


@parametrize_with_checks(
    [
        SparseLinearRegression(
            n_features_to_select=2,
            selector=PeelingSelector(n_features_to_select=3),
            feature_bounds=5.0,
            y_range=(-3, 3),
            random_state=0,
        ),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_parameters_of_a_selector_inside_are_found_and_cloned():
    inside = model(
        selector=ExponentialSelector(n_features_to_select=1, coef_bound=0.5),
        selection_share=0.3,
    )
    given = clone(inside).get_params()
    assert given["selector__coef_bound"] == 0.5
    assert given["selection_share"] == 0.3
    assert clone(inside).set_params(selector__coef_bound=2.0).selector.coef_bound == 2.0
    assert inside.selector.coef_bound == 0.5


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_stages_together_are_what_is_promised(epsilon, delta, neighbors):
    given = {"neighbors": neighbors, "expected_rows": N}
    planned = model(epsilon, delta, **given).plan(N, P)
    budget = Budget(epsilon, delta, neighbors)
    assert planned.budget == budget
    assert isinstance(planned.event, Composed)
    first, second = planned.event.events
    assert (first, second) == (
        planned.plan.selection.event,
        planned.plan.regression.event,
    )
    curve = first.curve(budget.neighbors) + second.curve(budget.neighbors)
    assert curve.fits(budget)
    assert planned.event.curve(budget.neighbors).epsilon(delta) == curve.epsilon(delta)
    # nothing is left over: one percent less noise in both does not fit
    assert curve.epsilon(delta) > 0.995 * epsilon
    more = model(epsilon / 0.99, delta, **given).plan(N, P)
    assert not more.event.curve(budget.neighbors).fits(budget)


def test_both_stages_get_more_than_parts_that_add_up():
    budget = Budget(1.0, 1e-6)
    planned = model(selection_share=0.5).plan(N, P)
    halves = [
        event.curve(budget.neighbors).epsilon(budget.delta / 2)
        for event in planned.event.events
    ]
    assert min(halves) > 0.55


def test_a_share_moves_the_budget_from_one_stage_to_the_other():
    spent = [
        [
            event.curve(planned.budget.neighbors).epsilon(planned.budget.delta)
            for event in planned.event.events
        ]
        for planned in (model(selection_share=s).plan(N, P) for s in (0.2, 0.5, 0.8))
    ]
    first, second = np.array(spent).T
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) < 0).all()


def test_one_charge_comes_before_anything_is_run(monkeypatch, seed):
    X, y = data()
    ledger = Ledger(Budget(1.0, 1e-6))
    fitted = model(random_state=seed).fit(X, y, ledger=ledger)
    (entry,) = ledger.report().entries
    assert entry.label == "SparseLinearRegression"
    assert entry.event == fitted.plan(N, P).event == fitted.privacy_.entries[0].event
    assert fitted.privacy_.spent <= 1.0

    def fails(*_):
        raise AssertionError("something was run")

    monkeypatch.setattr(PeelingSelector, "_select", fails)
    with pytest.raises(BudgetExceeded):
        model().fit(X, y, ledger=ledger)
    # a run that fails stays charged
    fresh = Ledger(Budget(1.0, 1e-6))
    with pytest.raises(AssertionError, match="something was run"):
        model().fit(X, y, ledger=fresh)
    assert len(fresh.report().entries) == 1


def test_what_the_selection_cost_is_told(seed):
    X, y = data()
    fitted = model(random_state=seed).fit(X, y)
    first = fitted.privacy_.entries[0].event.events[0]
    promise = fitted.privacy_.promise
    assert fitted.selection_spent_ == first.curve(promise.neighbors).epsilon(1e-6)
    assert 0.1 < fitted.selection_spent_ < 0.95


@pytest.mark.parametrize("wanted", [P, P + 1, 1000])
def test_all_columns_are_kept_for_nothing(wanted, seed):
    X, y = data()
    fitted = model(n_features_to_select=wanted, random_state=seed).fit(X, y)
    assert fitted.selection_ == tuple(range(P))
    assert fitted.selection_spent_ == 0.0
    assert fitted.plan(N, P).plan.selection is None
    assert fitted.privacy_.spent > 0.99
    assert fitted.score(X, y) > 0.8


BAD = np.full((N, P), np.nan)


@pytest.mark.parametrize(
    ("given", "X", "words"),
    [
        ({}, BAD, "X contains NaN"),
        ({}, np.full((N, P), np.inf), "X contains infinity"),
        ({}, np.full((N, P), "a"), "X must hold numbers"),
        ({"n_features_to_select": None}, None, "n_features_to_select must be given"),
        ({"n_features_to_select": 0}, None, "n_features_to_select must be an integer"),
        ({"n_features_to_select": 2.0}, None, "n_features_to_select must be an"),
        ({"feature_bounds": None}, None, "feature_bounds must be given"),
        ({"y_range": None}, None, "y_range must be given"),
        ({"selection_share": 0.0}, None, "selection_share must be a number"),
        ({"selection_share": 1}, None, "selection_share must be a number"),
        ({"selector": "best"}, None, "selector must be"),
        ({"selector": PeelingSelector}, None, "selector must be"),
        ({"selector": plain.Lasso()}, None, "selector must be"),
        ({"solver": "cd"}, None, "solver must be 'auto', 'adaptive_moments'"),
        ({"solver": NoisyGD}, None, "solver must be one of"),
        ({"noise": "loud"}, None, "noise must be"),
        ({"noise": "float", "solver": AMP()}, None, "set it on the solver"),
        ({"neighbors": "add_or_remove_one", "delta": None}, None, "delta must be"),
        ({"neighbors": "add_or_remove_one", "delta": 0}, None, "expected_rows must be"),
        ({"fit_intercept": "yes"}, None, "fit_intercept must be True or False"),
        ({"verbose": -1}, None, "verbose must be"),
    ],
)
def test_bad_input_is_refused_before_anything_is_charged(given, X, words):
    good, y = data()
    ledger = Ledger(Budget(5.0, 1e-5))
    refused = model(**given)
    with pytest.raises((ValueError, TypeError, PlanError), match=words) as error:
        refused.fit(good if X is None else X, y, ledger=ledger)
    assert str(N) not in str(error.value)
    assert ledger.report().entries == ()
    assert not hasattr(refused, "n_features_in_")


def test_a_selector_that_takes_no_sparse_rows_says_so():
    X, y = data(50)
    with pytest.raises(ValueError, match=r"takes no sparse X; call X\.toarray"):
        model(selector=Fixed()).fit(sparse.csr_array(X), y)


def best_subset(X, y, size):
    """Return the columns and weights with the least squared error, by trying all."""
    if size == 1:
        sizes = [(j,) for j in range(X.shape[1])]
    else:
        sizes = [(j, k) for k in range(X.shape[1]) for j in range(k)]
    fits = [plain.LinearRegression().fit(X[:, chosen], y) for chosen in sizes]
    scores = [
        fit.score(X[:, chosen], y) for fit, chosen in zip(fits, sizes, strict=True)
    ]
    best = int(np.argmax(scores))
    return sizes[best], fits[best]


@pytest.mark.parametrize("size", [1, 2])
def test_without_noise_it_is_the_best_subset(size, seed):
    X, y = data()
    fitted = model(1e6, 1e-2, n_features_to_select=size, random_state=seed).fit(X, y)
    chosen, best = best_subset(X, y, size)
    assert fitted.selection_ == chosen
    assert_allclose(fitted.coef_[list(chosen)], best.coef_, atol=2e-3)
    assert fitted.intercept_ == pytest.approx(best.intercept_, abs=2e-3)
    others = np.delete(fitted.coef_, chosen)
    assert not others.any()
    assert_array_equal(fitted.selected_features_, chosen)
    assert_array_equal(fitted.sparse_coef_.toarray(), fitted.coef_[None])


def test_the_error_falls_like_one_over_the_rows(seed):
    sizes = (2000, 8000)
    errors = []
    for n in sizes:
        X, y = data(n)
        exact = plain.LinearRegression().fit(X[:, [2, 7]], y).coef_
        runs = [
            model(3.0, solver="ada_ssp", random_state=seed + k).fit(X, y)
            for k in range(8)
        ]
        assert all(run.selection_ == (2, 7) for run in runs)
        off = [np.linalg.norm(run.coef_[[2, 7]] - exact) for run in runs]
        errors.append(np.mean(off))
    slope = np.log(errors[1] / errors[0]) / np.log(sizes[1] / sizes[0])
    assert -1.4 < slope < -0.6


def test_units_of_features_and_targets_change_nothing_else(seed):
    X, y = data()
    one = model(random_state=seed).fit(X, y)
    units = np.geomspace(0.1, 1e3, P)
    other = model(feature_bounds=units, y_range=(-300, 500), random_state=seed).fit(
        X * units, y * 100
    )
    assert one.selection_ == other.selection_
    assert_allclose(other.coef_ * units / 100, one.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_codes_of_zero_and_one_are_found(neighbors, seed):
    rng = as_generator(seed)
    X = (rng.uniform(size=(5000, 20)) < np.linspace(0.05, 0.5, 20)).astype(float)
    y = 2 * X[:, 5] - X[:, 15] + X[:, 19] + 0.3 * rng.normal(size=5000)
    fitted = model(
        n_features_to_select=3,
        feature_bounds=[(0, 1)] * 20,
        neighbors=neighbors,
        expected_rows=4000,  # a wrong guess costs accuracy only
        random_state=seed,
    ).fit(X, y)
    assert fitted.selection_ == (5, 15, 19)
    assert fitted.score(X, y) > 0.8


def test_a_target_that_fills_a_tenth_of_its_range_still_finds_its_columns(seed):
    X, y = data(10_000)
    fitted = model(2.0, y_range=(-3, 77), random_state=seed).fit(X, y)
    assert fitted.selection_ == (2, 7)


def test_far_more_columns_than_rows_are_no_problem(seed):
    X, y = data(500, 3000)
    fitted = model(8.0, random_state=seed).fit(X, y)
    assert fitted.selection_ == (2, 7)
    assert fitted.score(X, y) > 0.8


def test_sparse_rows_are_fitted_like_dense_ones(seed):
    rng = as_generator(seed)
    X = (rng.uniform(size=(3000, 15)) < 0.2) * rng.uniform(0, 1, size=(3000, 15))
    y = 2 * X[:, 3] - X[:, 4]
    given = {"feature_bounds": [(0, 1)] * 15, "random_state": seed}
    fitted = model(5.0, **given).fit(sparse.csr_array(X), y)
    assert fitted.selection_ == (3, 4)
    assert fitted.score(X, y) > 0.7
    assert_allclose(fitted.predict(sparse.csr_array(X)), fitted.predict(X))


@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (40, 3)])
def test_few_rows_and_any_budget_give_numbers(shape, epsilon, seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=shape)
    X[:, -1] = 0.5  # a constant column
    fitted = model(epsilon, random_state=seed).fit(X, X[:, 0])
    assert np.isfinite([*fitted.coef_, fitted.intercept_]).all()
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_and_without_delta_and_intercept(delta, fit_intercept, seed):
    X, y = data(5000)
    fitted = model(4.0, delta, fit_intercept=fit_intercept, random_state=seed).fit(
        X, y - (0 if fit_intercept else 1)
    )
    assert fitted.selection_ == (2, 7)
    assert fitted.score(X, y - (0 if fit_intercept else 1)) > 0.9
    assert (fitted.intercept_ != 0) is fit_intercept
    promise = fitted.privacy_.promise
    assert promise.delta == delta
    event = fitted.privacy_.entries[0].event
    assert event.curve(promise.neighbors).epsilon(delta) <= 4.0


@pytest.mark.parametrize("solver", [*NAMES, AMP(), AdaSSP(ridge=1.0)], ids=str)
def test_every_solver_fits_the_second_stage(solver, seed):
    X, y = data(1000)
    fitted = model(4.0, solver=solver, random_state=seed).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert 0.85 * 4 < fitted.privacy_.spent <= 4.0


def test_names_of_columns_give_bounds_and_are_told(seed):
    X, y = data()
    names = [f"f{j}" for j in range(P)]
    bounds = dict.fromkeys(reversed(names), (-1.0, 1.0))
    fitted = model(4.0, feature_bounds=bounds, random_state=seed)
    fitted.fit(pd.DataFrame(X, columns=names), y)
    assert fitted.selected_names_.tolist() == ["f2", "f7"]
    assert isinstance(fitted, SparseLinearModel)
    unnamed = fitted.set_params(feature_bounds=1.0).fit(X, y)
    with pytest.raises(AttributeError, match="needs names"):
        _ = unnamed.selected_names_


def test_without_an_answer_the_model_is_a_private_mean(seed):
    X, y = data()
    fitted = model(1e4, selector=Fixed(), random_state=seed).fit(X, y)
    assert fitted.selection_ == NO_ANSWER
    assert not fitted.coef_.any()
    assert fitted.intercept_ == pytest.approx(y.mean(), abs=0.02)
    assert fitted.selected_features_.size == 0
    assert fitted.sparse_coef_.nnz == 0
    assert_array_equal(fitted.predict(X), fitted.intercept_)
    # and it is not free, nor exact
    assert fitted.privacy_.spent > 0.99e4
    quiet = model(1e4, selector=Fixed(), random_state=seed, fit_intercept=False)
    assert not quiet.fit(X, y).predict(X).any()


def test_an_answer_of_fewer_columns_has_that_many_weights(seed):
    X, y = data()
    given = {"n_features_to_select": 4, "random_state": seed}
    fitted = model(1e4, selector=Fixed((2, 7)), **given).fit(X, y)
    exact = plain.LinearRegression().fit(X[:, [2, 7]], y)
    assert_allclose(fitted.coef_[[2, 7]], exact.coef_, atol=0.02)
    assert np.flatnonzero(fitted.coef_).tolist() == [2, 7]
    nothing = model(1e4, selector=Fixed(()), **given).fit(X, y)
    assert nothing.selection_ == ()
    assert nothing.intercept_ == pytest.approx(y.mean(), abs=0.02)


def test_of_an_answer_with_more_columns_the_first_are_taken(seed):
    X, y = data()
    fitted = model(1e4, selector=Fixed((2, 5, 7)), random_state=seed).fit(X, y)
    assert fitted.selection_ == (2, 5)
    assert np.flatnonzero(fitted.coef_).tolist() == [2, 5]


def test_the_noise_of_the_second_stage_is_that_of_the_columns_asked_for():
    plans = [
        model(selector=Fixed(answer), n_features_to_select=4).plan(N, P)
        for answer in (NO_ANSWER, (1,), (1, 2, 3, 4))
    ]
    assert len({repr(planned.event) for planned in plans}) == 1
    assert {planned.plan.block.n_features for planned in plans} == {5}


@pytest.mark.parametrize("name", ["auto", *selected.SELECTORS])
def test_every_selector_can_be_named(name, seed):
    X, y = data(3000, 5 + 3)
    ledger = Ledger(Budget(20.0, 1e-4))
    fitted = model(20.0, 1e-4, selector=name, random_state=seed)
    fitted.fit(X, y, ledger=ledger)
    assert fitted.selection_ in ((2, 7), NO_ANSWER)
    if name in ("auto", "peeling", "exponential"):
        assert fitted.selection_ == (2, 7)
    assert len(ledger.report().entries) == 1
    assert ledger.spent() <= 20.0


def test_of_a_selector_object_only_its_own_parameters_count(seed):
    X, y = data()
    other = {
        "epsilon": 77.0,
        "delta": 0.3,
        "n_features_to_select": 9,
        "feature_bounds": 3.0,
        "y_range": (0, 1),
        "neighbors": "add_or_remove_one",
        "expected_rows": 3,
        "random_state": 5,
    }
    given = PeelingSelector(**other)
    one = model(selector=given, random_state=seed).fit(X, y)
    two = model(selector="peeling", random_state=seed).fit(X, y)
    assert one.privacy_.entries == two.privacy_.entries
    assert_array_equal(one.coef_, two.coef_)
    assert {key: given.get_params()[key] for key in other} == other
    assert not hasattr(given, "selection_")


def test_votes_around_another_selector_are_taken(seed):
    X, y = data(4000)
    fitted = model(
        20.0,
        1e-3,
        selector=BlockVoteSelector(n_features_to_select=2, n_blocks=20),
        random_state=seed,
    ).fit(X, y)
    assert fitted.selection_ in ((2, 7), NO_ANSWER)
    first = fitted.privacy_.entries[0].event.events[0]
    assert isinstance(first, ApproxDP | PureDP | Composed)


def test_scores_work_and_intervals_are_refused(seed):
    X, y = data()
    fitted = model(4.0, random_state=seed).fit(X, y)
    score = private_score(fitted, X, y, epsilon=1.0, random_state=seed)
    assert score.measure == "mean absolute error"
    assert score.low <= score.value <= score.high
    with pytest.raises(ValueError, match="not available for sparse models"):
        coefficient_intervals(fitted, X, y, epsilon=1.0)
    assert fitted.noise_ is None


def test_scores_to_expect_are_of_as_many_columns_as_are_selected():
    forecast = expected_score(model(2.0), 2000, [1] * 8, repeats=1)
    something = forecast.outlooks[1]
    assert something.signal == "something"
    assert something.plain == pytest.approx(0.5, abs=0.1)
    # two columns are enough, as no more tell anything
    assert something.high > 0.3


def test_rows_of_a_file_are_fitted_like_rows_in_memory(tmp_path, seed):
    X, y = data(300)
    path = tmp_path / "rows"
    stored = np.memmap(path, dtype=np.float64, mode="w+", shape=X.shape)
    stored[:] = X
    one, two = (model(random_state=seed).fit(rows, y) for rows in (X, stored))
    assert_array_equal(one.coef_, two.coef_)


def test_it_is_a_step_of_a_pipeline(seed):
    X, y = data()
    steps = make_pipeline(FunctionTransformer(), model(4.0, random_state=seed))
    assert steps.fit(X, y).score(X, y) > 0.8


def neighbors_of(relation):
    """Return few rows that differ in one, at the corners of what is allowed."""
    rng = as_generator(1)
    X = np.where(rng.uniform(size=(6, 5)) < 0.5, -1.0, 1.0)
    y = np.where(rng.uniform(size=6) < 0.5, Y_RANGE[0], Y_RANGE[1])
    X[0], y[0] = 1.0, Y_RANGE[1]
    if relation == "add_or_remove_one":
        return (X, y), (X[1:], y[1:])
    other, targets = X.copy(), y.copy()
    other[0], targets[0] = [1, -1, 1, -1, 0], Y_RANGE[0]
    return (X, y), (other, targets)


def trained(relation, solver, delta=1e-6):
    def train(X, y):
        given = {"neighbors": relation, "expected_rows": 6, "solver": solver}
        return model(2.0, delta, random_state=3, **given).fit(X, y)

    return train


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize("solver", ["ada_ssp", "noisy_gd", "preconditioned_gd"])
def test_neighbors_differ_in_what_mechanisms_hide_alone(relation, solver):
    report = assert_replays(
        trained(relation, solver), *neighbors_of(relation), min_releases=3
    )
    assert len({entry.label for entry in report.entries}) >= 2


class SeesAll(TwoStage):
    """A second stage that sees all columns, as they are."""

    def _block_rows(self, plan, X, y, chosen):
        rows = super()._block_rows(plan, X, y, chosen)
        columns, targets = rows.held()
        columns[:, 0] += X.sum(axis=1)
        return ArrayRows(columns, targets)


class ChoosesAgain(TwoStage):
    """A second stage that takes the best columns instead of those released."""

    def _block_rows(self, plan, X, y, chosen):
        best = np.sort(np.argsort(-np.abs(X.T @ y))[: len(chosen)])
        chosen[:] = best.tolist()
        return super()._block_rows(plan, X, y, chosen)


@pytest.mark.parametrize("broken", [SeesAll, ChoosesAgain])
def test_a_second_stage_that_sees_all_columns_is_caught(monkeypatch, broken):
    monkeypatch.setattr(selected, "TwoStage", broken)
    train = trained("replace_one", "ada_ssp")
    assert not replay(train, *neighbors_of("replace_one")).ok
