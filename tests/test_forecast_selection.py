"""How many rows it takes to find columns, as forecast and as found."""

from itertools import pairwise

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.feature_selection import BlockVoteSelector, PeelingSelector
from tacit.feature_selection._ask import first_columns
from tacit.forecast import rows_for_support
from tacit.forecast._selection import SUPPORT_METHODS

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
        ("n_features", 3),
        ("signal", 0.0),
        ("noise", -1.0),
        ("spread", 2.0),
        ("failure", 1.0),
        ("epsilon", 0.0),
        ("neighbors", "all"),
    ],
)
def test_wrong_parameters_are_refused_by_name(name, value):
    method = value if name == "method" else "blocks"
    given = {} if name == "method" else {name: value}
    with pytest.raises(ValueError, match=name):
        rows(method, **given)


def found_share(select, n, p, s, runs, seed):
    """Return the share of made-up data sets on which the selection is right."""
    hits = 0
    for run in range(runs):
        rng = as_generator(1000 * seed + run)
        X = np.clip(rng.standard_normal((n, p)) / 2, -1, 1)
        relevant = np.sort(rng.choice(p, s, replace=False))
        y = X[:, relevant] @ (0.5 * rng.choice([-1, 1], s))
        y = y + 0.25 * rng.standard_normal(n)
        hits += tuple(select(X, y, run)) == tuple(relevant)
    return hits / runs


def peeling(method, s):
    def select(X, y, run):
        selector = PeelingSelector(
            2.0,
            1e-6,
            n_features_to_select=s,
            feature_bounds=1.0,
            y_range=(-3, 3),
            method=method,
            random_state=run,
        )
        return selector.fit(X, y).selection_

    return select


def voting(method, s):
    def select(X, y, run):
        selector = BlockVoteSelector(
            2.0, 1e-6, n_features_to_select=s, method=method, random_state=run
        )
        selector.fit(X, y)
        return selector.selection_ if selector.released_ else ()

    return select


SUBJECTS = {
    "lasso": lambda s: lambda X, y, run: sorted(first_columns(X, y, s)),
    "correlation": lambda s: peeling("correlation", s),
    "pursuit": lambda s: peeling("pursuit", s),
    "blocks": lambda s: voting("blocks", s),
    "features": lambda s: voting("features", s),
}


@pytest.mark.statistical
@pytest.mark.parametrize("method", SUBJECTS)
def test_forecasts_are_within_a_factor_of_three(method, seed):
    # with three times the rows most runs succeed, with a third of them most fail: by
    # chance neither fails for probabilities of 0.95 and 0.2
    p, s, runs = 60, 3, 8
    forecast = rows_for_support(p, s, method=method, epsilon=2.0)
    select = SUBJECTS[method](s)
    assert found_share(select, 3 * forecast, p, s, runs, seed) >= 0.5
    assert found_share(select, forecast // 3, p, s, runs, seed) <= 0.5
