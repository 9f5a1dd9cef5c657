"""How many rows it takes to find columns, as forecast and as found."""

from itertools import pairwise

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.evaluation import rows_for_support
from tacit.evaluation._forecast_selection import BOUND, RANGE_REACH, SUPPORT_METHODS
from tacit.exceptions import PlanError
from tacit.feature_selection import (
    BlockVoteSelector,
    ExponentialSelector,
    LassoStabilitySelector,
    PeelingSelector,
)
from tacit.feature_selection._block_selectors import first_columns

PRIVATE = [method for method in SUPPORT_METHODS if method != "lasso"]
each_method = pytest.mark.parametrize("method", SUPPORT_METHODS)
BASE = {"n_features": 200, "n_relevant": 4}


def rows(method, **given):
    given = {**BASE, **given}
    return rows_for_support(
        given.pop("n_features"), given.pop("n_relevant"), method=method, **given
    )


@each_method
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n_features", [50, 200, 5000]),
        ("n_relevant", [2, 4, 8]),
        ("noise", [0.1, 0.25, 1.0]),
    ],
)
def test_harder_problems_take_more_rows(method, name, values):
    found = [rows(method, **{name: value}) for value in values]
    # within a hundredth, to which the search goes
    assert all(a <= 1.02 * b for a, b in pairwise(found))
    assert found[0] < found[-1] or (name, method) == ("n_features", "stability")


@each_method
def test_a_stronger_signal_takes_fewer_rows(method):
    assert rows(method, signal=1.0) < rows(method, signal=0.25)


@pytest.mark.parametrize("method", PRIVATE)
def test_a_larger_budget_takes_fewer_rows(method):
    found = [rows(method, epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0)]
    assert found[0] > found[1] > found[2] >= rows("lasso")
    strict, loose = (rows(method, delta=delta) for delta in (1e-10, 1e-3))
    assert strict > loose or method == "exponential"


@pytest.mark.parametrize("method", PRIVATE)
def test_adding_a_row_is_never_harder_than_replacing_one(method):
    added = rows(method, neighbors="add_or_remove_one")
    assert added <= 1.02 * rows(method)


@each_method
def test_without_a_delta_only_methods_that_always_answer_have_a_forecast(method):
    if method in ("blocks", "subsamples", "stability"):
        with pytest.raises(PlanError, match="delta"):
            rows(method, delta=0.0)
    else:
        assert rows(method, delta=0.0) >= rows(method)


def test_the_lasso_takes_what_theory_says():
    # 2 (s + (noise / (signal spread))^2) log p, to leading order
    leading = 2 * (4 + 1) * np.log(197)
    assert rows("lasso") == pytest.approx(leading, abs=7)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "forward"),
        ("n_relevant", 0),
        ("n_features", 0),
        ("n_features", 3),
        ("n_relevant", 201),
        ("signal", 0.0),
        ("noise", -1.0),
        ("spread", 2.0),
        ("failure", 1.0),
        ("coef_bound", 0.0),
        ("epsilon", 0.0),
        ("neighbors", "all"),
    ],
)
def test_wrong_parameters_are_refused_by_name(name, value):
    method = value if name == "method" else "blocks"
    given = {} if name == "method" else {name: value}
    with pytest.raises(ValueError, match=name):
        rows(method, **given)


def found_share(select, n, p, s, runs, seed, signal=0.5):
    """Return the share of synthetic data sets on which the selection is right."""
    hits = 0
    for run in range(runs):
        rng = as_generator(1000 * seed + run)
        X = np.clip(rng.standard_normal((n, p)) / 2, -1, 1)
        relevant = np.sort(rng.choice(p, s, replace=False))
        y = X[:, relevant] @ (signal * rng.choice([-1, 1], s))
        y = y + 0.25 * rng.standard_normal(n)
        hits += tuple(select(X, y, run)) == tuple(relevant)
    return hits / runs


def selection(selector, X, y):
    """Return what is selected, nothing where there is no answer or no plan."""
    try:
        selector.fit(X, y)
    except PlanError:  # too few rows for any penalty
        return ()
    return selector.selection_ if selector.released_ else ()


def bounded(kind, delta=1e-6, own=lambda s, width: {}, signal=0.5, **given):
    """Fit a selector in the public ranges that forecasts are about."""

    def select(X, y, s, epsilon, run):
        width = RANGE_REACH * np.sqrt(s * (signal / 2) ** 2 + 0.25**2)
        selector = kind(
            epsilon,
            delta,
            n_features_to_select=s,
            feature_bounds=1.0,
            y_range=(-width, width),
            random_state=run,
            **given,
            **own(s, width),
        )
        return selection(selector, X, y)

    return select


def voting(method, **given):
    def select(X, y, s, epsilon, run):
        selector = BlockVoteSelector(
            epsilon,
            1e-6,
            n_features_to_select=s,
            method=method,
            random_state=run,
            **given,
        )
        return selection(selector, X, y)

    return select


def weight_bound(s, width):
    return {"coef_bound": BOUND * s * 0.5 / width}


def first_of_the_path(X, y):
    """The column that enters the lasso path first, without the path."""
    return [int(np.argmax(np.abs(X.T @ y)))]


# what selects, of how many columns how many matter, and at which epsilon
SUBJECTS = {
    "lasso": (lambda X, y, s, *_: sorted(first_columns(X, y, s)), 60, 3, 2.0),
    "correlation": (bounded(PeelingSelector, method="correlation"), 60, 3, 2.0),
    "pursuit": (bounded(PeelingSelector, method="pursuit"), 60, 3, 2.0),
    "blocks": (voting("blocks"), 30, 2, 2.0),
    "features": (voting("features"), 30, 2, 2.0),
    # thousands of votes, unless epsilon is large
    "subsamples": (voting("subsamples", selector=first_of_the_path), 10, 1, 20.0),
    "stability": (bounded(LassoStabilitySelector), 30, 2, 2.0),
    "exponential": (bounded(ExponentialSelector, 0.0, own=weight_bound), 12, 2, 2.0),
}


def test_all_forecasts_are_compared_with_fits():
    assert set(SUBJECTS) == set(SUPPORT_METHODS)


def share_with(method, factor, runs, seed):
    """Return the share of runs that are right with so many times the forecast."""
    select, p, s, epsilon = SUBJECTS[method]
    forecast = rows_for_support(p, s, method=method, epsilon=epsilon)
    n = int(factor * forecast)
    return found_share(
        lambda X, y, run: select(X, y, s, epsilon, run), n, p, s, runs, seed
    )


@pytest.mark.statistical
# subsamples ask so often that they have the slow test alone
@pytest.mark.parametrize("method", [name for name in SUBJECTS if name != "subsamples"])
def test_forecasts_are_within_a_factor_of_three(method, seed):
    # with three times the rows most runs succeed, with a third of them most fail. For
    # probabilities of 0.95 and 0.2, of which those measured are on the right side, it
    # fails wrongly with probability 0.004
    assert share_with(method, 3, 12, seed) >= 0.5
    assert share_with(method, 1 / 3, 12, seed) <= 0.5


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("method", SUBJECTS)
def test_forecasts_are_within_a_factor_of_three_in_many_runs(method, seed):
    # as above, with probability 5e-6
    assert share_with(method, 3, 40, seed) >= 0.5
    assert share_with(method, 1 / 3, 40, seed) <= 0.5
