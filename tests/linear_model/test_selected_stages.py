"""Selectors and solvers of a regression on selected columns, and what joins them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import linear_model as plain
from sklearn.feature_selection import SelectKBest, f_regression
from tests.linear_model.selected import VOTES, Y_RANGE, Fixed, data, model

from tacit._discovery import classes_by
from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.data.rows import ArrayRows
from tacit.feature_selection import (
    BlockVoteSelector,
    PeelingSelector,
)
from tacit.linear_model import _selected as selected
from tacit.linear_model._two_stage import TwoStage, second_stage_names
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import ApproxDP, Budget, Ledger
from tacit.solvers import AMP, AdaSSP


@pytest.mark.parametrize(
    "solver", [*second_stage_names(), AMP(), AdaSSP(ridge=1.0)], ids=str
)
def test_every_solver_fits_the_second_stage(solver, seed):
    X, y = data(1000)
    fitted = model(4.0, solver=solver, selector=VOTES, random_state=seed).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert 0.85 * 4 < fitted.privacy_.spent <= 4.0


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
    assert nothing.released_  # no columns are an answer, if one that is false to Python
    assert not model(selector=Fixed(), **given).fit(X, y).released_
    assert nothing.intercept_ == pytest.approx(y.mean(), abs=0.02)


def test_of_an_answer_with_more_columns_the_first_are_taken(seed):
    X, y = data()
    fitted = model(1e4, selector=Fixed((2, 5, 7)), random_state=seed).fit(X, y)
    assert fitted.selection_ == (2, 5)
    assert np.flatnonzero(fitted.coef_).tolist() == [2, 5]


@pytest.mark.parametrize(
    "name", ["auto", *classes_by("name", "tacit.feature_selection")]
)
def test_every_selector_can_be_named(name, seed):
    X, y = data(3000, 5 + 3)
    ledger = Ledger(Budget(20.0, 1e-4))
    fitted = model(20.0, 1e-4, selector=name, random_state=seed)
    fitted.fit(X, y, ledger=ledger)
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
        selector=BlockVoteSelector(
            n_features_to_select=2, selector=SelectKBest(f_regression, k=2), n_blocks=20
        ),
        random_state=seed,
    ).fit(X, y)
    assert fitted.selection_ == (2, 7)
    first = fitted.privacy_.entries[0].event.events[0]
    assert isinstance(first, ApproxDP)


@pytest.mark.parametrize("kind", ["dense", "sparse", "no intercept"])
def test_a_selector_of_ones_own_sees_the_numbers_that_it_sees_alone(kind, seed):
    seen = []

    def keep(X, y):
        seen.append((X.toarray() if sparse.issparse(X) else X, y))
        return (0, 1)

    X, y = data(60, 8)
    X = 5 * np.abs(X)
    public = {"feature_bounds": (0, 4), "y_range": (-0.25, 0.5)}
    votes = BlockVoteSelector(
        n_features_to_select=2, selector=keep, n_blocks=1, **public
    )
    rows = sparse.csr_array(X) if kind == "sparse" else X
    votes.fit(rows, y)
    model(
        selector=votes,
        random_state=seed,
        fit_intercept=kind != "no intercept",
        **public,
    ).fit(rows, y)
    (alone, targets), (inside, inside_targets) = seen
    assert alone.max() == 4.0
    assert_allclose(np.sort(inside, axis=0), np.sort(alone, axis=0), atol=1e-14)
    assert_allclose(np.sort(inside_targets), np.sort(targets), atol=1e-15)


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
        columns, targets = rows.arrays()
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
