"""Both stages of a regression on selected columns: what they spend and refuse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as plain
from tests.linear_model.selected import VOTES, Fixed, N, P, data, model

from tacit.exceptions import BudgetExceeded, PlanError
from tacit.feature_selection import (
    PeelingSelector,
)
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import Budget, Composed, Ledger
from tacit.solvers import AMP, NoisyGD


@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_stages_together_are_what_is_promised(epsilon, delta, neighbors):
    given = {"neighbors": neighbors, "expected_rows": N}
    if epsilon != 1.0:
        given["selector"] = VOTES
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
        for planned in (
            model(selection_share=s, selector=VOTES).plan(N, P) for s in (0.2, 0.5, 0.8)
        )
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

    monkeypatch.setattr(PeelingSelector, "select", fails)
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
    guarantee = fitted.privacy_.guarantee
    assert fitted.selection_spent_ == first.curve(guarantee.neighbors).epsilon(1e-6)
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
        ({"solver": "cd"}, None, "solver must be 'auto', .* got 'cd'"),
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
    rejected = model(**given)
    with pytest.raises((ValueError, TypeError, PlanError), match=words) as error:
        rejected.fit(good if X is None else X, y, ledger=ledger)
    assert str(N) not in str(error.value)
    assert ledger.report().entries == ()
    assert not hasattr(rejected, "n_features_in_")


def test_a_selector_that_takes_no_sparse_rows_says_so():
    X, y = data(50)
    with pytest.raises(ValueError, match=r"takes no sparse X; call X\.toarray"):
        model(selector=Fixed()).fit(sparse.csr_array(X), y)


def test_the_noise_of_the_second_stage_is_that_of_the_columns_asked_for():
    plans = [
        model(selector=Fixed(answer), n_features_to_select=4).plan(N, P)
        for answer in (NO_ANSWER, (1,), (1, 2, 3, 4))
    ]
    assert len({repr(planned.event) for planned in plans}) == 1
    assert {planned.plan.block.n_features for planned in plans} == {5}
